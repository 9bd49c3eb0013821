//! Assay's own intermediary: the built-in caching proxy.
//!
//! A shared cache after RFC 9111 in front of origins, reverse and forward, HTTP/1.0 and 1.1: freshness,
//! validation, `Age`, `Cache-Status` (RFC 9211), invalidation, collapsed fetches, a memory store with an
//! exact LRU bound in bytes. It is what `assay run` measures when nothing else is named, and the yardstick
//! that real proxies are read against.
//!
//! *Does not:* know robots, workloads or results; it is a proxy like any other.

pub mod spec;
