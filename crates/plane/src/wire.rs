//! How do bytes get from a socket into a buffer and back, and how long may that take?

use std::cell::RefCell;
use std::future::poll_fn;
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Poll, ready};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::time::timeout;

/// Most bytes that one read takes.
const READ_BYTES: usize = 64 * 1024;

/// A part of a body. Never changes; shared by the store and by everyone who is being sent it.
pub type Chunk = Rc<[u8]>;

/// Where all reads of a worker land first: idle connections hold no read buffer.
pub struct Scratch(RefCell<Box<[u8]>>);

impl Scratch {
    /// Room for one read.
    pub fn new() -> Self {
        Self(RefCell::new(vec![0; READ_BYTES].into_boxed_slice()))
    }
}

impl Default for Scratch {
    fn default() -> Self {
        Self::new()
    }
}

/// Reads once and hands the bytes to `take`; no bytes: the other side has closed. Nothing is lost when the
/// future is dropped before it is ready.
pub async fn read<T>(
    stream: &mut TcpStream,
    scratch: &Scratch,
    limit: Duration,
    take: impl FnOnce(&[u8]) -> T,
) -> io::Result<T> {
    let mut take = Some(take);
    let reading = poll_fn(|cx| {
        let mut room = scratch.0.borrow_mut();
        let mut filled = ReadBuf::new(&mut room);
        ready!(Pin::new(&mut *stream).poll_read(cx, &mut filled))?;
        match take.take() {
            Some(take) => Poll::Ready(Ok(take(filled.filled()))),
            None => Poll::Ready(Err(io::Error::other("a read was polled after it was ready"))),
        }
    });
    timeout(limit, reading).await?
}

/// Writes everything; each step may take so long.
pub async fn write_all(
    stream: &mut TcpStream,
    mut slices: &mut [IoSlice<'_>],
    limit: Duration,
) -> io::Result<()> {
    // Empty slices at the front would make "nothing written" look like a closed socket.
    IoSlice::advance_slices(&mut slices, 0);
    while !slices.is_empty() {
        let writing = poll_fn(|cx| Pin::new(&mut *stream).poll_write_vectored(cx, slices));
        let written = timeout(limit, writing).await??;
        if written == 0 {
            return Err(io::ErrorKind::WriteZero.into());
        }
        IoSlice::advance_slices(&mut slices, written);
    }
    Ok(())
}

/// Bytes that were received and not yet used.
#[derive(Default)]
pub struct Input {
    bytes: Vec<u8>,
    used: usize,
}

impl Input {
    /// What is there.
    pub fn unread(&self) -> &[u8] {
        &self.bytes[self.used..]
    }

    /// Marks bytes as used; a buffer that is used up gives large memory back.
    pub fn consume(&mut self, count: usize) {
        self.used += count;
        debug_assert!(self.used <= self.bytes.len(), "more used than there is");
        if self.used >= self.bytes.len() {
            self.used = 0;
            self.bytes.clear();
            self.bytes.shrink_to(4096);
        }
    }

    /// Adds bytes.
    pub fn append(&mut self, bytes: &[u8]) {
        if self.used > 0 {
            self.bytes.drain(..self.used);
            self.used = 0;
        }
        self.bytes.extend_from_slice(bytes);
    }

    /// Reads once; how many bytes came (none: the other side has closed).
    pub async fn fill(
        &mut self,
        stream: &mut TcpStream,
        scratch: &Scratch,
        limit: Duration,
    ) -> io::Result<usize> {
        read(stream, scratch, limit, |bytes| {
            self.append(bytes);
            bytes.len()
        })
        .await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn input_keeps_what_is_not_used_and_forgets_the_rest() {
        let mut input = Input::default();
        input.append(b"abc");
        input.consume(1);
        input.append(b"de");
        assert_eq!(input.unread(), b"bcde");
        input.consume(4);
        assert_eq!(input.unread(), b"");
    }
}
