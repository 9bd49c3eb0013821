//! Predicted hit ratios beside measured ones: of real proxies that a workload was run through.

use schemars::JsonSchema;
use serde::Serialize;

use crate::size::numbers::{points_apart, signed};
use crate::size::policy::Policy;

/// By how many points a prediction may be off before the result says so.
const NEAR_POINTS: f64 = 2.0;

/// Predictions beside measurements.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Proof {
    /// Directory of the experiment.
    pub experiment: String,
    /// Phases whose requests are compared; empty: all of them.
    pub phases: Vec<String>,
    /// A proxy at a size each.
    pub cells: Vec<ProofCell>,
}

/// A proxy at a size.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[schemars(rename = "Cell")]
pub struct ProofCell {
    /// Its name.
    pub proxy: String,
    /// What it was taken to evict by; the built-in proxy does.
    pub policy: Policy,
    /// Size that its store was given.
    pub size_bytes: u64,
    /// What an object was taken to need beside its body.
    pub overhead_bytes: u64,
    /// Objects were taken to need multiples of this.
    pub unit_bytes: u64,
    /// It was taken to fill this share of its size before it evicts, in percent.
    pub filled_percent: u64,
    /// What was predicted: the mean of the repetitions' seeds.
    pub predicted: Ratios,
    /// What was measured: the mean of the repetitions; none: no run ended.
    pub measured: Option<Ratios>,
    /// Lowest and highest document hit ratio measured.
    pub measured_dhr_range: Option<(f64, f64)>,
    /// Runs that ended.
    pub runs: u32,
    /// Runs that were to be made.
    pub repetitions: u32,
}

/// Hit ratios, of 1.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, JsonSchema)]
pub struct Ratios {
    /// Document hit ratio.
    pub dhr: f64,
    /// Byte hit ratio.
    pub bhr: f64,
}

impl Ratios {
    /// The mean of some; none: there are none.
    pub fn mean(all: &[Self]) -> Option<Self> {
        let mean = |of: fn(&Self) -> f64| all.iter().map(of).sum::<f64>() / all.len() as f64;
        (!all.is_empty()).then(|| Self { dhr: mean(|ratios| ratios.dhr), bhr: mean(|ratios| ratios.bhr) })
    }
}

impl ProofCell {
    /// The proxy, and its policy if that is not LRU.
    pub(crate) fn title(&self) -> String {
        match self.policy {
            Policy::LRU => self.proxy.clone(),
            policy => format!("{} {}", self.proxy, policy.name()),
        }
    }

    /// Measured less predicted, in points: of documents and of bytes.
    pub fn difference_points(&self) -> Option<Ratios> {
        let measured = self.measured?;
        let points = |measured: f64, predicted: f64| (measured - predicted) * 100.0;
        Some(Ratios {
            dhr: points(measured.dhr, self.predicted.dhr),
            bhr: points(measured.bhr, self.predicted.bhr),
        })
    }

    /// True if the measured document hit ratio is near the prediction; none: nothing was measured.
    pub fn is_near(&self) -> Option<bool> {
        self.difference_points().map(|points| points.dhr.abs() <= NEAR_POINTS)
    }
}

impl Proof {
    /// Result in a sentence.
    pub fn verdict(&self) -> String {
        let measured: Vec<&ProofCell> = self.cells.iter().filter(|cell| cell.measured.is_some()).collect();
        let near = measured.iter().filter(|cell| cell.is_near() == Some(true)).count();
        let widest =
            |cell: &&&ProofCell| cell.difference_points().map_or(0, |points| (points.dhr.abs() * 1e6) as u64);
        let Some(worst) = measured.iter().max_by_key(widest) else {
            return "No proxy was measured: see the experiment for what failed.".into();
        };
        let apart = worst.difference_points().map_or(0.0, |points| points.dhr);
        format!(
            "{near} of {} measured document hit ratios are within {NEAR_POINTS} points of the prediction; the widest is {} {} than predicted.",
            measured.len(),
            worst.title(),
            points_apart(apart)
        )
    }

    /// Heads and rows of a table.
    pub(crate) fn table(&self) -> (Vec<&'static str>, Vec<Vec<String>>) {
        let heads = vec!["DHR predicted", "measured", "points", "BHR predicted", "measured", "points"];
        let percent = |ratio: f64| format!("{:.1} %", ratio * 100.0);
        let row = |cell: &ProofCell| {
            let own = cell.difference_points();
            let of = |ratio: fn(&Ratios) -> f64| {
                [
                    percent(ratio(&cell.predicted)),
                    cell.measured.map_or("–".into(), |measured| percent(ratio(&measured))),
                    own.map_or("–".into(), |points| signed(ratio(&points))),
                ]
            };
            [of(|ratios| ratios.dhr), of(|ratios| ratios.bhr)].concat()
        };
        (heads, self.cells.iter().map(row).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cell(predicted: f64, measured: Option<f64>) -> ProofCell {
        let ratios = |dhr| Ratios { dhr, bhr: dhr / 2.0 };
        ProofCell {
            proxy: "squid".into(),
            policy: Policy::LRU,
            size_bytes: 1 << 20,
            overhead_bytes: 100,
            unit_bytes: 1,
            filled_percent: 100,
            predicted: ratios(predicted),
            measured: measured.map(ratios),
            measured_dhr_range: None,
            runs: 1,
            repetitions: 1,
        }
    }

    #[test]
    fn the_verdict_names_the_widest_difference() {
        let cells = vec![cell(0.5, Some(0.515)), cell(0.5, Some(0.45)), cell(0.5, None)];
        let proof = Proof { experiment: "x".into(), phases: Vec::new(), cells };
        let verdict = proof.verdict();
        assert!(
            verdict.starts_with("1 of 2 measured") && verdict.contains("squid 5.0 points lower"),
            "{verdict}"
        );
        let (heads, rows) = proof.table();
        assert!(rows.iter().all(|row| row.len() == heads.len()));
        assert_eq!(rows[0], ["50.0 %", "51.5 %", "+1.5", "25.0 %", "25.8 %", "+0.8"]);
        assert_eq!(rows[2][1..3], ["–", "–"]);
        let none = Proof { cells: vec![cell(0.5, None)], ..proof };
        assert!(none.verdict().starts_with("No proxy"));
    }

    #[test]
    fn a_mean_is_of_both_ratios() {
        assert_eq!(Ratios::mean(&[]), None);
        let all = [Ratios { dhr: 0.2, bhr: 0.4 }, Ratios { dhr: 0.4, bhr: 0.0 }];
        let mean = Ratios::mean(&all).unwrap();
        assert!((mean.dhr - 0.3).abs() < 1e-12 && (mean.bhr - 0.2).abs() < 1e-12);
    }
}
