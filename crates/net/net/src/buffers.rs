//! Bytes in and out of a connection under a deadline, through buffers that all connections of a thread share.

use std::cell::RefCell;
use std::future::{Future, poll_fn};
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use crate::deadlines::Deadline;
use crate::limits::{BATCH_CHUNKS, READ_BYTES};

/// Bytes of all buffers that are kept for later. A buffer stays as large as it ever was: with a bound on their number alone, a burst would leave
/// as many as it needed, and with time each of them would grow to the largest.
const MAX_SPARE_BYTES: usize = 4 * 1024 * 1024;
/// Bytes of the largest buffer that is kept.
const MAX_BUFFER_BYTES: usize = 128 * 1024;
/// Bytes of a new buffer: as much as most heads have.
pub(crate) const NEW_BYTES: usize = 2048;
/// Parts in one write: a batch of chunks in chunked coding, behind a head of two parts. Room is made for so many only where there may be
/// more than a few.
const MANY_PARTS: usize = BATCH_CHUNKS + 5;
const FEW_PARTS: usize = 6;

/// Buffers that connections of a worker share: only those with unread input hold any.
pub struct BufferPool {
    scratch: RefCell<Box<[u8]>>,
    spare: RefCell<SpareBuffers>,
}

/// Buffers without content, and the bytes that they take.
#[derive(Default)]
struct SpareBuffers {
    buffers: Vec<Vec<u8>>,
    bytes: usize,
}

impl Default for BufferPool {
    fn default() -> Self {
        Self::new()
    }
}

impl BufferPool {
    pub fn new() -> Self {
        Self { scratch: RefCell::new(vec![0; READ_BYTES].into_boxed_slice()), spare: RefCell::default() }
    }

    pub fn get(&self) -> Vec<u8> {
        let mut spare = self.spare.borrow_mut();
        let Some(buffer) = spare.buffers.pop() else { return Vec::with_capacity(NEW_BYTES) };
        spare.bytes -= buffer.capacity();
        buffer
    }

    /// Returns a buffer for later use.
    pub fn put(&self, mut buffer: Vec<u8>) {
        let mut spare = self.spare.borrow_mut();
        let bytes = spare.bytes + buffer.capacity();
        if (1..=MAX_BUFFER_BYTES).contains(&buffer.capacity()) && bytes <= MAX_SPARE_BYTES {
            buffer.clear();
            spare.buffers.push(buffer);
            spare.bytes = bytes;
        }
    }

    /// Bytes of the buffers that are kept for later.
    #[cfg(test)]
    pub(crate) fn spare_bytes(&self) -> usize {
        self.spare.borrow().bytes
    }

    /// Reads once, and hands the bytes to `take`: none when the other side has closed.
    pub fn poll_read<T>(
        &self,
        stream: &mut (impl AsyncRead + Unpin),
        cx: &mut Context<'_>,
        take: impl FnOnce(&[u8]) -> T,
    ) -> Poll<io::Result<T>> {
        let mut buffer = self.scratch.borrow_mut();
        let mut filled = ReadBuf::new(&mut buffer);
        ready!(Pin::new(stream).poll_read(cx, &mut filled))?;
        Poll::Ready(Ok(take(filled.filled())))
    }

    /// Waits for bytes and hands them to `take`; none when the other side has closed.
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
                Poll::Pending => poll_deadline(deadline, cx),
            }
        })
    }

    /// Waits for bytes and appends them to `input`. Returns the count.
    pub fn fill(
        &self,
        stream: &mut (impl AsyncRead + Unpin),
        deadline: &Deadline,
        input: &mut InputBuffer,
    ) -> impl Future<Output = io::Result<usize>> {
        self.read(stream, deadline, |bytes| {
            input.append(bytes, self);
            bytes.len()
        })
    }
}

/// Bytes that were received and not yet used. Holds memory only while there are some.
#[derive(Default)]
pub struct InputBuffer {
    bytes: Vec<u8>,
    used: usize,
}

impl InputBuffer {
    pub fn unread(&self) -> &[u8] {
        &self.bytes[self.used..]
    }

    pub fn consume(&mut self, count: usize) {
        self.used = (self.used + count).min(self.bytes.len());
    }

    pub fn append(&mut self, bytes: &[u8], memory: &BufferPool) {
        if self.bytes.capacity() == 0 && !bytes.is_empty() {
            self.bytes = memory.get();
        }
        if self.used > 0 {
            self.bytes.drain(..self.used);
            self.used = 0;
        }
        self.bytes.extend_from_slice(bytes);
    }

