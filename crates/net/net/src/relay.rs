//! The body of a response on its way from a server to a client, read by read: straight from where it was read, as long as the
//! client takes it.

use std::io;

use tokio::io::AsyncRead;

use crate::carrier::Carrier;
use crate::memory::{Input, Memory};
use crate::watch::Deadline;

/// What one more read from a server brought.
#[derive(Debug)]
pub enum Part {
    /// Some of the body; what was not sent yet is in the caller's buffer.
    Some,
    /// The body ends here and should not, or its coding is broken.
    Broken,
    /// The client takes no more.
    ClientGone(io::Error),
}

/// Reads once `from` a server, and sends on with `try_write` what the client takes at once: the rest is appended to `out`,
/// and what follows the body to `input`. An error is the server's.
pub async fn next_part(
    memory: &Memory,
    (from, deadline): (&mut (impl AsyncRead + Unpin), &Deadline),
    input: &mut Input,
    (carrier, out): (&mut Carrier, &mut Vec<u8>),
    try_write: impl FnOnce(&[u8]) -> io::Result<usize>,
) -> io::Result<Part> {
    let take = |bytes: &[u8]| {
        if bytes.is_empty() {
            return if carrier.end(out) { Part::Some } else { Part::Broken };
        }
        if !carrier.is_plain() {
            let Ok(taken) = carrier.take(bytes, out) else { return Part::Broken };
            input.append(&bytes[taken..], memory);
            return Part::Some;
        }
        let taken = carrier.take_plain(bytes.len());
        input.append(&bytes[taken..], memory);
        let written = match try_write(&bytes[..taken]) {
            Ok(written) => written,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => 0,
            Err(error) => return Part::ClientGone(error),
        };
        out.extend_from_slice(&bytes[written..taken]);
        Part::Some
    };
    memory.read(from, deadline, take).await
}

#[cfg(test)]
mod tests {
    use std::rc::Rc;

    use assay_http::framing::BodyFraming;

    use super::*;
    use crate::watch::Watch;

    /// Reads once from what a server sent, for a client that does this: what came, what is kept for later, and what follows.
    fn once(
        framing: BodyFraming,
        sent: &[u8],
        try_write: impl FnOnce(&[u8]) -> io::Result<usize>,
    ) -> (Part, Vec<u8>, Vec<u8>) {
        let (memory, deadline) = (Memory::new(), Rc::new(Watch::new(0)).enter());
        let (mut input, mut carrier, mut out) = (Input::default(), Carrier::new(framing, false), Vec::new());
        let (mut from, carried) = (sent, (&mut carrier, &mut out));
        let read = next_part(&memory, (&mut from, &deadline), &mut input, carried, try_write);
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
        assert!(matches!(part, Part::Some));
        assert_eq!((out.as_slice(), next.as_slice()), (&b"lo"[..], &b", you"[..]));
        let (part, out, _) = once(five, b"hello", |_| Err(io::ErrorKind::WouldBlock.into()));
        assert!(matches!(part, Part::Some));
        assert_eq!(out, b"hello");
        let (part, ..) = once(five, b"hello", |_| Err(io::ErrorKind::BrokenPipe.into()));
        assert!(matches!(part, Part::ClientGone(_)));
    }

    #[test]
    fn a_body_that_ends_where_it_should_not_is_broken_and_one_that_may_is_not() {
        let nothing = |_: &[u8]| -> io::Result<usize> { unreachable!("nothing came") };
        assert!(matches!(once(BodyFraming::Length(5), b"", nothing).0, Part::Broken));
        assert!(matches!(once(BodyFraming::UntilClose, b"", nothing).0, Part::Some));
        assert!(matches!(once(BodyFraming::Chunked, b"no size\r\n", nothing).0, Part::Broken));
        let (part, out, next) = once(BodyFraming::Chunked, b"2\r\nhi\r\n0\r\n\r\nnext", nothing);
        assert!(matches!(part, Part::Some));
        assert_eq!((out.as_slice(), next.as_slice()), (&b"hi"[..], &b"next"[..]));
    }
}
