//! The Collector: one trip to the origin serves many proxies, each of which believes that it made the trip itself.
//!
//! The *Collector* stands where the origins would be. A request comes in through a *door* ([`server`], [`client`]), one for
//! each proxy and one for the Multiplier; it is read ([`ask`]), its URL normalised ([`url`]), and the recordings under its
//! key are looked through ([`shelf`], [`choice`]). Which of them go when room is needed says [`stock`], and what a proxy can no
//! longer be given for it is noted in [`lost`]. Either one of them is replayed at its pace ([`play`]), or a fetch
//! ([`fetch`]) begins a new one ([`recording`]): the head as others get it ([`answer`]), and the body with the time of
//! each part ([`timeline`]). What memory has no room for may go to files ([`disk`]). CONNECT goes through unseen ([`tunnel`]).
//!
//! *Pure:* [`url`], [`ask`], [`answer`], [`timeline`], [`choice`], [`stock`], [`lost`].

mod answer;
mod ask;
mod choice;
mod client;
mod disk;
mod error;
mod fetch;
mod lost;
mod play;
mod recording;
mod role;
mod server;
mod shared;
mod shelf;
mod stock;
mod timeline;
mod tunnel;
mod url;

pub use self::ask::NAME;
pub use self::error::CollectorError;
pub use self::role::run;
pub use self::server::Collector;
pub use self::shared::{DoorCounters, Totals};
/// Who comes in through the door of the Multiplier.
pub use assay_record::spe::DIRECT;
