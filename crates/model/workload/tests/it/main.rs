//! What the crate promises to those who use it.

mod adaptive;
mod arrivals;
mod bodies;
mod chance;
mod closed;
mod digests;
mod explanations;
mod fixtures;
mod objects;
mod overrides;
mod paths;
mod rehearsals;
mod scripts;
mod sessions;
mod statistics;
mod streams;
mod timelines;
mod traces;
mod users;
mod validation;
mod xacts;
