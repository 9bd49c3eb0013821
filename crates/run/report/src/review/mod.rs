//! Reports of what is no single run: balancing policies on a cluster ([`policies`]), an evaluation of proxies on live
//! traffic ([`spe`]), and the results of conformance cases ([`conform`]), each as a document, in a terminal and as one offline HTML page.
//!
//! Statistics are those of [`compare`](crate::compare).
//!
//! *Does not:* measure or simulate.

pub mod conform;
pub mod policies;
pub mod spe;
