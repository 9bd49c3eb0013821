//! The search for the highest rate at which a target keeps a promise, from steps of which each was kept or broken.
//!
//! [`Search`] says which rate to try next and where the limit lies; [`belief`] is the probability of each place that the
//! limit may have.
//!
//! *Does not:* send a request, measure a step or decide what it showed (that is [`peak`](crate::experiment::peak)).

pub mod belief;
mod search;

pub use search::{Bracket, Range, Search};
