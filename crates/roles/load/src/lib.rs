//! Robots and origins: drives a request stream over the network and checks every response.
//!
//! Both are roles: processes of the one binary, started with a spec ([`crate::spec`]) and spoken to over their
//! standard streams ([`assay_protocol::message`]). One current-thread runtime per worker thread; no lock and no cross-thread
//! message on the load path; each worker records for itself and is merged once a second.
//!
//! [`replay`] sends access logs and lists again, and [`node`] is a cluster to try a switch on.
//!
//! *Does not:* decide what robots request (that is `assay-workload`), start proxies or judge results.

mod cache_fields;
mod check;
mod coded;
mod files;
mod monitor;
pub mod node;
pub mod origin;
pub mod replay;
pub mod robot;
pub mod spec;
mod tally;
