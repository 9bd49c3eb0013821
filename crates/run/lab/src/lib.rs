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
mod cache_instance;
pub mod caches;
mod capacity;
pub mod cgroup;
pub mod checks;
pub mod cleanup;
pub mod conformance;
mod counter_reader;
mod counters;
mod crash_log;
pub mod description;
pub mod error;
pub mod evaluation;
pub mod experiment;
pub mod harness;
mod http_versions;
pub mod instant;
pub mod machines;
mod metering;
pub mod mode;
pub mod network;
pub mod placement;
pub mod plan;
pub mod prepare;
mod probe;
pub mod process;
pub mod quiet;
mod readiness;
pub mod real_proxy;
pub mod realtime;
pub mod remote;
pub mod roles;
mod run;
mod run_findings;
pub mod run_info;
mod running_roles;
pub mod search;
mod shared_memory;
mod start;
pub mod target_role;
pub mod target_spec;
#[cfg(test)]
mod testing;
pub mod time_wait;
mod tls;
pub mod topology;
pub mod units;
pub mod watched_processes;
mod workdir;

pub use assay_host::link::{LinkSettings, SettingsError};
pub use assay_host::metrics::ProcessorWaits;
pub use capacity::{check_resources, free_bytes, port_rest_s, ports, raise_descriptor_limit, resource_needs};
pub use cgroup::Limits;
pub use checks::{Need, Resource};
pub use description::{Description, DescriptionError, described, find};
pub use error::LabError;
pub use mode::Mode;
pub use network::NetworkPlan;
pub use plan::{MOST_SPIN, RunOutcome, RunPart, RunPlan, TargetChoice};
pub use prepare::check;
pub use run::{run, run_with_commands};
pub use tls::{ProxyTls, TlsPlan};
