//! How does a tunnel (CONNECT) go through? Unseen: bytes are passed on in both directions, counted, and compared with nothing.

use std::io::{self, IoSlice};
use std::sync::Arc;

use assay_plane::clock::monotonic_ns;
use assay_plane::upstream::{self, Upstream};
use assay_plane::wire;
use assay_record::spe::{AnswerError, Verdict};
use tokio::io::{AsyncWriteExt, copy_bidirectional};

use super::answer;
use super::board::{Entry, Measured};
use super::client::{Client, Shared};
use super::message::Order;

/// Opens a tunnel through the Collector, or to the host itself where the Collector has none, and passes bytes on until
/// both sides have ended.
pub async fn run(client: &mut Client, order: Order) -> io::Result<()> {
    let mut measured = Measured { sent_ns: monotonic_ns(), ..Measured::default() };
    let result = match open(client, &order, &mut measured).await {
        Ok(server) => {
            measured.status = Some(200);
            measured.first_byte_ns = Some(monotonic_ns() - measured.sent_ns);
            pass(client, server, &mut measured).await
        }
        Err(error) => {
            measured.error = Some(error);
            let status = if error == AnswerError::TimedOut { 504 } else { 502 };
            client.refuse(status, &format!("no tunnel to {} could be opened", order.about.url)).await
        }
    };
    let verdict = if measured.error.is_some() { Verdict::NoAnswer } else { Verdict::NotCompared };
    client.shared.board.asked(0);
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

async fn open(client: &Client, order: &Order, measured: &mut Measured) -> Result<Upstream, AnswerError> {
    let shared = &client.shared;
    let patience = shared.limits.collector;
    let mut collector = answer::connect(shared.collector, patience, measured).await?;
    let head = order.for_collector();
    let sent = wire::write_all(&mut collector.stream, &mut [IoSlice::new(&head)], patience.reply).await;
    sent.map_err(|error| answer::of_io(&error))?;
    let (length, status) =
        answer::final_head(&mut collector, &shared.scratch, patience.reply, &mut None).await?;
    match status {
        200..=299 => {
            collector.input.consume(length);
            Ok(collector)
        }
        // It knows no tunnels.
        400 | 404 | 405 | 501 => itself(shared, &order.about.url, measured).await,
        _ => Err(AnswerError::Refused),
    }
}

async fn itself(shared: &Shared, name: &str, measured: &mut Measured) -> Result<Upstream, AnswerError> {
    let patience = shared.limits.collector;
    let address = match name.parse() {
        Ok(address) => address,
        Err(_) => upstream::resolve(name, patience).await.map_err(|_| AnswerError::Refused)?,
    };
    answer::connect(address, patience, measured).await
}

async fn pass(client: &mut Client, mut server: Upstream, measured: &mut Measured) -> io::Result<()> {
    client.write(&mut [IoSlice::new(b"HTTP/1.1 200 Connection established\r\n\r\n")]).await?;
    let began_ns = monotonic_ns();
    let early = server.input.unread().to_vec();
    client.write(&mut [IoSlice::new(&early)]).await?;
    server.stream.write_all(client.input.unread()).await?;
    client.input.consume(client.input.unread().len());
    let copied = copy_bidirectional(&mut client.stream, &mut server.stream).await;
    measured.transfer_ns = Some(monotonic_ns() - began_ns);
    measured.body_bytes = early.len() as u64 + copied.map_or(0, |(_, from_server)| from_server);
    Ok(())
}
