//! Tunnels (CONNECT) that are relayed unseen: bytes are copied in both directions, counted, and compared with nothing.

use std::io;
use std::iter;
use std::sync::Arc;

use assay_base::clock::monotonic_ns;
use assay_net::exchange::AfterResponse;
use assay_net::upstream::{Upstream, UpstreamError};
use assay_record::spe::{ResponseError, Verdict};
use tokio::io::copy_bidirectional;

use super::client::MultiplierClient;
use super::measurement;
use super::measurement::Measurement;
use super::message::ReceivedRequest;
use super::shared_state::ResponseEntry;

/// Opens a tunnel through the Collector, and relays bytes until both sides have ended.
pub async fn run(client: &mut MultiplierClient, request: ReceivedRequest) -> io::Result<AfterResponse> {
    let mut measurement = Measurement { sent_ns: monotonic_ns(), ..Measurement::default() };
    let result = match open(client, &request, &mut measurement).await {
        Ok(server) => {
            measurement.status = Some(200);
            measurement.first_byte_ns = Some(monotonic_ns() - measurement.sent_ns);
            pass(client, server, &mut measurement).await.map(|()| AfterResponse::Detached)
        }
        Err(NotOpened { error, status }) => {
            measurement.error = Some(error);
            let text = match status {
                403 => {
                    format!("{} is in a network in which nothing may be requested here", request.summary.url)
                }
                _ => format!("no tunnel to {} could be opened", request.summary.url),
            };
            client.send_refusal(status, &text, false).await.map(|()| AfterResponse::Request)
        }
    };
    let verdict = if measurement.error.is_some() { Verdict::NoResponse } else { Verdict::NotCompared };
    client.shared.state.requested(0);
    client.shared.state.record(ResponseEntry {
        summary: Arc::clone(&request.summary),
        target: 0,
        position: 0,
        measurement,
        checksum: None,
        verdict,
        header: None,
        direct_status: measurement.status,
    });
    result
}

/// Reason for not opening a tunnel, with the status for the client.
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

async fn open(
    client: &MultiplierClient,
    request: &ReceivedRequest,
    measurement: &mut Measurement,
) -> Result<Box<Upstream>, NotOpened> {
    let shared = &client.shared;
    let timeouts = shared.limits.collector;
    let mut collector =
        measurement::connect(shared.collector, None, timeouts, &shared.resources, measurement).await?;
    let head = request.for_collector();
    collector.send(&[&head], timeouts).await?;
    match collector.final_head(timeouts.response, |received| received.head.status).await? {
        200..=299 => Ok(collector),
        // Statuses of the Collector reach the client: a forbidden destination (403), or a loop (508).
        status @ 400.. => Err(NotOpened { error: ResponseError::Refused, status }),
        _ => Err(ResponseError::Refused.into()),
    }
}

async fn pass(
    client: &mut MultiplierClient,
    mut server: Box<Upstream>,
    measurement: &mut Measurement,
) -> io::Result<()> {
    client.exchange.write(&[b"HTTP/1.1 200 Connection established\r\n\r\n"]).await?;
    let began_ns = monotonic_ns();
    let early = server.connection.input.unread().to_vec();
    client.exchange.write(&[&early]).await?;
    let from = &mut client.exchange.connection;
    let timeouts = client.shared.limits.client_write;
    server.connection.write_all(iter::once(from.input.unread()), timeouts).await?;
    from.input.consume(from.input.unread().len());
    let copied = copy_bidirectional(&mut from.stream, &mut server.connection.stream).await;
    measurement.transfer_ns = Some(monotonic_ns() - began_ns);
    measurement.body_bytes = early.len() as u64 + copied.map_or(0, |(_, from_server)| from_server);
    Ok(())
}
