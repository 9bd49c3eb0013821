//! How much longer the very same requests took. Pairs by request, where both runs logged every xact.
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

/// Which xact: phase, robot, number, place. In a closed loop, numbers begin anew with each phase.
type Key = (u16, u32, u64, u16);

/// What is known of a completed xact: when it was due, and its response time, in microseconds.
type Took = (i64, i64);

/// Response times by xact, in the order of keys.
pub struct Responses(Vec<(Key, Took)>);

/// Stretches of time that a run is cut into, to see how much differences vary within it. Requests that are due together
/// wait in the same queues, so one request says little beyond what its neighbour says; stretches say more.
const STRETCHES: i64 = 30;
/// Fewer stretches with requests in them say nothing about chance.
const FEWEST_STRETCHES: usize = 10;

/// What two runs took for the xacts that both completed.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Common {
    pub xacts: u64,
    pub base_ms: f64,
    pub other_ms: f64,
    /// Of the difference, within these two runs.
    pub within: Option<Within>,
}

/// How exactly two runs are told apart.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Within {
    pub stretches: usize,
    pub interval_ms: (f64, f64),
}

impl Responses {
    /// Reads a log: completed xacts only.
    pub fn read(path: &Path) -> Result<Self, RunDirError> {
        let completed = XactLog::read(path)?.into_iter().filter(|row| row.error.is_none());
        let mut times: Vec<(Key, Took)> = completed
            .filter_map(|row| {
                let key = (row.phase, row.robot, row.number, row.place);
                Some((key, (row.due_us, row.last_byte_us? - row.due_us)))
            })
            .collect();
        times.sort_unstable();
        Ok(Self(times))
    }

    /// The means over what both completed in a scope; none: there is nothing.
    pub fn common(&self, other: &Responses, scope: &Scope) -> Option<Common> {
        let pairs = self.pairs(other, scope);
        let count = pairs.len();
        let sum = |read: fn(&Pair) -> i64| pairs.iter().map(|pair| i128::from(read(pair))).sum::<i128>();
        let mean_ms = |sum_us: i128| sum_us as f64 / count as f64 / 1000.0;
        (count > 0).then(|| Common {
            xacts: count as u64,
            base_ms: mean_ms(sum(|pair| pair.base_us)),
            other_ms: mean_ms(sum(|pair| pair.other_us)),
            within: within(&pairs),
        })
    }

    /// What both completed in a scope.
    fn pairs(&self, other: &Responses, scope: &Scope) -> Vec<Pair> {
        let (mut mine, mut theirs) = (self.0.iter().peekable(), other.0.iter().peekable());
        let mut pairs = Vec::new();
        while let (Some((key, base)), Some((their_key, others))) = (mine.peek(), theirs.peek()) {
            match key.cmp(their_key) {
                std::cmp::Ordering::Less => drop(mine.next()),
                std::cmp::Ordering::Greater => drop(theirs.next()),
                std::cmp::Ordering::Equal => {
                    if scope.phases.contains(&usize::from(key.0)) {
                        pairs.push(Pair { due_us: base.0, base_us: base.1, other_us: others.1 });
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
struct Pair {
    due_us: i64,
    base_us: i64,
    other_us: i64,
}

/// The interval of the mean difference, from means over stretches of time (each request counts alike: the stretches are
/// weighed by how many they have).
fn within(pairs: &[Pair]) -> Option<Within> {
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
    Some(Within { stretches: count, interval_ms: (mean - width, mean + width) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_both_completed_in_the_scope_counts() {
        let key = |phase, number| (phase, 7, number, 0);
        let log = |rows: &[(u16, u64, i64)]| {
            Responses(rows.iter().map(|(phase, number, us)| (key(*phase, *number), (0, *us))).collect())
        };
        let one = log(&[(0, 1, 5), (1, 1, 1000), (1, 2, 2000), (1, 9, 90_000)]);
        let other = log(&[(0, 1, 5), (1, 1, 3000), (1, 2, 4000), (1, 3, 1)]);
        let scope = Scope { name: "top".into(), phases: vec![1], judged: true };
        let found = one.common(&other, &scope).unwrap();
        assert_eq!(found, Common { xacts: 2, base_ms: 1.5, other_ms: 3.5, within: None });
        let elsewhere = Scope { phases: vec![4], ..scope };
        assert_eq!(one.common(&other, &elsewhere), None);
    }
    #[test]
    fn within_two_runs_requests_that_wait_together_count_as_one() {
        // Two thousand requests, every stretch of which is 1 ms or 3 ms slower as a whole.
        let pairs: Vec<Pair> = (0..2000)
            .map(|n| {
                let slower = if (n / 100) % 2 == 0 { 1000 } else { 3000 };
                Pair { due_us: n * 1000, base_us: 5000, other_us: 5000 + slower }
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
