//! The commands, one file each: flags, then what they do.

pub mod by_hand;
pub mod calibrate;
pub mod check;
pub mod cluster;
pub mod compare;
mod crowd;
mod distributions;
pub mod lab;
pub mod logs;
mod machine;
pub mod peak;
pub mod policies;
pub mod proxies;
pub mod replay;
pub mod report;
pub mod result_args;
pub mod role;
pub mod run;
pub mod run_args;
mod schedule;
pub mod simulate;
pub mod spe;
pub mod spe_report;
pub mod switch;
mod take_along;
pub mod webstone;
pub mod workloads;
