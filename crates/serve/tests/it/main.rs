//! The crate as its users see it: a server that is asked, a collector that is sent to.

mod requested;
mod sent;
mod support;
