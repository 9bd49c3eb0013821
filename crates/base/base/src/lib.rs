//! Tools that the standard library lacks, and every floor uses: the system's clocks ([`clock`]), reproducible [`random`] numbers, text
//! between people and values ([`settings`]), [`files`] and text of others ([`quote`]), [`metrics`] for observers and results as [`junit`]
//! XML.
//!
//! *Does not:* know what a proxy, a workload or a run is.

pub mod clock;
pub mod files;
pub mod junit;
pub mod metrics;
pub mod quote;
pub mod random;
pub mod settings;
