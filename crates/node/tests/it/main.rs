//! Nodes and clients over loopback sockets.

mod nodes;
mod stream;
mod support;
mod watched;
