//! One direction of a connection whose bytes are sent on as they are: copied through this process, or moved by the kernel through
//! a pipe (`splice`).
//!
//! A copy costs two system calls and twice the memory traffic, a move two system calls and a pipe. So short messages are copied,
//! and what comes in plenty is moved: once a read has filled all the room there was, until nothing more is there.

use std::io;
use std::rc::Rc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use rustix::io::Errno;

use super::pipes::{Pipe, Pipes};
use super::socket::Socket;
use crate::config::Splice;
use assay_net::limits::READ_BYTES;
use assay_net::memory::{Input, Memory};
use assay_net::watch::Deadline;

/// Most that is asked of the kernel at once.
const MOST_MOVED: usize = 1 << 20;

/// What all directions of a worker use.
pub struct Means<'a> {
    /// Room for a read.
    pub memory: &'a Memory,
    pub pipes: &'a Rc<Pipes>,
    /// When bytes are moved.
    pub splice: Splice,
    /// The deadline of the connection, and how long it may be silent.
    pub deadline: &'a Deadline,
    pub silence: Duration,
}

#[derive(Default)]
pub struct Way {
    /// What was read and could not be sent on yet.
    input: Input,
    /// There while bytes are moved.
    pipe: Option<Pipe>,
    /// A read has filled all the room.
    is_much: bool,
    /// The kernel does not move bytes between these.
    cannot_splice: bool,
    has_ended: bool,
    is_closed: bool,
    /// Bytes that were copied.
    pub copied: u64,
    /// Bytes that were moved.
    pub moved: u64,
}

impl Way {
    /// What was read already goes first.
    pub fn new(input: Input) -> Self {
        let copied = input.unread().len() as u64;
        Self { input, copied, ..Self::default() }
    }

    /// One whose sender has ended already.
    pub fn ended(mut self, has_ended: bool) -> Self {
        self.has_ended = has_ended;
        self
    }

    /// All bytes so far.
    pub fn bytes(&self) -> u64 {
        self.copied + self.moved
    }

    /// Everything was sent on, and the end too.
    pub fn is_closed(&self) -> bool {
        self.is_closed
    }

    /// Sends on what there is; ready when all was sent, and the end too. `is_last`: the other direction has ended, and the end of
    /// this one is that of the connection.
    pub fn poll(
        &mut self,
        (from, to): (&mut Socket, &mut Socket),
        means: &Means<'_>,
        is_last: bool,
        cx: &mut Context<'_>,
    ) -> Poll<io::Result<()>> {
        loop {
            ready!(self.poll_send(to, means, cx))?;
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
            if self.wants_pipe(means.splice)
                && self.pipe.is_none()
                && let Ok(pipe) = means.pipes.take()
            {
                self.pipe = Some(pipe);
            }
            let ended = match &mut self.pipe {
                Some(pipe) => match from.poll_splice(pipe.ends()?.1, MOST_MOVED, cx) {
                    Poll::Ready(Ok(count)) => {
                        pipe.filled += count;
                        self.moved += count as u64;
                        count == 0
                    }
                    Poll::Ready(Err(Errno::INVAL | Errno::NOSYS)) => {
                        (self.cannot_splice, self.pipe) = (true, None);
                        continue;
                    }
                    Poll::Ready(Err(error)) => return Poll::Ready(Err(error.into())),
                    Poll::Pending => {
                        // A connection at rest holds no pipe.
                        (self.pipe, self.is_much) = (None, false);
                        return Poll::Pending;
                    }
                },
                None => ready!(self.poll_copy(from, to, means.memory, cx))?,
            };
            self.has_ended = ended;
            means.deadline.set(means.silence);
        }
    }

    fn wants_pipe(&self, splice: Splice) -> bool {
        let wants = match splice {
            Splice::Never => false,
            Splice::Always => true,
            Splice::Auto => self.is_much,
        };
        wants && !self.cannot_splice
    }

    /// Sends on what was read, or lies in the pipe.
    fn poll_send(
        &mut self,
        to: &mut Socket,
        means: &Means<'_>,
        cx: &mut Context<'_>,
    ) -> Poll<io::Result<()>> {
        while !self.input.unread().is_empty() {
            let written = ready!(to.poll_send(self.input.unread(), cx))?;
            self.input.consume(written);
            means.deadline.set(means.silence);
        }
        self.input.rest(means.memory);
        while let Some(pipe) = self.pipe.as_mut().filter(|pipe| pipe.filled > 0) {
            let taken = ready!(to.poll_fill_from(pipe.ends()?.0, pipe.filled, cx))?;
            if taken == 0 {
                return Poll::Ready(Err(io::ErrorKind::WriteZero.into()));
            }
            pipe.filled -= taken.min(pipe.filled);
            means.deadline.set(means.silence);
        }
        Poll::Ready(Ok(()))
    }

    /// Reads once, and sends on at once what there is room for; whether that was the last.
    fn poll_copy(
        &mut self,
        from: &mut Socket,
        to: &Socket,
        memory: &Memory,
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
        self.is_much = count == READ_BYTES;
        Poll::Ready(Ok(count == 0 || (!self.is_much && from.is_drained())))
    }
}
