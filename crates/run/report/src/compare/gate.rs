//! Tolerances, as they are written, and the result of checking them.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::metric::{self, ComparedMetric, Direction, MetricUnit};

/// Short names of metrics.
const SHORT: [(&str, &str); 16] = [
    ("throughput", "throughput_per_s"),
    ("mean", "response_mean_ms"),
    ("p50", "response_p50_ms"),
    ("p95", "response_p95_ms"),
    ("p99", "response_p99_ms"),
    ("hit_p99", "hit_p99_ms"),
    ("miss_p99", "miss_p99_ms"),
    ("saturation", "saturation_per_s"),
    ("offload", "offload_requests"),
    ("errors", "errors_share"),
    ("content_errors", "content_errors_share"),
    ("caching_errors", "caching_errors_share"),
    ("unsent", "unsent_share"),
    ("cpu", "cpu_us_per_request"),
    ("memory", "rss_peak_bytes"),
    ("disk", "disk_bytes_per_s"),
];

/// How much worse something may be.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Tolerance {
    /// Name of the metric; null: all headline metrics and errors, but for those that are named.
    pub metric: Option<String>,
    /// The amount.
    pub amount: Amount,
}

/// How much.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Amount {
    /// Of the first subject's level.
    Relative(f64),
    /// In the metric's own unit; for shares, a share.
    Absolute(f64),
}

/// Error in the text of a tolerance.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ToleranceError {
    /// Neither a share, nor a metric with an amount.
    #[error(
        "cannot read the tolerance `{0}`; write a share of the baseline (`5%`), for one metric `p99=10%`, or an amount in its unit: `p99=2ms`, `dhr=1pt` (points), `throughput=50/s`"
    )]
    Form(String),
    /// No metric is called so.
    #[error("no metric is called `{0}`; there are {1}")]
    Metric(String, String),
    /// The metric explains others and has no good direction.
    #[error("`{0}` explains other metrics: more of it is neither better nor worse")]
    Direction(String),
    /// The amount has no unit.
    #[error("an amount of `{0}` needs its unit; give a share of the baseline (`5%`), or {1}")]
    NoUnit(String, String),
    /// The amount's unit is not that of the metric.
    #[error("`{0}` is not measured in `{1}`; give a share of the baseline (`5%`), or {2}")]
    Unit(String, String, String),
}

impl std::str::FromStr for Tolerance {
    type Err = ToleranceError;

    fn from_str(text: &str) -> Result<Self, ToleranceError> {
        let (name, amount) = match text.split_once('=') {
            Some((name, amount)) => (Some(name.trim()), amount.trim()),
            None => (None, text.trim()),
        };
        let digits = amount.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(amount.len());
        let (number, unit) =
            (amount[..digits].parse::<f64>().ok().filter(|n| n.is_finite()), amount[digits..].trim());
        let Some(number) = number else { return Err(ToleranceError::Form(text.to_owned())) };
        let metric = name.map(find).transpose()?;
        let amount = match (unit, metric) {
            ("%", _) => Amount::Relative(number / 100.0),
            (unit, Some(metric)) => absolute(metric, number, unit)?,
            _ => return Err(ToleranceError::Form(text.to_owned())),
        };
        Ok(Self { metric: metric.map(|metric| metric.key.to_owned()), amount })
    }
}

fn find(name: &str) -> Result<&'static ComparedMetric, ToleranceError> {
    let key = SHORT.iter().find(|short| short.0 == name).map_or(name, |short| short.1);
    let metric = metric::named(key).ok_or_else(|| {
        let short: Vec<&str> = SHORT.iter().map(|short| short.0).collect();
        let all: Vec<&str> = metric::all()
            .filter(|metric| metric.better != Direction::Neither)
            .map(|metric| metric.key)
            .collect();
        ToleranceError::Metric(
            name.to_owned(),
            format!("{} (for short) and {}", short.join(", "), all.join(", ")),
        )
    })?;
    match metric.better {
        Direction::Neither => Err(ToleranceError::Direction(name.to_owned())),
        _ => Ok(metric),
    }
}

