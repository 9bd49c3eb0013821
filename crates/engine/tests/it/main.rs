//! Robots against small servers of the tests' own, within one process.

mod robots;
mod server;
