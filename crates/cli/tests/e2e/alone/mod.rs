//! Runs that are judged by their times, for which `make test` runs nothing else meanwhile. Most have the machine to themselves
//! (`run_alone`); those whose times may be a few milliseconds more share it with two others (`run`).

mod hierarchy;
mod honest;
pub mod links;
mod slow;
