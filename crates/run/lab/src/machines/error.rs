//! Errors between agents and coordinators.

use crate::error::Cause;

/// Reason why several machines do not work as one. Every message says what was attempted, what was seen, and what to do. Causes are
/// part of the message, and so no `source` of the error.
#[derive(Debug, thiserror::Error)]
pub enum FleetError {
    /// Found before anything was started on any machine.
    #[error("{0}")]
    Plan(Cause),
    /// Something that was started went wrong.
    #[error("{0}")]
    Failed(Cause),
}

impl FleetError {
    pub fn plan(cause: impl Into<Cause>) -> Self {
        FleetError::Plan(cause.into())
    }

    pub fn failed(cause: impl Into<Cause>) -> Self {
        FleetError::Failed(cause.into())
    }
}
