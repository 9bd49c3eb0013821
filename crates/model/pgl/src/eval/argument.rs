//! What functions are called with.

use std::rc::Rc;

use crate::source::Span;
use crate::value::Value;
use crate::value::array::{Array, MAX_ITEMS};

/// An argument with its place.
#[derive(Debug, Clone)]
pub(super) struct Argument {
    pub value: Value,
    pub span: Span,
}

/// All flattened items one by one; none when there are too many.
pub(super) fn flatten(array: &Array) -> Option<Vec<Value>> {
    if array.count() > MAX_ITEMS {
        return None;
    }
    let mut all = Vec::with_capacity(array.count() as usize);
    for run in array.runs()? {
        for _ in 0..run.times {
            all.extend((0..run.value.count()).map(|index| nth(&run.value, index)));
        }
    }
    Some(all)
}

/// One of the values that a range stands for.
pub(super) fn nth(value: &Value, index: u64) -> Value {
    match value {
        Value::Address(range) => Value::Address(Rc::new(range.nth(index))),
        Value::Text(pattern) => Value::Text(Rc::new(pattern.nth(index))),
        other => other.clone(),
    }
}
