//! Says what a run was worth: as a document ([`summary`]), in a terminal ([`terminal`]) and as one offline
//! HTML page ([`html`]).
//!
//! Takes numbers along in the forms of others ([`export`]).
//! Makes pages of numbers that others have ([`sheet`]), such as where the limit of a target was found to be ([`peak`]).
//!
//! Reads the run directory and nothing else. Percentiles are taken from merged histograms only. The elements of pages
//! ([`chart`], [`page`], [`mod@format`]) and the sums that they are made of ([`tally`], [`steps`]) are there for reports that are
//! made elsewhere, too.
//!
//! *Does not:* compare runs (that is `assay-compare`), report what is no run (that is `assay-review`), measure, or decide whether a run is valid beyond what the directory says and shows.

mod adapted;
mod bed;
pub mod cache_logs;
pub mod calendar;
pub mod chart;
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
