//! Messages between a role and its parent.
//!
//! Commands come on standard input, events go to standard output, a JSON document per line
//! ([`message`](crate::message)). End of input means that the parent is gone.

use std::io::{self, BufRead, Write};

use crate::message::{Command, Event};
use thiserror::Error;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};

/// Why a role and its parent no longer understand each other. Causes are part of the message, and so no `source` of the
/// error.
#[derive(Debug, Error)]
pub enum StdioError {
    /// Input that is no command.
    #[error("standard input holds {line:?}, which is no command: {cause}")]
    NotACommand {
        line: String,
        /// What is wrong with it.
        cause: serde_json::Error,
    },
    /// Input cannot be read.
    #[error("cannot read commands from standard input: {0}")]
    Read(io::Error),
    /// Output cannot be written: the parent is gone, or its disk is full.
    #[error("cannot write events to standard output: {0}")]
    Write(io::Error),
}

/// Commands of the parent. They are read in a thread of their own, since standard input can be a file or a terminal.
#[derive(Debug)]
pub struct Commands {
    lines: UnboundedReceiver<Result<Command, StdioError>>,
    /// Ctrl-C in a terminal reaches every process in it; what it means is for the parent to say. Holding this keeps it
    /// from ending the role.
    _interrupt: Option<Signal>,
}

impl Commands {
    /// Reads standard input, and leaves Ctrl-C to the parent. Needs a tokio runtime.
    pub fn from_stdin() -> io::Result<Self> {
        let mut commands = Self::from_reader(io::BufReader::new(io::stdin()))?;
        commands._interrupt = Some(signal(SignalKind::interrupt())?);
        Ok(commands)
    }

    /// Reads commands from anywhere.
    pub fn from_reader(reader: impl BufRead + Send + 'static) -> io::Result<Self> {
        let (sender, lines) = unbounded_channel();
        std::thread::Builder::new().name("commands".into()).spawn(move || {
            for line in reader.lines() {
                let command = match line {
                    Ok(line) if line.trim().is_empty() => continue,
                    Ok(line) => {
                        serde_json::from_str(&line).map_err(|cause| StdioError::NotACommand { line, cause })
                    }
                    Err(error) => Err(StdioError::Read(error)),
                };
                let failed = command.is_err();
                if sender.send(command).is_err() || failed {
                    return;
                }
            }
        })?;
        Ok(Self { lines, _interrupt: None })
    }

    /// The next command; none when the parent is gone. Can be dropped half-way without losing one.
    pub async fn next(&mut self) -> Result<Option<Command>, StdioError> {
        self.lines.recv().await.transpose()
    }
}

/// Sends an event to the parent. Any thread may; lines do not mix.
pub fn emit(event: &Event) -> Result<(), StdioError> {
    emit_to(&mut io::stdout().lock(), event)
}

fn emit_to(out: &mut impl Write, event: &Event) -> Result<(), StdioError> {
    let mut line = serde_json::to_vec(event).map_err(|error| StdioError::Write(error.into()))?;
    line.push(b'\n');
    out.write_all(&line).and_then(|()| out.flush()).map_err(StdioError::Write)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn collect(text: &'static str) -> Vec<Result<Option<Command>, String>> {
        let runtime = tokio::runtime::Builder::new_current_thread().build().expect("starts");
        runtime.block_on(async {
            let mut commands = Commands::from_reader(text.as_bytes()).expect("starts");
            let mut all = Vec::new();
            loop {
                let next = commands.next().await.map_err(|error| error.to_string());
                let last = !matches!(next, Ok(Some(_)));
                all.push(next);
                if last {
                    return all;
                }
            }
        })
    }

    #[test]
    fn commands_come_in_order_and_end_with_the_input() {
        let got = collect(
            "{\"command\":\"start\",\"at_monotonic_ns\":5,\"at_unix_s\":7}\n\n{\"command\":\"stop\"}\n",
        );
        let start = Command::Start { at_monotonic_ns: 5, at_unix_s: 7 };
        assert_eq!(got, [Ok(Some(start)), Ok(Some(Command::Stop)), Ok(None)]);
    }

    #[test]
    fn what_is_no_command_is_shown() {
        let got = collect("{\"command\":\"jump\"}\n{\"command\":\"stop\"}\n");
        assert_eq!(got.len(), 1);
        assert!(got[0].as_ref().is_err_and(|message| message.contains("jump")), "{got:?}");
    }

    #[test]
    fn an_event_is_one_line() {
        let mut out = Vec::new();
        emit_to(&mut out, &Event::Done).expect("a vector takes it");
        assert_eq!(out, b"{\"event\":\"done\"}\n");
    }
}
