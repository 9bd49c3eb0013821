//! Things with probabilities.

use serde::{Deserialize, Serialize};

/// Things with probabilities that add up to 1 (or nothing at all).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Weighted<T> {
    items: Vec<(T, f64)>,
}

impl<T> Weighted<T> {
    /// Scales the weights to a sum of 1. Items of weight zero are kept, so indices stay; negative and
    /// non-finite weights count as zero.
    pub fn new(items: impl IntoIterator<Item = (T, f64)>) -> Self {
        let mut items: Vec<(T, f64)> =
            items.into_iter().map(|(item, w)| (item, if w.is_finite() { w.max(0.0) } else { 0.0 })).collect();
        let sum: f64 = items.iter().map(|(_, w)| w).sum();
        if sum > 0.0 {
            items.iter_mut().for_each(|(_, w)| *w /= sum);
        }
        Self { items }
    }

    pub fn one(item: T) -> Self {
        Self { items: vec![(item, 1.0)] }
    }

    pub fn none() -> Self {
        Self { items: Vec::new() }
    }

    /// The items with their probabilities.
    pub fn items(&self) -> &[(T, f64)] {
        &self.items
    }

    /// True when there is nothing to choose from.
    pub fn is_empty(&self) -> bool {
        self.items.is_empty()
    }

    /// The item that `unit` (0 ≤ unit < 1) falls on; none when empty or when no item has weight.
    pub fn pick(&self, unit: f64) -> Option<&T> {
        let mut left = unit;
        let mut last = None;
        for (item, p) in &self.items {
            if *p > 0.0 {
                if left < *p {
                    return Some(item);
                }
                left -= p;
                last = Some(item);
            }
        }
        last
    }
}

impl<T> Default for Weighted<T> {
    fn default() -> Self {
        Self::none()
    }
}
