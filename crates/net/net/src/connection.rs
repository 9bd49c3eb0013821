//! A connection: a byte stream with its unread input, its deadline and shared buffers.
//!
//! Everything that speaks HTTP here reads and writes through this, on either side. The stream is TCP, or anything else that delivers bytes
//! in order; their meaning is not known here.

use std::future::Future;
use std::io;
use std::rc::Rc;
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::task::spawn_local;
use tokio::time::sleep;

use crate::buffers::{BufferPool, InputBuffer, write_all};
use crate::deadlines::{Deadline, Deadlines, TICK_NS};
use crate::http2::RefusalCounts;
use crate::limits::{LINGER, LINGER_READS};
use assay_base::clock::monotonic_ns;

/// State that all connections of a thread share: buffers and deadlines.
pub struct Resources {
    pub memory: BufferPool,
    /// Deadlines, which take effect only while [`Deadlines::tick`] is called: [`Resources::run_deadlines`] does that.
    pub deadlines: Rc<Deadlines>,
    /// Requests of HTTP/2 that were refused before a handler had seen them.
    pub refusals: RefusalCounts,
}

impl Resources {
    pub fn new() -> Rc<Self> {
        let deadlines = Rc::new(Deadlines::new(monotonic_ns()));
        Rc::new(Self { memory: BufferPool::new(), deadlines, refusals: RefusalCounts::default() })
    }

    /// Runs all deadlines in a local task that ends with the last user of these resources. Without it no deadline ever passes.
    pub fn run_deadlines(self: &Rc<Self>) {
        let resources = Rc::downgrade(self);
        spawn_local(async move {
            let mut next_ns = TICK_NS;
            loop {
                sleep(Duration::from_nanos(next_ns)).await;
                let Some(resources) = resources.upgrade() else { return };
                next_ns = resources.deadlines.tick(monotonic_ns());
            }
        });
    }
}

/// A connection, of a client or of a server.
pub struct Connection<S = TcpStream> {
    pub stream: S,
    /// Bytes that were received and not used yet.
    pub input: InputBuffer,
    pub deadline: Deadline,
    resources: Rc<Resources>,
}

impl<S: AsyncRead + AsyncWrite + Unpin> Connection<S> {
    pub fn new(stream: S, resources: &Rc<Resources>) -> Self {
        let deadline = resources.deadlines.register();
        Self { stream, input: InputBuffer::default(), deadline, resources: Rc::clone(resources) }
    }

    pub fn resources(&self) -> &Rc<Resources> {
        &self.resources
    }

    /// Reads once, within `limit`, and hands the bytes to `take` together with the input and the memory for it; no bytes: the
    /// other side has closed. Nothing is lost when the future is dropped before it is ready.
    pub fn read<T>(
        &mut self,
        limit: Duration,
        take: impl FnOnce(&[u8], &mut InputBuffer, &BufferPool) -> T,
    ) -> impl Future<Output = io::Result<T>> {
        self.deadline.await_peer(limit);
        let (memory, input, deadline) = (&self.resources.memory, &mut self.input, &self.deadline);
        memory.read(&mut self.stream, deadline, |bytes| {
            deadline.credit(bytes.len() as u64);
            take(bytes, input, memory)
        })
    }

    /// Splits the connection for users that read in their own way: the stream, its deadline, its input and the buffers for that.
    pub fn parts(&mut self) -> (&mut S, &Deadline, &mut InputBuffer, &BufferPool) {
        (&mut self.stream, &self.deadline, &mut self.input, &self.resources.memory)
    }

    /// Waits for bytes, no longer than `limit`, and appends them to the input. Returns the count; 0: the other side has closed.
    pub fn fill(&mut self, limit: Duration) -> impl Future<Output = io::Result<usize>> {
        self.read(limit, |bytes, input, memory| {
            input.append(bytes, memory);
            bytes.len()
        })
    }

    /// Gives the memory of the input back if nothing is left in it: a connection may wait long for more.
    pub(crate) fn release_input(&mut self) {
        self.input.release_if_empty(&self.resources.memory);
    }

    /// Writes all of some parts; each step may take `limit`.
    pub fn write_all<'p>(
        &mut self,
        parts: impl Iterator<Item = &'p [u8]> + Clone,
        limit: Duration,
    ) -> impl Future<Output = io::Result<()>> {
        write_all(&mut self.stream, &self.deadline, Some(limit), parts)
    }

    /// Closes the connection without losing the last response: closing while something is unread resets the connection, and the other side
    /// might never read that.
    pub async fn linger(&mut self) {
        // If the connection has ended already, reading ends as well.
        let _ = self.stream.shutdown().await;
        self.deadline.set_closing();
        for _ in 0..LINGER_READS {
            match self.read(LINGER, |bytes, _, _| bytes.len()).await {
                Ok(1..) => {}
                Ok(0) | Err(_) => return,
            }
        }
    }
}

impl<S> Drop for Connection<S> {
    fn drop(&mut self) {
        self.input.release(&self.resources.memory);
    }
}
