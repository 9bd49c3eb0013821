//! Simultaneous proxy evaluation: many proxies, the same clients, one trip to the origin.
//!
//! After B. D. Davison and C. Krishnan, *ROPE: The Rutgers Online Proxy Evaluator*, and chapters 10 and 11 of Davison's thesis:
//! the *Multiplier* takes requests of real clients, serves them from the Collector, and sends each of them to every proxy under
//! test too; the *Collector* stands where the origins would be. It fetches each object once and serves later requests for it as
//! if it were fetched again: at the pace at which it came. So proxies can be compared on live traffic, including proxies that
//! prefetch, and origins see one request for each need.
//!
//! Both are roles: processes of the one binary, configured by [`spec`].
//!
//! Bytes after a CONNECT are relayed unseen, unless the user has named an authority of their own with which tunnels are opened.
//!
//! *Does not:* start proxies (that is `assay-lab`), draw reports (`assay-report`), or trust that authority.

pub mod collector;
mod connect_errors;
mod log_writer;
pub mod multiplier;
pub mod number;
pub mod spec;
pub mod validate;

/// Peak resident memory of this process; 0 where the system does not report it.
fn peak_memory_bytes() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kib = line.and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok());
    kib.unwrap_or(0) * 1024
}
