//! Robots against small servers of the tests' own, within one process.

mod health;
mod pipelines;
mod robots;
mod server;
