//! Says what a run was worth: as a document ([`summary`]), in a terminal ([`terminal`]) and as one offline
//! HTML page ([`html`]).
//!
//! Runs are held against each other in [`compare`], what is no single run is reported by [`review`], a run that goes on is shown by
//! [`serve`], and [`archive`] lists and removes results. Numbers are taken along in the forms of others by [`export`]; [`sheet`]
//! makes pages of numbers such as where the limit of a target was found to be ([`peak`]).
//!
//! Reads the run directory and nothing else. Percentiles are taken from merged histograms only. The elements of pages
//! ([`chart`], [`page`], [`mod@format`]) and the sums that they are made of ([`tally`], [`steps`]) are shared by all reports.
//!
//! *Does not:* measure, or decide whether a run is valid beyond what the directory says and shows.

mod adapted;
pub mod archive;
mod bed;
pub mod cache_logs;
pub mod calendar;
pub mod chart;
pub mod compare;
pub mod document;
mod error;
pub mod export;
pub mod figure;
mod figure_words;
pub mod figures;
mod fleet;
pub mod format;
mod gaps;
pub mod headline;
mod hierarchy;
mod host;
pub mod html;
mod influence;
mod left_out;
mod log_agreement;
mod origins_alone;
mod own;
pub mod page;
pub mod peak;
mod percentiles;
pub mod repeat;
pub mod require;
mod resources;
pub mod review;
pub mod serve;
pub mod sheet;
mod special;
mod speed;
pub mod stated;
pub mod steps;
pub mod summary;
pub mod tally;
pub mod terminal;
mod under_load;
mod words;

pub use error::ReportError;
