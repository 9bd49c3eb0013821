//! The body of a request on its way to a server that may respond before it has all of it.
//!
//! Both directions are looked at whenever anything happens: the server's responses (100 goes to a client that waits for it, a
//! final response ends the upload), and the client's bytes.

use std::future::poll_fn;
use std::io;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};
use std::time::Duration;

use assay_http::framing::BodyFraming;
use assay_http::head::ResponseHead;
use tokio::io::AsyncWrite;

use super::client::{Client, Order};
use super::exchange::{Fault, loss};
use super::server::Upstream;
use super::slot::Slot;
use crate::request::Refusal;
use assay_net::carrier::Carrier;
use assay_net::connection::Connection;
use assay_net::interim;
use assay_net::limits::MOST_INTERIM_RESPONSES;
use assay_net::memory::wait;

/// An upload under way.
struct Upload<'u> {
    upstream: &'u mut Upstream,
    carrier: Carrier,
    /// What goes to the server next; so much of it is written.
    out: Vec<u8>,
    written: usize,
    /// Interim responses that go to the client; so much of them is written.
    interim: Vec<u8>,
    interim_written: usize,
    takes_interim: bool,
    most_bytes: Option<u64>,
    client_limit: Duration,
    server_limit: Duration,
}

/// How an upload ended.
enum End {
    /// The server has all of it.
    Whole,
    /// The server has responded, or takes no more.
    Early,
    /// The client's connection has ended.
    ClientGone,
    /// The body is refused.
    Refused(Refusal),
}

impl Client {
    /// Sends the body; false when the server did not take all of it.
    pub(super) async fn upload(
        &mut self,
        upstream: &mut Upstream,
        slot: &Slot,
        order: &Order,
    ) -> Result<bool, Fault> {
        let shared = Rc::clone(&self.shared);
        let config = &order.standing.setup.config;
        let mut upload = Upload {
            upstream,
            carrier: Carrier::new(order.facts.body, order.facts.body == BodyFraming::Chunked),
            out: shared.resources.memory.take(),
            written: 0,
            interim: Vec::new(),
            interim_written: 0,
            takes_interim: order.facts.is_11,
            most_bytes: config.limits.body_bytes,
            client_limit: config.timeouts.client_request,
            server_limit: config.timeouts.response,
        };
        self.exchange.connection.deadline.await_peer(upload.client_limit);
        let end = poll_fn(|cx| upload.poll(self, &config.name, cx)).await;
        let waits_for_server = upload.written < upload.out.len();
        shared.resources.memory.give(std::mem::take(&mut upload.out));
        match end {
            Ok(End::Whole) => {
                self.exchange.leaves_unread = false;
                Ok(true)
            }
            Ok(End::Early) => Ok(false),
            Ok(End::Refused(refusal)) => Err(Fault::Refused(refusal)),
            Ok(End::ClientGone) => Err(Fault::Client(io::ErrorKind::UnexpectedEof.into())),
            Err(error) if error.kind() == io::ErrorKind::TimedOut && waits_for_server => {
                Err(Fault::Server(loss(&slot.server, &error), false))
            }
            Err(error) if error.kind() == io::ErrorKind::TimedOut => {
                self.exchange.note_late();
                Err(Fault::Refused(Refusal::TooSlow))
            }
            Err(error) => Err(Fault::Client(error)),
        }
    }
}

