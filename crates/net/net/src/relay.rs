//! Relaying a body from one connection to another. That of a response goes to its client read by read, straight from where it was read, as
//! long as the client takes it.

use std::io;

use assay_http::chunked::{ChunkError, LAST_CHUNK, append_chunk};
use assay_http::framing::{BodyDecoder, BodyFraming};
use tokio::io::AsyncRead;

use crate::buffers::{BufferPool, InputBuffer};
use crate::deadlines::Deadline;

/// A body that is decoded from the framing in which it arrives, and encoded in the one in which it leaves.
#[derive(Debug)]
pub struct RelayedBody {
    incoming: BodyDecoder,
    /// It leaves in chunked coding.
    in_chunks: bool,
    /// Bytes of content so far.
    pub content_bytes: u64,
}

impl RelayedBody {
    /// A body that arrives in `framing`, and leaves in chunks or as its content alone.
    pub fn new(framing: BodyFraming, in_chunks: bool) -> Self {
        Self { incoming: BodyDecoder::new(framing), in_chunks, content_bytes: 0 }
    }

    pub fn is_done(&self) -> bool {
        self.incoming.is_done()
    }

    /// Upper bound on the bytes still to come; none: the body does not leave byte by byte as it arrives, or all has come.
    pub fn plain_left(&self) -> Option<u64> {
        if self.in_chunks { None } else { self.incoming.plain_left() }
    }

    /// Takes the part of the body from `count` bytes that leave as they have come, and returns its length.
    pub fn take_plain(&mut self, count: usize) -> usize {
        let taken = self.incoming.take_plain(count);
        self.content_bytes += taken as u64;
        taken
    }

    /// Appends what leaves for these bytes, and returns how many of them belong to the body.
    pub fn take(&mut self, bytes: &[u8], out: &mut Vec<u8>) -> Result<usize, ChunkError> {
        let was_done = self.is_done();
        let used = self.incoming.decode(bytes, |data| {
            self.content_bytes += data.len() as u64;
            if self.in_chunks {
                append_chunk(out, data);
            } else {
                out.extend_from_slice(data);
            }
            Ok::<_, ChunkError>(())
        })?;
        if self.in_chunks && self.is_done() && !was_done {
            out.extend_from_slice(LAST_CHUNK);
        }
        Ok(used)
    }

    /// Ends the input, and returns whether the body is complete.
    pub fn end(&mut self, out: &mut Vec<u8>) -> bool {
        let was_done = self.is_done();
        if self.incoming.end() && self.in_chunks && !was_done {
            out.extend_from_slice(LAST_CHUNK);
        }
        self.is_done()
    }
}

/// Result of one step of a relay.
#[derive(Debug)]
pub enum RelayStep {
    /// Part of the body; what was not sent yet is in the caller's buffer.
    Some,
    /// The body ends here and should not, or its coding is broken.
    Broken,
    /// The client has disconnected.
    ClientGone(io::Error),
}

/// Reads once `from` a server, and forwards with `try_write` what the client takes at once: the rest is appended to `out`, and what follows
/// the body to `input`. An error is the server's.
pub async fn relay_step(
    memory: &BufferPool,
    from: &mut (impl AsyncRead + Unpin),
    deadline: &Deadline,
    input: &mut InputBuffer,
    body: &mut RelayedBody,
    out: &mut Vec<u8>,
    try_write: impl FnOnce(&[u8]) -> io::Result<usize>,
) -> io::Result<RelayStep> {
    let take = |bytes: &[u8]| {
        if bytes.is_empty() {
            return if body.end(out) { RelayStep::Some } else { RelayStep::Broken };
        }
        if body.plain_left().is_none() {
            let Ok(taken) = body.take(bytes, out) else { return RelayStep::Broken };
            input.append(&bytes[taken..], memory);
            return RelayStep::Some;
        }
        let taken = body.take_plain(bytes.len());
        input.append(&bytes[taken..], memory);
        let written = match try_write(&bytes[..taken]) {
            Ok(written) => written,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => 0,
            Err(error) => return RelayStep::ClientGone(error),
        };
        out.extend_from_slice(&bytes[written..taken]);
        RelayStep::Some
    };
    memory.read(from, deadline, take).await
}

#[cfg(test)]
mod tests {
    use std::rc::Rc;

    use proptest::prelude::*;

    use super::*;
    use crate::deadlines::Deadlines;

