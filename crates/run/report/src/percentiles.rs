//! Distributions of times in the JSON document, each figure with its own error.

use std::collections::BTreeMap;

use assay_measurement::own_error::OwnInterval;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Times by class.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ByClass {
    /// All that completed, and those that were never sent or timed out: these enter with how long they had waited, since
    /// they would have taken at least as long. `at_least` names the figures that they leave open.
    pub all: Percentiles,
    /// All that completed.
    pub completed: Percentiles,
    /// Of these, those whose outcome is hit, basic or not.
    pub hit: Percentiles,
    /// Of these, those whose outcome is miss, basic or not.
    pub miss: Percentiles,
    /// Of these, all others: collapsed, revalidated, and those of which nothing tells the outcome.
    pub other: Percentiles,
}

/// A distribution of times, in milliseconds; null: no values.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Percentiles {
    /// Number of values.
    pub count: u64,
    /// Mean.
    pub mean: Option<f64>,
    /// Median.
    pub p50: Option<f64>,
    /// 90 % are not longer.
    pub p90: Option<f64>,
    /// 99 % are not longer.
    pub p99: Option<f64>,
    /// 99.9 % are not longer.
    pub p999: Option<f64>,
    /// The longest.
    pub max: Option<f64>,
    /// Names of those of the figures above that are lower bounds: requests without an end could have raised them. Left out
    /// where all are known.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub at_least: Vec<String>,
    /// The own error of each figure, by its name: within which interval it lies, whatever Assay and the lab did. A figure of
    /// which nothing is known is null above.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub own: BTreeMap<String, OwnInterval>,
}

/// A figure that may be no more than a lower bound, or known only roughly.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct BoundedFigure {
    /// Value; none: it is not known.
    pub value: Option<f64>,
    /// The value is a lower bound.
    pub at_least: bool,
    /// Within which interval it lies, whatever Assay and the lab did; none: that was not recorded.
    pub own: Option<OwnInterval>,
}

impl Percentiles {
    /// The figure of this name; none: no values, or no such name.
    pub fn figure(&self, name: &str) -> Option<BoundedFigure> {
        let value = match name {
            "mean" => self.mean,
            "p50" => self.p50,
            "p90" => self.p90,
            "p99" => self.p99,
            "p999" => self.p999,
            "max" => self.max,
            _ => None,
        };
        let own = self.own.get(name).copied();
        let at_least = self.at_least.iter().any(|open| open == name);
        (value.is_some() || own.is_some()).then_some(BoundedFigure { value, at_least, own })
    }
}
