//! Tunnels (CONNECT) that are not opened. They go through unseen: bytes are passed on in both directions, counted, and compared with nothing.

use std::io;
use std::iter;
use std::sync::Arc;

use assay_base::clock::monotonic_ns;
use assay_net::exchange::Next;
use assay_net::upstream::{Upstream, UpstreamError};
use assay_record::spe::{ResponseError, Verdict};
use tokio::io::copy_bidirectional;

use super::board::{Entry, Measured};
use super::client::Client;
use super::message::Order;
use super::response;

/// Opens a tunnel through the Collector, and passes bytes on until both sides have ended.
pub async fn run(client: &mut Client, order: Order) -> io::Result<Next> {
    let mut measured = Measured { sent_ns: monotonic_ns(), ..Measured::default() };
    let result = match open(client, &order, &mut measured).await {
        Ok(server) => {
            measured.status = Some(200);
            measured.first_byte_ns = Some(monotonic_ns() - measured.sent_ns);
            pass(client, server, &mut measured).await.map(|()| Next::Detached)
        }
        Err(NotOpened { error, status }) => {
            measured.error = Some(error);
            let words = match status {
                403 => format!("{} is in a network in which nothing may be requested here", order.about.url),
                _ => format!("no tunnel to {} could be opened", order.about.url),
            };
            client.send_refusal(status, &words, false).await.map(|()| Next::Request)
        }
    };
    let verdict = if measured.error.is_some() { Verdict::NoResponse } else { Verdict::NotCompared };
    client.shared.board.requested(0);
    client.shared.board.tell(Entry {
        about: Arc::clone(&order.about),
        target: 0,
        place: 0,
        measured,
        checksum: None,
        verdict,
        header: None,
        direct_status: measured.status,
    });
    result
}

/// Why a tunnel is not opened, and the status that tells the client.
struct NotOpened {
    error: ResponseError,
    status: u16,
}

impl From<ResponseError> for NotOpened {
    fn from(error: ResponseError) -> Self {
        Self { error, status: if error == ResponseError::TimedOut { 504 } else { 502 } }
    }
}

impl From<UpstreamError> for NotOpened {
    fn from(error: UpstreamError) -> Self {
        ResponseError::from(error).into()
    }
}

async fn open(client: &Client, order: &Order, measured: &mut Measured) -> Result<Box<Upstream>, NotOpened> {
    let shared = &client.shared;
    let patience = shared.limits.collector;
    let mut collector =
        response::connect(shared.collector, None, patience, &shared.resources, measured).await?;
    let head = order.for_collector();
    collector.send(&[&head], patience).await?;
    match collector.final_head(patience.response, |received| received.head.status).await? {
        200..=299 => Ok(collector),
        // The client is told what the Collector says: nothing may be requested there (403), or it leads back (508).
        status @ 400.. => Err(NotOpened { error: ResponseError::Refused, status }),
        _ => Err(ResponseError::Refused.into()),
    }
}

async fn pass(client: &mut Client, mut server: Box<Upstream>, measured: &mut Measured) -> io::Result<()> {
    client.exchange.write(&[b"HTTP/1.1 200 Connection established\r\n\r\n"]).await?;
    let began_ns = monotonic_ns();
    let early = server.connection.input.unread().to_vec();
    client.exchange.write(&[&early]).await?;
    let from = &mut client.exchange.connection;
    let patience = client.shared.limits.client_write;
    server.connection.write_all(iter::once(from.input.unread()), patience).await?;
    from.input.consume(from.input.unread().len());
    let copied = copy_bidirectional(&mut from.stream, &mut server.connection.stream).await;
    measured.transfer_ns = Some(monotonic_ns() - began_ns);
    measured.body_bytes = early.len() as u64 + copied.map_or(0, |(_, from_server)| from_server);
    Ok(())
}
