//! A metric, before it is written in anybody's format.
//!
//! Names follow Prometheus' conventions (`assay_…`, base units, `_total`) and are put together from a stem and a unit, so that
//! OpenTelemetry's name and unit come from the same parts.

use std::borrow::Cow;

/// Type of a metric.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Grows only.
    Counter,
    /// Goes up and down.
    Gauge,
    /// Many values, by how large they are.
    Histogram,
}

/// Unit of a metric.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unit {
    None,
    Seconds,
    Bytes,
    Ratio,
}

impl Unit {
    /// The ending of a name, without its underscore.
    pub fn suffix(self) -> Option<&'static str> {
        match self {
            Unit::None => None,
            Unit::Seconds => Some("seconds"),
            Unit::Bytes => Some("bytes"),
            Unit::Ratio => Some("ratio"),
        }
    }

    /// The unit in the Unified Code for Units of Measure, as OpenTelemetry has it.
    pub fn ucum(self) -> &'static str {
        match self {
            Unit::None => "{count}",
            Unit::Seconds => "s",
            Unit::Bytes => "By",
            Unit::Ratio => "1",
        }
    }
}

/// Times by how long they are, as whoever counts them keeps them.
pub trait Histogram {
    /// (upper bound in seconds, how many are up to it), ascending; without the last bound, which is infinite.
    fn cumulative(&self) -> impl Iterator<Item = (f64, u64)>;

    /// Sum of the times, in seconds.
    fn sum_s(&self) -> f64;

    /// Number of the times.
    fn count(&self) -> u64;
}

/// All series of one name, with histograms of type `H`.
#[derive(Debug, Clone, PartialEq)]
pub struct Family<H> {
    pub kind: Kind,
    /// Name without prefix, unit and `_total`.
    pub stem: &'static str,
    pub unit: Unit,
    /// Meaning, in a sentence.
    pub help: Cow<'static, str>,
    /// One series for each set of labels.
    pub samples: Vec<Sample<H>>,
}

impl<H> Family<H> {
    /// `assay_response_time_seconds`: without the `_total` of counters, as OpenMetrics names families.
    pub fn base_name(&self) -> String {
        match self.unit.suffix() {
            Some(suffix) => format!("assay_{}_{suffix}", self.stem),
            None => format!("assay_{}", self.stem),
        }
    }

    /// `assay_errors_total`: as a query names it.
    pub fn name(&self) -> String {
        let base = self.base_name();
        if self.kind == Kind::Counter { base + "_total" } else { base }
    }
}

/// Names and values of labels.
pub type Labels = Vec<(&'static str, String)>;

/// One series, with a histogram of type `H` if it is one.
#[derive(Debug, Clone, PartialEq)]
pub struct Sample<H> {
    pub labels: Labels,
    pub value: SampleValue<H>,
}

/// A value; of a histogram of type `H`.
#[derive(Debug, Clone, PartialEq)]
pub enum SampleValue<H> {
    /// Of a counter or gauge.
    Number(f64),
    /// Of a counter or gauge that is a whole number, written without a point.
    Count(u64),
    Times(Box<H>),
}
