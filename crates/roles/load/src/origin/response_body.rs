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

/// Bytes that follow a head.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ResponseBody {
    Nothing,
    Whole {
        body: Body,
        /// Bytes of it that stand behind the head already.
        copied: u64,
    },
    /// Pieces of one body, and other bytes.
    Segments(Box<SegmentedBody>),
}

/// Pieces of one body, and other bytes, one after another.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SegmentedBody {
    pub body: Option<Body>,
    pub segments: Vec<BodySegment>,
}

/// A piece of a payload.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BodySegment {
    Bytes(Vec<u8>),
    /// Bytes of the body.
    OfBody(Span),
}

impl BodySegment {
    fn len(&self) -> u64 {
        match self {
            BodySegment::Bytes(bytes) => bytes.len() as u64,
            BodySegment::OfBody(span) => span.len(),
        }
    }

    /// Bytes from `from` on, as many as can be had at once and at most `max`.
    fn chunk<'a>(&'a self, body: Option<&'a Body>, pool: &'a Pool, from: u64, max: usize) -> &'a [u8] {
        match self {
            BodySegment::Bytes(bytes) => {
                let rest = &bytes[usize::try_from(from).unwrap_or(usize::MAX).min(bytes.len())..];
                &rest[..rest.len().min(max)]
            }
            BodySegment::OfBody(span) => {
                let left = usize::try_from(span.len().saturating_sub(from)).unwrap_or(usize::MAX);
                body.map_or(&[], |body| body.chunk(pool, span.from + from, left.min(max)))
            }
        }
    }
}

impl ResponseBody {
    pub fn bytes(bytes: Vec<u8>) -> Self {
        ResponseBody::Segments(Box::new(SegmentedBody {
            body: None,
            segments: vec![BodySegment::Bytes(bytes)],
        }))
    }

    /// Length, with the bytes that stand behind the head already.
    #[inline]
    pub fn len(&self) -> u64 {
        match self {
            ResponseBody::Nothing => 0,
            ResponseBody::Whole { body, .. } => body.size(),
            ResponseBody::Segments(segments) => segments.segments.iter().map(BodySegment::len).sum(),
        }
    }

    /// Bytes of it that stand behind the head.
    #[inline]
    pub fn copied(&self) -> u64 {
        match self {
            ResponseBody::Whole { copied, .. } => *copied,
            ResponseBody::Nothing | ResponseBody::Segments(_) => 0,
        }
    }
}

/// Response in two pieces: a head with the start of the body, then the rest of the body.
#[derive(Debug, Clone, Copy)]
pub struct OutgoingResponse<'a> {
    /// Head, and the start of the body.
    pub head: &'a [u8],
    pub payload: &'a ResponseBody,
    /// Bytes of the body after which the response is aborted.
    pub abort_after: Option<u64>,
}

impl<'a> OutgoingResponse<'a> {
    /// Length of head and body.
    #[inline]
    pub fn len(&self) -> u64 {
        let body = self.payload.len();
        let sent = self.abort_after.map_or(body, |abort_after| abort_after.min(body));
        // What stands behind the head counts as head.
        (self.head.len() as u64 + sent).saturating_sub(self.payload.copied())
    }

    /// Fills `slices` with the bytes from `at` on, as far as they reach and at most `max`; returns the number of slices
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
            ResponseBody::Nothing => filled,
            ResponseBody::Whole { body, copied } => {
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
            ResponseBody::Segments(segments) => segments.slices(pool, from, left, filled, slices),
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

impl SegmentedBody {
    #[cold]
    fn slices<'a>(
        &'a self,
        pool: &'a Pool,
        mut from: u64,
        mut left: u64,
        mut filled: usize,
        slices: &mut [IoSlice<'a>; SLICES],
    ) -> usize {
        for segment in &self.segments {
            if from >= segment.len() {
                from -= segment.len();
                continue;
            }
            while from < segment.len() {
                let max = usize::try_from(left).unwrap_or(usize::MAX);
                let chunk = segment.chunk(self.body.as_ref(), pool, from, max);
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
    fn written(response: &OutgoingResponse<'_>, pool: &Pool, steps: &[u64]) -> Vec<u8> {
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
            size in 0u64..2_000_000, steps in prop::collection::vec(1u64..900_000, 1..6), abort_after in prop::option::of(0u64..2_000_000),
        ) {
            let (pool, body) = (Pool::new(1), Body::new(7, 8, size));
            let copied = size.min(16);
            let head = [b"head", body.chunk(&pool, 0, copied as usize)].concat();
            let payload = ResponseBody::Whole { body: body.clone(), copied };
            let response = OutgoingResponse { head: &head, payload: &payload, abort_after: abort_after.map(|abort_after| abort_after.max(16)) };
            let got = written(&response, &pool, &steps);
            let want = abort_after.map_or(size, |abort_after| abort_after.max(16).min(size));
            prop_assert_eq!(&got[..4], b"head");
            prop_assert_eq!(got.len() as u64, want + 4);
            prop_assert_eq!(body.matches(&pool, 0, &got[4..]), Ok(()));
        }

        #[test]
        fn pieces_go_out_one_after_another(
            size in 1u64..300_000, places in prop::collection::vec((any::<u64>(), any::<u64>()), 1..30),
            steps in prop::collection::vec(1u64..200_000, 1..6), abort_after in prop::option::of(0u64..500_000),
        ) {
            let (pool, body) = (Pool::new(1), Body::new(7, 8, size));
            let bytes = whole(&body, &pool);
            let (mut segments, mut want) = (Vec::new(), b"head".to_vec());
            for (a, b) in places {
                let (from, to) = ((a % size).min(b % size), (a % size).max(b % size) + 1);
                segments.extend([BodySegment::Bytes(b"between".to_vec()), BodySegment::OfBody(Span { from, to })]);
                want.extend_from_slice(b"between");
                want.extend_from_slice(&bytes[from as usize..to as usize]);
            }
            let payload = ResponseBody::Segments(Box::new(SegmentedBody { body: Some(body), segments }));
            prop_assert_eq!(payload.len() + 4, want.len() as u64);
            let response = OutgoingResponse { head: b"head", payload: &payload, abort_after };
            want.truncate(abort_after.map_or(usize::MAX, |abort_after| abort_after as usize + 4));
            prop_assert_eq!(written(&response, &pool, &steps), want);
        }
    }
}
