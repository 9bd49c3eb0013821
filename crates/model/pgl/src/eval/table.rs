//! Functions that read a file: distributions from a histogram, hosts from a list of URLs.

use std::collections::BTreeSet;
use std::rc::Rc;

use assay_workload::model::{Bin, Distribution};

use super::convert::age_law;
use super::functions::Argument;
use super::{ErrorReported, EvalResult, Interpreter};
use crate::ast::Call;
use crate::diagnostic::{Code, Diagnostic};
use crate::schema::{Base, Ty};
use crate::source::REPLACEMENT;
use crate::trace::{self, UrlError};
use crate::units::{self, Unit};
use crate::value::address::AddrRange;
use crate::value::{Random, Value};

impl Interpreter<'_> {
    /// The text of a file that an argument names.
    pub(super) fn file(&mut self, argument: &Argument) -> EvalResult<String> {
        let name = self.argument(argument, Base::Text)?.to_string();
        let including = self.sources.get(argument.span.source as usize).map(|source| source.name.clone());
        match self.resolver.read(&name, including.as_deref()) {
            Ok(found) => Ok(found.text),
            Err(why) => self.fail(
                Diagnostic::error(Code::Directive, argument.span, format!("cannot read `{name}`"))
                    .label(why.to_string())
                    .help("name the directory it is in with -I DIR"),
            ),
        }
    }
}

/// `table(file [, type])`.
pub(super) fn table(i: &mut Interpreter<'_>, _: &Call, arguments: &[Argument]) -> EvalResult<Value> {
    let [file, rest @ ..] = arguments else { return Err(ErrorReported) };
    let text = i.file(file)?;
    let wanted = match rest.first() {
        Some(argument) => Some(i.argument(argument, Base::Text)?.to_string()),
        None => None,
    };
    let (kind, bins) = match parse_table(&text) {
        Ok(table) => table,
        Err(error) => {
            return i.fail(
                Diagnostic::error(Code::BadLiteral, file.span, "the table cannot be read")
                    .label(error.to_string()),
            );
        }
    };
    if let Some(wanted) = wanted
        && wanted.trim_end_matches("_distr") != kind.name()
    {
        return i.fail(
            Diagnostic::error(
                Code::TypeMismatch,
                file.span,
                format!("expected {wanted}, found {}_distr", kind.name()),
            )
            .label("the file says of what type its table is"),
        );
    }
    Ok(Value::Random(Rc::new(Random { kind, law: Distribution::Table(bins), moment: None })))
}

/// An error in a file that a function reads, with its line (from 1).
#[derive(Debug, PartialEq, thiserror::Error)]
#[error("line {line} of the file: {error}")]
pub(super) struct LineError<E> {
    pub line: usize,
    pub error: E,
}

/// A histogram that cannot be read.
#[derive(Debug, PartialEq, thiserror::Error)]
enum TableError {
    #[error("column {0} is not text (UTF-8)")]
    NotText(usize),
    #[error("expected `<type>_distr name = {{`")]
    NoHeader,
    #[error("expected nothing after `}}`")]
    AfterEnd,
    #[error("expected `bin weight`")]
    NoWeight,
    #[error("`{0}` is not a bin")]
    NotABin(String),
    #[error("expected a total after `*/`")]
    NoTotal,
    #[error("only one weight may be `*/total`")]
    SecondTotal,
    #[error("`{0}` is not a weight")]
    NotAWeight(String),
    #[error("a weight is a number, not below zero")]
    WeightOutOfRange,
    #[error("expected `}}` at the end")]
    NoEnd,
    #[error("this bin overlaps with that of line {0}")]
    Overlap(usize),
    #[error("expected at least one bin with a weight")]
    NoBins,
}