fn absolute(metric: &ComparedMetric, number: f64, unit: &str) -> Result<Amount, ToleranceError> {
    let units: &[(&str, f64)] = match metric.unit {
        MetricUnit::Milliseconds => &[("ms", 1.0), ("s", 1000.0), ("us", 0.001), ("µs", 0.001)],
        MetricUnit::Microseconds => &[("us", 1.0), ("µs", 1.0), ("ms", 1000.0)],
        MetricUnit::PerSecond => &[("/s", 1.0)],
        MetricUnit::Share => &[("pt", 0.01)],
        MetricUnit::Bytes => &[("MB", 1_048_576.0), ("KB", 1024.0), ("GB", 1_073_741_824.0)],
        MetricUnit::BytesPerSecond => &[("MB/s", 1_048_576.0), ("KB/s", 1024.0)],
        MetricUnit::Processors => &[],
    };
    match units.iter().find(|known| known.0 == unit) {
        Some((_, scale)) => Ok(Amount::Absolute(number * scale)),
        None => {
            let known: Vec<&str> = units.iter().map(|known| known.0).collect();
            let known = if known.is_empty() { "nothing else".to_owned() } else { known.join(", ") };
            Err(match unit {
                "" => ToleranceError::NoUnit(metric.key.to_owned(), known),
                unit => ToleranceError::Unit(metric.key.to_owned(), unit.to_owned(), known),
            })
        }
    }
}

/// What came of holding tolerances against a comparison.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Gate {
    /// The tolerances.
    pub tolerances: Vec<Tolerance>,
    /// All in all.
    pub outcome: GateOutcome,
    /// Why that, in a sentence.
    pub why: String,
    /// Every difference that was held against a tolerance, in the stretches that subjects are judged by.
    pub checks: Vec<GateCheck>,
}

/// What came of it, all in all. The first that applies.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(rename = "Outcome")]
pub enum GateOutcome {
    /// Numbers of runs are not known, because of Assay or the lab or because the runs cannot be read: they are no gate.
    Invalid,
    /// Something that should be compared could not be.
    #[default]
    NotCompared,
    /// Something is worse by more than its tolerance.
    Regressed,
    /// Nothing is.
    Held,
}

/// One difference and its tolerance.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Check")]
pub struct GateCheck {
    /// Workload.
    pub workload: String,
    /// Condition.
    pub condition: String,
    /// Phase, or `whole run`.
    pub scope: String,
    /// Name of the metric, with its unit.
    pub metric: String,
    /// What it is called.
    pub title: String,
    /// Who is held against the tolerance.
    pub subject: String,
    /// Against whom.
    pub base: String,
    /// How much worse it may be, in the metric's unit.
    pub allowed: f64,
    /// How much worse it is (negative: better); null: not compared.
    pub worse_by: Option<f64>,
    /// The 95 % interval of that; null: there are too few runs for one.
    pub interval: Option<(f64, f64)>,
    /// What came of it.
    pub outcome: CheckOutcome,
}

/// What came of one tolerance.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum CheckOutcome {
    /// Worse by more than the tolerance: the whole interval lies beyond it or, without one, the difference does.
    Regressed,
    /// Within the tolerance: the whole interval is or, without one, the difference.
    Held,
    /// The interval reaches to both sides of the tolerance, and more runs would tell; or times are lower bounds, and what is
    /// known of them does not say on which side they are.
    NotShown,
    /// There is nothing to compare.
    NotCompared,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tolerance(text: &str) -> Tolerance {
        text.parse().unwrap()
    }

    #[test]
    fn tolerances_are_shares_of_the_baseline_or_amounts_in_the_metrics_unit() {
        assert_eq!(tolerance("5%"), Tolerance { metric: None, amount: Amount::Relative(0.05) });
        let p99 = Some("response_p99_ms".to_owned());
        assert_eq!(tolerance("p99=10 %"), Tolerance { metric: p99.clone(), amount: Amount::Relative(0.1) });
        assert_eq!(
            tolerance("response_p99_ms=2s"),
            Tolerance { metric: p99, amount: Amount::Absolute(2000.0) }
        );
        assert_eq!(tolerance("dhr=1pt").amount, Amount::Absolute(0.01));
        for wrong in ["", "5", "-5%", "p99", "p99=", "5ms", "nothing=5%", "dhr_ideal=1%", "dhr=2ms", "p99=%"]
        {
            let said = wrong.parse::<Tolerance>().unwrap_err().to_string();
            assert!(said.contains('`'), "{wrong}: {said}");
        }
    }
}
