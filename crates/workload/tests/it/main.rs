//! What the crate promises to those who use it.

mod closed;
mod digests;
mod explanations;
mod fixtures;
mod objects;
mod paths;
mod rehearsals;
mod streams;
mod timelines;
