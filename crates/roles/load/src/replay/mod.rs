//! Access logs and lists of URLs, sent again: requests as clients once sent them, sent to any address.
//!
//! [`plan`] says which client sends what when, and is pure: a log keeps the gaps between its requests and keeps clients apart, in
//! real time, faster or slower; the URLs of a list are requested over connections that arrive at random, from a seed, with
//! several requests each. [`source`] reads logs and lists in a thread of its own, as far ahead as is needed; [`drive()`]
//! sends each request when it is due, whatever became of those before (*open loop*), and [`results`] adds up what came back.
//!
//! Where the origins of a log are not to be had, [`origin`] stands for them: it responds for each URL with the size, status and
//! type that a first pass over the log has found ([`catalogue`]). Then hits are told, and every byte is checked.
//!
//! *Does not:* check what it gets from other origins than its own, follow redirections, run scripts, send bodies, or speak HTTP/2.
//! Nothing here knows what the responses should be: that is for the Multiplier (`assay-spe`), or for robots.

mod cache;
pub mod catalogue;
mod content;
pub mod drive;
pub mod error;
mod exchange;
pub mod filter;
mod options;
pub mod origin;
pub mod own;
pub mod plan;
pub mod request;
pub mod results;
pub mod source;
mod stamp;
mod tls;
mod xacts;

pub use cache::Cache;
pub use catalogue::Catalogue;
pub use drive::drive;
pub use error::ReplayError;
pub use options::Options;
pub use origin::{Listener, Origins, Simulated};
pub use results::Results;
pub use source::{List, Log, Source};
pub use tls::Tls;
