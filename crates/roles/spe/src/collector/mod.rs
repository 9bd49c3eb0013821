//! The Collector: one trip to the origin serves many proxies, each of which believes that it made the trip itself.
//!
//! The *Collector* stands where the origins would be. A request comes in through a *listener* ([`server`], [`client`]), one for
//! each proxy and one for the Multiplier; it is read ([`client_request`]), its URL normalised ([`url`]), and the recordings under
//! its key are searched ([`recording_store`], [`choice`]). [`lru_store`] decides which are evicted, and
//! [`lost`] notes the responses that a proxy can no longer be given. Either one of them is replayed at its pace ([`replay`]), or a fetch ([`fetch`])
//! begins a new one ([`recording`]): the head as others get it ([`response`]), and the body with the time of each part
//! ([`timeline`]). What memory has no room for may go to files ([`disk`]). CONNECT is relayed unseen ([`tunnel`]). Requests from
//! tunnels that the Multiplier intercepts go to their origins over TLS ([`tunnel_tls`]).
//!
//! *Pure:* [`url`], [`client_request`], [`response`], [`timeline`], [`choice`], [`lru_store`], [`lost`].
//!
//! # The Collector
//!
//! Its listeners have the numbers of the evaluation's targets; listener `direct` is the Multiplier's. The recording for a request
//! is a pure function (`spe::collector::choice`) of the recordings with its key: their age, whether the listener has received them, and
//! their progress. A recording's offsets count from the request that caused it, and every response, including the first one, is replayed from
//! them with absolute due instants (`request + offset`) on `net::timer`. Only complete or growing bodies that are kept can be joined; an
//! evicted body continues to serve the requests that have joined it. Only the freshness of a recording uses the wall clock.
//!
//! The Multiplier numbers each request (`X-Assay-Request`, `spe::number`); the Collector records to which requests a recording was given,
//! and serves a proxy's request with the response to the client's request of that number, in whatever order proxies send requests. Without a
//! number (if a proxy makes a fetch by itself, or drops unknown fields) the order decides. Fetches in progress, and a client's own response
//! that a listener has yet to request, are *held* (`collector::lru_store`): they are evicted only after 10 s, and if there is no other room, new
//! responses are not kept. Every eviction is recorded (`collector::lost`). A proxy that requests an evicted response gets, with
//! `X-Assay-Lost: NUMBER-DIGEST`, a new response from the origin if caches may store it, else a 503 without a request to the origin. If a response
//! with that mark differs, its outcome in the Multiplier is `NOT_KEPT`. Neither field reaches an origin or a client.

mod choice;
mod client;
mod client_request;
mod disk;
mod error;
mod fetch;
mod log;
mod lost;
mod lru_store;
mod recording;
mod recording_store;
mod replay;
mod response;
mod role;
mod server;
mod shared;
mod timeline;
mod tunnel;
mod tunnel_tls;
mod url;

pub use self::client_request::NAME;
pub use self::error::CollectorError;
pub use self::role::run;
pub use self::server::Collector;
/// The label of requests through the listener of the Multiplier.
pub use assay_record::spe::DIRECT;
