//! Robots and origins do in time what they are to do in time, and a checker of servers finds nothing wrong. Needs h2spec (else that is
//! skipped), and a machine that is not too busy.

mod checked;
#[path = "../it/harness.rs"]
mod harness;
mod health;
#[path = "../it/identified.rs"]
mod identified;
mod identity;
#[path = "../it/origins.rs"]
mod origins;
mod pipelines;
#[path = "../it/right.rs"]
mod right;
mod robots;
mod server;
mod waits;
