//! The lab against real programs: the proxies that are described, and roles that misbehave.

mod behaviour;
mod corpus;
mod corpus_responses;
#[path = "../../../http/tests/corpus/ending.rs"]
mod ending;
#[path = "../../../http/tests/corpus/format.rs"]
mod format;
mod killed;
mod origin;
mod proxies;
#[path = "../../../http/tests/corpus/recorder.rs"]
mod recorder;
mod reference;
#[path = "../../../http/tests/corpus/responses.rs"]
mod responses;
mod runs;
#[path = "../../../http/tests/corpus/strict.rs"]
mod strict;
#[path = "../../src/testing.rs"]
mod testing;

// The shared test workloads name it as the crate itself does.
use assay_lab::{mode, plan};
