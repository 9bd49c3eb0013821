//! Says what a run was worth: as a document ([`summary`]), in a terminal ([`terminal`]) and as one offline
//! HTML page ([`html`]). And which subject of an experiment did better, in the same forms ([`compare`]).
//!
//! And what an evaluation of proxies on live traffic says ([`spe`]). Takes numbers along in the forms of others ([`export`]).
//! Makes pages of numbers that others have ([`sheet`]), such as where the limit of a target was found to be ([`peak`]).
//!
//! Reads the run directory and nothing else. Percentiles are taken from merged histograms only.
//!
//! *Does not:* measure, or decide whether a run is valid beyond what the directory says and shows.

mod adapted;
mod bed;
mod cache_logs;
pub mod calendar;
mod chart;
pub mod compare;
mod document;
mod error;
pub mod export;
pub mod figure;
mod figures;
mod format;
mod gaps;
mod hierarchy;
mod host;
pub mod html;
mod own;
mod page;
pub mod peak;
pub mod policies;
mod repeat;
pub mod require;
mod resources;
pub mod sheet;
pub mod spe;
mod special;
mod steps;
pub mod summary;
mod tally;
pub mod terminal;
mod words;

pub use error::ReportError;
