//! The agents that are there, as a coordinator finds them.

use std::collections::BTreeMap;
use std::time::Duration;

use assay_fleet::clock::{AgentClock, Exchange};
use assay_fleet::message::{self, Hello, MessageError, Question, Reading};
use assay_fleet::name::Name;
use assay_fleet::subject;
use async_nats::client::RequestErrorKind;
use async_nats::{Client, Request};
use futures_util::StreamExt;

use crate::error::FleetError;
use crate::now::{monotonic_ns, unix_us};

/// How long agents are waited for after the last that answered.
const QUIET: Duration = Duration::from_millis(400);
/// How long they are waited for at most.
const PATIENCE: Duration = Duration::from_secs(3);
/// How long one exchange with a clock may take.
const EXCHANGE_PATIENCE: Duration = Duration::from_secs(1);

/// Asks who is there. Agents of another protocol are named beside those that can be used.
pub async fn who(client: &Client) -> Result<(Vec<Hello>, Vec<MessageError>), FleetError> {
    let cannot =
        |e: &dyn std::fmt::Display| FleetError::plan(format!("cannot ask which agents are there: {e}"));
    let inbox = client.new_inbox();
    let mut answers = client.subscribe(inbox.clone()).await.map_err(|e| cannot(&e))?;
    client.publish_with_reply(subject::WHO, inbox, "".into()).await.map_err(|e| cannot(&e))?;
    client.flush().await.map_err(|e| cannot(&e))?;
    let (mut found, mut others) = (Vec::new(), Vec::new());
    let deadline = tokio::time::Instant::now() + PATIENCE;
    loop {
        let until = deadline.min(tokio::time::Instant::now() + QUIET);
        let Ok(Some(answer)) = tokio::time::timeout_at(until, answers.next()).await else { break };
        // The server itself answers where nobody listens.
        if answer.status.is_some() {
            break;
        }
        match message::read::<Hello>(&answer.payload) {
            Ok(hello) => found.push(hello),
            Err(error) => others.push(error),
        }
    }
    found.sort_by(|one, other| one.name.cmp(&other.name));
    Ok((found, others))
}

/// A name that two agents carry; none: each has its own.
pub fn twice(found: &[Hello]) -> Option<&Name> {
    let mut seen = BTreeMap::new();
    found.iter().find_map(|hello| {
        let before = seen.insert(&hello.name, hello.instance);
        before.filter(|instance| *instance != hello.instance).map(|_| &hello.name)
    })
}

/// Why there was no reading of a clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Silence {
    /// Nobody listens any more under this name.
    Gone,
    /// No answer came in time.
    Late,
}

/// One exchange with an agent's clock: the exchange, the agent's instance, and by how much its wall clock is ahead of this one
/// in microseconds (half the way back is its error).
pub async fn exchange(
    client: &Client,
    agent: &Name,
    run: Option<&Name>,
) -> Result<(Exchange, u64, i64), Silence> {
    let question = serde_json::to_vec(&Question { run: run.cloned() }).map_err(|_| Silence::Late)?;
    let request = Request::new().payload(question.into()).timeout(Some(EXCHANGE_PATIENCE));
    let sent_ns = monotonic_ns();
    let answer = client.send_request(subject::clock(agent), request).await;
    let (back_ns, back_unix_us) = (monotonic_ns(), unix_us());
    let answer = answer.map_err(|e| match e.kind() {
        RequestErrorKind::NoResponders => Silence::Gone,
        _ => Silence::Late,
    })?;
    let reading: Reading = message::read_plain(&answer.payload).map_err(|_| Silence::Late)?;
    let Reading { instance, received_ns, responded_ns, unix_us } = reading;
    let half_us = (back_ns - sent_ns) / 2000;
    let ahead_us = unix_us as i64 + half_us as i64 - back_unix_us as i64;
    Ok((Exchange { sent_ns, received_ns, responded_ns, back_ns }, instance, ahead_us))
}

/// Measures an agent's clock with so many exchanges, one after the other.
pub async fn measure(client: &Client, agent: &Name, exchanges: u32) -> AgentClock {
    let mut clock = AgentClock::default();
    for _ in 0..exchanges {
        if let Ok((exchange, ..)) = self::exchange(client, agent, None).await {
            // Readings that go backwards say nothing; others follow.
            let _ = clock.take(exchange);
        }
    }
    clock
}
