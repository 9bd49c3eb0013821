//! The agents that are there, as a coordinator finds them.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::machines::fleet::clock::{AgentClock, Exchange};
use crate::machines::fleet::message::{self, AgentInfo, ClockRequest, MessageError, Reading};
use crate::machines::fleet::name::Name;
use crate::machines::fleet::subject;
use async_nats::client::RequestErrorKind;
use async_nats::{Client, Request};
use futures_util::StreamExt;

use crate::machines::error::FleetError;
use assay_base::clock::{monotonic_ns, realtime_ns};

/// Time for which agents are waited for after the last response.
const QUIET: Duration = Duration::from_millis(400);
/// Upper bound on the wait for agents.
const TIMEOUT: Duration = Duration::from_secs(3);
/// Time that one exchange with a clock may take.
const EXCHANGE_TIMEOUT: Duration = Duration::from_secs(1);

/// Finds the agents that are there. Those of another protocol are listed apart from those that can be used.
pub async fn discover(client: &Client) -> Result<(Vec<AgentInfo>, Vec<MessageError>), FleetError> {
    let cannot =
        |e: &dyn std::fmt::Display| FleetError::plan(format!("cannot find out which agents are there: {e}"));
    let inbox = client.new_inbox();
    let mut responses = client.subscribe(inbox.clone()).await.map_err(|e| cannot(&e))?;
    client.publish_with_reply(subject::DISCOVER, inbox, "".into()).await.map_err(|e| cannot(&e))?;
    client.flush().await.map_err(|e| cannot(&e))?;
    let (mut found, mut others) = (Vec::new(), Vec::new());
    let deadline = tokio::time::Instant::now() + TIMEOUT;
    loop {
        let until = deadline.min(tokio::time::Instant::now() + QUIET);
        let Ok(Some(response)) = tokio::time::timeout_at(until, responses.next()).await else { break };
        // The server itself responds where no agent is.
        if response.status.is_some() {
            break;
        }
        match message::read::<AgentInfo>(&response.payload) {
            Ok(info) => found.push(info),
            Err(error) => others.push(error),
        }
    }
    found.sort_by(|one, other| one.name.cmp(&other.name));
    Ok((found, others))
}

/// A name that two agents carry; none: each has its own.
pub fn duplicate_name(found: &[AgentInfo]) -> Option<&Name> {
    let mut seen = BTreeMap::new();
    found.iter().find_map(|info| {
        let before = seen.insert(&info.name, info.instance);
        before.filter(|instance| *instance != info.instance).map(|_| &info.name)
    })
}

/// Reason why there was no reading of a clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ExchangeError {
    /// Nobody listens any more under this name.
    Gone,
    /// No response came in time.
    Late,
}

/// One exchange with an agent's clock: the exchange, the agent's instance, and by how much its wall clock is ahead of this one
/// in microseconds (half the way back is its error).
pub async fn exchange(
    client: &Client,
    agent: &Name,
    run: Option<&Name>,
) -> Result<(Exchange, u64, i64), ExchangeError> {
    let request = serde_json::to_vec(&ClockRequest { run: run.cloned() }).map_err(|_| ExchangeError::Late)?;
    let request = Request::new().payload(request.into()).timeout(Some(EXCHANGE_TIMEOUT));
    let sent_ns = monotonic_ns();
    let response = client.send_request(subject::clock(agent), request).await;
    let (back_ns, back_unix_us) = (monotonic_ns(), realtime_ns() / 1_000);
    let response = response.map_err(|e| match e.kind() {
        RequestErrorKind::NoResponders => ExchangeError::Gone,
        _ => ExchangeError::Late,
    })?;
    let reading: Reading = message::read_plain(&response.payload).map_err(|_| ExchangeError::Late)?;
    let Reading { instance, received_ns, responded_ns, unix_us } = reading;
    let half_us = (back_ns - sent_ns) / 2000;
    // Whatever it claims.
    let signed = |us: u64| i64::try_from(us).unwrap_or(i64::MAX);
    let ahead_us = signed(unix_us).saturating_add(signed(half_us)).saturating_sub(signed(back_unix_us));
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
