//! Measurements of one run in one scope, from which metrics are read.

use crate::document::{CacheSources, Figures};
use crate::estimate::FigureEstimate;
use crate::tally::Tally;
use assay_measurement::censored::Censored;

/// A value of a metric.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct MetricValue {
    pub value: f64,
    pub at_least: bool,
    /// Within which values it lies, whatever Assay and the lab did; no upper end: nothing says how much it is.
    pub own: (f64, Option<f64>),
}

impl MetricValue {
    /// One that nothing of Assay's can have touched.
    pub fn exact(value: f64) -> Self {
        Self { value, at_least: false, own: (value, Some(value)) }
    }

    pub fn at_least(value: f64) -> Self {
        Self { at_least: true, ..Self::exact(value) }
    }

    /// Estimate in another unit; none: it is not known.
    pub fn from_estimate(estimate: Option<FigureEstimate>, scale: f64) -> Option<Self> {
        let estimate = estimate?.map(|value| value * scale);
        let low = estimate.own.low?;
        Some(Self { value: estimate.value, at_least: estimate.is_at_least(), own: (low, estimate.own.high) })
    }
}

/// Traffic of the proxy's disk, in bytes per second; none: it was not measured.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct DiskRates {
    pub read: Option<f64>,
    pub written: Option<f64>,
}

impl DiskRates {
    pub fn both(self) -> Option<f64> {
        match (self.read, self.written) {
            (None, None) => None,
            (read, written) => Some(read.unwrap_or(0.0) + written.unwrap_or(0.0)),
        }
    }
}

/// Everything that metrics are read from.
pub struct ScopeMeasurements {
    pub tally: Tally,
    pub figures: Figures,
    /// Response times of all, as long as they had waited where they have no end.
    pub all: Censored,
    /// Mean over seconds of the mean response time of that second: every rate that was met counts alike.
    pub response_by_second_ms: Option<f64>,
    /// The same of the origins' service time.
    pub origin_by_second_ms: Option<f64>,
    pub saturation: Option<MetricValue>,
    pub disk: DiskRates,
    /// Sources of responses to plain GETs over all caches, where several work together.
    pub sources: Option<CacheSources>,
}
