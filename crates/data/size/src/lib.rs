//! How large a cache must be: curves of hit ratio over size for several replacement policies, from traces, access logs and
//! workloads.
//!
//! [`read`] turns files, and [`workload`] streams of robots, into [`requests`] (compact records; what HTTP adds to them is in [`http`]),
//! [`curve`] simulates policies at all sizes, [`document`] is the result,
//! and [`terminal`], [`csv`] and [`sheet()`] write it. LRU at all sizes takes one pass over the requests ([`distance`]) where that is
//! exact. The policies themselves are in `assay_cache::policy`.
//!
//! *Does not:* open a socket, start a proxy, or know what a real proxy's memory holds beside objects.

mod arrivals;
pub mod bounds;
pub mod cooperate;
pub mod csv;
pub mod curve;
pub mod distance;
pub mod document;
pub mod error;
pub mod form;
pub mod http;
#[cfg(test)]
mod http_draws;
pub mod ids;
pub mod keys;
pub mod labels;
mod large;
pub mod layout;
mod numbers;
pub mod played;
pub mod policy;
pub mod proof;
pub mod read;
mod request;
pub mod requests;
pub mod sample;
mod sheet;
mod shown;
pub mod simulate;
pub mod spread;
mod tally;
pub mod terminal;
pub mod together;
mod told;
pub mod trace;
mod traces;
mod weights;
mod words;
pub mod workload;

pub use sheet::sheet;
