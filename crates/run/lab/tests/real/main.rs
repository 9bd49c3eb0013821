//! Runs and proxies that are started end as they must, and real proxies do what is written of them. Needs the six proxies, each of whose tests is
//! skipped where it is not installed, and a machine that is not too busy.

mod behaviour;
#[path = "../../../../net/http/tests/corpus/change.rs"]
mod change;
mod corpus;
mod corpus_at_random;
mod corpus_http2;
mod corpus_responses;
#[allow(dead_code, reason = "what becomes of requests is reported here, not judged")]
#[path = "../../../../net/http/tests/corpus/derived.rs"]
mod derived;
#[path = "../../../../net/http/tests/corpus/ending.rs"]
mod ending;
#[path = "../it/examples.rs"]
mod examples;
#[path = "../../../../net/http/tests/corpus/format.rs"]
mod format;
mod origin;
mod proxies;
#[path = "../../../../net/http/tests/corpus/reader.rs"]
mod reader;
#[path = "../../../../net/http/tests/corpus/recorder.rs"]
mod recorder;
#[path = "../../../../net/http/tests/corpus/responses.rs"]
mod responses;
mod runs;
#[path = "../../../../net/http/tests/corpus/strict.rs"]
mod strict;
#[path = "../../src/testing.rs"]
mod testing;
#[path = "../it/translated.rs"]
mod translated;

// The shared test workloads name it as the crate itself does.
use assay_lab::{mode, plan};
