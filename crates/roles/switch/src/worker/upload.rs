//! Streaming of a request body to a server that may respond before it has all of it.
//!
//! Both directions are polled on every event: the server's responses (100 goes to a client that waits for it, a final response
//! ends the upload), and the client's bytes.

use std::future::poll_fn;
use std::io;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};
use std::time::Duration;

use assay_http::framing::BodyFraming;
use assay_http::head::ResponseHead;
use tokio::io::AsyncWrite;

use super::client::{PendingRequest, SwitchClient};
use super::exchange::{ForwardError, server_error};
use super::server::Upstream;
use super::slot::Slot;
use crate::request::RequestRefusal;
use assay_net::buffers::poll_deadline;
use assay_net::connection::Connection;
use assay_net::interim;
use assay_net::limits::MAX_INTERIM_RESPONSES;
use assay_net::relay::RelayedBody;

struct Upload<'u> {
    upstream: &'u mut Upstream,
    body: RelayedBody,
    /// Bytes for the server, of which `written` are written.
    out: Vec<u8>,
    written: usize,
    /// Interim responses for the client, of which `interim_written` bytes are written.
    interim: Vec<u8>,
    interim_written: usize,
    takes_interim: bool,
    max_bytes: Option<u64>,
    client_limit: Duration,
    server_limit: Duration,
}

enum UploadEnd {
    /// The server has the whole body.
    Whole,
    /// The server has responded, or takes no more.
    Early,
    ClientGone,
    Refused(RequestRefusal),
}

impl SwitchClient {
    /// Sends the body; false if the server did not take all of it.
    pub(super) async fn upload(
        &mut self,
        upstream: &mut Upstream,
        slot: &Slot,
        pending: &PendingRequest,
    ) -> Result<bool, ForwardError> {
        let shared = Rc::clone(&self.shared);
        let config = &pending.routing.setup.config;
        let mut upload = Upload {
            upstream,
            body: RelayedBody::new(pending.facts.body, pending.facts.body == BodyFraming::Chunked),
            out: shared.resources.memory.get(),
            written: 0,
            interim: Vec::new(),
            interim_written: 0,
            takes_interim: pending.facts.is_11,
            max_bytes: config.limits.body_bytes,
            client_limit: config.timeouts.client_request,
            server_limit: config.timeouts.response,
        };
        self.exchange.connection.deadline.await_peer(upload.client_limit);
        let end = poll_fn(|cx| upload.poll(self, &config.name, cx)).await;
        let waits_for_server = upload.written < upload.out.len();
        shared.resources.memory.put(std::mem::take(&mut upload.out));
        match end {
            Ok(UploadEnd::Whole) => {
                self.exchange.leaves_unread = false;
                Ok(true)
            }
            Ok(UploadEnd::Early) => Ok(false),
            Ok(UploadEnd::Refused(refusal)) => Err(ForwardError::Refused(refusal)),
            Ok(UploadEnd::ClientGone) => Err(ForwardError::Client(io::ErrorKind::UnexpectedEof.into())),
            Err(error) if error.kind() == io::ErrorKind::TimedOut && waits_for_server => {
                Err(ForwardError::Server(server_error(&slot.server, &error), false))
            }
            Err(error) if error.kind() == io::ErrorKind::TimedOut => {
                self.exchange.mark_late();
                Err(ForwardError::Refused(RequestRefusal::TooSlow))
            }
            Err(error) => Err(ForwardError::Client(error)),
        }
    }
}

