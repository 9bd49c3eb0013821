//! `list = list + item`, the idiom by which programs build lists line by line: appends in place, without a copy of the list.

use std::rc::Rc;

use super::lookup::AssignmentTarget;
use super::{EvalResult, Interpreter, arithmetic};
use crate::ast::{Expr, ExprKind, Operator, Path, RightSide};
use crate::source::Span;
use crate::value::Value;
use crate::value::array::{Array, Item};

impl Interpreter<'_> {
    /// Operands that an assignment of the form `list = list + a + b` appends; none for any other assignment.
    pub(super) fn appended_operands<'e>(
        &self,
        path: &Path,
        target: &AssignmentTarget,
        value: &'e RightSide,
    ) -> Option<&'e [(Operator, Span, Expr)]> {
        let RightSide::Expr(Expr { kind: ExprKind::Chain(first, rest), .. }) = value else { return None };
        let ExprKind::Path(source) = &first.kind else { return None };
        let plus = rest.iter().all(|(operator, ..)| *operator == Operator::Plus);
        let independent = rest.iter().all(|(.., expr)| !mentions(expr, &path.first.text));
        let list = self.script.is_none() && matches!(self.read_target(target), Value::Array(_));
        (plus && independent && list && same_path(path, source)).then_some(rest)
    }

    pub(super) fn append(
        &mut self,
        target: &AssignmentTarget,
        operands: &[(Operator, Span, Expr)],
        span: Span,
    ) -> EvalResult<()> {
        let mut values = Vec::with_capacity(operands.len());
        for (.., expr) in operands {
            values.push((self.value(expr), expr.span));
        }
        let mut current = self.read_target(target);
        // With its variable emptied, the list has one owner, and `Rc::make_mut` copies nothing.
        self.write_target(target, Value::Broken, span);
        for (value, value_span) in values {
            current = match (current, value) {
                (Value::Array(mut array), Ok(value)) => {
                    extend(Rc::make_mut(&mut array), value, value_span);
                    Value::Array(array)
                }
                _ => Value::Broken,
            };
        }
        let checked = match current {
            Value::Array(array) if !arithmetic::is_workable(&array) => {
                self.diagnostics.add(super::expression::too_many_items(span));
                Value::Broken
            }
            value => self.fit(value, target.ty, span).unwrap_or(Value::Broken),
        };
        self.write_target(target, checked, span);
        Ok(())
    }
}

fn extend(array: &mut Array, value: Value, span: Span) {
    match value {
        Value::Array(other) => other.items().iter().for_each(|item| array.push(item.clone())),
        value => array.push(Item::plain(value, span)),
    }
}

/// True for an expression that reads a variable or one of its members.
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
