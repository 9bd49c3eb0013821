//! Nodes over loopback sockets. What is here has the same result however busy the machine is.

mod nodes;
mod support;
mod watched;