impl Upload<'_> {
    fn poll(&mut self, client: &mut Client, name: &str, cx: &mut Context<'_>) -> Poll<io::Result<End>> {
        loop {
            let has_responded = self.poll_server(client, name, cx).is_ready();
            if !self.interim.is_empty() {
                match Pin::new(&mut client.exchange.connection.stream)
                    .poll_write(cx, &self.interim[self.interim_written..])
                {
                    Poll::Ready(written) => self.interim_written += written?,
                    Poll::Pending => return wait(&client.exchange.connection.deadline, cx),
                }
                if self.interim_written == self.interim.len() {
                    self.interim.clear();
                    self.interim_written = 0;
                }
                continue;
            }
            if has_responded {
                return Poll::Ready(Ok(End::Early));
            }
            if self.written < self.out.len() {
                match Pin::new(&mut self.upstream.stream).poll_write(cx, &self.out[self.written..]) {
                    Poll::Ready(Ok(written @ 1..)) => {
                        self.written += written;
                        client.exchange.connection.deadline.set(self.server_limit);
                    }
                    // It may have responded before it closed.
                    Poll::Ready(_) => return Poll::Ready(Ok(End::Early)),
                    // Its body is not read meanwhile, so that this alone tells.
                    Poll::Pending if client.exchange.connection.stream.poll_gone(true, cx).is_ready() => {
                        return Poll::Ready(Ok(End::ClientGone));
                    }
                    Poll::Pending => return wait(&client.exchange.connection.deadline, cx),
                }
                continue;
            }
            if self.carrier.is_done() {
                return Poll::Ready(Ok(End::Whole));
            }
            if self.written > 0 {
                self.out.clear();
                self.written = 0;
                client.exchange.connection.deadline.await_peer(self.client_limit);
            }
            match self.poll_client(client, cx) {
                Poll::Ready(Ok(None)) => {}
                Poll::Ready(Ok(Some(end))) => return Poll::Ready(Ok(end)),
                Poll::Ready(Err(error)) => return Poll::Ready(Err(error)),
                Poll::Pending => return wait(&client.exchange.connection.deadline, cx),
            }
        }
    }

    /// Takes what the server sends; ready: it has responded, or closed, and takes no more. Nothing is read while the
    /// client has yet to take interim responses, so what is kept of them is bounded by one read.
    fn poll_server(&mut self, client: &Client, name: &str, cx: &mut Context<'_>) -> Poll<()> {
        loop {
            while let Ok(Some((head, length))) = ResponseHead::parse(self.upstream.input.unread()) {
                // One too many is refused by whoever reads the head of the response next.
                if !head.is_interim() || self.upstream.interim_responses == MOST_INTERIM_RESPONSES {
                    return Poll::Ready(());
                }
                self.upstream.interim_responses += 1;
                if self.takes_interim {
                    interim::append(&mut self.interim, &head, name);
                }
                self.upstream.input.consume(length);
            }
            if !self.interim.is_empty() {
                return Poll::Pending;
            }
            let Upstream { stream, input, .. } = self.upstream;
            let memory = &client.shared.resources.memory;
            let read = memory.poll_read(stream, cx, |bytes| {
                input.append(bytes, memory);
                bytes.len()
            });
            match read {
                // What makes no sense as a head is found out by whoever reads it next.
                Poll::Ready(Ok(1..)) if ResponseHead::parse(input.unread()).is_ok() => {}
                Poll::Ready(_) => return Poll::Ready(()),
                Poll::Pending => return Poll::Pending,
            }
        }
    }

    /// Takes what the client sends: none when there was something.
    fn poll_client(&mut self, client: &mut Client, cx: &mut Context<'_>) -> Poll<io::Result<Option<End>>> {
        let shared = Rc::clone(&client.shared);
        let memory = &shared.resources.memory;
        let Self { carrier, out, .. } = self;
        let (taken, has_ended) = if client.exchange.connection.input.unread().is_empty() {
            let Connection { stream, input, deadline, .. } = &mut client.exchange.connection;
            let read = memory.poll_read(stream, cx, |bytes| {
                deadline.earn(bytes.len() as u64);
                let taken = carrier.take(bytes, out);
                if let Ok(taken) = taken {
                    input.append(&bytes[taken..], memory);
                }
                (taken.map(drop), bytes.is_empty())
            });
            std::task::ready!(read)?
        } else {
            let taken = carrier.take(client.exchange.connection.input.unread(), out);
            if let Ok(taken) = taken {
                client.exchange.connection.input.consume(taken);
                client.exchange.connection.input.rest(memory);
            }
            (taken.map(drop), false)
        };
        Poll::Ready(Ok(match (taken, has_ended, self.most_bytes) {
            (Err(_), _, _) => Some(End::Refused(Refusal::BadChunk)),
            (_, true, _) => Some(End::ClientGone),
            (_, _, Some(most)) if self.carrier.payload > most => {
                Some(End::Refused(Refusal::BodyTooLong(most)))
            }
            _ => None,
        }))
    }
}
