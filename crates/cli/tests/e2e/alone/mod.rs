//! Runs that are judged by their times: each has the machine to itself, and `make test` runs nothing else meanwhile.

mod hierarchy;
mod honest;
pub mod links;
mod slow;
