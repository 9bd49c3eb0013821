//! The Collector: one trip to the origin serves many proxies, each of which believes that it made the trip itself.
//!
//! The *Collector* stands where the origins would be. A request comes in through a *listener* ([`server`], [`client`]), one for
//! each proxy and one for the Multiplier; it is read ([`client_request`]), its URL normalised ([`url`]), and the recordings under
//! its key are looked through ([`shelf`], [`choice`]). Which of them go when room is needed says [`stock`], and what a proxy can
//! no longer be given for it is noted in [`lost`]. Either one of them is replayed at its pace ([`play`]), or a fetch ([`fetch`])
//! begins a new one ([`recording`]): the head as others get it ([`response`]), and the body with the time of each part
//! ([`timeline`]). What memory has no room for may go to files ([`disk`]). CONNECT goes through unseen ([`tunnel`]). Requests from
//! tunnels that the Multiplier has opened go to their origins over TLS ([`secured`]).
//!
//! *Pure:* [`url`], [`client_request`], [`response`], [`timeline`], [`choice`], [`stock`], [`lost`].

mod choice;
mod client;
mod client_request;
mod disk;
mod error;
mod fetch;
mod log;
mod lost;
mod play;
mod recording;
mod response;
mod role;
mod secured;
mod server;
mod shared;
mod shelf;
mod stock;
mod timeline;
mod tunnel;
mod url;

pub use self::client_request::NAME;
pub use self::error::CollectorError;
pub use self::role::run;
pub use self::server::Collector;
/// The label of requests through the listener of the Multiplier.
pub use assay_record::spe::DIRECT;
