//! HTTP on the wire: heads, bodies, dates, ranges, codings, cookies, authentication.
//!
//! Bytes go in, facts come out, and the other way round. A head is parsed in place ([`head`]), says how its body is
//! delimited ([`framing`]), names what it requests ([`target`]), and a chunked body is taken apart incrementally
//! ([`chunked`]). Dates ([`date`]) and
//! `Cache-Control` ([`cache_control`]) are parsed as RFC 9110 and RFC 9111 require. Parts of a body are requested and told
//! apart ([`range`]), codings agreed on, made and undone ([`coding`]), digests written ([`digest`]), users challenged and
//! authenticated ([`authentication`]), and cookies set and kept ([`cookie`]). The queries of caches among each other are here too
//! ([`icp`]).
//!
//! # Strictness
//!
//! Every intermediary reads requests with `http::head`, `http::target` and `http::chunked`, refuses what those refuse with the
//! status they give, and rewrites request line, `Host` and framing. A connection with an incomplete message is never
//! reused. `crates/tests/testbed/src/corpus` contains the cases; every intermediary runs it over sockets.
//!
//! *Does not:* read or write a socket, know a clock, make a choice at random, or speak anything but HTTP/1.0,
//! HTTP/1.1 and ICP. What is needed for every request (heads, framing, chunks, dates) does not allocate.

pub mod authentication;
pub mod base64;
pub mod cache_control;
pub mod chunked;
pub mod coding;
pub mod cookie;
pub mod date;
pub mod dictionary;
pub mod digest;
pub mod field;
pub mod framing;
pub mod head;
pub mod icp;
pub mod range;
pub mod status;
pub mod target;
