//! The lab against real programs: the proxies that are described, and roles that misbehave.

mod behaviour;
mod killed;
mod origin;
mod proxies;
mod reference;
mod runs;
#[path = "../../src/testing.rs"]
mod testing;

// The shared test workloads name it as the crate itself does.
use assay_lab::{mode, plan};
