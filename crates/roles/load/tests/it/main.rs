//! Robots against small servers of the tests' own, and against real origins, within one process.

mod corpus;
mod expected;
mod faults;
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
mod replay;
mod retiring;
mod robot_run;
mod robots;
mod server;
mod start;
mod unread;
