//! The Multiplier and the Collector over real sockets. What is here has the same result however busy the
//! machine is.

mod absolute;
mod certificate;
mod collector;
mod collector_fields;
mod collector_harness;
mod collector_pace;
mod corpus;
mod evaluation;
mod faults;
mod honest;
mod honest_proxy;
mod multiplier;
mod multiplier_bed;
mod multiplier_faults;
mod opened;
mod pipelining;
mod reverse;
mod secured;
mod threads;
mod tunnels;
