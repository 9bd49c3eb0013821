//! The Huffman code of HPACK: a text has one code, and a code one text.
#![no_main]

use assay_http2::hpack::huffman::{decode, encode, encoded_bytes};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let (mut coded, mut room) = (Vec::new(), Vec::new());
    encode(bytes, &mut coded);
    assert_eq!(coded.len(), encoded_bytes(bytes));
    assert_eq!(decode(&coded, &mut room), Some(bytes));
    if let Some(text) = decode(bytes, &mut room) {
        let mut again = Vec::new();
        encode(text, &mut again);
        assert_eq!(again, bytes);
    }
});
