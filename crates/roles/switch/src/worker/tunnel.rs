//! Tunnels after an upgrade (101): bytes are relayed both ways unchanged until both sides have ended or the tunnel is idle for too long.

use std::future::poll_fn;
use std::io;
use std::iter;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::io::AsyncWrite;

use super::client::{ForwardedResponse, PendingRequest, SwitchClient};
use super::exchange::UpstreamResponse;
use super::runtime::now_ns;
use super::slot::Slot;
use super::transport::Transport;
use assay_net::buffers::{BufferPool, InputBuffer, poll_deadline, write_all};
use assay_net::connection::Connection;
use assay_net::deadlines::Deadline;

struct TunnelDirection {
    /// Bytes received and not yet sent on.
    input: InputBuffer,
    has_ended: bool,
    is_closed: bool,
    bytes: u64,
}

impl TunnelDirection {
    /// Starts with the bytes that followed the head.
    fn new(input: InputBuffer) -> Self {
        let bytes = input.unread().len() as u64;
        Self { input, has_ended: false, is_closed: false, bytes }
    }

    /// Relays what has arrived; ready once everything, including the end of the stream, was sent on.
    fn poll(
        &mut self,
        from: &mut Transport,
        to: &mut Transport,
        memory: &BufferPool,
        deadline: &Deadline,
        limit: Duration,
        cx: &mut Context<'_>,
    ) -> Poll<io::Result<()>> {
        loop {
            while !self.input.unread().is_empty() {
                let written = ready!(Pin::new(&mut *to).poll_write(cx, self.input.unread()))?;
                if written == 0 {
                    return Poll::Ready(Err(io::ErrorKind::WriteZero.into()));
                }
                self.input.consume(written);
                deadline.set(limit);
            }
            self.input.release_if_empty(memory);
            if self.is_closed {
                return Poll::Ready(Ok(()));
            }
            if self.has_ended {
                ready!(Pin::new(&mut *to).poll_shutdown(cx))?;
                self.is_closed = true;
                continue;
            }
            let input = &mut self.input;
            let count = ready!(memory.poll_read(from, cx, |bytes| {
                input.append(bytes, memory);
                bytes.len()
            }))?;
            (self.bytes, self.has_ended) = (self.bytes + count as u64, count == 0);
        }
    }
}

impl SwitchClient {
    /// Sends the 101 response to the client and relays bytes both ways from then on; the connection is not used for HTTP again. The
    /// policy sees the 101 as the complete response, however long the tunnel lasts.
    pub(super) async fn tunnel(
        &mut self,
        mut slot: Slot,
        pending: &PendingRequest,
        response: UpstreamResponse,
    ) -> io::Result<ForwardedResponse> {
        let shared = Rc::clone(&self.shared);
        let timeouts = pending.routing.setup.config.timeouts;
        let agreed_ns = now_ns();
        slot.has_response = true;
        slot.responded_ns = Some(agreed_ns);
        self.exchange.persists = false;
        let Connection { stream: client, input, deadline, .. } = &mut self.exchange.connection;
        write_all(client, deadline, Some(timeouts.client_request), iter::once(&self.out[..])).await?;
        let mut upstream = response.upstream;
        let mut up = TunnelDirection::new(std::mem::take(input));
        let mut down = TunnelDirection::new(std::mem::take(&mut upstream.input));
        deadline.set(timeouts.tunnel);
        let ended = poll_fn(|cx| {
            let (server, memory) = (&mut upstream.stream, &shared.resources.memory);
            let up = up.poll(client, server, memory, deadline, timeouts.tunnel, cx)?;
            let down = down.poll(server, client, memory, deadline, timeouts.tunnel, cx)?;
            if up.is_ready() && down.is_ready() { Poll::Ready(Ok(())) } else { poll_deadline(deadline, cx) }
        });
        // However the tunnel ends, both connections are closed, and the bytes relayed are counted.
        let _: io::Result<()> = ended.await;
        let reached_ns = [slot.started_ns, agreed_ns];
        Ok(ForwardedResponse { status: 101, bytes: down.bytes, server: Some(slot.server.id), reached_ns })
    }
}