impl Upload<'_> {
    fn poll(
        &mut self,
        client: &mut SwitchClient,
        name: &str,
        cx: &mut Context<'_>,
    ) -> Poll<io::Result<UploadEnd>> {
        loop {
            let has_responded = self.poll_server(client, name, cx).is_ready();
            if !self.interim.is_empty() {
                match Pin::new(&mut client.exchange.connection.stream)
                    .poll_write(cx, &self.interim[self.interim_written..])
                {
                    Poll::Ready(written) => self.interim_written += written?,
                    Poll::Pending => return poll_deadline(&client.exchange.connection.deadline, cx),
                }
                if self.interim_written == self.interim.len() {
                    self.interim.clear();
                    self.interim_written = 0;
                }
                continue;
            }
            if has_responded {
                return Poll::Ready(Ok(UploadEnd::Early));
            }
            if self.written < self.out.len() {
                match Pin::new(&mut self.upstream.stream).poll_write(cx, &self.out[self.written..]) {
                    Poll::Ready(Ok(written @ 1..)) => {
                        self.written += written;
                        client.exchange.connection.deadline.set(self.server_limit);
                    }
                    // The server may have responded before it closed.
                    Poll::Ready(_) => return Poll::Ready(Ok(UploadEnd::Early)),
                    // The client's body is not read meanwhile, so only this notices a reset.
                    Poll::Pending if client.exchange.connection.stream.poll_gone(true, cx).is_ready() => {
                        return Poll::Ready(Ok(UploadEnd::ClientGone));
                    }
                    Poll::Pending => return poll_deadline(&client.exchange.connection.deadline, cx),
                }
                continue;
            }
            if self.body.is_done() {
                return Poll::Ready(Ok(UploadEnd::Whole));
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
                Poll::Pending => return poll_deadline(&client.exchange.connection.deadline, cx),
            }
        }
    }

    /// Reads responses of the server; ready when it has responded, or takes no more. Reads nothing while interim responses are
    /// still to be written to the client, so at most one read of them is kept.
    fn poll_server(&mut self, client: &SwitchClient, name: &str, cx: &mut Context<'_>) -> Poll<()> {
        loop {
            while let Ok(Some((head, length))) = ResponseHead::parse(self.upstream.input.unread()) {
                // One interim response too many is rejected when the head of the response is read.
                if !head.is_interim() || self.upstream.interim_responses == MAX_INTERIM_RESPONSES {
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
                // A malformed head is reported when the head of the response is read.
                Poll::Ready(Ok(1..)) if ResponseHead::parse(input.unread()).is_ok() => {}
                Poll::Ready(_) => return Poll::Ready(()),
                Poll::Pending => return Poll::Pending,
            }
        }
    }

    /// Reads from the client; `None` after progress.
    fn poll_client(
        &mut self,
        client: &mut SwitchClient,
        cx: &mut Context<'_>,
    ) -> Poll<io::Result<Option<UploadEnd>>> {
        let shared = Rc::clone(&client.shared);
        let memory = &shared.resources.memory;
        let Self { body, out, .. } = self;
        let (taken, has_ended) = if client.exchange.connection.input.unread().is_empty() {
            let Connection { stream, input, deadline, .. } = &mut client.exchange.connection;
            let read = memory.poll_read(stream, cx, |bytes| {
                deadline.credit(bytes.len() as u64);
                let taken = body.take(bytes, out);
                if let Ok(taken) = taken {
                    input.append(&bytes[taken..], memory);
                }
                (taken.map(drop), bytes.is_empty())
            });
            std::task::ready!(read)?
        } else {
            let taken = body.take(client.exchange.connection.input.unread(), out);
            if let Ok(taken) = taken {
                client.exchange.connection.input.consume(taken);
                client.exchange.connection.input.release_if_empty(memory);
            }
            (taken.map(drop), false)
        };
        Poll::Ready(Ok(match (taken, has_ended, self.max_bytes) {
            (Err(_), _, _) => Some(UploadEnd::Refused(RequestRefusal::BadChunk)),
            (_, true, _) => Some(UploadEnd::ClientGone),
            (_, _, Some(most)) if self.body.content_bytes > most => {
                Some(UploadEnd::Refused(RequestRefusal::BodyTooLong(most)))
            }
            _ => None,
        }))
    }
}
