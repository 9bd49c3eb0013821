//! Text between people and values: what stands in a settings file (TOML), what is said when it is not what was expected,
//! and how figures are written. Every mistake names its file and line, what was read and what was expected.
//!
//! [`fields`] walks tables and values, [`units`] reads durations, sizes and rates, [`suggest`] finds the name
//! that a misspelt one meant, [`show`] writes counts, numbers and sizes. Experiments and clusters are
//! read with it, each by the crate that knows what its fields mean.
//!
//! *Does not:* open files, know what any field means, or write settings.

pub mod fields;
pub mod show;
pub mod suggest;
pub mod units;

pub use fields::{Fields, Mistake, Source, Value};
