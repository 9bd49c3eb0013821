//! Whether the figures of a run hold: what the machine and the processes of a run did, and the judgement made from it.
//!
//! [`metrics`] reads metrics of processors, memory, disks and network from the kernel, once a second. [`verdict`] looks for
//! reasons to doubt a run in what was recorded. [`quiet`] decides whether the machine is quiet enough for one. [`owner`] marks things that outlive a process, so that the next start finds
//! those whose owner is gone. [`link`] emulates networks between namespaces.
//!
//! *Does not:* start, place or stop anything, read the counters of a proxy (that is `assay-lab`), judge the target, or word
//! a report (that is `assay-report`).

pub mod link;
pub mod metrics;
pub mod owner;
pub mod quiet;
pub mod verdict;
