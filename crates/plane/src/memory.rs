//! Bytes in and out of a connection under a deadline, through buffers that all connections of a thread share.

use std::cell::RefCell;
use std::future::poll_fn;
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use crate::limits::READ_BYTES;
use crate::watch::Deadline;

/// Buffers that are kept for later, and the largest that is.
const MOST_KEPT: usize = 1024;
const LARGEST_KEPT: usize = 128 * 1024;

/// The memory that connections of a worker share: only those that have something to keep hold any of it.
pub struct Memory {
    scratch: RefCell<Box<[u8]>>,
    spare: RefCell<Vec<Vec<u8>>>,
}

impl Default for Memory {
    fn default() -> Self {
        Self::new()
    }
}

impl Memory {
    /// With room for one read.
    pub fn new() -> Self {
        Self { scratch: RefCell::new(vec![0; READ_BYTES].into_boxed_slice()), spare: RefCell::default() }
    }

    /// An empty buffer.
    pub fn take(&self) -> Vec<u8> {
        self.spare.borrow_mut().pop().unwrap_or_else(|| Vec::with_capacity(2048))
    }

    /// Gives a buffer back.
    pub fn give(&self, mut buffer: Vec<u8>) {
        let mut spare = self.spare.borrow_mut();
        if buffer.capacity() > 0 && buffer.capacity() <= LARGEST_KEPT && spare.len() < MOST_KEPT {
            buffer.clear();
            spare.push(buffer);
        }
    }

    /// Reads once, and hands over the bytes: none when the other side has closed.
    pub fn poll_read<T>(
        &self,
        stream: &mut (impl AsyncRead + Unpin),
        cx: &mut Context<'_>,
        take: impl FnOnce(&[u8]) -> T,
    ) -> Poll<io::Result<T>> {
        let mut room = self.scratch.borrow_mut();
        let mut filled = ReadBuf::new(&mut room);
        ready!(Pin::new(stream).poll_read(cx, &mut filled))?;
        Poll::Ready(Ok(take(filled.filled())))
    }

    /// Waits for bytes and hands them over; none when the other side has closed.
    pub async fn read<T>(
        &self,
        stream: &mut (impl AsyncRead + Unpin),
        deadline: &Deadline,
        take: impl FnOnce(&[u8]) -> T,
    ) -> io::Result<T> {
        let mut take = Some(take);
        poll_fn(|cx| {
            let polled = self.poll_read(stream, cx, |bytes| match take.take() {
                Some(take) => Ok(take(bytes)),
                None => Err(io::Error::other("a read was polled after it was ready")),
            });
            match polled {
                Poll::Ready(taken) => Poll::Ready(taken.and_then(|taken| taken)),
                Poll::Pending => wait(deadline, cx),
            }
        })
        .await
    }

    /// Waits for bytes and adds them to `input`; how many.
    pub async fn fill(
        &self,
        stream: &mut (impl AsyncRead + Unpin),
        deadline: &Deadline,
        input: &mut Input,
    ) -> io::Result<usize> {
        self.read(stream, deadline, |bytes| {
            input.append(bytes, self);
            bytes.len()
        })
        .await
    }
}

/// Bytes that were received and not yet used. Holds memory only while there are some.
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

    /// Marks bytes as used.
    pub fn consume(&mut self, count: usize) {
        self.used = (self.used + count).min(self.bytes.len());
    }

    /// Adds bytes.
    pub fn append(&mut self, bytes: &[u8], memory: &Memory) {
        if self.bytes.capacity() == 0 && !bytes.is_empty() {
            self.bytes = memory.take();
        }
        if self.used > 0 {
            self.bytes.drain(..self.used);
            self.used = 0;
        }
        self.bytes.extend_from_slice(bytes);
    }

    /// Gives the memory back, whatever is in it.
    pub fn release(&mut self, memory: &Memory) {
        self.used = self.bytes.len();
        self.rest(memory);
    }

    /// Gives the memory back if nothing is left in it.
    pub fn rest(&mut self, memory: &Memory) {
        if self.used == self.bytes.len() && self.bytes.capacity() > 0 {
            self.used = 0;
            memory.give(std::mem::take(&mut self.bytes));
        }
    }
}

/// Sleeps, unless it is too late.
pub fn wait<T>(deadline: &Deadline, cx: &mut Context<'_>) -> Poll<io::Result<T>> {
    match deadline.check(cx) {
        Ok(()) => Poll::Pending,
        Err(late) => Poll::Ready(Err(late)),
    }
}

/// Writes everything, all of it under one deadline.
pub async fn write_all(
    stream: &mut (impl AsyncWrite + Unpin),
    deadline: &Deadline,
    slices: &mut [IoSlice<'_>],
) -> io::Result<()> {
    write(stream, deadline, slices, None).await
}

/// Writes everything; each step may take so long.
pub async fn write_in_steps(
    stream: &mut (impl AsyncWrite + Unpin),
    (deadline, step): (&Deadline, Duration),
    slices: &mut [IoSlice<'_>],
) -> io::Result<()> {
    write(stream, deadline, slices, Some(step)).await
}

async fn write(
    stream: &mut (impl AsyncWrite + Unpin),
    deadline: &Deadline,
    mut slices: &mut [IoSlice<'_>],
    step: Option<Duration>,
) -> io::Result<()> {
    // Empty slices at the front would make "nothing written" look like a closed socket.
    IoSlice::advance_slices(&mut slices, 0);
    while !slices.is_empty() {
        if let Some(step) = step {
            deadline.set(step);
        }
        let written = poll_fn(|cx| {
            let stream = Pin::new(&mut *stream);
            let polled = match &*slices {
                // The system has a shorter way for it.
                [one] => stream.poll_write(cx, one),
                several => stream.poll_write_vectored(cx, several),
            };
            if polled.is_pending() { wait(deadline, cx) } else { polled }
        })
        .await?;
        if written == 0 {
            return Err(io::ErrorKind::WriteZero.into());
        }
        IoSlice::advance_slices(&mut slices, written);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn input_keeps_what_is_not_used_and_gives_its_memory_back() {
        let memory = Memory::new();
        let mut input = Input::default();
        input.append(b"abc", &memory);
        input.consume(1);
        input.append(b"de", &memory);
        assert_eq!(input.unread(), b"bcde");
        input.rest(&memory);
        assert_eq!(memory.spare.borrow().len(), 0, "it is not empty");
        input.consume(4);
        input.rest(&memory);
        assert_eq!((input.unread(), memory.spare.borrow().len()), (&b""[..], 1));
    }
}
