//! Runs that together find something out: experiments, the limit of a target, and what this machine can offer.
//!
//! [`cells`] reads an experiment, puts its runs in order and carries them out; [`peak`] looks for the highest rate at which
//! a target keeps a promise; [`calibrate`] measures what robots and origins can do on this machine. Each run is one of
//! [`run`](crate::run()).
//!
//! *Does not:* compile a workload, decide what the next rate of a search is (that is [`search`](crate::search)), or compare results (that is `assay-report`).

pub mod calibrate;
pub mod cells;
pub mod peak;
