//! Robots against small servers of the tests' own, and against real origins, within one process.

#[path = "../../../../net/http/tests/corpus/change.rs"]
mod change;
#[path = "../../../../net/http/tests/corpus/client.rs"]
mod client;
mod corpus;
#[path = "../../../../net/http/tests/corpus/derived.rs"]
mod derived;
#[path = "../../../../net/http/tests/corpus/ending.rs"]
mod ending;
mod expected;
mod faults;
#[path = "../../../../net/http/tests/corpus/format.rs"]
mod format;
mod half_closed;
mod harness;
mod health;
mod http2_server;
mod identities;
mod identity;
mod multiplexed;
mod node;
mod origins;
mod pipelines;
#[path = "../../../../net/http/tests/corpus/reader.rs"]
mod reader;
mod replay;
mod retiring;
mod robot_run;
mod robots;
#[path = "../../../../net/http/tests/corpus/seen.rs"]
mod seen;
mod server;
mod start;
#[path = "../../../../net/http/tests/corpus/strict.rs"]
mod strict;
mod unread;
