//! How large a cache must be: curves of hit ratio over size for several replacement policies, from traces, access logs and
//! workloads.
//!
//! [`input`] turns files, and [`workload`] streams of robots, into [`requests`] (compact records; what HTTP adds to them is in [`http`]),
//! [`curve`] simulates policies at all sizes, [`document`] is the result,
//! and [`terminal`], [`csv`] and [`sheet()`] write it. LRU at all sizes takes one pass over the requests ([`distance`]) where that is
//! exact. The policies themselves are in `assay_cache::policy`.
//!
//! # How sizes are simulated
//!
//! An input is read once, into [`requests::Requests`] or into a [`sample`] of them (by object; counts that do not depend on objects stay exact):
//! 24 bytes for each request, objects numbered from 0 ([`ids`]), so that everything known of an object is an element of an array. An
//! [`EvictionPolicy`](assay_cache::policy::EvictionPolicy) decides what is evicted; the [`Store`](assay_cache::policy::Store) counts bytes and
//! finds hits in the same way for all. LRU at all sizes comes from one pass over reuse distances ([`distance`]) if no object changes its size
//! and no object is larger than the cache; otherwise, and for all other policies, each size is simulated. A point states which of the two was
//! used. Simulations run in parallel, with a thread for each processor, and their results do not depend on the number of threads. A request
//! that no cache may serve is a miss. What may be served and what counts as a change is decided as in `assay logs` ([`crate::replay`]).
//!
//! Every simulation counts in parts: 20 periods of time, or, for a sample, all of it and several halves of it. From the
//! parts of figures, and of their differences, [`confidence`] computes intervals and bands.
//!
//! Caches that work together ([`cooperate`]) are nodes of a graph, each an LRU store with copies and their lifetimes; `assay` makes the graph from
//! a topology of the lab. The simulation passes the same requests to the graph, to the caches separately, and to all of them as one cache.
//!
//! For a workload, [`workload`] walks the stream of all robots, and gives each request its [`http::RequestSemantics`] (12 bytes more): what
//! kind of request it is, how long its response is fresh, the version of the object, and whether it is counted. [`http`] passes these through
//! the same policies, by the rules of [`assay_cache::ideal`] for each kind; its cache without bounds hits what the ideal one hits, request by
//! request (a property test). Only basic requests are counted, so figures are comparable to those of runs. LRU takes one pass if the cache without bounds never
//! finds an expired copy, and every request stores what it does not find.
//!
//! *Does not:* open a socket, start a proxy, or know what a real proxy's memory holds beside objects.

mod arrivals;
pub mod bounds;
pub mod confidence;
pub mod cooperate;
pub mod cooperation;
mod counter;
pub mod csv;
pub mod curve;
pub mod distance;
pub mod document;
pub mod error;
pub mod form;
pub mod group_by;
pub mod http;
#[cfg(test)]
mod http_testing;
pub mod ids;
pub mod input;
pub mod keys;
mod large;
pub mod layout;
mod numbers;
pub mod policy;
pub mod proof;
mod request;
pub mod requests;
mod response_metadata;
mod result_view;
pub mod sample;
pub mod sample_part;
mod sheet;
pub mod simulate;
pub mod terminal;
pub mod trace;
mod traces;
mod weights;
mod words;
pub mod workload;

pub use sheet::sheet;
