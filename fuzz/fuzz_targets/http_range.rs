//! Ranges: any bytes give a result, what is read can be written and read again, and a multipart body means the same
//! however it is cut.
#![no_main]

use assay_http::range::{
    ContentRange, MultipartError, MultipartReader, Part, Span, boundary, parse_range, satisfy, write_range,
};
use libfuzzer_sys::fuzz_target;

fn read(body: &[u8], step: usize) -> Result<(Vec<(Span, Vec<u8>)>, bool), MultipartError> {
    let (mut reader, mut parts) = (MultipartReader::new(b"B"), Vec::new());
    for mut piece in body.chunks(step) {
        loop {
            let (part, used) = reader.next(piece)?;
            piece = &piece[used..];
            match part {
                Part::Begin { span, .. } => parts.push((span, Vec::new())),
                Part::Data(data) => {
                    let (span, bytes) = parts.last_mut().expect("a part has begun");
                    bytes.extend_from_slice(data);
                    assert!(bytes.len() as u64 <= span.len());
                }
                Part::NeedMore | Part::End => break,
            }
        }
    }
    Ok((parts, reader.is_done()))
}

fuzz_target!(|bytes: &[u8]| {
    if let Ok(ranges) = parse_range(bytes) {
        let mut out = Vec::new();
        write_range(&ranges, &mut out);
        assert_eq!(parse_range(&out).as_ref(), Ok(&ranges));
        for span in satisfy(&ranges, 1000) {
            assert!(!span.is_empty() && span.to <= 1000);
        }
    }
    if let Some(range) = ContentRange::parse(bytes) {
        let mut out = Vec::new();
        range.write(&mut out);
        assert_eq!(ContentRange::parse(&out), Some(range));
    }
    boundary(bytes);
    assert_eq!(read(bytes, 1), read(bytes, usize::MAX));
});
