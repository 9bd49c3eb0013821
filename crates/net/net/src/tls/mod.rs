//! TLS 1.2 and 1.3 on the wire: bytes in, bytes out.
//!
//! A [`session`] is one end of a connection: it takes records apart and puts them together. A [`client`] or a [`server`] begins
//! sessions, with what it offers, trusts and shows. What goes wrong has one of a few kinds ([`error`]). An [`authority`] makes the
//! certificates of a run. An [`intercept::Interceptor`] is a server for whatever name a tunnel leads to, with certificates of an authority that a
//! user keeps.
//!
//! What documents say of a side is in [`settings`]; [`setup`] reads the files that these name.
//!
//! *Does not:* read or write a socket or a file (but for [`setup`]); speak early data (0-RTT), ask clients for certificates, or look at revocation.
//! Certificates are checked against the wall clock, and keys are drawn from the system's random numbers, by the library
//! underneath: these are the two things that are not arguments here.

pub mod authority;
pub mod client;
pub mod der;
pub mod error;
pub mod intercept;
mod offer;
pub mod server;
pub mod session;
pub mod settings;
pub mod setup;
mod trust;

/// HTTP/1.1 as an application protocol (ALPN, RFC 7301): what is offered and accepted unless something else is said.
pub const HTTP_1_1: &[u8] = b"http/1.1";
/// HTTP/1.0 as an application protocol, which some clients name where they are to speak it.
pub const HTTP_1_0: &[u8] = b"http/1.0";
/// HTTP/2 as an application protocol (RFC 9113, 3.2).
pub const HTTP_2: &[u8] = b"h2";
