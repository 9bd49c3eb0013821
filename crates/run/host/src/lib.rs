//! The host of a run: its metrics, its disturbances, and emulated networks on it.
//!
//! [`metrics`] reads processors, memory, disks and network from the kernel once a second. [`verdict`] looks for reasons to
//! doubt a run in its record. [`quiet`] decides whether the machine is quiet enough for a run. [`owner`] marks resources that
//! outlive a process, so that the next start finds those whose owner is gone. [`link`] emulates networks between namespaces.
//!
//! *Does not:* start, place or stop anything, read the counters of a proxy (that is `assay-lab`), judge the target, or word
//! a report (that is `assay-report`).

pub mod link;
pub mod metrics;
pub mod owner;
pub mod quiet;
pub mod verdict;
