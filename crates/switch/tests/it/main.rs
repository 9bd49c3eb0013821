//! The switch between servers that the tests make and raw clients. What is here has the same result however
//! busy the machine is.

#[path = "../../../http/tests/corpus/answered.rs"]
mod answered;
mod bodies;
mod certificates;
#[path = "../../../http/tests/corpus/change.rs"]
mod change;
#[path = "../../../http/tests/corpus/client.rs"]
mod client;
mod corpus;
#[path = "../../../http/tests/corpus/derived.rs"]
mod derived;
#[path = "../../../http/tests/corpus/ending.rs"]
mod ending;
mod failing;
#[path = "../../../http/tests/corpus/format.rs"]
mod format;
mod harness;
#[path = "../../../http/tests/corpus/judge.rs"]
mod judge;
mod layer4;
mod layer4_peers;
mod leaving;
mod limits;
#[path = "../../../http/tests/corpus/reader.rs"]
mod reader;
#[path = "../../../http/tests/corpus/recorder.rs"]
mod recorder;
mod reloading;
#[path = "../../../http/tests/corpus/response_change.rs"]
mod response_change;
#[path = "../../../http/tests/corpus/response_reader.rs"]
mod response_reader;
#[path = "../../../http/tests/corpus/responses.rs"]
mod responses;
mod secured;
#[path = "../../../http/tests/corpus/seen.rs"]
mod seen;
mod serving;
mod slow;
#[path = "../../../http/tests/corpus/strict.rs"]
mod strict;
mod upgrade_server;
mod upgrading;
mod watching;
