//! The Multiplier and the Collector over real sockets.

mod collector;
mod collector_harness;
mod collector_pace;
mod honest;
mod multiplier;
mod multiplier_bed;
mod multiplier_faults;
mod pipelining;
mod reverse;
mod secured;
