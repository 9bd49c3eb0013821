//! Shared by commands that speak to agents: the coordinator's name, and exit codes of errors.

use assay_lab::machines::error::FleetError;

use crate::exit::Failure;

/// Error of a fleet, as an exit code: 2 before anything was started, 1 after.
pub fn failure(error: FleetError) -> Failure {
    match error {
        FleetError::Plan(_) => Failure::usage(error),
        FleetError::Failed(_) => Failure::failed(error),
    }
}

/// The name of this host; empty: it has none.
pub fn host() -> String {
    rustix::system::uname().nodename().to_string_lossy().into_owned()
}

/// Name of the coordinator, for the logs of agents.
pub fn coordinator_name() -> String {
    let user = std::env::var("USER").unwrap_or_else(|_| "somebody".to_owned());
    format!("{user}@{}", host())
}
