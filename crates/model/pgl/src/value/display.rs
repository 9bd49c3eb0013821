//! Values in PGL's notation, for `print` and messages.

use std::fmt;

use assay_workload::model::{Distribution, ExpiryBase, PopularityLaw};

use super::array::Item;
use super::{Random, Value};
use crate::schema::Base;

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Value::Undefined | Value::Broken => f.write_str("undef()"),
            Value::Bool(x) => f.write_str(if *x { "yes" } else { "no" }),
            Value::Int(x) => write!(f, "{x}"),
            Value::Float(x) => write!(f, "{}", number(*x)),
            Value::Percent(x) => write!(f, "{}", number(x / 100.0)),
            Value::Time(x) => f.write_str(&in_units(*x, &TIMES)),
            Value::Size(x) => f.write_str(&in_units(*x, &SIZES)),
            Value::Rate(x) => write!(f, "{}/sec", number(*x)),
            Value::Bandwidth(x) => write!(f, "{}/sec", in_units(*x, &SIZES)),
            Value::Date(x) => write!(f, "{} after 1970", in_units(*x, &TIMES)),
            Value::Text(x) => write!(f, "{x}"),
            Value::Address(x) => write!(f, "'{x}'"),
            Value::Regex(x) => f.write_str(x),
            Value::Id(x) => write!(f, "{x:08x}"),
            Value::Random(x) => write!(f, "{x}"),
            Value::Popularity(PopularityLaw::Uniform) => f.write_str("popUnif()"),
            Value::Popularity(PopularityLaw::Zipf { skew }) => write!(f, "popZipf({})", number(*skew)),
            Value::Popularity(PopularityLaw::Table(_)) => f.write_str("popTable(...)"),
            Value::Moment(x) => f.write_str(moment(*x)),
            Value::Array(array) => list(f, array.items()),
            Value::Record(record) => {
                f.write_str("{ ")?;
                for (field, slot) in record.set_fields() {
                    write!(f, "{} = {}; ", field.name, slot.value)?;
                }
                f.write_str("}")
            }
            Value::Code(_) => f.write_str("{ ... }"),
            Value::RuntimeNumber(_) | Value::SampleRequest { .. } | Value::Sample(_) => {
                f.write_str("a measurement")
            }
        }
    }
}

impl fmt::Display for Random {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(base) = self.moment {
            write!(f, "{} + ", moment(base))?;
        }
        let of = |x: f64| match self.kind {
            Base::Time => in_units(x, &TIMES),
            Base::Size => in_units(x, &SIZES),
            Base::Rate => format!("{}/sec", number(x)),
            _ => number(x),
        };
        match &self.law {
            Distribution::Constant(x) => write!(f, "const({})", of(*x)),
            Distribution::Uniform { low, high } => write!(f, "unif({}, {})", of(*low), of(*high)),
            Distribution::Exponential { mean } => write!(f, "exp({})", of(*mean)),
            Distribution::Normal { mean, deviation } => write!(f, "norm({}, {})", of(*mean), of(*deviation)),
            Distribution::LogNormal { mean, deviation } => {
                write!(f, "logn({}, {})", of(*mean), of(*deviation))
            }
            Distribution::Zipf { n } => write!(f, "zipf({})", of(*n)),
            Distribution::Sequence { first } => write!(f, "seq({})", of(*first)),
            Distribution::Table(bins) => write!(f, "table of {} bins", bins.len()),
        }
    }
}

/// Items that are shown of an array.
const MAX_SHOWN: usize = 20;

fn list(f: &mut fmt::Formatter<'_>, items: &[Item]) -> fmt::Result {
    f.write_str("[")?;
    for (index, item) in items.iter().take(MAX_SHOWN).enumerate() {
        let comma = if index > 0 { ", " } else { "" };
        match &item.value {
            Value::Text(text) => write!(f, "{comma}\"{text}\"")?,
            Value::Array(inner) if inner.depth() > 3 => write!(f, "{comma}[...]")?,
            value => write!(f, "{comma}{value}")?,
        }
        if item.times != 1 {
            write!(f, " ** {}", item.times)?;
        }
        if let Some(p) = item.probability {
            write!(f, ": {}%", number(p * 100.0))?;
        }
    }
    let more = items.len().saturating_sub(MAX_SHOWN);
    if more > 0 {
        write!(f, ", ... {more} more")?;
    }
    f.write_str("]")
}

fn moment(base: ExpiryBase) -> &'static str {
    match base {
        ExpiryBase::Now => "now",
        ExpiryBase::LastModified => "lmt",
        ExpiryBase::NextModified => "nmt",
    }
}

const TIMES: [(f64, &str); 5] =
    [(86_400.0, "day"), (3600.0, "hour"), (60.0, "min"), (1.0, "sec"), (0.001, "msec")];
const SIZES: [(f64, &str); 4] = [(1_073_741_824.0, "GB"), (1_048_576.0, "MB"), (1024.0, "KB"), (1.0, "Byte")];

/// A quantity in the largest unit of which it is at least one.
fn in_units(x: f64, units: &[(f64, &str)]) -> String {
    let fit = units.iter().find(|(one, _)| x.abs() >= *one);
    let base = units.iter().find(|(one, _)| *one == 1.0);
    match fit.or(base) {
        Some((one, name)) => format!("{}{name}", number(x / one)),
        None => number(x),
    }
}

/// A number with at most six decimals.
fn number(x: f64) -> String {
    let text = format!("{x:.6}");
    let text = text.trim_end_matches('0').trim_end_matches('.');
    if text == "-0" { "0".into() } else { text.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::source::Span;

    #[test]
    fn values_are_shown_as_they_would_be_written() {
        assert_eq!(Value::Time(640.0).to_string(), "10.666667min");
        assert_eq!(Value::Time(300.0).to_string(), "5min");
        assert_eq!(Value::Time(0.3).to_string(), "300msec");
        assert_eq!(Value::Size(0.0).to_string(), "0Byte");
        assert_eq!(Value::Size(8.5 * 1024.0).to_string(), "8.5KB");
        assert_eq!(Value::Rate(0.4).to_string(), "0.4/sec");
        let item = Item { probability: Some(0.25), ..Item::plain(Value::text("a"), Span::default()) };
        assert_eq!(Value::array(vec![item]).to_string(), "[\"a\": 25%]");
    }
}
