//! The bytes that follow the head of a response, and the slices in which they go out.
//!
//! Nearly always the body of an object: slices of the static pool. Else parts of one, with what stands between them, or
//! bytes that were made for this response.

use std::io::{self, IoSlice};

use assay_http::range::Span;
use assay_net::byte_stream::ByteStream;
use assay_workload::body::{Body, Pool};
use tokio::net::TcpStream;

/// Slices given to one write: the head, and slices of at most 64 KiB of the pool.
pub const SLICES: usize = 17;

/// What follows a head.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Payload {
    Nothing,
    Whole {
        body: Body,
        /// Bytes of it that stand behind the head already.
        copied: u64,
    },
    /// Pieces of one body, and other bytes.
    Pieces(Box<Pieces>),
}

/// Pieces of one body, and other bytes, one after another.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pieces {
    pub body: Option<Body>,
    pub pieces: Vec<Piece>,
}

/// A piece of a payload.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Piece {
    /// These bytes.
    Bytes(Vec<u8>),
    /// Bytes of the body.
    OfBody(Span),
}

impl Piece {
    fn len(&self) -> u64 {
        match self {
            Piece::Bytes(bytes) => bytes.len() as u64,
            Piece::OfBody(span) => span.len(),
        }
    }

    /// Bytes from `from` on, as many as can be had at once and at most `max`.
    fn chunk<'a>(&'a self, body: Option<&'a Body>, pool: &'a Pool, from: u64, max: usize) -> &'a [u8] {
        match self {
            Piece::Bytes(bytes) => {
                let rest = &bytes[usize::try_from(from).unwrap_or(usize::MAX).min(bytes.len())..];
                &rest[..rest.len().min(max)]
            }
            Piece::OfBody(span) => {
                let left = usize::try_from(span.len().saturating_sub(from)).unwrap_or(usize::MAX);
                body.map_or(&[], |body| body.chunk(pool, span.from + from, left.min(max)))
            }
        }
    }
}

impl Payload {
    /// These bytes.
    pub fn bytes(bytes: Vec<u8>) -> Self {
        Payload::Pieces(Box::new(Pieces { body: None, pieces: vec![Piece::Bytes(bytes)] }))
    }

    /// Its length, with what stands behind the head already.
    #[inline]
    pub fn len(&self) -> u64 {
        match self {
            Payload::Nothing => 0,
            Payload::Whole { body, .. } => body.size(),
            Payload::Pieces(pieces) => pieces.pieces.iter().map(Piece::len).sum(),
        }
    }

    /// Bytes of it that stand behind the head.
    #[inline]
    pub fn copied(&self) -> u64 {
        match self {
            Payload::Whole { copied, .. } => *copied,
            Payload::Nothing | Payload::Pieces(_) => 0,
        }
    }
}

/// A response on its way out: a head with the start of the body, then the rest of the body.
#[derive(Debug, Clone, Copy)]
pub struct Outgoing<'a> {
    /// Head, and the start of the body.
    pub head: &'a [u8],
    pub payload: &'a Payload,
    /// It is broken off after so many bytes of the body.
    pub cut: Option<u64>,
}

impl<'a> Outgoing<'a> {
    /// Bytes of all.
    #[inline]
    pub fn len(&self) -> u64 {
        let body = self.payload.len();
        let sent = self.cut.map_or(body, |cut| cut.min(body));
        // What stands behind the head counts as head.
        (self.head.len() as u64 + sent).saturating_sub(self.payload.copied())
    }

    /// Fills `slices` with what comes from byte `at` on, as far as they reach and at most `max` bytes; gives how many are
    /// filled.
    #[inline]
    pub fn slices(&self, pool: &'a Pool, at: u64, max: u64, slices: &mut [IoSlice<'a>; SLICES]) -> usize {
        let head_bytes = self.head.len() as u64;
        let mut left = max;
        let mut filled = 0;
        if at < head_bytes {
            let head = &self.head[at as usize..];
            let head = &head[..head.len().min(usize::try_from(left).unwrap_or(usize::MAX))];
            left -= head.len() as u64;
            slices[0] = IoSlice::new(head);
            filled = 1;
        }
        let from = at.saturating_sub(head_bytes);
        match self.payload {
            Payload::Nothing => filled,
            Payload::Whole { body, copied } => {
                let mut from = copied + from;
                while filled < SLICES && left > 0 {
                    let chunk = body.chunk(pool, from, usize::try_from(left).unwrap_or(usize::MAX));
                    if chunk.is_empty() {
                        break;
                    }
                    from += chunk.len() as u64;
                    left -= chunk.len() as u64;
                    slices[filled] = IoSlice::new(chunk);
                    filled += 1;
                }
                filled
            }
            Payload::Pieces(pieces) => pieces.slices(pool, from, left, filled, slices),
        }
    }

    /// Writes from byte `at` on up to byte `to` (not included), as much as the stream takes; 0 when it takes nothing now.
    #[inline]
    pub fn try_write(
        &self,
        stream: &mut ByteStream<TcpStream>,
        pool: &'a Pool,
        at: u64,
        to: u64,
    ) -> io::Result<u64> {
        let mut slices = [IoSlice::new(&[]); SLICES];
        let filled = self.slices(pool, at, to - at, &mut slices);
        stream.try_send_parts(&slices[..filled]).map(|written| written as u64)
    }
}

