//! Header compression: what is decoded can be encoded, and is the same when it is decoded again.
#![no_main]

use assay_http2::hpack::{Decoder, Encoder, HpackError};
use libfuzzer_sys::fuzz_target;

type Fields = Vec<(Vec<u8>, Vec<u8>)>;

fn decoded(decoder: &mut Decoder, block: &[u8]) -> Result<Fields, HpackError> {
    let mut fields = Vec::new();
    decoder.decode(block, |field| fields.push((field.name.to_vec(), field.value.to_vec())))?;
    Ok(fields)
}

fuzz_target!(|blocks: Vec<&[u8]>| {
    let (mut decoder, mut encoder, mut again) = (Decoder::default(), Encoder::default(), Decoder::default());
    for block in blocks {
        let Ok(fields) = decoded(&mut decoder, block) else { return };
        let (mut out, mut kept) = (Vec::new(), Vec::new());
        encoder.begin(&mut out);
        for (name, value) in fields {
            let before = out.len();
            encoder.field(&name, &value, &mut out);
            // Fields of connections of HTTP/1.1 are left out.
            if out.len() > before {
                kept.push((name.to_ascii_lowercase(), value));
            }
        }
        assert_eq!(decoded(&mut again, &out).expect("our own blocks are valid"), kept);
    }
});