    /// Returns the buffer, whatever is in it.
    pub fn release(&mut self, memory: &BufferPool) {
        self.used = self.bytes.len();
        self.release_if_empty(memory);
    }

    /// Returns the buffer if nothing is left in it.
    pub fn release_if_empty(&mut self, memory: &BufferPool) {
        if self.used == self.bytes.len() && self.bytes.capacity() > 0 {
            self.used = 0;
            memory.put(std::mem::take(&mut self.bytes));
        }
    }
}

/// Pending until the deadline has passed, then an error.
pub fn poll_deadline<T>(deadline: &Deadline, cx: &mut Context<'_>) -> Poll<io::Result<T>> {
    match deadline.check(cx) {
        Ok(()) => Poll::Pending,
        Err(late) => Poll::Ready(Err(late)),
    }
}

/// Writes all parts; each step may take `step`, if that is given, and otherwise the deadline is kept as it is: for servers only. A client
/// that has taken a part has to be waited for again, or it would keep its slot for ever.
///
/// The slices are put together for each step, on the stack: while it waits, a connection keeps only its position.
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
                    poll_write_once::<FEW_PARTS>(stream, deadline, cx, &mut parts, &mut sent)
                }
                _ => poll_write_once::<MANY_PARTS>(stream, deadline, cx, &mut parts, &mut sent),
            };
            match written {
                Poll::Ready(Ok(true)) => return Poll::Ready(Ok(())),
                Poll::Ready(Ok(false)) => begins = true,
                Poll::Ready(Err(error)) => return Poll::Ready(Err(error)),
                Poll::Pending => {
                    begins = false;
                    return poll_deadline(deadline, cx);
                }
            }
        }
    })
}

/// Writes once of `parts`, of which `sent` bytes are written already; true: that was all.
#[inline]
fn poll_write_once<'p, const MOST: usize>(
    stream: &mut (impl AsyncWrite + Unpin),
    deadline: &Deadline,
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
    deadline.credit(written as u64);
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

    /// Accepts this number of bytes, and no more.
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
            let watch = std::rc::Rc::new(crate::deadlines::Deadlines::new(0));
            let (deadline, mut stream) = (watch.register(), Takes(takes));
            deadline.set_min_rate(500);
            let parts = [&b"hello"[..]];
            let minute = Duration::from_secs(60);
            let mut write =
                std::pin::pin!(write_all(&mut stream, &deadline, Some(minute), parts.into_iter()));
            let mut cx = Context::from_waker(std::task::Waker::noop());
            assert!(write.as_mut().poll(&mut cx).is_pending());
            for tick in 1..=40 {
                watch.tick(tick * crate::deadlines::TICK_NS);
            }
            let makes_room =
                crate::deadlines::LongestWaits::default().dismiss(&watch, Duration::from_secs(1), |_| true);
            assert!(makes_room, "{takes} bytes taken");
            let ended = write.as_mut().poll(&mut cx);
            assert!(matches!(ended, Poll::Ready(Err(error)) if error.kind() == io::ErrorKind::TimedOut));
        }
    }

    #[test]
    fn buffers_that_have_grown_are_kept_up_to_a_bound_on_their_sum() {
        let memory = BufferPool::new();
        let kept = MAX_SPARE_BYTES / MAX_BUFFER_BYTES;
        memory.put(Vec::with_capacity(MAX_BUFFER_BYTES + 1));
        assert_eq!(memory.spare_bytes(), 0, "too large");
        (0..2 * kept).for_each(|_| memory.put(Vec::with_capacity(MAX_BUFFER_BYTES)));
        assert_eq!(memory.spare_bytes(), MAX_SPARE_BYTES);
        let taken: Vec<usize> = (0..=kept).map(|_| memory.get().capacity()).collect();
        assert_eq!((taken[kept - 1], taken[kept]), (MAX_BUFFER_BYTES, NEW_BYTES));
        assert_eq!(memory.spare_bytes(), 0);
    }

    #[test]
    fn input_keeps_what_is_not_used_and_gives_its_memory_back() {
        let memory = BufferPool::new();
        let mut input = InputBuffer::default();
        input.append(b"abc", &memory);
        input.consume(1);
        input.append(b"de", &memory);
        assert_eq!(input.unread(), b"bcde");
        input.release_if_empty(&memory);
        assert_eq!(memory.spare_bytes(), 0, "it is not empty");
        input.consume(4);
        input.release_if_empty(&memory);
        assert_eq!((input.unread(), memory.spare_bytes()), (&b""[..], NEW_BYTES));
    }
}
