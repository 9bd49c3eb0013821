//! One measurement of a cluster by clients on several machines: parts of it, with their histograms, and the whole that they add up to.
//!
//! Adding is exact: counts are added, histograms are merged bucket by bucket, and percentiles are computed from the sums.

use std::collections::BTreeSet;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use thiserror::Error;

use assay_measurement::histogram::{Histogram, SparseHistogram};

use crate::cluster::{ClusterPoint, ClusterResult, ServiceTimes, Times};

/// Which part of a measurement it is: clients *n* with *n* mod `of` = `number` − 1 are its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Part {
    /// Its number, from 1.
    pub number: u32,
    /// How many parts there are.
    pub of: u32,
    /// When the first run began, in seconds since 1970: the same for all parts.
    pub start_at_unix_s: u64,
}

/// Response times of a part, from which those of the whole are computed.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Histograms {
    /// Of all responses.
    pub all: SparseHistogram,
    /// Of each service that was requested, with its name.
    pub services: Vec<(String, SparseHistogram)>,
}

/// Parts that do not make a whole.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum PartsError {
    /// The result is a whole already.
    #[error("{0} is not a part: `assay webstone --part` writes those")]
    Whole(String),
    /// The results are of different measurements.
    #[error("{0} does not belong to {1}: {2} differs")]
    Foreign(String, String, &'static str),
    /// Two parts have the same clients.
    #[error("{0} is part {1}, and so is another")]
    Twice(String, u32),
    /// Parts are missing.
    #[error("parts {} of {of} are missing: without them, the figures would be of fewer clients than they say", numbers(.missing))]
    Missing {
        /// Numbers of the missing parts.
        missing: Vec<u32>,
        /// Number of all parts.
        of: u32,
    },
}

fn numbers(all: &[u32]) -> String {
    all.iter().map(u32::to_string).collect::<Vec<_>>().join(", ")
}

/// Joins parts, each with the name of its file.
pub fn whole(parts: &[(String, ClusterResult)]) -> Result<ClusterResult, PartsError> {
    let Some(((first_name, first), _)) = parts.split_first() else {
        return Err(PartsError::Missing { missing: vec![1], of: 1 });
    };
    let own = first.part.ok_or_else(|| PartsError::Whole(first_name.clone()))?;
    let mut known = BTreeSet::new();
    for (name, result) in parts {
        let part = result.part.ok_or_else(|| PartsError::Whole(name.clone()))?;
        if let Some(what) = difference(first, result) {
            return Err(PartsError::Foreign(name.clone(), first_name.clone(), what));
        }
        if !known.insert(part.number) {
            return Err(PartsError::Twice(name.clone(), part.number));
        }
    }
    let missing: Vec<u32> = (1..=own.of).filter(|number| !known.contains(number)).collect();
    if !missing.is_empty() {
        return Err(PartsError::Missing { missing, of: own.of });
    }
    let results: Vec<&ClusterResult> = parts.iter().map(|(_, result)| result).collect();
    let points = (0..first.points.len()).map(|place| sum(&results, place)).collect();
    Ok(ClusterResult { part: None, points, ..first.clone() })
}

/// First property in which two results differ, though parts of one measurement cannot.
fn difference(one: &ClusterResult, other: &ClusterResult) -> Option<&'static str> {
    let same_points = one.points.len() == other.points.len()
        && one.points.iter().zip(&other.points).all(|(one, other)| {
            one.is_beside(other)
                && one.policy == other.policy
                && one.responses_per_s_by_repetition.len() == other.responses_per_s_by_repetition.len()
        });
    let parts = |result: &ClusterResult| result.part.map(|part| (part.of, part.start_at_unix_s));
    let checks = [
        (one.title == other.title, "the file list"),
        (one.name == other.name, "the label"),
        (one.seed == other.seed, "the seed"),
        (one.repetitions == other.repetitions, "the number of iterations"),
        (one.warm_up_s == other.warm_up_s && one.measure_s == other.measure_s, "the length of runs"),
        (parts(one) == parts(other), "the number of parts, or the start,"),
        (same_points, "the server, or the numbers of clients,"),
    ];
    checks.into_iter().find(|(is_same, _)| !is_same).map(|(_, what)| what)
}

