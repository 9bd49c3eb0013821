//! The switch where a result depends on the clock of the machine, which must not be too busy, or on other
//! programs: curl, and h2spec if it is installed.

#[path = "../it/certificates.rs"]
mod certificates;
mod checked;
mod failing;
#[path = "../it/harness.rs"]
mod harness;
mod layer4;
#[path = "../it/layer4_peers.rs"]
mod layer4_peers;
mod limits;
mod reloading;
mod secured;
mod slow;
#[path = "../it/upgrade_server.rs"]
mod upgrade_server;
mod upgrading;
mod watching;
