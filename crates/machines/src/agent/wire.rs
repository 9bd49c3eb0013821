//! The agent's connection: it answers who is there and what its clock shows, whatever else the agent does.
//!
//! A thread of its own, so that an answer never waits for a meter or a role. It knows the coordinator by its questions.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use assay_fleet::message::{self, Busy, Hello, Question, Reading};
use assay_fleet::name::Name;
use assay_fleet::subject;
use async_nats::{Client, Message, Subscriber};
use futures_util::StreamExt;
use tokio::sync::oneshot;

use crate::error::FleetError;
use crate::login::Login;
use crate::now::{monotonic_ns, unix_us};
use crate::roster::{self, Silence};

/// What the thread and the agent share.
#[derive(Debug)]
struct Shared {
    hello: Hello,
    /// The run that the agent takes part in, and when its coordinator was heard last.
    coordinator: Option<(Name, Instant)>,
}

/// The connection.
#[derive(Debug)]
pub struct Wire {
    client: Client,
    shared: Arc<Mutex<Shared>>,
}

impl Wire {
    /// Connects, makes sure that no other agent has the name, and answers from then on.
    pub async fn open(login: Login, hello: Hello) -> Result<Self, FleetError> {
        let shared = Arc::new(Mutex::new(Shared { hello, coordinator: None }));
        let (opened, opening) = oneshot::channel();
        let theirs = shared.clone();
        let cannot = |e| FleetError::failed(format!("cannot start a thread for the agent's connection: {e}"));
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(cannot)?;
        let work = async move {
            let name = locked(&theirs).hello.name.clone();
            match connect(&login, &name).await {
                Ok((client, subscriptions)) => {
                    if opened.send(Ok(client.clone())).is_ok() {
                        answer(&client, subscriptions, &theirs).await;
                    }
                }
                // Whoever asked for it may have been interrupted.
                Err(error) => drop(opened.send(Err(error))),
            }
        };
        let thread = std::thread::Builder::new().name("wire".into());
        thread.spawn(move || runtime.block_on(work)).map_err(cannot)?;
        let client = opening.await.map_err(|_| FleetError::failed("the agent's connection has ended"))??;
        Ok(Self { client, shared })
    }

    /// The connection itself.
    pub fn client(&self) -> Client {
        self.client.clone()
    }

    /// What the agent does now.
    pub fn set_busy(&self, busy: Option<Busy>) {
        locked(&self.shared).hello.busy = busy;
    }

    /// A coordinator begins: its questions are noted from now on.
    pub fn take_coordinator(&self, run: &Name) {
        locked(&self.shared).coordinator = Some((run.clone(), Instant::now()));
    }

    /// The run is over.
    pub fn leave_coordinator(&self) {
        locked(&self.shared).coordinator = None;
    }

    /// How long the coordinator has said nothing; 0 where there is none.
    pub fn since_coordinator(&self) -> Duration {
        locked(&self.shared).coordinator.as_ref().map_or(Duration::ZERO, |(_, heard)| heard.elapsed())
    }
}

/// Connects under a name that nobody else has. Who is asked, and what the clock shows.
async fn connect(login: &Login, name: &Name) -> Result<(Client, [Subscriber; 2]), FleetError> {
    let client = login.connect(&format!("assay agent {name}")).await?;
    if roster::exchange(&client, name, None).await != Err(Silence::Gone) {
        return Err(FleetError::plan(format!(
            "an agent named {name} is connected already; give this one another name with --name"
        )));
    }
    let cannot = |e: &dyn std::fmt::Display| {
        FleetError::plan(format!("cannot take questions from {}: {e}", login.url))
    };
    let who = client.subscribe(subject::WHO).await.map_err(|e| cannot(&e))?;
    let clock = client.subscribe(subject::clock(name)).await.map_err(|e| cannot(&e))?;
    client.flush().await.map_err(|e| cannot(&e))?;
    Ok((client, [who, clock]))
}

async fn answer(client: &Client, [mut who, mut clock]: [Subscriber; 2], shared: &Mutex<Shared>) {
    loop {
        let (reply, answer) = tokio::select! {
            question = clock.next() => match question {
                Some(question) => (question.reply.clone(), reading(&question, shared)),
                None => return,
            },
            question = who.next() => match question {
                Some(question) => (question.reply, serde_json::to_vec(&locked(shared).hello)),
                None => return,
            },
        };
        if let (Some(reply), Ok(answer)) = (reply, answer) {
            // Without a connection, the question is asked again.
            let _ = client.publish(reply, answer.into()).await;
            let _ = client.flush().await;
        }
    }
}

/// What the clock shows. Two readings, so that what happens between them is not taken for the way.
fn reading(question: &Message, shared: &Mutex<Shared>) -> serde_json::Result<Vec<u8>> {
    let received_ns = monotonic_ns();
    let asked: Option<Question> = message::read_plain(&question.payload).ok();
    let mut shared = locked(shared);
    if let (Some(Question { run: Some(run) }), Some((own, heard))) = (asked, &mut shared.coordinator)
        && run == *own
    {
        *heard = Instant::now();
    }
    let instance = shared.hello.instance;
    drop(shared);
    serde_json::to_vec(&Reading { instance, received_ns, unix_us: unix_us(), responded_ns: monotonic_ns() })
}

fn locked(shared: &Mutex<Shared>) -> MutexGuard<'_, Shared> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}
