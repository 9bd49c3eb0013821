//! The commands, one file each: flags, then what they do.

pub mod by_hand;
pub mod calibrate;
pub mod check;
pub mod compare;
mod distributions;
pub mod lab;
pub mod logs;
mod machine;
pub mod proxies;
pub mod report;
pub mod result_args;
pub mod role;
pub mod run;
pub mod run_args;
mod schedule;
pub mod simulate;
mod take_along;
pub mod workloads;
