//! The Multiplier and the Collector over real sockets. What is here has the same result however busy the
//! machine is.

mod absolute;
#[path = "../../../../net/http/tests/corpus/answered.rs"]
mod answered;
mod certificate;
#[path = "../../../../net/http/tests/corpus/change.rs"]
mod change;
#[path = "../../../../net/http/tests/corpus/client.rs"]
mod client;
mod collector;
mod collector_fields;
mod collector_harness;
mod collector_pace;
mod corpus;
#[path = "../../../../net/http/tests/corpus/derived.rs"]
mod derived;
#[path = "../../../../net/http/tests/corpus/ending.rs"]
mod ending;
mod evaluation;
mod faults;
#[path = "../../../../net/http/tests/corpus/format.rs"]
mod format;
mod honest;
mod honest_proxy;
#[path = "../../../../net/http/tests/corpus/judge.rs"]
mod judge;
mod multiplier;
mod multiplier_bed;
mod multiplier_faults;
mod opened;
mod pipelining;
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
mod reverse;
mod secured;
#[path = "../../../../net/http/tests/corpus/seen.rs"]
mod seen;
#[path = "../../../../net/http/tests/corpus/strict.rs"]
mod strict;
mod threads;
mod tunnels;
