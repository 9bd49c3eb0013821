//! Arrays: lists and selectors with probabilities. Repeated items (`**`) are counted, not copied.

use std::cell::OnceCell;
use std::hash::{DefaultHasher, Hash, Hasher};

use super::Value;
use crate::schema::Ty;
use crate::source::Span;

/// Items of a list that has to be expanded.
pub(crate) const MAX_ITEMS: u64 = 1 << 20;
pub(crate) const MAX_DEPTH: u16 = 48;

/// An item as written: a value, repeated `times`, perhaps with a probability.
#[derive(Debug, Clone)]
pub(crate) struct Item {
    pub value: Value,
    pub probability: Option<f64>,
    pub times: u32,
    pub span: Span,
}

#[derive(Debug, Clone)]
pub(crate) struct Array {
    items: Vec<Item>,
    count: u64,
    /// Length of `runs()`, which for nested arrays can exceed any memory.
    run_count: u64,
    weighted: bool,
    leaves: Leaves,
    depth: u16,
    /// Computed on first use.
    fingerprint: OnceCell<u64>,
}

/// The common type of flattened items.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Leaves {
    /// There are no items.
    None,
    /// All items are of this type.
    Of(Ty),
    /// Items are of different types.
    Mixed,
}

/// A run of equal values in a flattened array; the value may be a range.
#[derive(Debug, Clone)]
pub(crate) struct Run {
    pub value: Value,
    pub times: u64,
    pub span: Span,
}

/// A choice of a selector. The probability of a range is that of all its values together.
#[derive(Debug, Clone)]
pub(crate) struct Choice {
    pub value: Value,
    pub probability: f64,
    pub span: Span,
}

/// Scaling of explicit probabilities that did not add up to 1.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Scaled {
    /// All probabilities are explicit, with this sum below 1.
    Up(f64),
    /// The sum is this, above 1; items without a probability get none.
    Down(f64),
}

impl Array {
    pub fn new(items: Vec<Item>) -> Self {
        let mut array = Self {
            items: Vec::new(),
            count: 0,
            run_count: 0,
            weighted: false,
            leaves: Leaves::None,
            depth: 1,
            fingerprint: OnceCell::new(),
        };
        items.iter().for_each(|item| array.add_to_totals(item));
        array.items = items;
        array
    }

    pub fn push(&mut self, item: Item) {
        self.add_to_totals(&item);
        // The hash covers all items.
        self.fingerprint = OnceCell::new();
        self.items.push(item);
    }

    /// Updates the totals with an item.
    fn add_to_totals(&mut self, item: &Item) {
        // An empty array contributes no choice, weighted or not.
        let inner = matches!(&item.value, Value::Array(inner) if inner.count > 0 && inner.weighted);
        self.count = self.count.saturating_add(item.count());
        self.run_count = self.run_count.saturating_add(item.run_count());
        self.weighted |= item.probability.is_some() || inner;
        self.leaves = self.leaves.joined_with(item);
        self.depth = self.depth.max(item.value.depth().saturating_add(1));
    }

    /// The items as written, which may be arrays and ranges.
    pub fn items(&self) -> &[Item] {
        &self.items
    }

    /// Number of flattened items.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// True if any item, at any depth, has a probability.
    pub fn weighted(&self) -> bool {
        self.weighted
    }

    pub fn leaves(&self) -> Leaves {
        self.leaves
    }

    /// True if the array cannot be expanded.
    pub fn too_large(&self) -> bool {
        self.run_count > MAX_ITEMS
    }

    pub fn depth(&self) -> u16 {
        self.depth
    }

    /// A hash that is equal for equal arrays.
    pub fn fingerprint(&self) -> u64 {
        *self.fingerprint.get_or_init(|| {
            let mut hasher = DefaultHasher::new();
            for item in &self.items {
                item.value.hash_into(&mut hasher);
                (item.probability.map(f64::to_bits), item.times).hash(&mut hasher);
            }
            hasher.finish()
        })
    }

    pub fn concat(&self, other: &[Item]) -> Array {
        Array::new(self.items.iter().chain(other).cloned().collect())
    }

