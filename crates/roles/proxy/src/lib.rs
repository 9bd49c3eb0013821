//! Assay's own intermediary: the built-in caching proxy.
//!
//! A shared cache after RFC 9111 in front of origins, reverse and forward, HTTP/1.0 and 1.1: freshness,
//! validation, `Age`, `Cache-Status` (RFC 9211), invalidation, collapsed fetches, a memory store with an
//! exact LRU bound in bytes. It is what `assay run` measures when nothing else is named, and the yardstick
//! that real proxies are read against.
//!
//! What it does where the standard leaves a choice:
//!
//! - A response that does not say how long it is fresh is confirmed by its origin each time; no heuristics.
//! - A HEAD that cannot be served from the store is forwarded as HEAD and stores nothing.
//! - A conditional GET that cannot be served from the store is fetched without its condition and stored;
//!   then the condition is evaluated. Requests with conditions on changing (`If-Match`, `If-Unmodified-Since`) go
//!   through without being stored.
//! - So is a GET for parts (`Range`): the whole object is fetched and stored, and the parts are sent out of it, from the
//!   store or while it arrives. What may not be stored, or is too large for it, is requested again, in parts this
//!   time, and goes through; as long as it is known to be so, at once. All of it is sent where its length is not known
//!   in advance, where it is coded, and where the parts together are more than all of it.
//! - A reload (`no-cache`) is always fetched, and its response replaces what is stored.
//! - POST, and every method that is not known to be safe, goes through; when it succeeds it drops what is
//!   stored under its URL, and what is being fetched under it at the time is not stored.
//! - Interim responses (102, 103 and others, but not 100) reach every client that waits for the final one, on every path.
//! - A response whose `Connection` names a field that a cache minds (`Cache-Control`, `Vary`) is not stored: the field goes no
//!   further, and what would be kept lacks it.
//! - Requests for what is being fetched join that fetch, if its response turns out to be fresh and shared; if
//!   not, each goes on alone. If the fetch fails at once, one of them leads a second one; if that fails, or the first took too
//!   long, all waiting requests get the same error.
//! - When an origin fails (no response, or 500, 502, 503, 504) and a stale response is stored, that is sent as long as the
//!   response or the request (`stale-if-error`, RFC 5861) or the configuration allows it, and nothing forbids it.
//! - A fetch goes on when its client goes away, if its response is being stored.
//! - Before it fetches an object, it may query siblings and parents by ICP, and then fetch from the first that has
//!   it, else from the first parent that responded, else from the origin. Requests to a sibling carry `only-if-cached`; one
//!   that said hit and has nothing (504) is passed over. Parents without ICP share objects among them by URL. What is
//!   stale, a reload, and whatever goes through, is the origin's own business, or may be with parents.
//! - On demand ([`crate::spec::Prefetch`]) it reads the pages that it stores while they arrive, and fetches what they are
//!   shown with, and the pages that they lead to if that is wanted: in reverse from the page's host and others that it knows, in
//!   forward from all; without cookies, within bounds. What may not be shared is not kept, and what a prefetched page names is
//!   not followed.
//! - An object of more than a quarter of the memory is not stored. Bytes that arrive for the store count
//!   towards its bound; bytes that are still being sent after they were dropped from it do not.
//!
//! # Three paths through the proxy
//!
//! *Stored*: one vectored write of the stored response. *Fetched*: a separate task sends the request to the origin, decides on storing when
//! the head has arrived, and lets all waiting clients read the body at their own pace (`proxy::fetch`, `net::shared_body`). *Uncached*: a response
//! that cannot be shared, because the request forbids it or the last response with its key could not be shared, is handled in the client's own
//! task: one parse, the head rewritten into one buffer with the first part of the body, the rest read by read (`proxy::uncached`). If it turns
//! out that the response may be stored, it becomes a fetch immediately; the client's view and the counts are the same. Deadlines are numbers in
//! cells, checked twenty times a second (`net::deadlines`), not timers.
//!
//! *Does not:* know robots, workloads or results; it is a proxy like any other. No tunnels, no
//! trailers, no disk.

mod access_log;
mod bypass;
mod cache_status;
mod client;
mod client_request;
mod error;
mod fetch;
mod fetched;
mod origin;
mod peers;
mod prefetch;
mod ranges;
mod respond;
mod response;
mod role;
mod server;
mod shared;
pub mod spec;
mod store;
mod target;
mod uncached;
mod upstream_route;

pub use error::ProxyError;
pub use role::run;
pub use server::Proxy;
pub use shared::{Clock, ProxyLimits};
