//! Network namespaces and the links between them: delay, jitter, loss, rate and queue.
//!
//! *Does not:* know what runs in a namespace (that is `assay-lab`), or touch the machine's own network.

pub mod settings;

pub use settings::{LinkSettings, SettingsError};
