//! Role processes: started as `EXE role KIND SPEC.json`, with commands and events over pipes, a JSON document per line.

use std::io;
use std::time::Duration;

use assay_protocol::message::{Command, Event};
use rustix::process::Signal;
use serde::{Deserialize, Serialize};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::process::{ChildStdin, ChildStdout};
use tokio::sync::mpsc;

use crate::error::LabError;
use crate::process::{Launch, Process, Stopped};
use crate::remote::RemoteRole;

/// Time that a role may take to end once its input has ended.
const END_TIMEOUT: Duration = Duration::from_secs(3);

/// Kind of a process of ours.
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
    /// Name on the command line and in the record.
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

/// Failure to start a role process, or to command it. Causes are part of the message, and so no `source` of the error.
#[derive(Debug, thiserror::Error)]
pub enum RoleError {
    #[error("cannot start {name} ({exe}): {cause}")]
    Start { name: &'static str, exe: String, cause: io::Error },
    #[error("cannot speak to {name}: {cause}; they seem to have ended")]
    Send { name: &'static str, cause: io::Error },
}

/// Output of a role.
#[derive(Debug)]
pub enum RoleEvent {
    /// One of its events.
    Event(Box<Event>),
    /// A line that is no event.
    Malformed(String),
    /// Output ended: it is gone.
    Ended,
}

#[derive(Debug)]
pub struct Role {
    pub kind: RoleKind,
    body: RoleLocation,
}

#[derive(Debug)]
enum RoleLocation {
    /// A child of this process.
    Local(Box<ChildRole>),
    Remote(Box<dyn RemoteRole>),
}

/// A role that is a child of this process.
#[derive(Debug)]
struct ChildRole {
    process: Process,
    input: Option<ChildStdin>,
}

impl Role {
    /// Starts a role; what it says goes to `said`.
    pub fn start(
        kind: RoleKind,
        launch: Launch<'_>,
        events: mpsc::UnboundedSender<(RoleKind, RoleEvent)>,
    ) -> Result<Self, LabError> {
        let (name, exe) = (kind.name(), launch.program.to_string_lossy().into_owned());
        let cannot = |cause| LabError::run(RoleError::Start { name, exe: exe.clone(), cause });
        let mut process = Process::start(launch).map_err(cannot)?;
        let (input, lines) = process.pipes().ok_or_else(|| cannot(io::Error::other("it has no pipes")))?;
        tokio::spawn(forward_output(kind, lines, events));
        Ok(Self { kind, body: RoleLocation::Local(Box::new(ChildRole { process, input: Some(input) })) })
    }

    /// A role that was started on other machines.
    pub(crate) fn remote(kind: RoleKind, role: Box<dyn RemoteRole>) -> Self {
        Self { kind, body: RoleLocation::Remote(role) }
    }

    /// Process; none: it is on other machines.
    pub fn pid(&self) -> Option<u32> {
        match &self.body {
            RoleLocation::Local(child) => Some(child.process.pid),
            RoleLocation::Remote(_) => None,
        }
    }

    /// True once its process has ended. Of one on other machines, its last word says so.
    pub fn has_ended(&mut self) -> bool {
        match &mut self.body {
            RoleLocation::Local(child) => child.process.ended().is_some(),
            RoleLocation::Remote(_) => false,
        }
    }

    pub async fn send(&mut self, command: Command) -> Result<(), LabError> {
        match &mut self.body {
            RoleLocation::Local(child) => child.send(self.kind.name(), command).await,
            RoleLocation::Remote(role) => role.send(command).await,
        }
    }

    /// Ends its input, which ends it; kills it if it does not.
    pub async fn end(&mut self) -> Stopped {
        self.end_within(END_TIMEOUT).await
    }

    /// The same, for a role that has much to do at its end.
    pub async fn end_within(&mut self, limit: Duration) -> Stopped {
        match &mut self.body {
            RoleLocation::Local(child) => child.end(limit).await,
            RoleLocation::Remote(role) => {
                role.end().await;
                Stopped { killed: false, took: Duration::ZERO }
            }
        }
    }

    /// End of the role and its last output, for a message; waits a moment for its end.
    pub async fn exit_summary(&mut self) -> String {
        match &mut self.body {
            RoleLocation::Local(child) => child.exit_summary(self.kind.name()).await,
            RoleLocation::Remote(role) => role.exit_summary().await,
        }
    }
}

impl ChildRole {
    async fn send(&mut self, name: &'static str, command: Command) -> Result<(), LabError> {
        let cannot = |cause: io::Error| LabError::run(RoleError::Send { name, cause });
        let mut line = serde_json::to_vec(&command).map_err(|e| cannot(e.into()))?;
        line.push(b'\n');
        match &mut self.input {
            Some(input) => input.write_all(&line).await.map_err(cannot),
            None => Err(cannot(io::ErrorKind::BrokenPipe.into())),
        }
    }

    async fn end(&mut self, limit: Duration) -> Stopped {
        self.input = None;
        if tokio::time::timeout(limit, self.process.wait()).await.is_ok() {
            return Stopped { killed: false, took: Duration::ZERO };
        }
        self.process.stop(Signal::TERM, END_TIMEOUT).await
    }

    async fn exit_summary(&mut self, name: &str) -> String {
        let status = match tokio::time::timeout(END_TIMEOUT, self.process.wait()).await {
            Ok(Ok(status)) => status.to_string(),
            _ => "closed its output but still ran".to_owned(),
        };
        match self.process.last_lines() {
            words if words.is_empty() => format!("{name} ended ({status}) without a word"),
            words => format!("{name} ended ({status}); the last it said:\n{words}"),
        }
    }
}

async fn forward_output(
    kind: RoleKind,
    output: ChildStdout,
    events: mpsc::UnboundedSender<(RoleKind, RoleEvent)>,
) {
    let mut lines = BufReader::new(output).lines();
    loop {
        let message = match lines.next_line().await {
            Ok(Some(line)) => match serde_json::from_str(&line) {
                Ok(event) => RoleEvent::Event(Box::new(event)),
                Err(e) => {
                    RoleEvent::Malformed(format!("{e}: {}", line.chars().take(200).collect::<String>()))
                }
            },
            Ok(None) | Err(_) => RoleEvent::Ended,
        };
        let ended = matches!(message, RoleEvent::Ended);
        // The receiver is gone when the run is over.
        if events.send((kind, message)).is_err() || ended {
            return;
        }
    }
}
