//! Measurements: counters and histograms of one second ([`interval`]), what an xact was, what a machine and a process did meanwhile, and
//! what may be wrong with a figure because of it; and what is believed of a limit that is searched for ([`belief`]).
//!
//! Raw values are recorded, summaries are made late: percentiles are computed from merged histograms only ([`histogram::Histogram`]).
//!
//! *Does not:* store anything (that is `assay-record`), measure, judge, or touch a socket, file or clock.

pub mod adapted;
pub mod belief;
pub mod censored;
pub mod counts;
pub mod declared;
pub mod doubt;
pub mod error_kind;
pub mod hdr_log;
pub mod health;
pub mod histogram;
pub mod interval;
pub mod machine;
pub mod measured;
pub mod nodes;
pub mod outcome;
pub mod own_error;
pub mod planned_fault;
pub mod ratios;
pub mod response_error;
pub mod robot_times;
pub mod times;
mod validations;
pub mod waits;
pub mod xact;
