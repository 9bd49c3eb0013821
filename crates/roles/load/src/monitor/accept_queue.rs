//! Length of the queues of connections that wait to be accepted.

use std::io;
use std::os::fd::AsRawFd;
use std::rc::Rc;

use tokio::net::TcpListener;

/// Length of an accept queue, and its limit.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct QueueDepth {
    pub waiting: u32,
    pub limit: u32,
}

/// Accept queues of a worker, and the fullest state of any.
#[derive(Debug, Default)]
pub struct AcceptQueues {
    listeners: Vec<Rc<TcpListener>>,
    fullest: QueueDepth,
}

impl AcceptQueues {
    pub fn new(listeners: Vec<Rc<TcpListener>>) -> Self {
        Self { listeners, fullest: QueueDepth::default() }
    }

    /// Looks at all of them.
    pub fn sample(&mut self) {
        // A queue that cannot be looked at tells nothing.
        for depth in self.listeners.iter().filter_map(|listener| depth_of(&**listener).ok()) {
            self.fullest.limit = self.fullest.limit.max(depth.limit);
            if depth.waiting > self.fullest.waiting {
                self.fullest = depth;
            }
        }
    }

    /// The longest queue since the last reading.
    pub fn take(&mut self) -> QueueDepth {
        std::mem::take(&mut self.fullest)
    }
}

/// Reads it from the kernel. For a socket that listens, two fields of `tcp_info` have a meaning of their own.
fn depth_of(listener: &impl AsRawFd) -> io::Result<QueueDepth> {
    // SAFETY: `tcp_info` is plain numbers, for which zero is a value.
    let mut info: libc::tcp_info = unsafe { std::mem::zeroed() };
    let mut length = size_of_val(&info) as libc::socklen_t;
    // SAFETY: the descriptor is open, and no more than `length` bytes are written to `info`.
    let result = unsafe {
        libc::getsockopt(
            listener.as_raw_fd(),
            libc::IPPROTO_TCP,
            libc::TCP_INFO,
            (&raw mut info).cast(),
            &raw mut length,
        )
    };
    if result != 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(QueueDepth { waiting: info.tcpi_unacked, limit: info.tcpi_sacked })
}

#[cfg(test)]
mod tests {
    use tokio::net::TcpStream;

    use super::*;

    #[test]
    fn connections_that_nobody_accepts_are_counted() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build().expect("starts");
        runtime.block_on(async {
            let listener = Rc::new(TcpListener::bind("127.0.0.1:0").await.expect("a free port"));
            let address = listener.local_addr().expect("is bound");
            let mut queues = AcceptQueues::new(vec![listener.clone()]);
            queues.sample();
            let limit = queues.take().limit;
            assert!(limit > 0);
            let mut clients = Vec::new();
            for _ in 0..3 {
                clients.push(TcpStream::connect(address).await.expect("connects"));
            }
            queues.sample();
            for _ in &clients {
                listener.accept().await.expect("one waits");
            }
            queues.sample();
            assert_eq!(queues.take(), QueueDepth { waiting: 3, limit }, "the fullest that was seen");
            queues.sample();
            assert_eq!(queues.take().waiting, 0);
        });
    }
}
