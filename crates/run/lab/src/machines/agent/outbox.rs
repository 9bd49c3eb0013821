//! Queue of the messages of an agent's roles to the stream of the run.
//!
//! Messages are numbered and stored by the server before they count as sent. One that was not confirmed is sent again under the
//! same number, and the server drops it where it has it already: a connection that is cut for a while loses nothing.

use std::sync::Arc;
use std::time::Duration;

use crate::machines::fleet::message::{Output, Report};
use crate::machines::fleet::name::Name;
use crate::machines::fleet::subject;
use async_nats::{Client, HeaderMap, jetstream};
use bytes::Bytes;
use tokio::sync::{Semaphore, mpsc};
use tokio::task::JoinHandle;

/// Number of messages that may be on their way at once.
const ON_THEIR_WAY: usize = 64;
/// Time for which one is tried to be sent before what follows is given up, too.
const TIMEOUT: Duration = Duration::from_secs(60);
/// Pause between two attempts.
const PAUSE: Duration = Duration::from_millis(200);
/// The header by which the server recognises a message that it has already.
const MESSAGE_ID: &str = "Nats-Msg-Id";

/// Takes messages, and sends them while everything else goes on.
#[derive(Debug)]
pub struct Outbox {
    next: u64,
    /// None: nothing more goes in.
    queue: Option<mpsc::UnboundedSender<(u64, Vec<u8>)>>,
    sender: JoinHandle<()>,
}

impl Outbox {
    /// For an agent and a run.
    pub fn open(client: &Client, run: &Name, agent: &Name) -> Self {
        let (queue, messages) = mpsc::unbounded_channel();
        let sender =
            send(jetstream::new(client.clone()), subject::reports(run, agent), agent.clone(), messages);
        Self { next: 0, queue: Some(queue), sender: tokio::spawn(sender) }
    }

    pub fn put(&mut self, role: Option<u32>, output: Output) {
        let Some(queue) = &self.queue else { return };
        let report = Report { number: self.next, role, output };
        let Ok(text) = serde_json::to_vec(&report) else { return };
        self.next += 1;
        // The sender has ended only where it gave up.
        let _ = queue.send((report.number, text));
    }

    /// Takes nothing more, and waits until everything has been stored, for so long at most.
    pub async fn close(&mut self, limit: Duration) {
        if self.queue.take().is_some() && tokio::time::timeout(limit, &mut self.sender).await.is_err() {
            self.sender.abort();
        }
    }
}

async fn send(
    stream: jetstream::Context,
    subject: String,
    agent: Name,
    mut messages: mpsc::UnboundedReceiver<(u64, Vec<u8>)>,
) {
    let room = Arc::new(Semaphore::new(ON_THEIR_WAY));
    while let Some((number, text)) = messages.recv().await {
        let Ok(place) = room.clone().acquire_owned().await else { return };
        let (stream, subject, id) = (stream.clone(), subject.clone(), format!("{agent}-{number}"));
        tokio::spawn(async move {
            let _place = place;
            // One that is given up is missed by the coordinator, which waits for its number.
            let _ = tokio::time::timeout(TIMEOUT, store(&stream, &subject, &id, text.into())).await;
        });
    }
    // All places are free once everything has been stored.
    let _ = room.acquire_many(ON_THEIR_WAY as u32).await;
}

async fn store(stream: &jetstream::Context, subject: &str, id: &str, text: Bytes) {
    loop {
        let mut headers = HeaderMap::new();
        headers.insert(MESSAGE_ID, id);
        if let Ok(confirmed) = stream.publish_with_headers(subject.to_owned(), headers, text.clone()).await
            && confirmed.await.is_ok()
        {
            return;
        }
        tokio::time::sleep(PAUSE).await;
    }
}
