//! TLS 1.2 and 1.3 on the wire: bytes in, bytes out.
//!
//! A [`session`] is one end of a connection: it takes records apart and puts them together. A [`client`] or a [`server`] begins
//! sessions, with what it offers, trusts and shows. What goes wrong has one of a few kinds ([`error`]). An [`authority`] makes the
//! certificates of a run.
//!
//! *Does not:* read or write a socket or a file; speak early data (0-RTT), ask clients for certificates, or look at revocation.
//! Certificates are checked against the wall clock, and keys are drawn from the system's random numbers, by the library
//! underneath: these are the two things that are not arguments here.

pub mod authority;
pub mod client;
pub mod error;
mod offer;
pub mod server;
pub mod session;

/// The only application protocol that is offered and accepted (ALPN, RFC 7301).
pub const HTTP_1_1: &[u8] = b"http/1.1";
