//! HTTP on the wire: heads, bodies, dates, cache directives.
//!
//! Bytes go in, facts come out, and the other way round. A head is parsed in place ([`head`]), says how its body is
//! delimited ([`framing`]), and a chunked body is taken apart incrementally ([`chunked`]). Dates ([`date`]) and
//! `Cache-Control` ([`cache_control`]) are parsed as RFC 9110 and RFC 9111 ask.
//!
//! *Does not:* read or write a socket, know a clock, allocate, or speak anything but HTTP/1.0 and HTTP/1.1.

pub mod cache_control;
pub mod chunked;
pub mod date;
pub mod field;
pub mod framing;
pub mod head;
