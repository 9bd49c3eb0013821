//! The crate as its users see it: a server that gets requests, a collector that gets metrics.

mod requested;
mod sent;
mod support;
