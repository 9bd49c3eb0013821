//! Differences of response time by request, where both runs logged every xact.
//!
//! The unit of a verdict stays the run: a pair of runs gives one difference, and comparing the same requests only makes
//! that one less noisy, since requests that one of the two never completed no longer count on one side alone. How much the
//! difference varies *within* two runs is told too; it says nothing about what two other runs would bring.

use std::path::Path;

use assay_record::dir::RunDirError;
use assay_record::xact_log::XactLog;

use super::paired::INTERVAL_TAIL;
use super::scope::Scope;
use super::student;

/// A larger log (some millions of xacts) would take more memory than a report should.
pub const LARGEST_LOG_BYTES: u64 = 64 << 20;

/// Identity of an xact. In a closed loop, numbers begin anew with each phase.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct XactKey {
    phase: u16,
    robot: u32,
    number: u64,
    place: u16,
}

/// Times of a completed xact.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct XactTimes {
    due_us: i64,
    response_us: i64,
}

/// Response times by xact, in the order of keys.
pub struct ResponseLog(Vec<(XactKey, XactTimes)>);

/// Stretches of time that a run is cut into, to see how much differences vary within it. Requests that are due together
/// wait in the same queues, so one request says little beyond what its neighbour says; stretches say more.
const STRETCHES: i64 = 30;
/// Fewer stretches with requests in them say nothing about chance.
const FEWEST_STRETCHES: usize = 10;

/// Means of two runs over the xacts that both completed.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct CommonXacts {
    pub xacts: u64,
    pub base_ms: f64,
    pub other_ms: f64,
    /// Of the difference, within these two runs.
    pub within: Option<PairInterval>,
}

/// Interval of the difference within two runs.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PairInterval {
    pub stretches: usize,
    pub interval_ms: (f64, f64),
}

impl ResponseLog {
    /// Reads a log: completed xacts only.
    pub fn read(path: &Path) -> Result<Self, RunDirError> {
        let completed = XactLog::read(path)?.into_iter().filter(|row| row.error.is_none());
        let mut times: Vec<(XactKey, XactTimes)> = completed
            .filter_map(|row| {
                let key =
                    XactKey { phase: row.phase, robot: row.robot, number: row.number, place: row.place };
                let response_us = row.last_byte_us? - row.due_us;
                Some((key, XactTimes { due_us: row.due_us, response_us }))
            })
            .collect();
        times.sort_unstable();
        Ok(Self(times))
    }

    /// The means over what both completed in a scope; none: there is nothing.
    pub fn common(&self, other: &ResponseLog, scope: &Scope) -> Option<CommonXacts> {
        let pairs = self.pairs(other, scope);
        let count = pairs.len();
        let sum =
            |read: fn(&RequestPair) -> i64| pairs.iter().map(|pair| i128::from(read(pair))).sum::<i128>();
        let mean_ms = |sum_us: i128| sum_us as f64 / count as f64 / 1000.0;
        (count > 0).then(|| CommonXacts {
            xacts: count as u64,
            base_ms: mean_ms(sum(|pair| pair.base_us)),
            other_ms: mean_ms(sum(|pair| pair.other_us)),
            within: within(&pairs),
        })
    }

    /// Xacts of a scope that both completed.
    fn pairs(&self, other: &ResponseLog, scope: &Scope) -> Vec<RequestPair> {
        let (mut mine, mut theirs) = (self.0.iter().peekable(), other.0.iter().peekable());
        let mut pairs = Vec::new();
        while let (Some((key, base)), Some((their_key, others))) = (mine.peek(), theirs.peek()) {
            match key.cmp(their_key) {
                std::cmp::Ordering::Less => drop(mine.next()),
                std::cmp::Ordering::Greater => drop(theirs.next()),
                std::cmp::Ordering::Equal => {
                    if scope.phases.contains(&usize::from(key.phase)) {
                        pairs.push(RequestPair {
                            due_us: base.due_us,
                            base_us: base.response_us,
                            other_us: others.response_us,
                        });
                    }
                    mine.next();
                    theirs.next();
                }
            }
        }
        pairs
    }
}

/// One request, in two runs.
struct RequestPair {
    due_us: i64,
    base_us: i64,
    other_us: i64,
}

/// The interval of the mean difference, from means over stretches of time (each request counts alike: the stretches are
/// weighed by how many they have).
fn within(pairs: &[RequestPair]) -> Option<PairInterval> {
    let first = pairs.iter().map(|pair| pair.due_us).min()?;
    let last = pairs.iter().map(|pair| pair.due_us).max()?;
    let length = (last - first) / STRETCHES + 1;
    let mut stretches = vec![(0.0f64, 0.0f64); STRETCHES as usize];
    for pair in pairs {
        let index = usize::try_from((pair.due_us - first) / length).unwrap_or(0);
        let stretch = stretches.get_mut(index)?;
        stretch.0 += 1.0;
        stretch.1 += (pair.other_us - pair.base_us) as f64 / 1000.0;
    }
    stretches.retain(|stretch| stretch.0 > 0.0);
    let count = stretches.len();
    if count < FEWEST_STRETCHES {
        return None;
    }
    let requests = pairs.len() as f64;
    let mean = stretches.iter().map(|stretch| stretch.1).sum::<f64>() / requests;
    // The ratio estimator: how far each stretch's sum is from what the mean would make of its requests.
    let squares: f64 = stretches.iter().map(|(n, sum)| (sum - mean * n) * (sum - mean * n)).sum();
    let freedom = (count - 1) as f64;
    let error = libm::sqrt(squares * count as f64 / freedom) / requests;
    let width = student::quantile(INTERVAL_TAIL, freedom) * error;
    Some(PairInterval { stretches: count, interval_ms: (mean - width, mean + width) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_both_completed_in_the_scope_counts() {
        let key = |phase, number| XactKey { phase, robot: 7, number, place: 0 };
        let log = |rows: &[(u16, u64, i64)]| {
            ResponseLog(
                rows.iter()
                    .map(|(phase, number, us)| {
                        (key(*phase, *number), XactTimes { due_us: 0, response_us: *us })
                    })
                    .collect(),
            )
        };
        let one = log(&[(0, 1, 5), (1, 1, 1000), (1, 2, 2000), (1, 9, 90_000)]);
        let other = log(&[(0, 1, 5), (1, 1, 3000), (1, 2, 4000), (1, 3, 1)]);
        let scope = Scope { name: "top".into(), phases: vec![1], judged: true };
        let found = one.common(&other, &scope).unwrap();
        assert_eq!(found, CommonXacts { xacts: 2, base_ms: 1.5, other_ms: 3.5, within: None });
        let elsewhere = Scope { phases: vec![4], ..scope };
        assert_eq!(one.common(&other, &elsewhere), None);
    }
    #[test]
    fn within_two_runs_requests_that_wait_together_count_as_one() {
        // Two thousand requests, every stretch of which is 1 ms or 3 ms slower as a whole.
        let pairs: Vec<RequestPair> = (0..2000)
            .map(|n| {
                let slower = if (n / 100) % 2 == 0 { 1000 } else { 3000 };
                RequestPair { due_us: n * 1000, base_us: 5000, other_us: 5000 + slower }
            })
            .collect();
        let found = within(&pairs).unwrap();
        let (low, high) = found.interval_ms;
        assert_eq!(found.stretches, 30);
        assert!(
            low < 1.8 && high > 2.2,
            "as if requests were independent it would be 2 ± 0.04: {low} to {high}"
        );
        assert!(low > 1.0 && high < 3.0, "{low} to {high}");
        assert_eq!(within(&pairs[..1]), None, "one stretch says nothing");
    }
}
