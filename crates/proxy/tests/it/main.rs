//! The proxy between a scripted origin and raw clients, in one process and on a clock that stands still. What
//! is here has the same result however busy the machine is.

#[path = "../../../http/tests/corpus/answered.rs"]
mod answered;
mod caching;
#[path = "../../../http/tests/corpus/change.rs"]
mod change;
#[path = "../../../http/tests/corpus/client.rs"]
mod client;
mod collapse;
mod cooperation;
mod corpus;
#[path = "../../../http/tests/corpus/derived.rs"]
mod derived;
#[path = "../../../http/tests/corpus/ending.rs"]
mod ending;
mod failing;
#[path = "../../../http/tests/corpus/format.rs"]
mod format;
mod forward;
mod harness;
#[path = "../../../http/tests/corpus/judge.rs"]
mod judge;
mod leaving;
mod memory;
mod multiplexed;
mod passing;
mod policies;
mod prefetch;
mod protocol;
mod ranges;
#[path = "../../../http/tests/corpus/reader.rs"]
mod reader;
#[path = "../../../http/tests/corpus/recorder.rs"]
mod recorder;
#[path = "../../../http/tests/corpus/response_change.rs"]
mod response_change;
#[path = "../../../http/tests/corpus/response_reader.rs"]
mod response_reader;
#[path = "../../../http/tests/corpus/responses.rs"]
mod responses;
mod role;
#[path = "../../../http/tests/corpus/seen.rs"]
mod seen;
mod settings;
#[path = "../../../http/tests/corpus/strict.rs"]
mod strict;
mod through;
mod validation;
