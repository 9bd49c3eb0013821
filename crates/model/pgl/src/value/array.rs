//! Arrays: lists, selectors with probabilities, and clones that are counted, not copied.

use std::cell::OnceCell;
use std::hash::{DefaultHasher, Hash, Hasher};

use super::Value;
use crate::schema::Ty;
use crate::source::Span;

/// Items that a list may have when something needs each of them.
pub(crate) const MAX_ITEMS: u64 = 1 << 20;
pub(crate) const MAX_DEPTH: u16 = 48;

/// An item: a value, `times` over, perhaps with a probability.
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
    /// Entries of `runs()`: an array of arrays of arrays can have more than anyone could list.
    run_count: u64,
    /// Some item, at any depth, has a probability.
    weighted: bool,
    leaves: Leaves,
    depth: u16,
    /// Computed when it is first requested.
    fingerprint: OnceCell<u64>,
}

/// What flattened items have in common.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Leaves {
    /// There are none.
    None,
    /// All are of this type.
    Of(Ty),
    /// They are not all of one type.
    Mixed,
}

/// An item of a flattened array: `times` the same value in a row, which may itself be a range.
#[derive(Debug, Clone)]
pub(crate) struct Run {
    pub value: Value,
    pub times: u64,
    pub span: Span,
}

/// A choice of a selector. A value that is a range has the probability as a whole.
#[derive(Debug, Clone)]
pub(crate) struct Choice {
    pub value: Value,
    pub probability: f64,
    pub span: Span,
}

/// Explicit probabilities that did not add up, and were scaled.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Scaled {
    /// All are explicit, and add up to this, below 1.
    Up(f64),
    /// They add up to this, above 1; items without one get nothing.
    Down(f64),
}

impl Array {
    /// Of items in order.
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
        items.iter().for_each(|item| array.count_in(item));
        array.items = items;
        array
    }

    /// Adds an item at the end.
    pub fn push(&mut self, item: Item) {
        self.count_in(&item);
        self.fingerprint = OnceCell::new();
        self.items.push(item);
    }

    /// Takes an item into what is known of all of them.
    fn count_in(&mut self, item: &Item) {
        let inner = matches!(&item.value, Value::Array(inner) if inner.count > 0 && inner.weighted);
        self.count = self.count.saturating_add(item.count());
        self.run_count = self.run_count.saturating_add(item.run_count());
        self.weighted |= item.probability.is_some() || inner;
        self.leaves = self.leaves.with(item);
        self.depth = self.depth.max(item.value.depth().saturating_add(1));
    }

    /// The items as written: an item may be an array or a range.
    pub fn items(&self) -> &[Item] {
        &self.items
    }

    /// Number of items when flattened.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// True when some item, at any depth, has a probability.
    pub fn weighted(&self) -> bool {
        self.weighted
    }

    /// What the flattened items have in common.
    pub fn leaves(&self) -> Leaves {
        self.leaves
    }

    /// True when it has too many items to work with.
    pub fn too_large(&self) -> bool {
        self.run_count > MAX_ITEMS
    }

    /// How deep arrays and objects are nested in it.
    pub fn depth(&self) -> u16 {
        self.depth
    }

    /// Alike for arrays that are alike.
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

    /// Both, one after the other.
    pub fn concat(&self, other: &[Item]) -> Array {
        Array::new(self.items.iter().chain(other).cloned().collect())
    }

    /// The flattened items in order; none when there are too many to list.
    pub fn runs(&self) -> Option<Vec<Run>> {
        let mut runs = Vec::new();
        if self.too_large() {
            return None;
        }
        self.collect_runs(&mut runs);
        Some(runs)
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

    /// The choices of a selector with probabilities that add up to 1, and whether they had to be scaled. None
    /// when there are too many to list.
    ///
    /// Items without a probability share equally what is left of 100%, an inner array counting as one; when no
    /// probability is given anywhere, all flattened items are alike.
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
                // Copies of an array share its probability; one pass with all of it is the same.
                Value::Array(inner) => inner.collect_choices(share * weight, out, scaled),
                value => {
                    out.push(Choice { value: value.clone(), probability: share * weight, span: item.span })
                }
            }
        }
    }

    /// The probability of each item as written.
    fn weights(&self, scaled: &mut Option<Scaled>) -> Vec<f64> {
        let given: f64 = self.items.iter().filter_map(|item| item.probability).sum();
        let open = self.items.iter().filter(|item| item.probability.is_none()).count();
        if open == 0 && given <= 0.99 {
            *scaled = scaled.or(Some(Scaled::Up(given)));
        }
        if given >= 1.01 {
            *scaled = scaled.or(Some(Scaled::Down(given)));
        }
        let equal = 1.0 / self.items.len().max(1) as f64;
        let left = (1.0 - given).max(0.0) / open.max(1) as f64;
        let scale = if open == 0 || given > 1.0 { given } else { 1.0 };
        self.items
            .iter()
            .map(|item| match item.probability {
                Some(_) if given <= 0.0 && open == 0 => equal,
                Some(p) => p / scale,
                None => left,
            })
            .collect()
    }
}

impl Leaves {
    fn with(self, item: &Item) -> Leaves {
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
    /// A value without probability.
    pub fn plain(value: Value, span: Span) -> Self {
        Self { value, probability: None, times: 1, span }
    }

    fn run_count(&self) -> u64 {
        match &self.value {
            Value::Array(inner) => inner.run_count.saturating_mul(u64::from(self.times)),
            _ => 1,
        }
    }

    /// Number of flattened items it stands for.
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
