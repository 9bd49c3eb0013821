//! Robots against small servers of the tests' own, within one process.

mod pipelines;
mod robots;
mod server;
