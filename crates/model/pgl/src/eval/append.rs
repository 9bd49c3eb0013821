//! `list = list + item`: what lists are built with, a line for each item. The list is not copied for it.

use std::rc::Rc;

use super::lookup::Place;
use super::{Evaluated, Interpreter, arithmetic};
use crate::ast::{Assigned, Expr, ExprKind, Operator, Path};
use crate::source::Span;
use crate::value::Value;
use crate::value::array::{Array, Item};

impl Interpreter<'_> {
    /// What is put behind a list, when that is all an assignment does.
    pub(super) fn appended<'e>(
        &self,
        target: &Path,
        place: &Place,
        value: &'e Assigned,
    ) -> Option<&'e [(Operator, Span, Expr)]> {
        let Assigned::Expr(Expr { kind: ExprKind::Chain(first, rest), .. }) = value else { return None };
        let ExprKind::Path(path) = &first.kind else { return None };
        let plus = rest.iter().all(|(operator, ..)| *operator == Operator::Plus);
        let apart = rest.iter().all(|(.., expr)| !mentions(expr, &target.first.text));
        let list = self.script.is_none() && matches!(self.read_place(place), Value::Array(_));
        (plus && apart && list && same_path(target, path)).then_some(rest)
    }

    /// Puts values behind the list at a place; what is no list is added as always.
    pub(super) fn append(
        &mut self,
        place: &Place,
        rest: &[(Operator, Span, Expr)],
        target: Span,
    ) -> Evaluated<()> {
        let mut values = Vec::with_capacity(rest.len());
        for (.., expr) in rest {
            values.push((self.value(expr), expr.span));
        }
        let mut current = self.read_place(place);
        // Nobody else holds the list now, so that it can be changed where it is.
        self.write_place(place, Value::Broken, target);
        for (value, span) in values {
            current = match (current, value) {
                (Value::Array(mut array), Ok(value)) => {
                    extend(Rc::make_mut(&mut array), value, span);
                    Value::Array(array)
                }
                _ => Value::Broken,
            };
        }
        let checked = match current {
            Value::Array(array) if !arithmetic::fits(&array) => {
                self.diagnostics.add(super::expression::too_many(target));
                Value::Broken
            }
            value => self.fit(value, place.ty, target).unwrap_or(Value::Broken),
        };
        self.write_place(place, checked, target);
        Ok(())
    }
}

/// A value behind a list, or the items of another list.
fn extend(array: &mut Array, value: Value, span: Span) {
    match value {
        Value::Array(other) => other.items().iter().for_each(|item| array.push(item.clone())),
        value => array.push(Item::plain(value, span)),
    }
}

/// True for an expression that reads a name, or anything in it.
fn mentions(expr: &Expr, name: &str) -> bool {
    match &expr.kind {
        ExprKind::Path(path) => *path.first.text == *name,
        ExprKind::Unary(_, inner) => mentions(inner, name),
        ExprKind::Chain(first, rest) => {
            mentions(first, name) || rest.iter().any(|(.., expr)| mentions(expr, name))
        }
        ExprKind::Array(items) => items
            .iter()
            .any(|(item, share)| mentions(item, name) || share.as_ref().is_some_and(|p| mentions(p, name))),
        ExprKind::Call(call) => call.arguments.iter().any(|argument| mentions(argument, name)),
        ExprKind::Literal(_) | ExprKind::Regex { .. } | ExprKind::Broken => false,
    }
}

fn same_path(a: &Path, b: &Path) -> bool {
    a.first.text == b.first.text
        && a.rest.len() == b.rest.len()
        && a.rest.iter().zip(&b.rest).all(|(a, b)| a.text == b.text)
}
