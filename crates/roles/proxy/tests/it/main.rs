//! The proxy between a scripted origin and raw clients, in one process and on a clock that stands still. What
//! is here has the same result however busy the machine is.

#[path = "../../../../net/http/tests/corpus/answered.rs"]
mod answered;
mod caching;
#[path = "../../../../net/http/tests/corpus/change.rs"]
mod change;
#[path = "../../../../net/http/tests/corpus/client.rs"]
mod client;
mod collapse;
mod cooperation;
mod corpus;
#[path = "../../../../net/http/tests/corpus/derived.rs"]
mod derived;
#[path = "../../../../net/http/tests/corpus/ending.rs"]
mod ending;
mod failing;
#[path = "../../../../net/http/tests/corpus/format.rs"]
mod format;
mod forward;
mod harness;
#[path = "../../../../net/http/tests/corpus/judge.rs"]
mod judge;
mod leaving;
mod memory;
mod multiplexed;
mod passing;
mod policies;
mod prefetch;
mod protocol;
mod ranges;
#[path = "../../../../net/http/tests/corpus/reader.rs"]
mod reader;
#[path = "../../../../net/http/tests/corpus/recorder.rs"]
mod recorder;
#[path = "../../../../net/http/tests/corpus/response_change.rs"]
mod response_change;
#[path = "../../../../net/http/tests/corpus/response_reader.rs"]
mod response_reader;
#[path = "../../../../net/http/tests/corpus/responses.rs"]
mod responses;
mod role;
#[path = "../../../../net/http/tests/corpus/seen.rs"]
mod seen;
mod settings;
#[path = "../../../../net/http/tests/corpus/strict.rs"]
mod strict;
mod through;
mod validation;