    /// Reads once from what a server sent, for a client that does this: what came, what is kept for later, and what follows.
    fn once(
        framing: BodyFraming,
        sent: &[u8],
        try_write: impl FnOnce(&[u8]) -> io::Result<usize>,
    ) -> (RelayStep, Vec<u8>, Vec<u8>) {
        let (memory, deadline) = (BufferPool::new(), Rc::new(Deadlines::new(0)).register());
        let (mut input, mut body, mut out) =
            (InputBuffer::default(), RelayedBody::new(framing, false), Vec::new());
        let mut from = sent;
        let read = relay_step(&memory, &mut from, &deadline, &mut input, &mut body, &mut out, try_write);
        let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
        let part = runtime.block_on(read).expect("bytes in memory can be read");
        (part, out, input.unread().to_vec())
    }

    #[test]
    fn what_a_client_does_not_take_at_once_is_kept_and_what_follows_is_no_part_of_the_body() {
        let five = BodyFraming::Length(5);
        let (part, out, next) = once(five, b"hello, you", |bytes| {
            assert_eq!(bytes, b"hello");
            Ok(3)
        });
        assert!(matches!(part, RelayStep::Some));
        assert_eq!((out.as_slice(), next.as_slice()), (&b"lo"[..], &b", you"[..]));
        let (part, out, _) = once(five, b"hello", |_| Err(io::ErrorKind::WouldBlock.into()));
        assert!(matches!(part, RelayStep::Some));
        assert_eq!(out, b"hello");
        let (part, ..) = once(five, b"hello", |_| Err(io::ErrorKind::BrokenPipe.into()));
        assert!(matches!(part, RelayStep::ClientGone(_)));
    }

    #[test]
    fn a_body_that_ends_where_it_should_not_is_broken_and_one_that_may_is_not() {
        let nothing = |_: &[u8]| -> io::Result<usize> { unreachable!("nothing came") };
        assert!(matches!(once(BodyFraming::Length(5), b"", nothing).0, RelayStep::Broken));
        assert!(matches!(once(BodyFraming::UntilClose, b"", nothing).0, RelayStep::Some));
        assert!(matches!(once(BodyFraming::Chunked, b"no size\r\n", nothing).0, RelayStep::Broken));
        let (part, out, next) = once(BodyFraming::Chunked, b"2\r\nhi\r\n0\r\n\r\nnext", nothing);
        assert!(matches!(part, RelayStep::Some));
        assert_eq!((out.as_slice(), next.as_slice()), (&b"hi"[..], &b"next"[..]));
    }

    /// Relays a body that comes in two pieces: what leaves, the bytes that belong to it, and whether it is complete.
    fn relayed(framing: BodyFraming, in_chunks: bool, bytes: &[u8], cut: usize) -> (Vec<u8>, usize, bool) {
        let mut body = RelayedBody::new(framing, in_chunks);
        let mut out = Vec::new();
        let cut = cut.min(bytes.len());
        let mut used = body.take(&bytes[..cut], &mut out).expect("is well formed");
        if !body.is_done() {
            used += body.take(&bytes[used..], &mut out).expect("is well formed");
        }
        (out, used, body.is_done())
    }

    fn payload(bytes: &[u8]) -> Vec<u8> {
        let mut out = Vec::new();
        let mut body = RelayedBody::new(BodyFraming::Chunked, false);
        body.take(bytes, &mut out).expect("is well formed");
        assert!(body.is_done());
        out
    }

    proptest! {
        #[test]
        fn what_goes_in_comes_out_whatever_the_framing(body in prop::collection::vec(any::<u8>(), 1..200), cut in 0usize..250) {
            let mut long = body.clone();
            long.extend_from_slice(b"next");
            let framing = BodyFraming::Length(body.len() as u64);
            prop_assert_eq!(relayed(framing, false, &long, cut), (body.clone(), body.len(), true));
            let (chunks, used, done) = relayed(framing, true, &long, cut);
            prop_assert_eq!((payload(&chunks), used, done), (body.clone(), body.len(), true));
            let length = chunks.len();
            let mut more = chunks;
            more.extend_from_slice(b"next");
            let (again, used, done) = relayed(BodyFraming::Chunked, true, &more, cut);
            prop_assert_eq!((payload(&again), used, done), (body.clone(), length, true));
            prop_assert_eq!(relayed(BodyFraming::Chunked, false, &more, cut), (body, length, true));
        }
    }

    #[test]
    fn an_end_is_one_only_where_the_connection_delimits_the_body() {
        let mut out = Vec::new();
        let mut body = RelayedBody::new(BodyFraming::UntilClose, true);
        assert_eq!(body.take(b"ab", &mut out), Ok(2));
        assert!(body.end(&mut out));
        assert_eq!(out, b"2\r\nab\r\n0\r\n\r\n");
        assert!(!RelayedBody::new(BodyFraming::Length(3), false).end(&mut Vec::new()));
        assert!(!RelayedBody::new(BodyFraming::Chunked, false).end(&mut Vec::new()));
        assert!(RelayedBody::new(BodyFraming::None, false).is_done());
    }
}
