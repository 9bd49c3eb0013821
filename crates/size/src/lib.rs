//! How large a cache must be: curves of hit ratio over size for several replacement policies, from traces and access logs.
//!
//! [`read`] turns inputs into [`requests`] (compact records), [`curve`] simulates policies at all sizes, [`document`] is the result,
//! and [`terminal`], [`csv`] and [`sheet()`] write it. LRU at all sizes takes one pass over the requests ([`distance`]) where that is
//! exact. The policies themselves are in `assay_cache::policy`.
//!
//! *Does not:* open a socket, start a proxy, or know what a real proxy's memory holds beside objects.

pub mod csv;
pub mod curve;
pub mod distance;
pub mod document;
pub mod error;
pub mod ids;
pub mod policy;
pub mod read;
pub mod requests;
mod sheet;
pub mod simulate;
pub mod terminal;
pub mod trace;
mod words;

pub use sheet::sheet;
