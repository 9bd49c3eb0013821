//! Reports: a run as a document ([`summary`]), in a terminal ([`terminal`]) and as one offline HTML page ([`html`]).
//!
//! [`compare`] compares runs; [`policies`], [`spe`] and [`conform`] report balancing policies, evaluations and conformance;
//! [`serve`] shows a run that goes on; [`archive`] lists and removes results. [`export`] writes numbers in the formats of other
//! tools; [`sheet`] makes pages of other numbers, such as those of a search for the limit of a target ([`peak`]).
//!
//! Reads the run directory and nothing else. Percentiles are taken from merged histograms only. The elements of pages
//! ([`chart`], [`page`], [`mod@format`]) and the sums that they are made of ([`tally`], [`steps`]) are shared by all reports.
//!
//! *Does not:* measure, or decide whether a run is valid beyond what the directory says and shows.

mod adapted;
pub mod archive;
pub mod cache_logs;
pub mod calendar;
pub mod chart;
pub mod compare;
pub mod conform;
mod disturbance;
pub mod document;
mod error;
pub mod estimate;
pub mod export;
mod failed_requests;
pub mod figure;
mod figure_text;
pub mod figures;
mod fleet;
pub mod format;
mod gaps;
pub mod headline;
mod hierarchy;
mod host;
pub mod html;
mod log_agreement;
mod network;
mod origins_only;
mod own;
pub mod page;
pub mod peak;
mod percentiles;
pub mod policies;
pub mod repeat;
pub mod require;
mod resources;
pub mod serve;
pub mod sheet;
pub mod spe;
mod special;
mod speed;
pub mod steps;
pub mod summary;
pub mod tally;
pub mod terminal;
mod text;
mod under_load;

pub use error::ReportError;
