//! Relaying the body of a response from a server to a client, read by read: straight from where it was read, as long as the client takes
//! it.

use std::io;

use tokio::io::AsyncRead;

use crate::buffers::{BufferPool, InputBuffer};
use crate::carrier::Carrier;
use crate::deadlines::Deadline;

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
    carrier: &mut Carrier,
    out: &mut Vec<u8>,
    try_write: impl FnOnce(&[u8]) -> io::Result<usize>,
) -> io::Result<RelayStep> {
    let take = |bytes: &[u8]| {
        if bytes.is_empty() {
            return if carrier.end(out) { RelayStep::Some } else { RelayStep::Broken };
        }
        if !carrier.is_plain() {
            let Ok(taken) = carrier.take(bytes, out) else { return RelayStep::Broken };
            input.append(&bytes[taken..], memory);
            return RelayStep::Some;
        }
        let taken = carrier.take_plain(bytes.len());
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

    use assay_http::framing::BodyFraming;

    use super::*;
    use crate::deadlines::Deadlines;

    /// Reads once from what a server sent, for a client that does this: what came, what is kept for later, and what follows.
    fn once(
        framing: BodyFraming,
        sent: &[u8],
        try_write: impl FnOnce(&[u8]) -> io::Result<usize>,
    ) -> (RelayStep, Vec<u8>, Vec<u8>) {
        let (memory, deadline) = (BufferPool::new(), Rc::new(Deadlines::new(0)).register());
        let (mut input, mut carrier, mut out) =
            (InputBuffer::default(), Carrier::new(framing, false), Vec::new());
        let mut from = sent;
        let read = relay_step(&memory, &mut from, &deadline, &mut input, &mut carrier, &mut out, try_write);
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
}
