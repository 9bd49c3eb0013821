//! Which idle connection of a client can be used again?

use std::cell::RefCell;
use std::collections::HashMap;
use std::io;
use std::time::{Duration, Instant};

use assay_plane::upstream::Upstream;

/// Connections of one client, and since when each has been idle.
type Idle = Vec<(Upstream, Instant)>;

/// Idle connections, each client's its own.
#[derive(Default)]
pub(crate) struct Pool {
    idle: RefCell<HashMap<Box<str>, Idle>>,
}

impl Pool {
    /// The connection that this client used last and that is not known to be closed.
    pub(crate) fn take(&self, client: &str) -> Option<Upstream> {
        let mut idle = self.idle.borrow_mut();
        let connections = idle.get_mut(client)?;
        let mut found = None;
        while let Some((upstream, _)) = connections.pop() {
            // Nothing may come on an idle connection: bytes or an end make it useless.
            let quiet =
                matches!(upstream.stream.try_read(&mut [0]), Err(e) if e.kind() == io::ErrorKind::WouldBlock);
            if quiet {
                found = Some(upstream);
                break;
            }
        }
        if connections.is_empty() {
            idle.remove(client);
        }
        found
    }

    /// Keeps a connection for this client.
    pub(crate) fn put_back(&self, client: Box<str>, upstream: Upstream) {
        self.idle.borrow_mut().entry(client).or_default().push((upstream, Instant::now()));
    }

    /// Closes what has been idle for longer than this.
    pub(crate) fn close_older_than(&self, age: Duration) {
        self.idle.borrow_mut().retain(|_, connections| {
            connections.retain(|(_, since)| since.elapsed() < age);
            !connections.is_empty()
        });
    }
}
