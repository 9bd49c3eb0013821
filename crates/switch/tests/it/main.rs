//! The switch between servers that the tests make and raw clients.

mod harness;
mod serving;
