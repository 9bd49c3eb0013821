//! When an object was modified, when it will be next, and what `Expires` it carries.

use crate::Purpose;
use crate::distribution::Sampler;
use crate::model::{Distribution, Expiry, ExpiryBase, LifeCycle};
use crate::picker::Picker;
use assay_base::random::{Rng, fold, hash, unit_of};

/// The state of an object at one moment. Times are whole seconds since the start of the run.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Life {
    /// Number of modifications since the start of the run; 0 at the start.
    pub version: u64,
    /// The last modification, never later than now; none when the object never changes or does not show it.
    pub last_modified_s: Option<i64>,
    /// The next modification, always later than now; none when the object never changes.
    pub next_modified_s: Option<i64>,
    /// The `Expires` of a response made now; none when it has none.
    pub expires_s: Option<i64>,
}

/// A content type's life cycle, ready for many objects.
#[derive(Debug, Clone)]
pub(crate) struct LifeLaw {
    length: Sampler,
    variance: f64,
    with_last_modified: f64,
    expiries: Vec<Option<(ExpiryBase, Sampler)>>,
    choice: Picker<usize>,
}

struct Cycle {
    key: u64,
    birth: f64,
    length: f64,
    /// Largest shift of a modification, in seconds.
    shift: f64,
}

/// Keeps times far from where whole seconds are lost in a float.
const LONGEST_CYCLE_S: f64 = 1e12;

impl LifeLaw {
    pub(crate) fn new(cycle: &LifeCycle) -> Self {
        let sampler = |after: &Distribution| after.sampler();
        let items = cycle.expires.items();
        Self {
            length: cycle.length_s.sampler(),
            variance: cycle.variance,
            with_last_modified: cycle.with_last_modified,
            expiries: items
                .iter()
                .map(|(e, _)| e.as_ref().map(|Expiry { base, after_s }| (*base, sampler(after_s))))
                .collect(),
            choice: Picker::new(items.iter().enumerate().map(|(index, (_, weight))| (index, *weight))),
        }
    }

    /// The object with this key, `now_s` seconds after the start.
    pub(crate) fn at(&self, key: u64, now_s: i64) -> Life {
        let mut rng = Rng::of(Purpose::Life, &[key]);
        // Every draw is taken in the same order for every object, whatever it is used for.
        let (birth, shows, choice) = (rng.unit(), rng.unit(), rng.unit());
        // A second is the grain of HTTP dates: a shorter cycle could not be told from it.
        let length = libm::fabs(self.length.sample(&mut rng)).clamp(1.0, LONGEST_CYCLE_S);
        let shift = self.variance.min(1.0 - 1.0 / length) * length / 2.0;
        let cycle = Cycle { key, birth: -birth * length, length, shift };
        let last = cycle.last(now_s);
        let (last_s, next_s) = (cycle.modification(last), cycle.modification(last + 1));
        let expires_s =
            self.choice.pick(choice).and_then(|index| self.expiries[index].as_ref()).map(|(base, after)| {
                let base = match base {
                    ExpiryBase::Now => now_s,
                    ExpiryBase::LastModified => last_s,
                    ExpiryBase::NextModified => next_s,
                };
                base.saturating_add(libm::floor(
                    after.sample(&mut rng).clamp(-LONGEST_CYCLE_S, LONGEST_CYCLE_S),
                ) as i64)
            });
        Life {
            version: u64::try_from(last - cycle.last(0)).unwrap_or(0),
            last_modified_s: (shows < self.with_last_modified).then_some(last_s),
            next_modified_s: Some(next_s),
            expires_s,
        }
    }
}

impl Cycle {
    /// Time of modification `k`. Consecutive ones are at least a second apart.
    fn modification(&self, k: i64) -> i64 {
        let jitter = 2.0 * unit_of(fold(hash(Purpose::Jitter, &[self.key]), k as u64)) - 1.0;
        libm::floor(self.birth + k as f64 * self.length + jitter * self.shift) as i64
    }

    /// The number of the last modification that is not later than `now_s`.
    fn last(&self, now_s: i64) -> i64 {
        // A shift is at most half a cycle, so two cycles back is surely past.
        let mut k = libm::floor((now_s as f64 - self.birth) / self.length) as i64 - 2;
        while self.modification(k + 1) <= now_s {
            k += 1;
        }
        k
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Weighted;
    use proptest::prelude::*;

    fn law(length_s: Distribution, variance: f64, base: ExpiryBase, after: f64) -> LifeLaw {
        let expiry = Expiry { base, after_s: Distribution::Constant(after) };
        let expires = Weighted::one(Some(expiry));
        LifeLaw::new(&LifeCycle { length_s, variance, with_last_modified: 1.0, expires })
    }

    proptest! {
        #[test]
        fn modifications_come_in_order_and_are_counted(
            key: u64, length in 0.0f64..400.0, variance in 0.0f64..=1.0, start in 0i64..10_000,
        ) {
            let law = law(Distribution::Constant(length), variance, ExpiryBase::NextModified, 0.0);
            prop_assert_eq!(law.at(key, 0).version, 0);
            let mut before = law.at(key, start);
            for now in start + 1..start + 300 {
                let life = law.at(key, now);
                let (last, next) = (life.last_modified_s.unwrap(), life.next_modified_s.unwrap());
                prop_assert!(last <= now && next > now && next > last);
                prop_assert_eq!(life.expires_s, Some(next));
                if Some(now) == before.next_modified_s {
                    prop_assert_eq!((life.version, last), (before.version + 1, now));
                } else {
                    prop_assert_eq!(life, before);
                }
                before = life;
            }
        }

        #[test]
        fn no_cycle_and_no_time_breaks_it(
            key: u64, length: f64, variance in 0.0f64..=1.0, after: f64, now in -1_000_000_000i64..1_000_000_000,
        ) {
            let life = law(Distribution::Constant(length), variance, ExpiryBase::LastModified, after).at(key, now);
            prop_assert!(life.last_modified_s.unwrap() <= now);
        }
    }

    #[test]
    fn expiry_counts_from_what_it_says() {
        let at = |base| law(Distribution::Constant(1000.0), 0.5, base, 7.0).at(5, 300);
        let life = at(ExpiryBase::Now);
        assert_eq!(life.expires_s, Some(307));
        assert_eq!(at(ExpiryBase::LastModified).expires_s, life.last_modified_s.map(|t| t + 7));
        assert_eq!(at(ExpiryBase::NextModified).expires_s, life.next_modified_s.map(|t| t + 7));
    }

    #[test]
    fn a_share_of_objects_hides_when_it_was_modified() {
        let cycle = LifeCycle {
            length_s: Distribution::Constant(100.0),
            variance: 0.0,
            with_last_modified: 0.25,
            expires: Weighted::none(),
        };
        let law = LifeLaw::new(&cycle);
        let shown = (0..4000u64).filter(|key| law.at(*key, 50).last_modified_s.is_some()).count();
        assert!((850..1150).contains(&shown), "{shown}");
        assert!(law.at(1, 50).expires_s.is_none());
    }
}
