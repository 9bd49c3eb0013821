//! What a shared HTTP cache keeps, for how long, and what it drops first: rules and data structures without
//! I/O.
//!
//! [`storage`] says what may be stored and what drops it (RFC 9111, sections 3 and 4.4), [`freshness`] how
//! long it may be reused (4.2 and 5.2), [`vary`] which requests a stored response serves (4.1), [`conditional`]
//! how conditional requests and 304 responses meet what is stored (4.3). [`lru`] is a store with an exact bound
//! in bytes; [`policy`] has replacement policies over numbered objects, for simulations at many sizes; [`ideal`] is a cache
//! without bounds, which only says what it would have hit.
//!
//! [`http_fields`] reads the fields of a head in these terms: a proxy and a collector that read a directive differently would not be
//! comparable.
//!
//! *Does not:* know a clock, or touch a socket or a file: heads and instants are arguments.

pub mod behaviour;
pub mod conditional;
pub mod freshness;
pub mod http_fields;
pub mod ideal;
pub mod keyed;
pub mod lru;
pub mod policy;
pub mod storage;
pub mod vary;
