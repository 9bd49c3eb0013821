//! Role processes: started as `EXE role KIND SPEC.json`, spoken to over pipes, a JSON document per line.

use std::io;
use std::time::Duration;

use assay_protocol::message::{Command, Event};
use rustix::process::Signal;
use serde::{Deserialize, Serialize};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::process::{ChildStdin, ChildStdout};
use tokio::sync::mpsc;

use crate::elsewhere::RoleElsewhere;
use crate::error::LabError;
use crate::process::{Launch, Process, Stopped};

/// How long a role may take to end once its input has ended.
const END_PATIENCE: Duration = Duration::from_secs(3);

/// What a process of ours does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RoleKind {
    /// Sends requests and checks responses.
    Robots,
    Origins,
    /// The built-in caching proxy: which one, where there are several.
    Proxy(u16),
    /// Carries packets between the others.
    Links,
    /// Stands where origins would be, in an evaluation of several proxies at once.
    Collector,
    /// Serves clients there, and sends their requests to all proxies.
    Multiplier,
}

impl RoleKind {
    /// Its name on the command line and in the record.
    pub fn name(self) -> &'static str {
        match self {
            RoleKind::Robots => "robots",
            RoleKind::Origins => "origins",
            RoleKind::Proxy(_) => "proxy",
            RoleKind::Links => "links",
            RoleKind::Collector => "collector",
            RoleKind::Multiplier => "multiplier",
        }
    }
}

/// What came out of a role.
#[derive(Debug)]
pub enum Said {
    /// One of its events.
    Event(Box<Event>),
    /// A line that is none.
    Nonsense(String),
    /// Its output ended: it is gone.
    Ended,
}

#[derive(Debug)]
pub struct Role {
    pub kind: RoleKind,
    body: Body,
}

#[derive(Debug)]
enum Body {
    /// A child of this process.
    Here(Box<Child>),
    Elsewhere(Box<dyn RoleElsewhere>),
}

/// A role that is a child of this process.
#[derive(Debug)]
struct Child {
    process: Process,
    input: Option<ChildStdin>,
}

impl Role {
    /// Starts a role; what it says goes to `said`.
    pub fn start(
        kind: RoleKind,
        launch: Launch<'_>,
        said: mpsc::UnboundedSender<(RoleKind, Said)>,
    ) -> Result<Self, LabError> {
        let (name, exe) = (kind.name(), launch.program.to_string_lossy().into_owned());
        let cannot = |e: io::Error| LabError::run(format!("cannot start {name} ({exe}): {e}"));
        let mut process = Process::start(launch).map_err(cannot)?;
        let (input, lines) = process.pipes().ok_or_else(|| cannot(io::Error::other("it has no pipes")))?;
        tokio::spawn(listen(kind, lines, said));
        Ok(Self { kind, body: Body::Here(Box::new(Child { process, input: Some(input) })) })
    }

    /// One that was started on other machines.
    pub(crate) fn elsewhere(kind: RoleKind, role: Box<dyn RoleElsewhere>) -> Self {
        Self { kind, body: Body::Elsewhere(role) }
    }

    /// Its process; none: it is on other machines.
    pub fn pid(&self) -> Option<u32> {
        match &self.body {
            Body::Here(child) => Some(child.process.pid),
            Body::Elsewhere(_) => None,
        }
    }

    /// True once its process has ended. Of one on other machines, its last word says so.
    pub fn has_ended(&mut self) -> bool {
        match &mut self.body {
            Body::Here(child) => child.process.ended().is_some(),
            Body::Elsewhere(_) => false,
        }
    }

    pub async fn tell(&mut self, command: Command) -> Result<(), LabError> {
        match &mut self.body {
            Body::Here(child) => child.tell(self.kind.name(), command).await,
            Body::Elsewhere(role) => role.tell(command).await,
        }
    }

    /// Ends its input, which ends it; kills it if it does not.
    pub async fn end(&mut self) -> Stopped {
        self.end_within(END_PATIENCE).await
    }

    /// The same, for a role that has much to do at its end.
    pub async fn end_within(&mut self, patience: Duration) -> Stopped {
        match &mut self.body {
            Body::Here(child) => child.end(patience).await,
            Body::Elsewhere(role) => {
                role.end().await;
                Stopped { killed: false, took: Duration::ZERO }
            }
        }
    }

    /// How it ended and what it said last, for a message; waits a moment for its end.
    pub async fn obituary(&mut self) -> String {
        match &mut self.body {
            Body::Here(child) => child.obituary(self.kind.name()).await,
            Body::Elsewhere(role) => role.obituary().await,
        }
    }
}

impl Child {
    async fn tell(&mut self, name: &str, command: Command) -> Result<(), LabError> {
        let cannot =
            |e: io::Error| LabError::run(format!("cannot speak to {name}: {e}; they seem to have ended"));
        let mut line = serde_json::to_vec(&command).map_err(|e| cannot(e.into()))?;
        line.push(b'\n');
        match &mut self.input {
            Some(input) => input.write_all(&line).await.map_err(cannot),
            None => Err(cannot(io::ErrorKind::BrokenPipe.into())),
        }
    }

    async fn end(&mut self, patience: Duration) -> Stopped {
        self.input = None;
        if tokio::time::timeout(patience, self.process.wait()).await.is_ok() {
            return Stopped { killed: false, took: Duration::ZERO };
        }
        self.process.stop(Signal::TERM, END_PATIENCE).await
    }

    async fn obituary(&mut self, name: &str) -> String {
        let status = match tokio::time::timeout(END_PATIENCE, self.process.wait()).await {
            Ok(Ok(status)) => status.to_string(),
            _ => "closed its output but still ran".to_owned(),
        };
        match self.process.last_words() {
            words if words.is_empty() => format!("{name} ended ({status}) without a word"),
            words => format!("{name} ended ({status}); the last it said:\n{words}"),
        }
    }
}

async fn listen(kind: RoleKind, output: ChildStdout, said: mpsc::UnboundedSender<(RoleKind, Said)>) {
    let mut lines = BufReader::new(output).lines();
    loop {
        let message = match lines.next_line().await {
            Ok(Some(line)) => match serde_json::from_str(&line) {
                Ok(event) => Said::Event(Box::new(event)),
                Err(e) => Said::Nonsense(format!("{e}: {}", line.chars().take(200).collect::<String>())),
            },
            Ok(None) | Err(_) => Said::Ended,
        };
        let ended = matches!(message, Said::Ended);
        // The receiver is gone when the run is over.
        if said.send((kind, message)).is_err() || ended {
            return;
        }
    }
}
