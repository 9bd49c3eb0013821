//! Exit codes, and failures that know theirs.

use std::process::ExitCode;

/// Exit codes are a contract with scripts; see the reference.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exit {
    /// Everything went as requested.
    Fine = 0,
    /// The run failed.
    Failed = 1,
    /// Usage or workload error, or a plan this machine cannot carry; nothing was started.
    Usage = 2,
    /// Undecided because of Assay or the machine: a requirement, or a headline number where nothing was required.
    Undecided = 96,
    /// A requirement failed, a response was wrong, responses did not come, or a comparison found a regression.
    Unmet = 99,
    /// Interrupted; what was measured until then is in the run directory.
    Interrupted = 105,
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> ExitCode {
        ExitCode::from(exit as u8)
    }
}

/// Failure of a command, with its exit code.
#[derive(Debug)]
pub struct Failure {
    exit: Exit,
    /// The chain of causes, outermost first.
    pub error: anyhow::Error,
    /// Remedy, if there is one.
    pub hint: Option<String>,
}

impl Failure {
    /// Found before anything was started: exit code 2.
    pub fn usage(error: impl Into<anyhow::Error>) -> Self {
        Self { exit: Exit::Usage, error: error.into(), hint: None }
    }

    /// Found while doing it: exit code 1.
    pub fn failed(error: impl Into<anyhow::Error>) -> Self {
        Self { exit: Exit::Failed, error: error.into(), hint: None }
    }

    /// Adds what to try.
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }
}

impl From<Failure> for Exit {
    fn from(failure: Failure) -> Exit {
        failure.exit
    }
}