/// `<type>_distr name = {`, lines of bin and weight, `}`.
fn parse_table(text: &str) -> Result<(Base, Vec<Bin>), LineError<TableError>> {
    let error_at = |line: usize, error: TableError| LineError { line, error };
    let lines = text.lines().enumerate().map(|(at, line)| (at + 1, line.split('#').next().unwrap_or("")));
    for (at, line) in lines.clone() {
        if let Some(before) = line.find(REPLACEMENT) {
            let column = line[..before].chars().count() + 1;
            return Err(error_at(at, TableError::NotText(column)));
        }
    }
    let mut lines = lines.map(|(at, line)| (at, line.trim())).filter(|(_, line)| !line.is_empty());
    let (at, first) = lines.next().ok_or_else(|| error_at(1, TableError::NoHeader))?;
    let ty = first.split_whitespace().next().and_then(Ty::named).filter(|ty| ty.random);
    let ty = ty.filter(|_| first.ends_with('{')).ok_or_else(|| error_at(at, TableError::NoHeader))?;
    let mut bins: Vec<Bin> = Vec::new();
    let mut bin_lines: Vec<usize> = Vec::new();
    // Index of the bin whose weight is `*/total`, and that total.
    let mut remainder: Option<(usize, f64)> = None;
    let mut closed = false;
    for (at, line) in lines {
        if closed {
            return Err(error_at(at, TableError::AfterEnd));
        }
        if line == "}" {
            closed = true;
            continue;
        }
        let (bin, weight) =
            line.split_once(char::is_whitespace).ok_or_else(|| error_at(at, TableError::NoWeight))?;
        let (low, high) = parse_bin(bin, bins.last(), ty.base)
            .ok_or_else(|| error_at(at, TableError::NotABin(bin.to_owned())))?;
        let weight = match weight.trim().strip_prefix("*/") {
            Some(total) if remainder.is_none() => {
                let total = total.trim().parse().map_err(|_| error_at(at, TableError::NoTotal))?;
                remainder = Some((bins.len(), total));
                0.0
            }
            Some(_) => return Err(error_at(at, TableError::SecondTotal)),
            None => weight
                .trim()
                .parse()
                .map_err(|_| error_at(at, TableError::NotAWeight(weight.trim().to_owned())))?,
        };
        if !(0.0..=f64::MAX).contains(&weight) {
            return Err(error_at(at, TableError::WeightOutOfRange));
        }
        bins.push(Bin { low, high, weight });
        bin_lines.push(at);
    }
    let last = text.lines().count().max(1);
    if !closed {
        return Err(error_at(last, TableError::NoEnd));
    }
    if let Some((index, total)) = remainder {
        let rest: f64 = bins.iter().map(|bin| bin.weight).sum();
        if let Some(bin) = bins.get_mut(index) {
            bin.weight = (total - rest).max(0.0);
        }
    }
    if let Some((first, second)) = overlap(&bins, &bin_lines) {
        return Err(error_at(second, TableError::Overlap(first)));
    }
    bins.retain(|bin| bin.weight > 0.0);
    if bins.is_empty() {
        return Err(error_at(last, TableError::NoBins));
    }
    Ok((ty.base, bins))
}

/// The lines of two bins with a value in common, the first one first. A bin is the half-open interval from its low end to
/// its high end; one whose ends are equal holds that value, and takes it from a bin that begins there.
fn overlap(bins: &[Bin], lines: &[usize]) -> Option<(usize, usize)> {
    let mut sorted: Vec<(&Bin, usize)> = bins.iter().zip(lines.iter().copied()).collect();
    sorted.retain(|(bin, _)| bin.weight > 0.0);
    sorted.sort_by(|(a, _), (b, _)| a.low.total_cmp(&b.low).then(a.high.total_cmp(&b.high)));
    let mut pairs = sorted.windows(2);
    pairs.find_map(|pair| {
        let &[(a, first), (b, second)] = pair else { return None };
        let is_same_value = a.low == b.high;
        (b.low < a.high || is_same_value).then_some((first.min(second), first.max(second)))
    })
}

/// `500`, `lo:hi`, or `:hi`, which begins where the last ended.
fn parse_bin(text: &str, before: Option<&Bin>, kind: Base) -> Option<(f64, f64)> {
    let (low, high) = match text.split_once(':') {
        None => {
            let point = parse_number(text, kind)?;
            (point, point)
        }
        Some(("", high)) => (before.map_or(0.0, |bin| bin.high), parse_number(high, kind)?),
        Some((low, high)) => (parse_number(low, kind)?, parse_number(high, kind)?),
    };
    (low <= high).then_some((low, high))
}

/// A number with a unit of its base type, or without a unit.
fn parse_number(text: &str, kind: Base) -> Option<f64> {
    let split = text.find(|c: char| c.is_ascii_alphabetic() && c != 'e').unwrap_or(text.len());
    let (digits, unit) = text.split_at(split);
    let number: f64 = digits.parse().ok().filter(|x: &f64| x.is_finite())?;
    if unit.is_empty() {
        return Some(number);
    }
    match (units::unit(unit)?, kind) {
        (unit @ Unit::Time(_), Base::Time) | (unit @ Unit::Size(_), Base::Size) => Some(unit.times(number)),
        _ => None,
    }
}

