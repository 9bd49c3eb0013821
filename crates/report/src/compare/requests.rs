//! How much longer did the very same requests take? Pairs by request, where both runs logged every xact.
//!
//! The unit of a verdict stays the run: a pair of runs gives one difference, and comparing the same requests only makes
//! that one less noisy, since requests that one of the two never completed no longer count on one side alone.

use std::path::Path;

use assay_record::dir::RunDirError;
use assay_record::xact_log::XactLog;

use super::numbers::Scope;

/// A larger log (some millions of xacts) would take more memory than a report should.
pub(crate) const LARGEST_LOG_BYTES: u64 = 64 << 20;

/// Which xact: phase, robot, number, place. In a closed loop, numbers begin anew with each phase.
type Key = (u16, u32, u64, u16);

/// Response times by xact, in microseconds, in the order of keys.
pub(crate) struct Responses(Vec<(Key, i64)>);

/// What two runs took for the xacts that both completed.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Common {
    pub xacts: u64,
    pub base_ms: f64,
    pub other_ms: f64,
}

impl Responses {
    /// Reads a log: completed xacts only.
    pub(crate) fn read(path: &Path) -> Result<Self, RunDirError> {
        let completed = XactLog::read(path)?.into_iter().filter(|row| row.error.is_none());
        let mut times: Vec<(Key, i64)> = completed
            .filter_map(|row| {
                Some(((row.phase, row.robot, row.number, row.place), row.last_byte_us? - row.due_us))
            })
            .collect();
        times.sort_unstable();
        Ok(Self(times))
    }

    /// The means over what both completed in a scope; none: there is nothing.
    pub(crate) fn common(&self, other: &Responses, scope: &Scope) -> Option<Common> {
        let (mut mine, mut theirs) = (self.0.iter().peekable(), other.0.iter().peekable());
        let (mut xacts, mut base_us, mut other_us) = (0u64, 0i128, 0i128);
        while let (Some((key, base)), Some((their_key, others))) = (mine.peek(), theirs.peek()) {
            match key.cmp(their_key) {
                std::cmp::Ordering::Less => drop(mine.next()),
                std::cmp::Ordering::Greater => drop(theirs.next()),
                std::cmp::Ordering::Equal => {
                    if scope.phases.contains(&usize::from(key.0)) {
                        xacts += 1;
                        base_us += i128::from(*base);
                        other_us += i128::from(*others);
                    }
                    mine.next();
                    theirs.next();
                }
            }
        }
        let mean_ms = |sum_us: i128| sum_us as f64 / xacts as f64 / 1000.0;
        (xacts > 0).then(|| Common { xacts, base_ms: mean_ms(base_us), other_ms: mean_ms(other_us) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_both_completed_in_the_scope_counts() {
        let key = |phase, number| (phase, 7, number, 0);
        let one = Responses(vec![(key(0, 1), 5), (key(1, 1), 1000), (key(1, 2), 2000), (key(1, 9), 90_000)]);
        let other = Responses(vec![(key(0, 1), 5), (key(1, 1), 3000), (key(1, 2), 4000), (key(1, 3), 1)]);
        let scope = Scope { name: "top".into(), phases: vec![1], judged: true };
        let found = one.common(&other, &scope).unwrap();
        assert_eq!(found, Common { xacts: 2, base_ms: 1.5, other_ms: 3.5 });
        let elsewhere = Scope { phases: vec![4], ..scope };
        assert_eq!(one.common(&other, &elsewhere), None);
    }
}
