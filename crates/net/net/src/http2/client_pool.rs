//! Connections of HTTP/2 to one server, which its requests share.

use std::cell::{Cell, RefCell};
use std::time::Duration;

use tokio::sync::Notify;

use super::client::Http2Client;
use super::pipe::Pipe;
use assay_base::clock::monotonic_ns;

/// Connections to one server. A new one is opened only when those that are there take no more streams.
#[derive(Default)]
pub struct Http2ClientPool {
    open: RefCell<Vec<Http2Client>>,
    /// A connection is being opened: requests wait for it.
    is_opening: Cell<bool>,
    opened: Notify,
}

impl Http2ClientPool {
    /// A stream for one request on a connection that is there; none: they take no more.
    pub fn pipe(&self) -> Option<Pipe> {
        self.open.borrow().iter().find_map(Http2Client::pipe)
    }

    /// A stream for one request, and whether its connection was there before; a connection that `connect` opens, and carries on, if
    /// need be. Where many requests come at once, they wait for the first one's connection.
    pub async fn connect<E>(
        &self,
        connect: impl AsyncFn() -> Result<Http2Client, E>,
    ) -> Result<(Pipe, bool), E> {
        let mut is_reused = true;
        loop {
            let opened = self.opened.notified();
            if let Some(pipe) = self.pipe() {
                return Ok((pipe, is_reused));
            }
            if self.is_opening.get() {
                opened.await;
                continue;
            }
            let _opening = ConnectingGuard::new(self);
            let client = connect().await?;
            self.open.borrow_mut().push(client);
            is_reused = false;
        }
    }

    /// Number of connections without a request.
    pub fn idle(&self) -> usize {
        let is_idle = |client: &&Http2Client| client.idle_since_ns().is_some() && !client.is_closing();
        self.open.borrow().iter().filter(is_idle).count()
    }

    /// Drops connections that accept no more requests, and those that have been idle for so long. They end with their last request.
    pub fn close_older_than(&self, age: Duration) {
        let now_ns = monotonic_ns();
        let is_old = |since_ns: u64| u128::from(now_ns.saturating_sub(since_ns)) >= age.as_nanos();
        self.open
            .borrow_mut()
            .retain(|client| !client.is_closing() && !client.idle_since_ns().is_some_and(is_old));
    }

    /// Drops all connections: they accept no new requests, and end with the last that they have.
    pub fn close(&self) {
        self.open.borrow_mut().clear();
    }
}

/// Guard while a connection is being opened.
struct ConnectingGuard<'c>(&'c Http2ClientPool);

impl<'c> ConnectingGuard<'c> {
    fn new(clients: &'c Http2ClientPool) -> Self {
        clients.is_opening.set(true);
        Self(clients)
    }
}

impl Drop for ConnectingGuard<'_> {
    fn drop(&mut self) {
        self.0.is_opening.set(false);
        self.0.opened.notify_waiters();
    }
}
