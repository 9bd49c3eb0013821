//! The switch between servers that the tests make and raw clients. What is here has the same result however
//! busy the machine is.

#[path = "../../../../net/http/tests/corpus/answered.rs"]
mod answered;
mod bodies;
mod certificates;
#[path = "../../../../net/http/tests/corpus/change.rs"]
mod change;
#[path = "../../../../net/http/tests/corpus/client.rs"]
mod client;
mod corpus;
#[path = "../../../../net/http/tests/corpus/derived.rs"]
mod derived;
#[path = "../../../../net/http/tests/corpus/ending.rs"]
mod ending;
mod failing;
#[path = "../../../../net/http/tests/corpus/format.rs"]
mod format;
mod harness;
#[path = "../../../../net/http/tests/corpus/judge.rs"]
mod judge;
mod layer4;
mod layer4_peers;
mod leaving;
mod limits;
#[path = "../../../../net/http/tests/corpus/reader.rs"]
mod reader;
#[path = "../../../../net/http/tests/corpus/recorder.rs"]
mod recorder;
mod reloading;
#[path = "../../../../net/http/tests/corpus/response_change.rs"]
mod response_change;
#[path = "../../../../net/http/tests/corpus/response_reader.rs"]
mod response_reader;
#[path = "../../../../net/http/tests/corpus/responses.rs"]
mod responses;
mod secured;
#[path = "../../../../net/http/tests/corpus/seen.rs"]
mod seen;
mod serving;
mod slow;
#[path = "../../../../net/http/tests/corpus/strict.rs"]
mod strict;
mod upgrade_server;
mod upgrading;
mod watching;
