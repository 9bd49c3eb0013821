//! Chunked bodies: the payload does not depend on how the bytes arrive.
#![no_main]

use assay_http::chunked::{ChunkError, Decoder, Piece};
use libfuzzer_sys::fuzz_target;

fn decode(body: &[u8], step: usize) -> Result<(Vec<u8>, usize, bool), ChunkError> {
    let (mut decoder, mut payload, mut used) = (Decoder::new(), Vec::new(), 0);
    for end in (0..body.len()).step_by(step).map(|at| (at + step).min(body.len())) {
        while used < end && !decoder.is_done() {
            let (piece, taken) = decoder.next(&body[used..end])?;
            used += taken;
            if let Piece::Data(data) = piece {
                assert!(!data.is_empty());
                payload.extend_from_slice(data);
            }
        }
    }
    Ok((payload, used, decoder.is_done()))
}

fuzz_target!(|input: (u8, &[u8])| {
    let (step, body) = input;
    assert_eq!(decode(body, usize::from(step).max(1)), decode(body, body.len().max(1)));
});
