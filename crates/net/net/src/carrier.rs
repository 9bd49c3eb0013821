//! A body in transit from one connection to another: bytes in, bytes out, and its end.

use assay_http::chunked::{CHUNK_END, CHUNK_HEAD_BYTES, ChunkError, Decoder, LAST_CHUNK, Piece, chunk_head};
use assay_http::framing::BodyFraming;

/// Decodes a body in the framing that it arrives in, and encodes it in the one that it leaves in.
#[derive(Debug)]
pub struct Carrier {
    from: IncomingBody,
    /// The body leaves in chunked coding.
    in_chunks: bool,
    /// Bytes of content so far.
    pub payload: u64,
}

#[derive(Debug)]
enum IncomingBody {
    Length(u64),
    Chunked(Decoder),
    UntilClose,
    Done,
}

impl Carrier {
    /// A body that arrives in `framing`, and leaves in chunks or as it is.
    pub fn new(framing: BodyFraming, in_chunks: bool) -> Self {
        let from = match framing {
            BodyFraming::None | BodyFraming::Length(0) => IncomingBody::Done,
            BodyFraming::Length(bytes) => IncomingBody::Length(bytes),
            BodyFraming::Chunked => IncomingBody::Chunked(Decoder::new()),
            BodyFraming::UntilClose => IncomingBody::UntilClose,
        };
        Self { from, in_chunks, payload: 0 }
    }

    pub fn is_done(&self) -> bool {
        matches!(self.from, IncomingBody::Done)
    }

    /// The body leaves byte by byte as it arrives.
    pub fn is_plain(&self) -> bool {
        !self.in_chunks && matches!(self.from, IncomingBody::Length(_) | IncomingBody::UntilClose)
    }

    /// Upper bound on the plain bytes still to come; none: the body does not leave byte by byte, or all has come.
    pub fn plain_left(&self) -> Option<u64> {
        match self.from {
            IncomingBody::Length(left) if !self.in_chunks => Some(left),
            IncomingBody::UntilClose if !self.in_chunks => Some(u64::MAX),
            _ => None,
        }
    }

    /// Consumes up to `count` plain bytes of the body, and returns how many belong to it.
    pub fn take_plain(&mut self, count: usize) -> usize {
        let taken = match &mut self.from {
            IncomingBody::Length(left) => {
                let taken = usize::try_from(*left).unwrap_or(usize::MAX).min(count);
                *left -= taken as u64;
                if *left == 0 {
                    self.from = IncomingBody::Done;
                }
                taken
            }
            IncomingBody::UntilClose => count,
            IncomingBody::Chunked(_) | IncomingBody::Done => 0,
        };
        self.payload += taken as u64;
        taken
    }

    /// Appends what leaves for these bytes, and returns the count that is consumed.
    pub fn take(&mut self, bytes: &[u8], out: &mut Vec<u8>) -> Result<usize, ChunkError> {
        let IncomingBody::Chunked(decoder) = &mut self.from else {
            let taken = self.take_plain(bytes.len());
            append(out, &bytes[..taken], self.in_chunks);
            if taken > 0 && self.is_done() && self.in_chunks {
                out.extend_from_slice(LAST_CHUNK);
            }
            return Ok(taken);
        };
        let mut at = 0;
        loop {
            let (piece, used) = decoder.next(&bytes[at..])?;
            at += used;
            match piece {
                Piece::Data(data) => {
                    self.payload += data.len() as u64;
                    append(out, data, self.in_chunks);
                }
                Piece::NeedMore => return Ok(at),
                Piece::End => break,
            }
        }
        self.from = IncomingBody::Done;
        if self.in_chunks {
            out.extend_from_slice(LAST_CHUNK);
        }
        Ok(at)
    }

    /// Ends the input, and returns whether the body is complete.
    pub fn end(&mut self, out: &mut Vec<u8>) -> bool {
        if matches!(self.from, IncomingBody::UntilClose) {
            self.from = IncomingBody::Done;
            if self.in_chunks {
                out.extend_from_slice(LAST_CHUNK);
            }
        }
        self.is_done()
    }
}

fn append(out: &mut Vec<u8>, data: &[u8], in_chunks: bool) {
    if !in_chunks || data.is_empty() {
        out.extend_from_slice(data);
        return;
    }
    out.extend_from_slice(chunk_head(data.len() as u64, &mut [0; CHUNK_HEAD_BYTES]));
    out.extend_from_slice(data);
    out.extend_from_slice(CHUNK_END);
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Carries a body that comes in pieces; what goes on, and the payload of that.
    fn carried(framing: BodyFraming, in_chunks: bool, bytes: &[u8], cut: usize) -> (Vec<u8>, usize, bool) {
        let mut carrier = Carrier::new(framing, in_chunks);
        let mut out = Vec::new();
        let cut = cut.min(bytes.len());
        let mut used = carrier.take(&bytes[..cut], &mut out).expect("is well formed");
        if !carrier.is_done() {
            used += carrier.take(&bytes[used..], &mut out).expect("is well formed");
        }
        (out, used, carrier.is_done())
    }

    fn payload(bytes: &[u8]) -> Vec<u8> {
        let mut out = Vec::new();
        let mut carrier = Carrier::new(BodyFraming::Chunked, false);
        carrier.take(bytes, &mut out).expect("is well formed");
        assert!(carrier.is_done());
        out
    }

    proptest! {
        #[test]
        fn what_goes_in_comes_out_whatever_the_framing(body in prop::collection::vec(any::<u8>(), 1..200), cut in 0usize..250) {
            let mut long = body.clone();
            long.extend_from_slice(b"next");
            let framing = BodyFraming::Length(body.len() as u64);
            prop_assert_eq!(carried(framing, false, &long, cut), (body.clone(), body.len(), true));
            let (chunks, used, done) = carried(framing, true, &long, cut);
            prop_assert_eq!((payload(&chunks), used, done), (body.clone(), body.len(), true));
            let length = chunks.len();
            let mut more = chunks;
            more.extend_from_slice(b"next");
            let (again, used, done) = carried(BodyFraming::Chunked, true, &more, cut);
            prop_assert_eq!((payload(&again), used, done), (body.clone(), length, true));
            prop_assert_eq!(carried(BodyFraming::Chunked, false, &more, cut), (body, length, true));
        }
    }

    #[test]
    fn an_end_is_one_only_where_the_connection_delimits_the_body() {
        let mut out = Vec::new();
        let mut carrier = Carrier::new(BodyFraming::UntilClose, true);
        assert_eq!(carrier.take(b"ab", &mut out), Ok(2));
        assert!(carrier.end(&mut out));
        assert_eq!(out, b"2\r\nab\r\n0\r\n\r\n");
        assert!(!Carrier::new(BodyFraming::Length(3), false).end(&mut Vec::new()));
        assert!(!Carrier::new(BodyFraming::Chunked, false).end(&mut Vec::new()));
        assert!(Carrier::new(BodyFraming::None, false).is_done());
    }
}
