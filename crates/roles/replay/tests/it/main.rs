//! Logs and lists, sent to a server that remembers its requests. What is here has the same result however
//! busy the machine is.

#[path = "../../../../net/http/tests/corpus/change.rs"]
mod change;
#[path = "../../../../net/http/tests/corpus/client.rs"]
mod client;
mod corpus;
#[path = "../../../../net/http/tests/corpus/derived.rs"]
mod derived;
#[path = "../../../../net/http/tests/corpus/ending.rs"]
mod ending;
#[path = "../../../../net/http/tests/corpus/format.rs"]
mod format;
mod harness;
#[path = "../../../../net/http/tests/corpus/reader.rs"]
mod reader;
mod recorder;
mod replaying;
mod secured;
#[path = "../../../../net/http/tests/corpus/seen.rs"]
mod seen;
mod server;
#[path = "../../../../net/http/tests/corpus/strict.rs"]
mod strict;
mod tls_server;
