//! Nodes and clients over loopback sockets where a result depends on the clock of the machine, which must not
//! be too busy.

mod node_monitor;
mod nodes;
mod stream;
#[path = "../../it/node/support.rs"]
mod support;