/// `popTable(file)` or `popTable(distribution)`: popularity of objects by their age.
pub(super) fn popularity(i: &mut Interpreter<'_>, call: &Call, arguments: &[Argument]) -> EvalResult<Value> {
    let [argument] = arguments else { return Err(ErrorReported) };
    let value = match &argument.value {
        Value::Text(_) => table(i, call, arguments)?,
        other => other.clone(),
    };
    let law = match &value {
        Value::Random(random) => age_law(random),
        _ => None,
    };
    law.map(Value::Popularity).map_or_else(
        || {
            i.fail(
                Diagnostic::error(Code::OutOfRange, argument.span, "this is not a table of ages")
                    .label("expected a histogram of real numbers from 0 (the newest) to 1 (the oldest)")
                    .help("in the file: `float_distr ages = {`, lines such as `0:0.1 60`, and `}`"),
            )
        },
        Ok,
    )
}

/// `tracedHosts(file)`: the hosts of the URLs in a file, each once.
pub(super) fn traced_hosts(
    i: &mut Interpreter<'_>,
    call: &Call,
    arguments: &[Argument],
) -> EvalResult<Value> {
    let [file] = arguments else { return Err(ErrorReported) };
    let text = i.file(file)?;
    let mut hosts = BTreeSet::new();
    for line in trace::lines(&text) {
        match line.url {
            Ok(url) => drop(hosts.insert(url.authority)),
            Err(UrlError::Scheme(_) | UrlError::Missing) => {}
            Err(UrlError::NotText(column)) => {
                return i.fail(UrlError::not_text(file.span, line.number, column));
            }
        }
    }
    let addresses = hosts.iter().filter_map(|host| AddrRange::parse(host).ok());
    Ok(Value::list(addresses.map(|address| Value::Address(Rc::new(address))), call.span))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_have_points_intervals_and_continued_intervals() {
        let text = "# sizes\nsize_distr x = {\n 1KB 10\n 2KB:4KB 20 # half open\n :8KB */100\n}\n";
        let (kind, bins) = parse_table(text).unwrap();
        assert_eq!(kind, Base::Size);
        let bin = |low, high, weight| Bin { low, high, weight };
        assert_eq!(bins, [bin(1024., 1024., 10.), bin(2048., 4096., 20.), bin(4096., 8192., 70.)]);
    }

    #[test]
    fn a_bin_of_one_value_may_stand_where_another_begins_or_ends() {
        for text in ["0 5\n:10 5", "0:0 5\n:10 5", "0:10 5\n10 1\n10:20 1", "10:20 1\n10 1", "100 1\n:200 1"]
        {
            let (_, bins) = parse_table(&format!("size_distr d = {{\n{text}\n}}")).unwrap();
            assert_eq!(bins.len(), text.lines().count(), "{text}");
        }
        let (_, bins) = parse_table("size_distr d = {\n0 5\n:10 5\n}").unwrap();
        assert_eq!(Distribution::Table(bins).mean(), 2.5);
    }

    #[test]
    fn what_is_no_text_is_read_in_comments_and_nowhere_else() {
        assert!(parse_table("# caf\u{fffd}\nint_distr a = { # \u{fffd}\n5 1 # \u{fffd}\n}").is_ok());
        let wrong = parse_table("int_distr a = {\n5 1\u{fffd} # a\n}").unwrap_err();
        assert_eq!(wrong, LineError { line: 2, error: TableError::NotText(4) });
    }

    #[test]
    fn broken_tables_name_their_line() {
        for (text, line) in [
            ("", 1),
            ("x {\n}", 1),
            ("int_distr a = {\n5 x\n}", 2),
            ("int_distr a = {\n9:5 1\n}", 2),
            ("int_distr a = {\n1:5 1\n4:6 1\n\n}", 3),
            ("int_distr a = {\n4:6 1\n9 1\n1:5 1\n}", 4),
            ("int_distr a = {\n1:5 1\n3 1\n}", 3),
            ("int_distr a = {\n1:5 1\n1:6 1\n}", 3),
            ("int_distr a = {\n3 1\n3 1\n}", 3),
            ("int_distr a = {\n1 1", 2),
            ("int_distr a = {\n}", 2),
            ("int_distr a = {\n1 */5\n2 */5\n}", 3),
            ("int_distr a = {\n1 -5\n}", 2),
        ] {
            assert_eq!(parse_table(text).unwrap_err().line, line, "{text}");
        }
    }
}