    /// The flattened items in order, as runs; none for an array that is too large.
    pub fn runs(&self) -> Option<Vec<Run>> {
        let mut runs = Vec::new();
        if self.too_large() {
            return None;
        }
        self.collect_runs(&mut runs);
        Some(runs)
    }

    /// The flattened items one by one; none if there are too many.
    pub fn flatten(&self) -> Option<Vec<Value>> {
        if self.count > MAX_ITEMS {
            return None;
        }
        let mut all = Vec::with_capacity(self.count as usize);
        for run in self.runs()? {
            for _ in 0..run.times {
                all.extend((0..run.value.count()).map(|index| run.value.nth(index)));
            }
        }
        Some(all)
    }

    fn collect_runs(&self, runs: &mut Vec<Run>) {
        for item in &self.items {
            if item.count() == 0 {
                continue;
            }
            match &item.value {
                Value::Array(inner) => {
                    for _ in 0..item.times {
                        inner.collect_runs(runs);
                    }
                }
                value => {
                    runs.push(Run { value: value.clone(), times: u64::from(item.times), span: item.span });
                }
            }
        }
    }

    /// The choices of a selector with probabilities that add up to 1, and the scaling that this took. None for an
    /// array that is too large.
    ///
    /// Items without a probability share equally the rest of 100%, an inner array counting as one; if there is no
    /// probability anywhere, all flattened items are equally probable.
    pub fn choices(&self) -> Option<(Vec<Choice>, Option<Scaled>)> {
        let mut choices = Vec::new();
        let mut scaled = None;
        if self.too_large() {
            return None;
        }
        self.collect_choices(1.0, &mut choices, &mut scaled);
        Some((choices, scaled))
    }

    fn collect_choices(&self, share: f64, out: &mut Vec<Choice>, scaled: &mut Option<Scaled>) {
        if !self.weighted {
            let mut runs = Vec::new();
            self.collect_runs(&mut runs);
            let total = self.count as f64;
            out.extend(runs.into_iter().map(|run| {
                let count = run.value.count().saturating_mul(run.times) as f64;
                Choice { value: run.value, probability: share * count / total, span: run.span }
            }));
            return;
        }
        let weights = self.weights(scaled);
        for (item, weight) in self.items.iter().zip(weights) {
            match &item.value {
                _ if item.count() == 0 => {}
                // Repetitions of an array share its probability, so one pass with the whole of it suffices.
                Value::Array(inner) => inner.collect_choices(share * weight, out, scaled),
                value => {
                    out.push(Choice { value: value.clone(), probability: share * weight, span: item.span })
                }
            }
        }
    }

    /// The probability of each item as written, with 1% of tolerance on their sum.
    fn weights(&self, scaled: &mut Option<Scaled>) -> Vec<f64> {
        let explicit: f64 = self.items.iter().filter_map(|item| item.probability).sum();
        let unweighted = self.items.iter().filter(|item| item.probability.is_none()).count();
        if unweighted == 0 && explicit <= 0.99 {
            *scaled = scaled.or(Some(Scaled::Up(explicit)));
        }
        if explicit >= 1.01 {
            *scaled = scaled.or(Some(Scaled::Down(explicit)));
        }
        let equal = 1.0 / self.items.len().max(1) as f64;
        let left = (1.0 - explicit).max(0.0) / unweighted.max(1) as f64;
        let scale = if unweighted == 0 || explicit > 1.0 { explicit } else { 1.0 };
        self.items
            .iter()
            .map(|item| match item.probability {
                Some(_) if explicit <= 0.0 && unweighted == 0 => equal,
                Some(p) => p / scale,
                None => left,
            })
            .collect()
    }
}

impl Leaves {
    fn joined_with(self, item: &Item) -> Leaves {
        let more = match &item.value {
            Value::Array(inner) => inner.leaves,
            value => value.ty().map_or(Leaves::Mixed, Leaves::Of),
        };
        match (self, more) {
            (all, Leaves::None) => all,
            (Leaves::None, more) => more,
            (all, more) if all == more => all,
            _ => Leaves::Mixed,
        }
    }
}

