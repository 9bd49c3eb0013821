//! A connection of layer 4: it gets its server before anything of it is read, by a policy that needs no request, and its bytes go
//! both ways as they are until both sides have ended.
//!
//! A side that ends keeps receiving: its end is passed on, and the other direction goes on. What breaks off is broken off
//! towards the other side too, with a reset, so that nothing cut short looks complete.

use std::future::{Future, poll_fn};
use std::io;
use std::pin::pin;
use std::rc::Rc;
use std::task::Poll;

use assay_cluster::dispatch::{ClassId, Request, ServerId};

use super::client::Connected;
use super::runtime::now_ns;
use super::shared::Shared;
use super::slot::{Slot, Standing, Unserved, Waiting, acquire};
use super::socket::Socket;
use super::stream::Stream;
use super::way::{Means, Way};
use crate::plan::News;
use crate::tally::add;
use assay_net::exchange::Stream as _;
use assay_net::memory::{Input, wait};
use assay_net::watch::Deadline;

/// What policies know of a connection: nothing. Those that go by class or document are refused with the configuration.
const UNKNOWN: Request = Request { class: ClassId(0), document: 0 };

/// A connection on its way.
struct Layer4 {
    client: Stream,
    /// What the client sent while it waited for a server.
    input: Input,
    /// It sends nothing more.
    has_ended: bool,
    deadline: Deadline,
    standing: Standing,
    shared: Rc<Shared>,
    /// When it was accepted.
    at_ns: u64,
}

/// Serves a connection, from when it was accepted to its end.
pub async fn serve(client: Stream, connected: Connected) {
    let shared = Rc::clone(connected.shared());
    let standing = Standing { setup: shared.setup(), request: UNKNOWN };
    let deadline = shared.resources.watch.enter();
    let own = Layer4 {
        client,
        input: Input::default(),
        has_ended: false,
        deadline,
        standing,
        shared,
        at_ns: now_ns(),
    };
    own.serve().await;
}

impl Layer4 {
    async fn serve(mut self) {
        match self.reach().await {
            Some((slot, server)) => self.relay(slot, server).await,
            None => self.close_unserved(),
        }
    }

    /// Gets a server, and a connection to it: to another one if it cannot be reached, as often as is allowed.
    async fn reach(&mut self) -> Option<(Slot, Socket)> {
        let mut tried: Vec<ServerId> = Vec::new();
        loop {
            let waiting = Waiting {
                stream: &mut self.client,
                input: &mut self.input,
                deadline: &self.deadline,
                half_closed: Some(&mut self.has_ended),
            };
            let slot = match acquire(&self.shared, &mut self.standing, &tried, waiting).await {
                Ok(slot) => slot,
                Err(unserved) => {
                    // Where others have failed before, that is the reason.
                    if tried.is_empty() || unserved != Unserved::Nobody {
                        self.shared.count_unserved(unserved);
                    }
                    return None;
                }
            };
            let id = slot.server.id;
            match self.connect(&slot).await {
                Ok(server) => return Some((slot, server)),
                Err(_) => {
                    // Nobody steers any more when the switch ends.
                    let _ = self.shared.news.send(News::Failed(id));
                    drop(slot);
                    let setup = &self.standing.setup;
                    let may_repeat = (tried.len() as u64) < u64::from(setup.config.retries);
                    setup.tally(self.standing.class(), Some(id)).with(|tally| {
                        tally.failed += 1;
                        tally.retried += u64::from(may_repeat);
                    });
                    if !may_repeat {
                        return None;
                    }
                    tried.push(id);
                }
            }
        }
    }

    async fn connect(&self, slot: &Slot) -> io::Result<Socket> {
        self.deadline.set(self.standing.setup.config.timeouts.connect);
        add(&self.shared.counts.connects);
        let mut connecting = pin!(Socket::connect(slot.server.address));
        poll_fn(|cx| match connecting.as_mut().poll(cx) {
            Poll::Ready(connected) => Poll::Ready(connected),
            Poll::Pending => wait(&self.deadline, cx),
        })
        .await
    }

    /// Carries bytes both ways until both sides have ended.
    async fn relay(self, mut slot: Slot, mut server: Socket) {
        let Self { client, input, has_ended, deadline, standing, shared, at_ns } = self;
        // The configuration has no TLS and no HTTP/2 in this mode.
        let Stream::Clear(mut client) = client else { return };
        let config = &standing.setup.config;
        let means = Means {
            memory: &shared.resources.memory,
            pipes: &shared.pipes,
            splice: config.splice,
            deadline: &deadline,
            silence: config.timeouts.tunnel,
        };
        deadline.set(means.silence);
        let (mut up, mut down) = (Way::new(input).ended(has_ended), Way::default());
        let mut begun_ns = None;
        let ended = poll_fn(|cx| {
            let sent = up.poll((&mut client, &mut server), &means, down.is_closed(), cx)?;
            let received = down.poll((&mut server, &mut client), &means, up.is_closed(), cx)?;
            if begun_ns.is_none() && down.bytes() > 0 {
                slot.first_byte();
                begun_ns = Some(now_ns());
            }
            if sent.is_ready() && received.is_ready() { Poll::Ready(Ok(())) } else { wait(&deadline, cx) }
        });
        let ended: io::Result<()> = ended.await;
        if ended.is_err() {
            client.reset_on_close();
            server.reset_on_close();
        }
        // Whoever broke it off, the server accepted it.
        slot.has_response = true;
        let ended_ns = now_ns();
        let since_us = |end_ns: u64| end_ns.saturating_sub(at_ns) / 1000;
        standing.setup.tally(standing.class(), Some(slot.server.id)).with(|tally| {
            tally.connections += 1;
            tally.broken += u64::from(ended.is_err());
            tally.bytes += down.bytes();
            tally.received += up.bytes();
            tally.spliced += up.moved + down.moved;
            if let Some(begun_ns) = begun_ns {
                tally.first_byte.record(since_us(begun_ns));
            }
            tally.times.record(since_us(ended_ns));
        });
    }

    /// There is no server for it: its end says so.
    fn close_unserved(self) {
        if let Stream::Clear(client) = &self.client {
            client.reset_on_close();
        }
        self.standing.setup.tally(self.standing.class(), None).with(|tally| {
            tally.connections += 1;
            tally.broken += 1;
        });
    }
}
