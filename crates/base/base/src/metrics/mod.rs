//! Metrics as they are shown to those who watch from outside: families of series with names, units and labels ([`Family`]),
//! and Prometheus' text formats of them ([`text`]).
//!
//! *Does not:* count anything, or know which metrics there are: whoever counts keeps its own histograms and shows them through
//! [`Histogram`].

mod family;
pub mod text;

pub use family::{Family, Histogram, Kind, Labels, Sample, SampleValue, Unit};
