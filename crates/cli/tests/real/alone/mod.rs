//! Runs that are judged by their times, beside which nothing else runs (`.config/nextest.toml`). Most have the machine to themselves
//! (`run_alone`); those whose times may be a few milliseconds more share it with two others (`run`).

mod hierarchy;
mod honest;
pub mod links;
mod slow;
