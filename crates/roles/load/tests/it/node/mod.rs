//! Nodes over loopback sockets. What is here has the same result however busy the machine is.

mod node_monitor;
mod nodes;
mod support;
