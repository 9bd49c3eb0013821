//! A connection whose client and server have agreed on another protocol: bytes go both ways, as they are, until both have ended
//! or nothing has come for too long.

use std::future::poll_fn;
use std::io;
use std::iter;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::io::AsyncWrite;

use super::client::{Client, Done, Order};
use super::exchange::Response;
use super::runtime::now_ns;
use super::slot::Slot;
use super::stream::Stream;
use assay_net::connection::Connection;
use assay_net::memory::{Input, Memory, wait, write_all};
use assay_net::watch::Deadline;

struct Way {
    /// What was received and not yet sent on.
    input: Input,
    has_ended: bool,
    is_closed: bool,
    bytes: u64,
}

impl Way {
    /// What came behind the head goes first.
    fn new(input: Input) -> Self {
        let bytes = input.unread().len() as u64;
        Self { input, has_ended: false, is_closed: false, bytes }
    }

    /// Sends on what there is; ready when all was sent, and the end too.
    fn poll(
        &mut self,
        (from, to): (&mut Stream, &mut Stream),
        memory: &Memory,
        (deadline, limit): (&Deadline, Duration),
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
            self.input.rest(memory);
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

impl Client {
    /// Tells the client that the server has agreed, and carries bytes both ways from then on. The connection is of no other
    /// use any more. For the policy, the server's response was the agreement, however long the tunnel is there.
    pub(super) async fn tunnel(
        &mut self,
        mut slot: Slot,
        order: &Order,
        response: Response,
    ) -> io::Result<Done> {
        let shared = Rc::clone(&self.shared);
        let timeouts = order.standing.setup.config.timeouts;
        let agreed_ns = now_ns();
        slot.has_response = true;
        slot.responded_ns = Some(agreed_ns);
        self.exchange.persists = false;
        let Connection { stream: client, input, deadline, .. } = &mut self.exchange.connection;
        write_all(client, deadline, Some(timeouts.client_request), iter::once(&self.out[..])).await?;
        let mut upstream = response.upstream;
        let mut up = Way::new(std::mem::take(input));
        let mut down = Way::new(std::mem::take(&mut upstream.input));
        let patience = (&*deadline, timeouts.tunnel);
        deadline.set(timeouts.tunnel);
        let ended = poll_fn(|cx| {
            let server = &mut upstream.stream;
            let up = up.poll((&mut *client, &mut *server), &shared.resources.memory, patience, cx)?;
            let down = down.poll((&mut *server, &mut *client), &shared.resources.memory, patience, cx)?;
            if up.is_ready() && down.is_ready() { Poll::Ready(Ok(())) } else { wait(deadline, cx) }
        });
        // However it ends, it has ended: both connections are closed, and what was carried is counted.
        let _: io::Result<()> = ended.await;
        let reached_ns = [slot.started_ns, agreed_ns];
        Ok(Done { status: 101, bytes: down.bytes, server: Some(slot.server.id), reached_ns })
    }
}
