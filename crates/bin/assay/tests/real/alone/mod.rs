//! Runs that are judged by their times, beside which nothing else runs (`.config/nextest.toml`).

mod honest;
pub mod links;
mod slow;