/// A combination, of all parts together.
fn sum(parts: &[&ClusterResult], place: usize) -> ClusterPoint {
    let points = || parts.iter().map(|part| &part.points[place]);
    let first = &parts[0].points[place];
    let mut all = Histogram::new();
    let mut services: Vec<(String, Histogram)> = Vec::new();
    for histograms in points().filter_map(|point| point.histograms.as_ref()) {
        all.merge_sparse(&histograms.all);
        for (name, times) in &histograms.services {
            match services.iter_mut().find(|(own, _)| own == name) {
                Some((_, own)) => own.merge_sparse(times),
                None => {
                    let mut own = Histogram::new();
                    own.merge_sparse(times);
                    services.push((name.clone(), own));
                }
            }
        }
    }
    let rates = (0..first.responses_per_s_by_repetition.len())
        .map(|repetition| points().map(|point| point.responses_per_s_by_repetition[repetition]).sum());
    ClusterPoint {
        responses_per_s_by_repetition: rates.collect(),
        failed: points().map(|point| point.failed).sum(),
        bytes: points().map(|point| point.bytes).sum(),
        response_us: Times::of(&all),
        services: services
            .iter()
            .map(|(name, times)| ServiceTimes { name: name.clone(), response_us: Times::of(times) })
            .collect(),
        histograms: None,
        ..first.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cluster::{Labels, Origin, PointSum, SCHEMA, Tally};

    /// A measurement of these response times in microseconds, each of one of two services in turn.
    fn result(part: Option<Part>, times_us: &[u64]) -> ClusterResult {
        let names = ["a".to_owned(), "b".to_owned()];
        let mut sum = PointSum::default();
        for repetition in 0..2 {
            let mut tally = Tally::default();
            for (place, us) in times_us.iter().enumerate() {
                tally.responded(place % 2, us + repetition, 10);
            }
            sum.add(&tally, 2.0);
        }
        let labels =
            Labels { mix: "list".into(), policy: "server".into(), clients: Some(6), ..Labels::default() };
        let point = sum.point(labels, &names);
        let point = if part.is_some() {
            ClusterPoint { histograms: Some(sum.histograms(&names)), ..point }
        } else {
            point
        };
        ClusterResult {
            schema: SCHEMA.into(),
            origin: Origin::Measured,
            name: "server".into(),
            title: "WebStone: list".into(),
            extends: None,
            part,
            seed: 1,
            repetitions: 2,
            warm_up_s: 0.0,
            measure_s: 2.0,
            points: vec![point],
        }
    }

    fn part(number: u32, times_us: &[u64]) -> (String, ClusterResult) {
        let part = Part { number, of: 3, start_at_unix_s: 77 };
        (format!("{number}.json"), result(Some(part), times_us))
    }

    #[test]
    fn parts_add_up_to_exactly_what_one_machine_would_have_measured() {
        // Part 2 has no client at this load.
        let parts = [part(3, &[1_000, 90_000]), part(1, &[5_000, 70_000, 123_456, 7]), part(2, &[])];
        let text = serde_json::to_string(&parts).expect("is JSON");
        let parts: Vec<(String, ClusterResult)> = serde_json::from_str(&text).expect("is read back");
        let one = result(None, &[1_000, 90_000, 5_000, 70_000, 123_456, 7]);
        assert_eq!(whole(&parts).expect("is whole"), one);
    }

    #[test]
    fn what_does_not_make_a_whole_is_refused_with_the_reason() {
        let told = |parts: &[(String, ClusterResult)]| whole(parts).expect_err("is no whole").to_string();
        let [one, two, three] = [1, 2, 3].map(|number| part(number, &[number.into()]));
        assert!(told(&[one.clone(), three.clone()]).starts_with("parts 2 of 3 are missing"));
        assert_eq!(told(&[one.clone(), one.clone()]), "1.json is part 1, and so is another");
        let mut other = two.clone();
        other.1.seed = 2;
        assert_eq!(
            told(&[one.clone(), other, three.clone()]),
            "2.json does not belong to 1.json: the seed differs"
        );
        let mut late = two;
        late.1.part = Some(Part { number: 2, of: 3, start_at_unix_s: 78 });
        assert!(told(&[one, late, three]).contains("the start, differs"));
        assert!(told(&[("w.json".into(), result(None, &[1]))]).starts_with("w.json is not a part"));
    }
}
