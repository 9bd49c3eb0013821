//! gzip: any bytes give a result within the bound, whatever comes first; and codings are agreed on.
#![no_main]

use assay_http::coding::{Accepted, Coding, GzipReader, GzipWriter};
use libfuzzer_sys::fuzz_target;

const LIMIT: u64 = 1 << 20;

fn decode(pieces: &[&[u8]]) {
    let (mut reader, mut out) = (GzipReader::new(LIMIT), 0);
    for piece in pieces {
        if reader.push(piece, |bytes| out += bytes.len() as u64).is_err() {
            break;
        }
    }
    assert!(out <= LIMIT);
}

fuzz_target!(|bytes: &[u8]| {
    decode(&[bytes]);
    // Behind a good head, the fuzzer gets further.
    decode(&[b"\x1f\x8b\x08\0\0\0\0\0\0\xff", bytes]);
    let mut coded = Vec::new();
    GzipWriter::new().encode([bytes], &mut coded);
    let (mut reader, mut back) = (GzipReader::new(bytes.len() as u64), Vec::new());
    reader.push(&coded, |piece| back.extend_from_slice(piece)).expect("was just written");
    assert!(reader.is_done() && back == bytes);
    let accepted = Accepted::parse([bytes]);
    if let Some(coding) = accepted.choose(&[Coding::Gzip, Coding::Identity]) {
        assert!(accepted.quality(coding) > 0);
    }
});
