//! Robots against small servers of the tests' own, and against real origins, within one process.

#[path = "../../../http/tests/corpus/change.rs"]
mod change;
#[path = "../../../http/tests/corpus/client.rs"]
mod client;
mod corpus;
#[path = "../../../http/tests/corpus/derived.rs"]
mod derived;
#[path = "../../../http/tests/corpus/ending.rs"]
mod ending;
mod expected;
mod faults;
#[path = "../../../http/tests/corpus/format.rs"]
mod format;
mod half_closed;
mod harness;
mod health;
mod http2_server;
mod identities;
mod identity;
mod multiplexed;
mod origins;
mod pipelines;
#[path = "../../../http/tests/corpus/reader.rs"]
mod reader;
mod retiring;
mod robot_run;
mod robots;
#[path = "../../../http/tests/corpus/seen.rs"]
mod seen;
mod server;
mod start;
#[path = "../../../http/tests/corpus/strict.rs"]
mod strict;
mod unread;
