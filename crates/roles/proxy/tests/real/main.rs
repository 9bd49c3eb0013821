//! The proxy where a result depends on the clock of the machine, which must not be too busy, or on h2spec, if
//! it is installed.

mod checked;
mod failing;
#[path = "../it/harness.rs"]
mod harness;
mod memory;
mod storm;