impl Pieces {
    #[cold]
    fn slices<'a>(
        &'a self,
        pool: &'a Pool,
        mut from: u64,
        mut left: u64,
        mut filled: usize,
        slices: &mut [IoSlice<'a>; SLICES],
    ) -> usize {
        for piece in &self.pieces {
            if from >= piece.len() {
                from -= piece.len();
                continue;
            }
            while from < piece.len() {
                let max = usize::try_from(left).unwrap_or(usize::MAX);
                let chunk = piece.chunk(self.body.as_ref(), pool, from, max);
                if filled == SLICES || chunk.is_empty() {
                    return filled;
                }
                from += chunk.len() as u64;
                left -= chunk.len() as u64;
                slices[filled] = IoSlice::new(chunk);
                filled += 1;
            }
            from = 0;
        }
        filled
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// All bytes of a response, written in steps.
    fn written(response: &Outgoing<'_>, pool: &Pool, steps: &[u64]) -> Vec<u8> {
        let (mut at, mut got, mut step) = (0, Vec::new(), steps.iter().cycle());
        while at < response.len() {
            let mut slices = [IoSlice::new(&[]); SLICES];
            let max = (*step.next().expect("there are steps")).min(response.len() - at);
            let filled = response.slices(pool, at, max, &mut slices);
            let bytes: Vec<u8> = slices[..filled].iter().flat_map(|slice| slice.iter().copied()).collect();
            assert!(!bytes.is_empty() && bytes.len() as u64 <= max);
            at += bytes.len() as u64;
            got.extend_from_slice(&bytes);
        }
        got
    }

    fn whole(body: &Body, pool: &Pool) -> Vec<u8> {
        let mut bytes = Vec::new();
        while (bytes.len() as u64) < body.size() {
            bytes.extend_from_slice(body.chunk(pool, bytes.len() as u64, usize::MAX));
        }
        bytes
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(32))]

        #[test]
        fn writing_in_steps_of_any_size_gives_head_and_body(
            size in 0u64..2_000_000, steps in prop::collection::vec(1u64..900_000, 1..6), cut in prop::option::of(0u64..2_000_000),
        ) {
            let (pool, body) = (Pool::new(1), Body::new(7, 8, size));
            let copied = size.min(16);
            let head = [b"head", body.chunk(&pool, 0, copied as usize)].concat();
            let payload = Payload::Whole { body: body.clone(), copied };
            let response = Outgoing { head: &head, payload: &payload, cut: cut.map(|cut| cut.max(16)) };
            let got = written(&response, &pool, &steps);
            let want = cut.map_or(size, |cut| cut.max(16).min(size));
            prop_assert_eq!(&got[..4], b"head");
            prop_assert_eq!(got.len() as u64, want + 4);
            prop_assert_eq!(body.matches(&pool, 0, &got[4..]), Ok(()));
        }

        #[test]
        fn pieces_go_out_one_after_another(
            size in 1u64..300_000, places in prop::collection::vec((any::<u64>(), any::<u64>()), 1..30),
            steps in prop::collection::vec(1u64..200_000, 1..6), cut in prop::option::of(0u64..500_000),
        ) {
            let (pool, body) = (Pool::new(1), Body::new(7, 8, size));
            let bytes = whole(&body, &pool);
            let (mut pieces, mut want) = (Vec::new(), b"head".to_vec());
            for (a, b) in places {
                let (from, to) = ((a % size).min(b % size), (a % size).max(b % size) + 1);
                pieces.extend([Piece::Bytes(b"between".to_vec()), Piece::OfBody(Span { from, to })]);
                want.extend_from_slice(b"between");
                want.extend_from_slice(&bytes[from as usize..to as usize]);
            }
            let payload = Payload::Pieces(Box::new(Pieces { body: Some(body), pieces }));
            prop_assert_eq!(payload.len() + 4, want.len() as u64);
            let response = Outgoing { head: b"head", payload: &payload, cut };
            want.truncate(cut.map_or(usize::MAX, |cut| cut as usize + 4));
            prop_assert_eq!(written(&response, &pool, &steps), want);
        }
    }
}
