//! The Multiplier and the Collector where a result depends on the clock of the machine, which must not be too
//! busy, or on curl.

#[path = "../it/certificate.rs"]
mod certificate;
mod collector;
#[path = "../it/collector_harness.rs"]
mod collector_harness;
mod collector_pace;
#[path = "../it/evaluation.rs"]
mod evaluation;
#[path = "../it/faults.rs"]
mod faults;
mod honest;
#[path = "../it/honest_proxy.rs"]
mod honest_proxy;
#[path = "../it/multiplier_bed.rs"]
mod multiplier_bed;
mod multiplier_faults;
mod opened;
mod secured;
#[path = "../it/tunnels.rs"]
mod tunnels;
