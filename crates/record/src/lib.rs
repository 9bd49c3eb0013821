//! What a run leaves behind: counts, histograms, series and the run directory.
//!
//! Raw is recorded, summaries are made late: this crate stores counts and histograms; percentiles are
//! computed from merged histograms only ([`histogram::Histogram`]).
//!
//! *Does not:* draw, judge or print (that is `assay-report`), measure, or touch a socket.

pub mod adapted;
pub mod caches;
pub mod censored;
mod checksums;
pub mod cluster;
mod columns;
pub mod counts;
pub mod dir;
pub mod doubt;
pub mod error_kind;
pub mod experiment;
pub mod hdr_log;
pub mod health;
pub mod histogram;
pub mod interval;
pub mod layout;
pub mod machine;
pub mod missing;
pub mod outcome;
pub mod peak;
pub mod role;
pub mod run;
pub mod series;
pub mod sheet;
pub mod spe;
mod table;
mod what_is_there;
pub mod xact;
pub mod xact_log;

pub use what_is_there::WhatIsThere;
