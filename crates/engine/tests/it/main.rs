//! Robots against small servers of the tests' own, and against real origins, within one process.

mod health;
mod identity;
mod origins;
mod pipelines;
mod robots;
mod server;
