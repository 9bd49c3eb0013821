//! Connections of HTTP/2 to one server, which its requests share.

use std::cell::{Cell, RefCell};
use std::time::Duration;

use tokio::sync::Notify;

use super::client::Client;
use super::pipe::Pipe;
use assay_base::clock::monotonic_ns;

/// Connections to one server. A new one is opened only when those that are there take no more streams.
#[derive(Default)]
pub struct Clients {
    /// In use or not.
    open: RefCell<Vec<Client>>,
    /// One more is being opened: requests wait for it.
    is_opening: Cell<bool>,
    opened: Notify,
}

impl Clients {
    /// A stream for one request on a connection that is there; none: they take no more.
    pub fn pipe(&self) -> Option<Pipe> {
        self.open.borrow().iter().find_map(Client::pipe)
    }

    /// A stream for one request, and whether its connection was there before; a connection that `connect` opens, and carries on, if
    /// need be. Where many requests come at once, they wait for the first one's connection.
    pub async fn connect<E>(&self, connect: impl AsyncFn() -> Result<Client, E>) -> Result<(Pipe, bool), E> {
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
            let _opening = Opening::new(self);
            let client = connect().await?;
            self.open.borrow_mut().push(client);
            is_reused = false;
        }
    }

    /// How many have no request now.
    pub fn idle(&self) -> usize {
        let is_idle = |client: &&Client| client.idle_since_ns().is_some() && !client.is_closing();
        self.open.borrow().iter().filter(is_idle).count()
    }

    /// Lets go of those that take no more requests, and of those that have had none for so long. They end with their last request.
    pub fn close_older_than(&self, age: Duration) {
        let now_ns = monotonic_ns();
        let is_old = |since_ns: u64| u128::from(now_ns.saturating_sub(since_ns)) >= age.as_nanos();
        self.open
            .borrow_mut()
            .retain(|client| !client.is_closing() && !client.idle_since_ns().is_some_and(is_old));
    }

    /// Lets go of all: they take no new requests, and end with the last that they have.
    pub fn close(&self) {
        self.open.borrow_mut().clear();
    }
}

/// While this is there, a connection is being opened.
struct Opening<'c>(&'c Clients);

impl<'c> Opening<'c> {
    fn new(clients: &'c Clients) -> Self {
        clients.is_opening.set(true);
        Self(clients)
    }
}

impl Drop for Opening<'_> {
    fn drop(&mut self) {
        self.0.is_opening.set(false);
        self.0.opened.notify_waiters();
    }
}
