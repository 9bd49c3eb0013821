//! A run from start to end: plans it, starts origins, the target and robots, and keeps what they report.
//!
//! [`run()`] is the whole job. It checks a [`RunPlan`] against this machine before anything starts, makes the
//! run directory, starts the role processes and the proxy under test ([`Description`] says how a real proxy
//! is driven), gives all of them one start instant, writes their events into the record and hands them on,
//! and leaves nothing running however it ends.
//!
//! Runs that belong together are [`experiment`]s, of which [`search`] finds a limit; [`evaluation`] runs several proxies at once, and
//! [`machines`] makes several machines one.
//!
//! *Does not:* send or check a request (that is `assay-load`), know any proxy by name (that is in
//! `proxies/*.toml`), or compute a percentile (that is `assay-report`).

pub mod address;
pub mod alongside;
mod arithmetic;
pub mod bed;
pub mod caches;
mod cases;
mod cast;
pub mod cgroup;
pub mod checks;
mod counter_reader;
mod counters;
mod deaths;
pub mod description;
pub mod elsewhere;
pub mod error;
pub mod evaluation;
pub mod experiment;
pub mod inform;
pub mod instant;
pub mod led;
pub mod leftovers;
pub mod machines;
mod member;
mod metering;
pub mod mode;
pub mod placement;
pub mod plan;
pub mod prepare;
mod probe;
pub mod process;
pub mod quiet;
mod readiness;
pub mod real;
pub mod realtime;
pub mod resting;
pub mod roles;
mod run;
pub mod search;
mod secure;
mod shared_memory;
mod start;
mod tally;
pub mod target_role;
pub mod target_spec;
#[cfg(test)]
mod testing;
pub mod topology;
pub mod units;
mod versions;
pub mod watched;
mod work;

pub use arithmetic::{arithmetic, check_carried, free_bytes, port_rest_s, ports, raise_descriptor_limit};
pub use assay_host::link::{LinkSettings, SettingsError};
pub use assay_host::metrics::ProcessorWaits;
pub use bed::BedPlan;
pub use cgroup::Limits;
pub use checks::{Need, Resource};
pub use description::{Description, DescriptionError, described, find};
pub use error::LabError;
pub use mode::Mode;
pub use plan::{MOST_SPIN, Part, RunOutcome, RunPlan, TargetChoice};
pub use prepare::check;
pub use run::{run, run_with_orders};
pub use secure::{ProxyTls, TlsPlan};
