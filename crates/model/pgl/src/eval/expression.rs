//! Evaluation of expressions.

use std::rc::Rc;

use assay_workload::model::ExpiryBase;

use super::arithmetic::{self, OperatorError};
use super::script::runtime;
use super::{ErrorReported, EvalResult, Interpreter};
use crate::ast::{Expr, ExprKind, Operator};
use crate::diagnostic::{Code, Diagnostic};
use crate::lexer::Literal;
use crate::schema::{Base, RecordKind, Ty};
use crate::source::Span;
use crate::value::array::{Array, Item, MAX_ITEMS};
use crate::value::{Record, Slot, Value};

impl Interpreter<'_> {
    /// Evaluates an expression; never to a broken value.
    pub(super) fn value(&mut self, expr: &Expr) -> EvalResult<Value> {
        match &expr.kind {
            ExprKind::Literal(literal) => literal_value(literal, expr.span).ok_or(ErrorReported),
            ExprKind::Path(path) => match (&*path.first.text, path.rest.is_empty()) {
                ("now", true) => Ok(Value::Moment(ExpiryBase::Now)),
                ("lmt", true) => Ok(Value::Moment(ExpiryBase::LastModified)),
                ("nmt", true) => Ok(Value::Moment(ExpiryBase::NextModified)),
                _ => self.read(path),
            },
            ExprKind::Unary(operator, operand) => {
                let value = self.value(operand)?;
                arithmetic::unary(*operator, &value).or_else(|why| {
                    let kinds = value.type_name();
                    self.operator_failed(why, *operator, &kinds, expr.span)
                })
            }
            ExprKind::Chain(first, rest) => self.chain(first, rest),
            ExprKind::Array(items) => self.array(items, expr.span),
            ExprKind::Call(call) => self.call_function(call),
            ExprKind::Regex { subject, text } => Ok(Value::Regex(format!("{} {text}", subject.text).into())),
            ExprKind::Broken => Err(ErrorReported),
        }
    }

    fn chain(&mut self, first: &Expr, rest: &[(Operator, Span, Expr)]) -> EvalResult<Value> {
        let mut left = self.value(first);
        let mut span = first.span;
        for (operator, _, expr) in rest {
            // The right side is evaluated even if the left failed, to report its errors in the same run.
            let right = self.value(expr);
            let whole = span.to(expr.span);
            if let (Ok(left), Ok(right)) = (&left, &right)
                && runtime::may_confuse_share_and_percents(left, *operator, right)
            {
                self.diagnostics.add(share_and_percents_warning(whole));
            }
            left = match (left, right) {
                (Ok(left), Ok(right)) => arithmetic::binary(&left, *operator, &right, (span, expr.span))
                    .or_else(|why| {
                        let kinds = format!("{} and {}", left.type_name(), right.type_name());
                        self.operator_failed(why, *operator, &kinds, whole)
                    }),
                _ => Err(ErrorReported),
            };
            span = whole;
        }
        left
    }

    pub(super) fn operator_failed(
        &mut self,
        why: OperatorError,
        operator: Operator,
        kinds: &str,
        span: Span,
    ) -> EvalResult<Value> {
        let operator = operator.text();
        self.fail(match why {
            OperatorError::NoSuchOperator(help) => {
                Diagnostic::error(Code::NoOperator, span, format!("`{operator}` does not work for {kinds}"))
                    .label(format!("these are {kinds}"))
                    .maybe_help(help.map(str::to_owned))
            }
            OperatorError::Arithmetic(why) => Diagnostic::error(Code::Arithmetic, span, why)
                .label(format!("this `{operator}` has no result")),
            OperatorError::TooMany => too_many_items(span),
        })
    }

    fn array(&mut self, items: &[(Expr, Option<Expr>)], span: Span) -> EvalResult<Value> {
        let mut made = Vec::with_capacity(items.len());
        let mut complete = true;
        for (expr, probability) in items {
            let value = self.value(expr);
            let probability = probability.as_ref().map(|expr| self.probability(expr));
            match (value, probability) {
                (Ok(Value::Undefined), _) => {
                    complete = false;
                    self.diagnostics.add(
                        Diagnostic::error(Code::NoValue, expr.span, "an item of an array must have a value")
                            .label("`undef()` is none; leave the item out"),
                    );
                }
                (Ok(value), None) => made.push(Item::plain(value, expr.span)),
                (Ok(value), Some(Ok(p))) => {
                    made.push(Item { probability: Some(p), ..Item::plain(value, expr.span) });
                }
                _ => complete = false,
            }
        }
        if !complete {
            return Err(ErrorReported);
        }
        arithmetic::checked_array(Array::new(made)).or_else(|_| self.fail(too_many_items(span)))
    }

    /// A probability behind a colon.
    pub(super) fn probability(&mut self, expr: &Expr) -> EvalResult<f64> {
        let value = self.value(expr)?;
        match self.fit(value, Ty::one(Base::Float), expr.span)?.float().ok_or(ErrorReported)? {
            p if p >= 0.0 && p.is_finite() => Ok(p),
            _ => self.fail(
                Diagnostic::error(Code::OutOfRange, expr.span, "a probability cannot be negative")
                    .label("expected 0% to 100%"),
            ),
        }
    }
}

fn share_and_percents_warning(span: Span) -> Diagnostic {
    Diagnostic::warning(Code::OutOfRange, span, "a ratio is compared with at most one percent")
        .label("ratios are in percent, from 0 to 100")
        .help("write `50%` if half is meant, or `0.5%` if one in two hundred is")
}

pub(super) fn too_many_items(span: Span) -> Diagnostic {
    Diagnostic::error(Code::TooMany, span, "this array is too large")
        .label(format!("at most {MAX_ITEMS} items that are written one by one, not as a range or with `**`"))
}

/// The value of a literal; none for a broken one, which was reported.
fn literal_value(literal: &Literal, span: Span) -> Option<Value> {
    Some(match literal {
        Literal::Bool(x) => Value::Bool(*x),
        Literal::Int(x) => Value::Int(*x),
        Literal::Float(x) => Value::Float(*x),
        Literal::Percent(x) => Value::Percent(*x),
        Literal::Time(x) => Value::Time(*x),
        Literal::Size(x) => Value::Size(*x),
        Literal::Date(x) => Value::Date(*x),
        Literal::Text(x) => Value::Text(x.clone()),
        Literal::Address(x) => Value::Address(x.clone()),
        Literal::Header(name, value) => header(name, value, span),
        Literal::Broken => return None,
    })
}

/// A MIME header written in single quotes.
fn header(name: &str, value: &str, span: Span) -> Value {
    let mut record = Record::new(RecordKind::MimeHeader);
    for (index, text) in [(0, name), (1, value)] {
        if let Some(slot) = record.slot_mut(index) {
            *slot = Slot { value: Value::text(text), span };
        }
    }
    Value::Record(Rc::new(record))
}
