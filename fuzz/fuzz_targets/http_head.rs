//! Heads of requests and responses: any bytes give a result, more bytes do not change a head that is complete, and what
//! is found lies within it.
#![no_main]

use assay_http::cache_control::CacheControl;
use assay_http::date::parse_date;
use assay_http::head::{MAX_HEADERS, RequestHead, ResponseHead};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    if let Ok(Some((head, length))) = RequestHead::parse(bytes) {
        assert!(length <= bytes.len());
        assert!(lines_end_in_cr_lf(&bytes[..length]));
        assert!(!(head.facts.chunked && head.facts.content_length.is_some()));
        assert!(head.headers().count() <= MAX_HEADERS);
        let again =
            RequestHead::parse(&bytes[..length]).ok().flatten().map(|(head, length)| (head.facts, length));
        assert_eq!(again, Some((head.facts, length)));
        head.body();
    }
    if let Ok(Some((head, length))) = ResponseHead::parse(bytes) {
        assert!(length <= bytes.len());
        assert!(lines_end_in_cr_lf(&bytes[..length]));
        for field in head.headers() {
            assert!(!field.name.is_empty() && !field.value.contains(&b'\n'));
            parse_date(field.value);
            CacheControl::parse([field.value]);
        }
        assert!((100..=999).contains(&head.status));
        head.body("GET");
    }
});

/// Nothing in a head can be taken for the end of a line by one reader and not by another.
fn lines_end_in_cr_lf(head: &[u8]) -> bool {
    (0..head.len()).all(|at| head[at] != b'\n' || (at > 0 && head[at - 1] == b'\r'))
}
