//! Rules and data structures of a shared HTTP cache, without I/O.
//!
//! Rules of RFC 9111: [`storage`] decides which responses may be stored and when they are invalidated (3 and 4.4), [`freshness`] how long
//! they may be reused (4.2 and 5.2), [`vary`] for which requests (4.1), [`conditional`] how conditional requests and 304 responses
//! are evaluated against them (4.3). [`http_fields`] reads the fields of a head in these terms.
//!
//! Stores: [`lru`] and [`keyed_store`] have an exact bound in bytes; [`policy`] has replacement policies over numbered objects, for
//! simulations at many sizes; [`ideal`] is a cache without bounds, which only counts what it would have hit.
//!
//! *Does not:* know a clock, or touch a socket or a file: heads and instants are arguments.

pub mod behaviour;
pub mod conditional;
pub mod freshness;
pub mod http_fields;
pub mod ideal;
pub mod keyed_store;
pub mod lru;
pub mod policy;
pub mod storage;
pub mod vary;
