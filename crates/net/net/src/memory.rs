//! Bytes in and out of a connection under a deadline, through buffers that all connections of a thread share.

use std::cell::RefCell;
use std::future::{Future, poll_fn};
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use crate::limits::{BATCH_CHUNKS, READ_BYTES};
use crate::watch::Deadline;

/// Buffers that are kept for later, and the largest that is.
const MOST_KEPT: usize = 1024;
const LARGEST_KEPT: usize = 128 * 1024;
/// Most parts in one write: a batch of chunks in chunked coding, behind a head of two parts. Room is made for so many only where
/// there may be more than a few.
const MANY_PARTS: usize = BATCH_CHUNKS + 5;
const FEW_PARTS: usize = 6;

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
    pub fn read<T>(
        &self,
        stream: &mut (impl AsyncRead + Unpin),
        deadline: &Deadline,
        take: impl FnOnce(&[u8]) -> T,
    ) -> impl Future<Output = io::Result<T>> {
        let mut take = Some(take);
        poll_fn(move |cx| {
            let polled = self.poll_read(stream, cx, |bytes| match take.take() {
                Some(take) => Ok(take(bytes)),
                None => Err(io::Error::other("a read was polled after it was ready")),
            });
            match polled {
                Poll::Ready(taken) => Poll::Ready(taken.and_then(|taken| taken)),
                Poll::Pending => wait(deadline, cx),
            }
        })
    }

    /// Waits for bytes and adds them to `input`; how many.
    pub fn fill(
        &self,
        stream: &mut (impl AsyncRead + Unpin),
        deadline: &Deadline,
        input: &mut Input,
    ) -> impl Future<Output = io::Result<usize>> {
        self.read(stream, deadline, |bytes| {
            input.append(bytes, self);
            bytes.len()
        })
    }
}

/// Bytes that were received and not yet used. Holds memory only while there are some.
#[derive(Default)]
pub struct Input {
    bytes: Vec<u8>,
    used: usize,
}

impl Input {
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

/// Writes all of some parts; each step may take `step`, if that is given, and otherwise the deadline is kept as it is: for servers only. A
/// client that has taken a part has to be waited for again, or it would keep its place for ever.
///
/// The parts are gathered for each step, on the stack: what a connection keeps while it waits is where it has come to.
pub fn write_all<'p>(
    stream: &mut (impl AsyncWrite + Unpin),
    deadline: &Deadline,
    step: Option<Duration>,
    mut parts: impl Iterator<Item = &'p [u8]> + Clone,
) -> impl Future<Output = io::Result<()>> {
    debug_assert!(step.is_some() || !deadline.awaits_peer(), "a client is waited for with each step");
    let mut sent = 0;
    let mut begins = true;
    poll_fn(move |cx| {
        loop {
            if begins && let Some(step) = step {
                deadline.await_peer(step);
            }
            let written = match parts.size_hint() {
                (_, Some(..=FEW_PARTS)) => {
                    poll_step::<FEW_PARTS>((stream, deadline), cx, &mut parts, &mut sent)
                }
                _ => poll_step::<MANY_PARTS>((stream, deadline), cx, &mut parts, &mut sent),
            };
            match written {
                Poll::Ready(Ok(true)) => return Poll::Ready(Ok(())),
                Poll::Ready(Ok(false)) => begins = true,
                Poll::Ready(Err(error)) => return Poll::Ready(Err(error)),
                Poll::Pending => {
                    begins = false;
                    return wait(deadline, cx);
                }
            }
        }
    })
}

/// Writes once of `parts`, of which `sent` bytes are gone already; true: that was all.
#[inline]
fn poll_step<'p, const MOST: usize>(
    (stream, deadline): (&mut (impl AsyncWrite + Unpin), &Deadline),
    cx: &mut Context<'_>,
    parts: &mut (impl Iterator<Item = &'p [u8]> + Clone),
    sent: &mut usize,
) -> Poll<io::Result<bool>> {
    let mut slices = [IoSlice::new(&[]); MOST];
    let (mut count, mut bytes, mut skipped) = (0, 0, *sent);
    let mut rest = parts.clone();
    while count < MOST {
        let Some(part) = rest.next() else { break };
        if part.len() <= skipped {
            skipped -= part.len();
            continue;
        }
        slices[count] = IoSlice::new(&part[skipped..]);
        bytes += part.len() - skipped;
        (count, skipped) = (count + 1, 0);
    }
    let stream = Pin::new(stream);
    let written = match &slices[..count] {
        [] => return Poll::Ready(Ok(true)),
        // The system has a shorter way for it.
        [one] => ready!(stream.poll_write(cx, one))?,
        several => ready!(stream.poll_write_vectored(cx, several))?,
    };
    deadline.earn(written as u64);
    if written == 0 {
        return Poll::Ready(Err(io::ErrorKind::WriteZero.into()));
    }
    if written < bytes {
        *sent += written;
        return Poll::Ready(Ok(false));
    }
    (*parts, *sent) = (rest, 0);
    Poll::Ready(Ok(count < MOST))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Takes so many bytes, and no more.
    struct Takes(usize);

    impl AsyncWrite for Takes {
        fn poll_write(
            mut self: Pin<&mut Self>,
            _: &mut Context<'_>,
            bytes: &[u8],
        ) -> Poll<io::Result<usize>> {
            let taken = bytes.len().min(self.0);
            self.0 -= taken;
            if taken == 0 { Poll::Pending } else { Poll::Ready(Ok(taken)) }
        }

        fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
            Poll::Ready(Ok(()))
        }

        fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
            Poll::Ready(Ok(()))
        }
    }

    #[test]
    fn a_client_that_has_taken_a_part_and_no_more_is_waited_for_and_makes_room() {
        for takes in [0, 3] {
            let watch = std::rc::Rc::new(crate::watch::Watch::new(0));
            let (deadline, mut stream) = (watch.enter(), Takes(takes));
            deadline.set_pace(500);
            let parts = [&b"hello"[..]];
            let minute = Duration::from_secs(60);
            let mut write =
                std::pin::pin!(write_all(&mut stream, &deadline, Some(minute), parts.into_iter()));
            let mut cx = Context::from_waker(std::task::Waker::noop());
            assert!(write.as_mut().poll(&mut cx).is_pending());
            for tick in 1..=40 {
                watch.tick(tick * crate::watch::TICK_NS);
            }
            let makes_room =
                crate::watch::Longest::default().dismiss(&watch, Duration::from_secs(1), |_| true);
            assert!(makes_room, "{takes} bytes taken");
            let ended = write.as_mut().poll(&mut cx);
            assert!(matches!(ended, Poll::Ready(Err(error)) if error.kind() == io::ErrorKind::TimedOut));
        }
    }

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
