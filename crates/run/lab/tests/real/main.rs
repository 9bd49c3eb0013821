//! Runs and proxies that are started end as they must, and real proxies do what is written of them. Needs the six proxies, each of whose tests is
//! skipped where it is not installed, and a machine that is not too busy.

mod behaviour;
mod corpus;
mod corpus_at_random;
mod corpus_http2;
mod corpus_responses;
#[path = "../it/examples.rs"]
mod examples;
mod origin;
mod proxies;
mod runs;
#[path = "../../src/testing.rs"]
mod testing;
#[path = "../it/translated.rs"]
mod translated;

// The shared test workloads name it as the crate itself does.
use assay_lab::{mode, plan};
