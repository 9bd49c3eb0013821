//! Robots and origins do in time what they are to do in time, and a checker of servers finds nothing wrong. Needs h2spec (else that is
//! skipped), and a machine that is not too busy.

mod checked;
#[path = "../it/expected.rs"]
mod expected;
#[path = "../it/harness.rs"]
mod harness;
mod health;
#[path = "../it/identities.rs"]
mod identities;
mod identity;
mod multiplexed;
mod node;
#[path = "../it/origins.rs"]
mod origins;
mod pipelines;
mod replay;
mod robots;
mod server;
mod waits;
