//! One direction of a layer-4 connection: bytes are copied through this process, or moved by the kernel through a pipe
//! (`splice(2)`).
//!
//! A copy costs two system calls and twice the memory traffic, a splice two system calls and a pipe. So short messages are copied,
//! and bulk data is spliced: from when a read has filled its whole buffer until nothing more is there.

use std::io;
use std::rc::Rc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use rustix::io::Errno;

use super::pipes::{Pipe, Pipes};
use super::socket::Socket;
use crate::config::Splice;
use assay_net::buffers::{BufferPool, InputBuffer};
use assay_net::deadlines::Deadline;
use assay_net::limits::READ_BYTES;

/// Upper bound on one `splice` call.
const SPLICE_MAX_BYTES: usize = 1 << 20;

/// Resources of the worker, and settings, for both directions of a connection.
pub struct RelayContext<'a> {
    pub memory: &'a BufferPool,
    pub pipes: &'a Rc<Pipes>,
    pub splice: Splice,
    pub deadline: &'a Deadline,
    /// Limit on the silence of the connection.
    pub idle_limit: Duration,
}

#[derive(Default)]
pub struct Direction {
    /// Bytes read and not yet sent on.
    input: InputBuffer,
    /// Held only while bytes are spliced.
    pipe: Option<Pipe>,
    /// The last read filled its whole buffer.
    is_bulk: bool,
    /// The kernel cannot splice between these sockets.
    cannot_splice: bool,
    has_ended: bool,
    is_closed: bool,
    pub copied: u64,
    pub spliced: u64,
}

impl Direction {
    /// Starts with bytes that were read already.
    pub fn new(input: InputBuffer) -> Self {
        let copied = input.unread().len() as u64;
        Self { input, copied, ..Self::default() }
    }

    /// Sets whether the sender has ended already.
    pub fn with_end(mut self, has_ended: bool) -> Self {
        self.has_ended = has_ended;
        self
    }

    pub fn bytes(&self) -> u64 {
        self.copied + self.spliced
    }

    /// Everything, including the end of the stream, was sent on.
    pub fn is_closed(&self) -> bool {
        self.is_closed
    }

    /// Relays what has arrived; ready once everything, including the end of the stream, was sent on. `is_last`: the other direction
    /// has ended, so no half-close is needed.
    pub fn poll(
        &mut self,
        from: &mut Socket,
        to: &mut Socket,
        relay: &RelayContext<'_>,
        is_last: bool,
        cx: &mut Context<'_>,
    ) -> Poll<io::Result<()>> {
        loop {
            ready!(self.poll_send(to, relay, cx))?;
            if self.is_closed {
                return Poll::Ready(Ok(()));
            }
            if self.has_ended {
                if !is_last {
                    to.shut_writing()?;
                }
                self.is_closed = true;
                return Poll::Ready(Ok(()));
            }
            if self.wants_pipe(relay.splice)
                && self.pipe.is_none()
                && let Ok(pipe) = relay.pipes.take()
            {
                self.pipe = Some(pipe);
            }
            let ended = match &mut self.pipe {
                Some(pipe) => match from.poll_splice(pipe.ends()?.1, SPLICE_MAX_BYTES, cx) {
                    Poll::Ready(Ok(count)) => {
                        pipe.filled += count;
                        self.spliced += count as u64;
                        count == 0
                    }
                    Poll::Ready(Err(Errno::INVAL | Errno::NOSYS)) => {
                        (self.cannot_splice, self.pipe) = (true, None);
                        continue;
                    }
                    Poll::Ready(Err(error)) => return Poll::Ready(Err(error.into())),
                    Poll::Pending => {
                        // An idle connection holds no pipe.
                        (self.pipe, self.is_bulk) = (None, false);
                        return Poll::Pending;
                    }
                },
                None => ready!(self.poll_copy(from, to, relay.memory, cx))?,
            };
            self.has_ended = ended;
            relay.deadline.set(relay.idle_limit);
        }
    }

    fn wants_pipe(&self, splice: Splice) -> bool {
        let wants = match splice {
            Splice::Never => false,
            Splice::Always => true,
            Splice::Auto => self.is_bulk,
        };
        wants && !self.cannot_splice
    }

    /// Sends what was read, or lies in the pipe.
    fn poll_send(
        &mut self,
        to: &mut Socket,
        relay: &RelayContext<'_>,
        cx: &mut Context<'_>,
    ) -> Poll<io::Result<()>> {
        while !self.input.unread().is_empty() {
            let written = ready!(to.poll_send(self.input.unread(), cx))?;
            self.input.consume(written);
            relay.deadline.set(relay.idle_limit);
        }
        self.input.release_if_empty(relay.memory);
        while let Some(pipe) = self.pipe.as_mut().filter(|pipe| pipe.filled > 0) {
            let taken = ready!(to.poll_splice_from(pipe.ends()?.0, pipe.filled, cx))?;
            if taken == 0 {
                return Poll::Ready(Err(io::ErrorKind::WriteZero.into()));
            }
            pipe.filled -= taken.min(pipe.filled);
            relay.deadline.set(relay.idle_limit);
        }
        Poll::Ready(Ok(()))
    }

    /// Reads once and sends at once what there is room for; returns whether the stream has ended.
    fn poll_copy(
        &mut self,
        from: &mut Socket,
        to: &Socket,
        memory: &BufferPool,
        cx: &mut Context<'_>,
    ) -> Poll<io::Result<bool>> {
        let input = &mut self.input;
        let read = memory.poll_read(from, cx, |bytes| -> io::Result<usize> {
            let written = match to.try_write(bytes) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => 0,
                written => written?,
            };
            input.append(&bytes[written..], memory);
            Ok(bytes.len())
        });
        let count = ready!(read)??;
        self.copied += count as u64;
        self.is_bulk = count == READ_BYTES;
        Poll::Ready(Ok(count == 0 || (!self.is_bulk && from.is_drained())))
    }
}
