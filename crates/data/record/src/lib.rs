//! Results of a run on disk: series, tables, documents, and the run directory that holds them.
//!
//! Raw measurements are recorded, and summaries computed late: counts and histograms are stored as `assay-measurement` has them; percentiles are
//! computed from merged histograms only.
//!
//! Tables are Parquet files ([`table`]).
//!
//! *Does not:* draw, judge or print (that is `assay-report`), measure, or touch a socket.

pub mod caches;
mod checksums;
pub mod cluster;
pub mod cluster_parts;
mod columns;
pub mod dir;
pub mod event;
pub mod experiment;
mod file;
pub mod layout;
pub mod merge;
pub mod missing;
pub mod part;
mod partial_read;
pub mod peak;
pub mod run;
pub mod series;
pub mod sheet;
pub mod spe;
pub mod table;
pub mod xact_log;

pub use partial_read::PartialRead;
