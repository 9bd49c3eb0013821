//! Response bodies that the kernel moves from the server's connection to the client's through a pipe (`splice(2)`): TCP splicing on
//! layer 7 with an unmodified kernel.

use std::future::poll_fn;
use std::io;
use std::pin::pin;
use std::task::Poll;
use std::time::Duration;

use rustix::io::Errno;

use super::client::{PendingRequest, SwitchClient};
use super::exchange::until_client_gone;
use super::pipes::Pipe;
use super::server::Upstream;
use super::slot::Slot;
use super::socket::Socket;
use super::transport::Transport;
use crate::config::Splice;
use assay_net::buffers::poll_deadline;
use assay_net::connection::Connection;
use assay_net::deadlines::Deadline;
use assay_net::relay::RelayedBody;

/// Bodies with less than this left are copied. Measured with `scripts/layer4-cost.sh`.
const SPLICE_MIN_BYTES: u64 = 128 * 1024;
/// Upper bound on one `splice` call.
const SPLICE_MAX_BYTES: u64 = 1 << 20;

/// Result of splicing a body.
pub(super) enum SpliceEnd {
    /// The body is complete, or the rest must be copied.
    Done,
    /// The server's connection broke off.
    Broken,
}

impl SwitchClient {
    /// Splices the rest of a body if that is worthwhile and possible; otherwise does nothing. An error is the client's.
    pub(super) async fn splice_body(
        &mut self,
        upstream: &mut Upstream,
        body: &mut RelayedBody,
        slot: &Slot,
        pending: &PendingRequest,
    ) -> io::Result<SpliceEnd> {
        let setup = &pending.routing.setup;
        let least = match setup.config.splice {
            Splice::Never => return Ok(SpliceEnd::Done),
            Splice::Always => 1,
            Splice::Auto => SPLICE_MIN_BYTES,
        };
        if body.plain_left().is_none_or(|left| left < least) || !upstream.input.unread().is_empty() {
            return Ok(SpliceEnd::Done);
        }
        let Connection { stream: to, deadline, .. } = &self.exchange.connection;
        let (Transport::Clear(server), Transport::Clear(client)) = (&upstream.stream, to) else {
            return Ok(SpliceEnd::Done);
        };
        // Without a descriptor for a pipe, bytes are copied.
        let Ok(mut pipe) = self.shared.pipes.take() else { return Ok(SpliceEnd::Done) };
        let timeouts = setup.config.timeouts;
        let before = body.content_bytes;
        let end = loop {
            let Some(left) = body.plain_left() else { break Ok(SpliceEnd::Done) };
            let max_bytes = usize::try_from(left.min(SPLICE_MAX_BYTES)).unwrap_or(usize::MAX);
            let filled = fill(server, &mut pipe, max_bytes, deadline, timeouts.response);
            let filled = until_client_gone(to, deadline, pin!(filled)).await;
            match filled {
                Err(error) => break Err(error),
                Ok(Ok(0)) if body.end(&mut self.out) => break Ok(SpliceEnd::Done),
                Ok(Ok(0)) => break Ok(SpliceEnd::Broken),
                Ok(Ok(count)) => drop(body.take_plain(count)),
                Ok(Err(error)) if error.kind() == io::ErrorKind::InvalidInput => break Ok(SpliceEnd::Done),
                Ok(Err(_)) => break Ok(SpliceEnd::Broken),
            }
            if let Err(error) = drain(client, &mut pipe, deadline, timeouts.client_request).await {
                break Err(error);
            }
        };
        setup.tally(pending.routing.class(), Some(slot.server.id)).with(|tally| {
            tally.spliced += body.content_bytes - before;
        });
        end
    }
}

/// Waits for bytes from a server and moves them into an empty pipe; 0 at the end of the stream.
async fn fill(
    server: &Socket,
    pipe: &mut Pipe,
    max_bytes: usize,
    deadline: &Deadline,
    limit: Duration,
) -> io::Result<usize> {
    deadline.set(limit);
    let to = pipe.ends()?.1;
    let count = poll_fn(|cx| match server.poll_splice(to, max_bytes, cx) {
        Poll::Ready(Err(Errno::NOSYS)) => Poll::Ready(Err(io::ErrorKind::InvalidInput.into())),
        Poll::Ready(result) => Poll::Ready(result.map_err(io::Error::from)),
        Poll::Pending => poll_deadline(deadline, cx),
    })
    .await?;
    pipe.filled += count;
    Ok(count)
}

/// Drains the pipe to the client; each step may take `limit`.
async fn drain(client: &Socket, pipe: &mut Pipe, deadline: &Deadline, limit: Duration) -> io::Result<()> {
    while pipe.filled > 0 {
        deadline.await_peer(limit);
        let from = pipe.ends()?.0;
        let taken = poll_fn(|cx| match client.poll_splice_from(from, pipe.filled, cx) {
            Poll::Ready(taken) => Poll::Ready(taken),
            Poll::Pending => poll_deadline(deadline, cx),
        })
        .await?;
        deadline.credit(taken as u64);
        if taken == 0 {
            return Err(io::ErrorKind::WriteZero.into());
        }
        pipe.filled -= taken.min(pipe.filled);
    }
    Ok(())
}
