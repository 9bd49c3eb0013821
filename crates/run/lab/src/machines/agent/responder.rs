//! The agent's connection: it responds to discovery and to clock requests, whatever else the agent does.
//!
//! A thread of its own, so that a response never waits for a meter or a role. Clock requests of the coordinator tell that it is there.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::machines::fleet::message::{self, AgentInfo, Busy, ClockRequest, Reading};
use crate::machines::fleet::name::Name;
use crate::machines::fleet::subject;
use async_nats::{Client, Message, Subscriber};
use futures_util::StreamExt;
use tokio::sync::oneshot;

use super::facts::free_capacity;
use crate::machines::discovery::{self, ExchangeError};
use crate::machines::error::FleetError;
use crate::machines::login::Login;
use assay_base::clock::{monotonic_ns, realtime_ns};

/// State that the thread and the agent share.
#[derive(Debug)]
struct ResponderState {
    info: AgentInfo,
    /// Directory in which the agent writes.
    dir: PathBuf,
    /// The run that the agent takes part in, and when its coordinator was heard last.
    coordinator: Option<(Name, Instant)>,
}

#[derive(Debug)]
pub struct Responder {
    client: Client,
    shared: Arc<Mutex<ResponderState>>,
}

impl Responder {
    /// Connects, makes sure that no other agent has the name, and responds from then on.
    pub async fn open(login: Login, info: AgentInfo, dir: PathBuf) -> Result<Self, FleetError> {
        let shared = Arc::new(Mutex::new(ResponderState { info, dir, coordinator: None }));
        let (opened, opening) = oneshot::channel();
        let theirs = shared.clone();
        let cannot = |e| FleetError::failed(format!("cannot start a thread for the agent's connection: {e}"));
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(cannot)?;
        let work = async move {
            let name = locked(&theirs).info.name.clone();
            match connect(&login, &name).await {
                Ok((client, subscriptions)) => {
                    if opened.send(Ok(client.clone())).is_ok() {
                        respond(&client, subscriptions, &theirs).await;
                    }
                }
                // Whoever asked for it may have been interrupted.
                Err(error) => drop(opened.send(Err(error))),
            }
        };
        let thread = std::thread::Builder::new().name("responder".into());
        thread.spawn(move || runtime.block_on(work)).map_err(cannot)?;
        let client = opening.await.map_err(|_| FleetError::failed("the agent's connection has ended"))??;
        Ok(Self { client, shared })
    }

    pub fn client(&self) -> Client {
        self.client.clone()
    }

    /// Sets the activity of the agent.
    pub fn set_busy(&self, busy: Option<Busy>) {
        locked(&self.shared).info.busy = busy;
    }

    /// A coordinator begins: its clock requests are noted from now on.
    pub fn attach_coordinator(&self, run: &Name) {
        locked(&self.shared).coordinator = Some((run.clone(), Instant::now()));
    }

    /// The run is over.
    pub fn detach_coordinator(&self) {
        locked(&self.shared).coordinator = None;
    }

    /// Time for which the coordinator has said nothing; 0 where there is none.
    pub fn since_coordinator(&self) -> Duration {
        locked(&self.shared).coordinator.as_ref().map_or(Duration::ZERO, |(_, heard)| heard.elapsed())
    }
}

/// Connects under a name that nobody else has. With subscriptions to discovery and to clock requests.
async fn connect(login: &Login, name: &Name) -> Result<(Client, [Subscriber; 2]), FleetError> {
    let client = login.connect(&format!("assay agent {name}")).await?;
    if discovery::exchange(&client, name, None).await != Err(ExchangeError::Gone) {
        return Err(FleetError::plan(format!(
            "an agent named {name} is connected already; give this one another name with --name"
        )));
    }
    let cannot = |e: &dyn std::fmt::Display| {
        FleetError::plan(format!("cannot receive requests from {}: {e}", login.url))
    };
    let who = client.subscribe(subject::DISCOVER).await.map_err(|e| cannot(&e))?;
    let clock = client.subscribe(subject::clock(name)).await.map_err(|e| cannot(&e))?;
    client.flush().await.map_err(|e| cannot(&e))?;
    Ok((client, [who, clock]))
}

async fn respond(client: &Client, [mut who, mut clock]: [Subscriber; 2], shared: &Mutex<ResponderState>) {
    loop {
        let (reply, response) = tokio::select! {
            request = clock.next() => match request {
                Some(request) => (request.reply.clone(), reading(&request, shared)),
                None => return,
            },
            request = who.next() => match request {
                Some(request) => (request.reply, serde_json::to_vec(&described(shared))),
                None => return,
            },
        };
        if let (Some(reply), Ok(response)) = (reply, response) {
            // Without a connection, the request is sent again.
            let _ = client.publish(reply, response.into()).await;
            let _ = client.flush().await;
        }
    }
}

/// Description of the agent, with the free resources of its machine.
fn described(shared: &Mutex<ResponderState>) -> AgentInfo {
    let mut shared = locked(shared);
    shared.info.free = free_capacity(&shared.dir, shared.info.address);
    shared.info.clone()
}

/// Reading of the clock. Two readings, so that what happens between them is not taken for the way.
fn reading(request: &Message, shared: &Mutex<ResponderState>) -> serde_json::Result<Vec<u8>> {
    let received_ns = monotonic_ns();
    let asked: Option<ClockRequest> = message::read_plain(&request.payload).ok();
    let mut shared = locked(shared);
    if let (Some(ClockRequest { run: Some(run) }), Some((own, heard))) = (asked, &mut shared.coordinator)
        && run == *own
    {
        *heard = Instant::now();
    }
    let instance = shared.info.instance;
    drop(shared);
    serde_json::to_vec(&Reading {
        instance,
        received_ns,
        unix_us: realtime_ns() / 1_000,
        responded_ns: monotonic_ns(),
    })
}

fn locked(shared: &Mutex<ResponderState>) -> MutexGuard<'_, ResponderState> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}
