//! Robots and origins: drives a request stream over the network and checks every response.
//!
//! Both are roles: processes of the one binary, started with a spec ([`assay_role::load`]) and spoken to over their
//! standard streams ([`assay_role::message`]). One current-thread runtime per worker thread; no lock and no cross-thread
//! message on the load path; each worker records for itself and is merged once a second.
//!
//! *Does not:* decide what is requested (that is `assay-workload`), start proxies or judge results.

pub mod check;
pub mod coded;
pub mod files;
pub mod origin;
pub mod robot;
pub mod tally;
pub mod watch;
