//! HTTP/2 (RFC 9113) as the client of cases speaks it: frames as a case writes them, valid or not, and everything that comes back.
//!
//! `assay_http2::Connection` refuses to send what is malformed; cases are about just that. So frames are written here byte by byte, with
//! header blocks of literals that no table shortens, and what comes is kept as it is, with what is wrong with it in words.

pub mod connection;
pub mod frame;
mod incoming;
