//! `[a, b: 25%, c] = items`: deals the items of an array to names.

use assay_base::random::shuffle;

use super::expression::too_many_items;
use super::{ErrorReported, EvalResult, Interpreter};
use crate::ast::{Expr, Path};
use crate::diagnostic::{Code, Diagnostic};
use crate::source::Span;
use crate::value::Value;

impl Interpreter<'_> {
    pub(super) fn assign_group(
        &mut self,
        targets: &[(Path, Option<Expr>)],
        value: &Expr,
        span: Span,
    ) -> EvalResult<()> {
        let shares: Vec<Option<f64>> = targets
            .iter()
            .map(|(_, share)| share.as_ref().and_then(|share| self.probability(share).ok()))
            .collect();
        let items = self.value(value);
        let parts = match &items {
            Ok(Value::Array(array)) => {
                let Some(items) = array.flatten() else { return self.fail(too_many_items(value.span)) };
                self.deal_items(items, &shares, value.span, span)?
            }
            // What is no array is copied to every name, a bare range too.
            Ok(single) => vec![single.clone(); targets.len()],
            Err(ErrorReported) => vec![Value::Broken; targets.len()],
        };
        for ((path, _), part) in targets.iter().zip(parts) {
            let Ok(target) = self.assignment_target(path) else { continue };
            let part = match part {
                Value::Array(array) if target.ty.arrays == 0 && array.items().len() == 1 => {
                    array.items().first().map_or(Value::Broken, |item| item.value.clone())
                }
                other => other,
            };
            let part = match self.runtime_value_as(&part, target.ty) {
                Some(part) => part,
                None => self.fit(part, target.ty, value.span).unwrap_or(Value::Broken),
            };
            self.store(&target, part, path.span())?;
        }
        Ok(())
    }

    /// The items of each name: equal parts in order, or, if any share is given, random ones of that number.
    fn deal_items(
        &mut self,
        mut items: Vec<Value>,
        shares: &[Option<f64>],
        from: Span,
        span: Span,
    ) -> EvalResult<Vec<Value>> {
        let names = shares.len();
        if names == 0 {
            return Ok(vec![]);
        }
        let list = |items: Vec<Value>| Value::list(items, from);
        if shares.iter().all(Option::is_none) {
            if !items.len().is_multiple_of(names) {
                return self.fail(
                    Diagnostic::error(
                        Code::GroupAssignment,
                        span,
                        format!("{} items cannot be dealt evenly to {names} names", items.len()),
                    )
                    .label("expected as many items for each name")
                    .help("say how many each name gets with a probability: `[a: 25%, b] = ...`"),
                );
            }
            let each = (items.len() / names).max(1);
            let mut parts: Vec<Value> = items.chunks(each).map(|part| list(part.to_vec())).collect();
            parts.resize(names, list(vec![]));
            return Ok(parts);
        }
        let explicit: f64 = shares.iter().flatten().sum();
        if explicit > 1.0 + 1e-9 {
            return self.fail(
                Diagnostic::error(Code::GroupAssignment, span, "more than 100% of the items are dealt")
                    .label(format!("these add up to {}%", (explicit * 1e4).round() / 1e2)),
            );
        }
        // Names without a share divide the rest equally.
        let open = shares.iter().filter(|share| share.is_none()).count().max(1) as f64;
        let total = items.len() as f64;
        shuffle(&mut items, |n| self.generator.below(n));
        let mut parts = Vec::with_capacity(names);
        for share in shares {
            let share = share.unwrap_or((1.0 - explicit) / open);
            // Without the tolerance, 7% of 100 items would be 8: in floating point, 0.07 × 100 exceeds 7.
            let wanted = (share * total - 1e-9).ceil().max(0.0) as usize;
            let rest = items.split_off(wanted.min(items.len()));
            parts.push(list(std::mem::replace(&mut items, rest)));
        }
        Ok(parts)
    }
}
