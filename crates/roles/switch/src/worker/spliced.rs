//! The body of a response, moved by the kernel from the server's connection to the client's (`splice`): TCP splicing behind a switch
//! that has looked at the request, with the kernel as it is.

use std::future::poll_fn;
use std::io;
use std::pin::pin;
use std::task::Poll;
use std::time::Duration;

use rustix::io::Errno;

use super::away::unless_gone;
use super::client::{Client, Order};
use super::pipes::Pipe;
use super::server::Upstream;
use super::slot::Slot;
use super::socket::Socket;
use super::stream::Stream;
use crate::config::Splice;
use assay_net::carrier::Carrier;
use assay_net::connection::Connection;
use assay_net::memory::wait;
use assay_net::watch::Deadline;

/// A body of which so much is still to come is moved; less is copied. Measured with `scripts/layer4-cost.sh`.
const LEAST_BYTES: u64 = 128 * 1024;
/// Most that is asked of the kernel at once.
const MOST_MOVED: u64 = 1 << 20;

/// How moving a body went.
pub(super) enum Moved {
    /// It has all gone on, or what is left must be copied.
    On,
    /// It broke off at the server.
    Broken,
}

impl Client {
    /// Moves what is left of a body, if it is worth it and can be done; else nothing happens. An error is the client's.
    pub(super) async fn move_body(
        &mut self,
        upstream: &mut Upstream,
        carrier: &mut Carrier,
        slot: &Slot,
        order: &Order,
    ) -> io::Result<Moved> {
        let setup = &order.standing.setup;
        let least = match setup.config.splice {
            Splice::Never => return Ok(Moved::On),
            Splice::Always => 1,
            Splice::Auto => LEAST_BYTES,
        };
        if carrier.plain_left().is_none_or(|left| left < least) || !upstream.input.unread().is_empty() {
            return Ok(Moved::On);
        }
        let Connection { stream: to, deadline, .. } = &self.exchange.connection;
        let (Stream::Clear(server), Stream::Clear(client)) = (&upstream.stream, to) else {
            return Ok(Moved::On);
        };
        // Without a descriptor for a pipe, bytes are copied.
        let Ok(mut pipe) = self.shared.pipes.take() else { return Ok(Moved::On) };
        let timeouts = setup.config.timeouts;
        let before = carrier.payload;
        let moved = loop {
            let Some(left) = carrier.plain_left() else { break Ok(Moved::On) };
            let most = usize::try_from(left.min(MOST_MOVED)).unwrap_or(usize::MAX);
            let filled = fill(server, &mut pipe, most, (deadline, timeouts.response));
            let filled = unless_gone(to, deadline, pin!(filled)).await;
            match filled {
                Err(error) => break Err(error),
                Ok(Ok(0)) if carrier.end(&mut self.out) => break Ok(Moved::On),
                Ok(Ok(0)) => break Ok(Moved::Broken),
                Ok(Ok(count)) => drop(carrier.take_plain(count)),
                Ok(Err(error)) if error.kind() == io::ErrorKind::InvalidInput => break Ok(Moved::On),
                Ok(Err(_)) => break Ok(Moved::Broken),
            }
            if let Err(error) = empty(client, &mut pipe, (deadline, timeouts.client_request)).await {
                break Err(error);
            }
        };
        setup.tally(order.standing.class(), Some(slot.server.id)).with(|tally| {
            tally.spliced += carrier.payload - before;
        });
        moved
    }
}

/// Waits for bytes of a server, and has them moved into an empty pipe; 0: it has ended.
async fn fill(
    server: &Socket,
    pipe: &mut Pipe,
    most: usize,
    (deadline, limit): (&Deadline, Duration),
) -> io::Result<usize> {
    deadline.set(limit);
    let to = pipe.ends()?.1;
    let count = poll_fn(|cx| match server.poll_splice(to, most, cx) {
        Poll::Ready(Err(Errno::NOSYS)) => Poll::Ready(Err(io::ErrorKind::InvalidInput.into())),
        Poll::Ready(moved) => Poll::Ready(moved.map_err(io::Error::from)),
        Poll::Pending => wait(deadline, cx),
    })
    .await?;
    pipe.filled += count;
    Ok(count)
}

/// Has a client take all that is in the pipe; each step may take `limit`.
async fn empty(client: &Socket, pipe: &mut Pipe, (deadline, limit): (&Deadline, Duration)) -> io::Result<()> {
    while pipe.filled > 0 {
        deadline.await_peer(limit);
        let from = pipe.ends()?.0;
        let taken = poll_fn(|cx| match client.poll_fill_from(from, pipe.filled, cx) {
            Poll::Ready(taken) => Poll::Ready(taken),
            Poll::Pending => wait(deadline, cx),
        })
        .await?;
        deadline.earn(taken as u64);
        if taken == 0 {
            return Err(io::ErrorKind::WriteZero.into());
        }
        pipe.filled -= taken.min(pipe.filled);
    }
    Ok(())
}
