//! What goes wrong between agents and coordinators.

/// Why several machines do not work as one. Every message says what was attempted, what was seen, and what to do.
#[derive(Debug, thiserror::Error)]
pub enum FleetError {
    /// Found before anything was started on any machine.
    #[error("{0}")]
    Plan(String),
    /// Something that was started went wrong.
    #[error("{0}")]
    Failed(String),
}

impl FleetError {
    /// Found before anything was started.
    pub fn plan(message: impl Into<String>) -> Self {
        FleetError::Plan(message.into())
    }

    /// Went wrong on the way.
    pub fn failed(message: impl Into<String>) -> Self {
        FleetError::Failed(message.into())
    }
}
