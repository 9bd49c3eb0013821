//! Which of many weighted things a number falls on. Sums are taken once, so that a thousand origins cost ten comparisons.

use crate::model::Weighted;

/// Weighted things, ready for many picks.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct Picker<T> {
    /// Things of positive weight with the sum of weights up to and including them.
    items: Vec<(f64, T)>,
}

impl<T: Copy> Picker<T> {
    pub(crate) fn new(weighted: impl IntoIterator<Item = (T, f64)>) -> Self {
        let mut sum = 0.0;
        let items = weighted
            .into_iter()
            .filter(|(_, weight)| *weight > 0.0)
            .map(|(item, weight)| {
                sum += weight;
                (sum, item)
            })
            .collect();
        Self { items }
    }

    pub(crate) fn from_weighted(weighted: &Weighted<T>) -> Self {
        Self::new(weighted.items().iter().copied())
    }

    /// The sum of all weights.
    pub(crate) fn sum(&self) -> f64 {
        self.items.last().map_or(0.0, |last| last.0)
    }

    /// The things with their weights.
    pub(crate) fn weights(&self) -> impl Iterator<Item = (T, f64)> + '_ {
        let before = std::iter::once(0.0).chain(self.items.iter().map(|item| item.0));
        self.items.iter().zip(before).map(|((sum, item), before)| (*item, sum - before))
    }

    /// The thing that `unit` (0 ≤ unit < 1) falls on; none when there is none.
    #[inline]
    pub(crate) fn pick(&self, unit: f64) -> Option<T> {
        let at = unit * self.sum();
        // Most mixes have a handful of items: the first comparison settles half of the picks.
        let index = match self.items.as_slice() {
            [] => return None,
            [_] => 0,
            [first, ..] if at < first.0 => 0,
            items => items.partition_point(|item| item.0 <= at).min(items.len() - 1),
        };
        Some(self.items[index].1)
    }
}

/// The index that `unit` falls on among a few weights; none when none is positive.
#[inline]
pub(crate) fn pick_few(weights: impl Iterator<Item = f64> + Clone, unit: f64) -> Option<usize> {
    let sum: f64 = weights.clone().sum();
    let mut left = unit * sum;
    let mut last = None;
    for (index, weight) in weights.enumerate() {
        if weight > 0.0 {
            if left < weight {
                return Some(index);
            }
            left -= weight;
            last = Some(index);
        }
    }
    last
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn both_ways_pick_the_same_and_never_what_has_no_weight(
            weights in prop::collection::vec(0u8..4, 0..20),
            unit in 0.0f64..1.0,
        ) {
            let weights: Vec<f64> = weights.into_iter().map(f64::from).collect();
            let picker = Picker::new(weights.iter().copied().enumerate());
            let picked = picker.pick(unit);
            prop_assert_eq!(picked, pick_few(weights.iter().copied(), unit));
            if let Some(index) = picked {
                prop_assert!(weights[index] > 0.0);
            } else {
                prop_assert!(weights.iter().all(|w| *w == 0.0));
            }
        }
    }
}
