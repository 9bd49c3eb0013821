//! Access logs and lists of URLs, sent again: requests as somebody once made them, put to any address.
//!
//! [`plan`] says who sends what when, and is pure: a log keeps the gaps between its requests and keeps clients apart, in
//! real time, faster or slower; a list of URLs is asked for over connections that arrive at random, from a seed, with
//! several requests each. [`source`] reads logs and lists in a thread of its own, as far ahead as is needed; [`drive()`]
//! sends each request when it is due, whatever became of those before (*open loop*), and [`results`] adds up what came back.
//!
//! *Does not:* check what it gets, follow redirections, run scripts, send bodies, or speak TLS. Nothing here knows what the
//! answers should be: that is for the Multiplier (`assay-spe`), or for a workload of our own objects (`assay-engine`).

pub mod drive;
pub mod error;
mod exchange;
pub mod plan;
mod pool;
pub mod request;
pub mod results;
pub mod source;
mod xacts;

pub use drive::{Options, drive};
pub use error::ReplayError;
pub use results::Results;
pub use source::{List, Log, Source};
