//! The crate as its users see it: a server that gets requests, a collector that gets metrics.

mod client;
mod collector;
mod requested;
mod sent;
mod watched;
