//! A connection: a byte stream, what came on it and was not used, and how long may be waited for it.
//!
//! Everything that speaks HTTP here reads and writes through this, on either side. The stream is TCP, or whatever else brings
//! bytes in order; what the bytes mean is not known here.

use std::future::Future;
use std::io;
use std::rc::Rc;
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::task::spawn_local;
use tokio::time::sleep;

use crate::limits::{LINGER, LINGER_READS};
use crate::memory::{Input, Memory, write_all};
use crate::refused::Refused;
use crate::watch::{Deadline, TICK_NS, Watch};
use assay_base::clock::monotonic_ns;

/// What all connections of a thread share: buffers, and the watch over their deadlines.
pub struct Resources {
    pub memory: Memory,
    /// Deadlines. Somebody has to call [`Watch::tick`] for them: [`Resources::keep_deadlines`] does.
    pub watch: Rc<Watch>,
    /// Requests of HTTP/2 that were refused before a handler had seen them.
    pub refused: Refused,
}

impl Resources {
    pub fn new() -> Rc<Self> {
        let watch = Rc::new(Watch::new(monotonic_ns()));
        Rc::new(Self { memory: Memory::new(), watch, refused: Refused::default() })
    }

    /// Looks through all deadlines, as often as is needed, in a local task that ends when nobody shares these any more. Without
    /// it nobody is ever late.
    pub fn keep_deadlines(self: &Rc<Self>) {
        let resources = Rc::downgrade(self);
        spawn_local(async move {
            let mut next_ns = TICK_NS;
            loop {
                sleep(Duration::from_nanos(next_ns)).await;
                let Some(resources) = resources.upgrade() else { return };
                next_ns = resources.watch.tick(monotonic_ns());
            }
        });
    }
}

/// A connection, on either side of it.
pub struct Connection<S = TcpStream> {
    /// Where bytes come from and go to.
    pub stream: S,
    /// What came and was not used.
    pub input: Input,
    /// How long reads and writes may wait.
    pub deadline: Deadline,
    resources: Rc<Resources>,
}

impl<S: AsyncRead + AsyncWrite + Unpin> Connection<S> {
    pub fn new(stream: S, resources: &Rc<Resources>) -> Self {
        let deadline = resources.watch.enter();
        Self { stream, input: Input::default(), deadline, resources: Rc::clone(resources) }
    }

    /// What it shares with others.
    pub fn resources(&self) -> &Rc<Resources> {
        &self.resources
    }

    /// Reads once, within `limit`, and hands the bytes to `take` together with the input and the memory for it; no bytes: the
    /// other side has closed. Nothing is lost when the future is dropped before it is ready.
    pub fn read<T>(
        &mut self,
        limit: Duration,
        take: impl FnOnce(&[u8], &mut Input, &Memory) -> T,
    ) -> impl Future<Output = io::Result<T>> {
        self.deadline.await_peer(limit);
        let (memory, input, deadline) = (&self.resources.memory, &mut self.input, &self.deadline);
        memory.read(&mut self.stream, deadline, |bytes| {
            deadline.earn(bytes.len() as u64);
            take(bytes, input, memory)
        })
    }

    /// What it is made of, for those who read it in their own way: the stream, its deadline, its input and the memory for that.
    pub fn parts(&mut self) -> (&mut S, &Deadline, &mut Input, &Memory) {
        (&mut self.stream, &self.deadline, &mut self.input, &self.resources.memory)
    }

    /// Waits for bytes, no longer than `limit`, and adds them to the input; how many (none: the other side has closed).
    pub fn fill(&mut self, limit: Duration) -> impl Future<Output = io::Result<usize>> {
        self.read(limit, |bytes, input, memory| {
            input.append(bytes, memory);
            bytes.len()
        })
    }

    /// Writes all of some parts; each step may take `limit`.
    pub fn write_all<'p>(
        &mut self,
        parts: impl Iterator<Item = &'p [u8]> + Clone,
        limit: Duration,
    ) -> impl Future<Output = io::Result<()>> {
        write_all(&mut self.stream, &self.deadline, Some(limit), parts)
    }

    /// Ends it without taking back what was said last: closing while something is unread resets the connection, and the other
    /// side might never read that.
    pub async fn linger(&mut self) {
        // If it has ended already, so does the reading.
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