impl Item {
    /// A single value without a probability.
    pub fn plain(value: Value, span: Span) -> Self {
        Self { value, probability: None, times: 1, span }
    }

    fn run_count(&self) -> u64 {
        match &self.value {
            Value::Array(inner) => inner.run_count.saturating_mul(u64::from(self.times)),
            _ => 1,
        }
    }

    /// Number of flattened items.
    pub fn count(&self) -> u64 {
        self.value.count().saturating_mul(u64::from(self.times))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::rc::Rc;

    fn item(value: Value, probability: Option<f64>) -> Item {
        Item { value, probability, times: 1, span: Span::default() }
    }

    fn int(n: i32, probability: Option<f64>) -> Item {
        item(Value::Int(n), probability)
    }

    fn nested(items: Vec<Item>) -> Value {
        Value::Array(Rc::new(Array::new(items)))
    }

    fn probabilities(items: Vec<Item>) -> (Vec<f64>, Option<Scaled>) {
        let (choices, scaled) = Array::new(items).choices().unwrap();
        (choices.iter().map(|c| (c.probability * 1e9).round() / 1e9).collect(), scaled)
    }

    #[test]
    fn items_without_a_probability_share_what_is_left() {
        assert_eq!(
            probabilities(vec![int(1, Some(0.7)), int(2, None), int(3, None)]),
            (vec![0.7, 0.15, 0.15], None)
        );
    }

    #[test]
    fn explicit_probabilities_that_fall_short_are_scaled_up() {
        let (p, scaled) = probabilities(vec![int(1, Some(0.3)), int(2, Some(0.2))]);
        assert_eq!((p, scaled), (vec![0.6, 0.4], Some(Scaled::Up(0.5))));
        assert_eq!(probabilities(vec![int(1, Some(0.0)), int(2, Some(0.0))]).0, [0.5, 0.5]);
    }

    #[test]
    fn explicit_probabilities_above_all_are_scaled_down_and_leave_nothing() {
        let (p, scaled) = probabilities(vec![int(1, Some(1.5)), int(2, Some(0.5)), int(3, None)]);
        assert_eq!((p, scaled), (vec![0.75, 0.25, 0.0], Some(Scaled::Down(2.0))));
    }

    #[test]
    fn a_percent_of_slack_is_settled_silently() {
        assert_eq!(probabilities(vec![int(1, Some(0.5)), int(2, Some(0.495))]).1, None);
        assert_eq!(probabilities(vec![int(1, Some(0.505)), int(2, Some(0.5)), int(3, None)]).1, None);
    }

    #[test]
    fn nested_probabilities_multiply() {
        let inner = nested(vec![int(1, Some(0.9)), int(2, None)]);
        assert_eq!(probabilities(vec![item(inner, Some(0.5)), int(3, None)]).0, [0.45, 0.05, 0.5]);
    }

    #[test]
    fn without_any_probability_all_flattened_items_are_alike() {
        let inner = nested(vec![int(1, None), int(2, None)]);
        assert_eq!(probabilities(vec![item(inner.clone(), None), int(3, None), int(4, None)]).0, [0.25; 4]);
        // One probability anywhere, and an inner array is one item.
        assert_eq!(probabilities(vec![item(inner, None), int(3, Some(0.5))]).0, [0.25, 0.25, 0.5]);
    }

    #[test]
    fn clones_are_counted_and_not_copied() {
        let many = Item { times: 1_000_000, ..int(7, None) };
        let array = Array::new(vec![many, int(8, None)]);
        assert_eq!(array.count(), 1_000_001);
        assert_eq!(array.runs().unwrap().len(), 2);
        let again = Item { times: u32::MAX, ..item(Value::Array(Rc::new(array)), None) };
        assert!(Array::new(vec![again]).runs().is_none());
    }

    #[test]
    fn empty_arrays_vanish() {
        let array = Array::new(vec![item(nested(vec![]), None), int(3, None)]);
        assert_eq!(array.count(), 1);
        assert_eq!(array.choices().unwrap().0.len(), 1);
    }
}
