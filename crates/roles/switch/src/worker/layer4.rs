//! Layer-4 connections: a policy that needs no request selects the server before anything is read, and bytes are relayed both
//! ways unchanged until both sides have ended.
//!
//! A half-close is passed on, and the other direction continues. A connection that breaks off is reset towards the other side too,
//! so that nothing cut short looks complete.

use std::future::{Future, poll_fn};
use std::io;
use std::pin::pin;
use std::rc::Rc;
use std::task::Poll;

use assay_cluster::dispatch::{ClassId, Request, ServerId};

use super::client::ClientGuard;
use super::context::WorkerContext;
use super::direction::{Direction, RelayContext};
use super::runtime::now_ns;
use super::slot::{AcquireError, RoutingContext, Slot, WaitingClient, acquire};
use super::socket::Socket;
use super::transport::Transport;
use crate::messages::WorkerReport;
use crate::tally::add;
use assay_net::buffers::{InputBuffer, poll_deadline};
use assay_net::deadlines::Deadline;
use assay_net::exchange::Transport as _;

/// A connection as policies see it: nothing is known. Policies that need a class or document are rejected with the configuration.
const UNKNOWN: Request = Request { class: ClassId(0), document: 0 };

struct Layer4Connection {
    client: Transport,
    /// Bytes that the client sent while it waited for a server.
    input: InputBuffer,
    /// The client has closed its sending side.
    has_ended: bool,
    deadline: Deadline,
    routing: RoutingContext,
    shared: Rc<WorkerContext>,
    accepted_ns: u64,
}

/// Serves an accepted connection to its end.
pub async fn serve(client: Transport, guard: ClientGuard) {
    let shared = Rc::clone(guard.shared());
    let routing = RoutingContext { setup: shared.setup(), request: UNKNOWN };
    let deadline = shared.resources.deadlines.register();
    let connection = Layer4Connection {
        client,
        input: InputBuffer::default(),
        has_ended: false,
        deadline,
        routing,
        shared,
        accepted_ns: now_ns(),
    };
    connection.serve().await;
}

impl Layer4Connection {
    async fn serve(mut self) {
        match self.connect_to_server().await {
            Some((slot, server)) => self.relay(slot, server).await,
            None => self.close_unserved(),
        }
    }

    /// Selects a server and connects to it, or to another one if it cannot be reached, up to the limit of retries.
    async fn connect_to_server(&mut self) -> Option<(Slot, Socket)> {
        let mut tried: Vec<ServerId> = Vec::new();
        loop {
            let waiting = WaitingClient {
                stream: &mut self.client,
                input: &mut self.input,
                deadline: &self.deadline,
                half_closed: Some(&mut self.has_ended),
            };
            let slot = match acquire(&self.shared, &mut self.routing, &tried, waiting).await {
                Ok(slot) => slot,
                Err(error) => {
                    // Where servers have failed before, those failures are the reason, and counted already.
                    if tried.is_empty() || error != AcquireError::NoServer {
                        self.shared.count_no_server(error);
                    }
                    return None;
                }
            };
            let id = slot.server.id;
            match self.connect(&slot).await {
                Ok(server) => return Some((slot, server)),
                Err(_) => {
                    // The control thread is gone when the switch ends.
                    let _ = self.shared.reports.send(WorkerReport::Failed(id));
                    drop(slot);
                    let setup = &self.routing.setup;
                    let may_repeat = (tried.len() as u64) < u64::from(setup.config.retries);
                    setup.tally(self.routing.class(), Some(id)).with(|tally| {
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
        self.deadline.set(self.routing.setup.config.timeouts.connect);
        add(&self.shared.counts.connects);
        let mut connecting = pin!(Socket::connect(slot.server.address));
        poll_fn(|cx| match connecting.as_mut().poll(cx) {
            Poll::Ready(guard) => Poll::Ready(guard),
            Poll::Pending => poll_deadline(&self.deadline, cx),
        })
        .await
    }

    /// Relays bytes both ways until both sides have ended.
    async fn relay(self, mut slot: Slot, mut server: Socket) {
        let Self { client, input, has_ended, deadline, routing, shared, accepted_ns } = self;
        // The configuration has no TLS and no HTTP/2 in this mode.
        let Transport::Clear(mut client) = client else { return };
        let config = &routing.setup.config;
        let relay_context = RelayContext {
            memory: &shared.resources.memory,
            pipes: &shared.pipes,
            splice: config.splice,
            deadline: &deadline,
            idle_limit: config.timeouts.tunnel,
        };
        deadline.set(relay_context.idle_limit);
        let (mut up, mut down) = (Direction::new(input).with_end(has_ended), Direction::default());
        let mut begun_ns = None;
        let ended = poll_fn(|cx| {
            let sent = up.poll(&mut client, &mut server, &relay_context, down.is_closed(), cx)?;
            let received = down.poll(&mut server, &mut client, &relay_context, up.is_closed(), cx)?;
            if begun_ns.is_none() && down.bytes() > 0 {
                slot.first_byte();
                begun_ns = Some(now_ns());
            }
            if sent.is_ready() && received.is_ready() {
                Poll::Ready(Ok(()))
            } else {
                poll_deadline(&deadline, cx)
            }
        });
        let ended: io::Result<()> = ended.await;
        if ended.is_err() {
            client.reset_on_close();
            server.reset_on_close();
        }
        // Whichever side broke it off, the server accepted the connection.
        slot.has_response = true;
        let ended_ns = now_ns();
        let since_us = |end_ns: u64| end_ns.saturating_sub(accepted_ns) / 1000;
        routing.setup.tally(routing.class(), Some(slot.server.id)).with(|tally| {
            tally.connections += 1;
            tally.broken += u64::from(ended.is_err());
            tally.bytes += down.bytes();
            tally.received += up.bytes();
            tally.spliced += up.spliced + down.spliced;
            if let Some(begun_ns) = begun_ns {
                tally.first_byte.record(since_us(begun_ns));
            }
            tally.times.record(since_us(ended_ns));
        });
    }

    /// Resets a connection for which there is no server.
    fn close_unserved(self) {
        if let Transport::Clear(client) = &self.client {
            client.reset_on_close();
        }
        self.routing.setup.tally(self.routing.class(), None).with(|tally| {
            tally.connections += 1;
            tally.broken += 1;
        });
    }
}
