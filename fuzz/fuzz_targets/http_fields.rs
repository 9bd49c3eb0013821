//! Values of small fields: dates, `Cache-Control`, `Content-MD5`, hosts. Whatever is read is written the same again.
#![no_main]

use assay_http::cache_control::CacheControl;
use assay_http::date::{DATE_BYTES, parse_date, write_date};
use assay_http::digest::{parse_content_md5, write_content_md5};
use assay_http::field::{decimal, list, tokens, write_decimal};
use assay_http::{base64, target};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    if let Some(unix_s) = parse_date(bytes) {
        let mut text = [0; DATE_BYTES];
        write_date(unix_s, &mut text);
        assert_eq!(parse_date(&text), Some(unix_s));
    }
    if let Some(digest) = parse_content_md5(bytes) {
        let mut text = Vec::new();
        write_content_md5(&digest, &mut text);
        assert_eq!(parse_content_md5(&text), Some(digest));
    }
    if let Some(number) = decimal(bytes) {
        let mut text = Vec::new();
        write_decimal(&mut text, number);
        assert_eq!(decimal(&text), Some(number));
    }
    if let Some(plain) = base64::decode(bytes) {
        let mut text = Vec::new();
        base64::encode(&plain, &mut text);
        assert_eq!(base64::decode(&text), Some(plain));
    }
    // A list in one field is the same as its members in a field each.
    let whole = CacheControl::parse([bytes]);
    assert_eq!(whole, CacheControl::parse(list(bytes)), "a list is its members");
    assert!(tokens(bytes).all(|member| !member.is_empty()));
    if let Ok(host) = target::authority(bytes) {
        assert!(host.bytes().all(|byte| byte.is_ascii_graphic() && !b"/?#@\\".contains(&byte)), "{host}");
    }
});
