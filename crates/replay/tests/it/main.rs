//! Logs and lists, sent to a server that remembers its requests. What is here has the same result however
//! busy the machine is.

#[path = "../../../http/tests/corpus/change.rs"]
mod change;
#[path = "../../../http/tests/corpus/client.rs"]
mod client;
mod corpus;
#[path = "../../../http/tests/corpus/derived.rs"]
mod derived;
#[path = "../../../http/tests/corpus/ending.rs"]
mod ending;
#[path = "../../../http/tests/corpus/format.rs"]
mod format;
mod harness;
#[path = "../../../http/tests/corpus/reader.rs"]
mod reader;
mod recorder;
mod replaying;
mod secured;
#[path = "../../../http/tests/corpus/seen.rs"]
mod seen;
mod server;
#[path = "../../../http/tests/corpus/strict.rs"]
mod strict;
mod tls_server;
