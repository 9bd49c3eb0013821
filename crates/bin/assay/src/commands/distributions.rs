//! The random variables of a workload as small histograms. A part of `assay check`.

use std::fmt::Write;
use std::time::Duration;

use assay_base::settings::show::bytes;
use assay_workload::explain::shape::{Shape, Unit};

use crate::units::show_duration;

/// A line for each: what it is, from where to where, its bars, its mean and percentiles.
pub fn text(shapes: &[Shape]) -> String {
    if shapes.is_empty() {
        return String::new();
    }
    let mut text =
        "\ndistributions, as drawn (`log`: each bar is a ratio wide, not a difference):\n".to_owned();
    for shape in shapes {
        let show = |value: f64| figure(shape.unit, value);
        let scale = if shape.logarithmic { "log" } else { "" };
        // Writing to a string cannot fail.
        let _ = writeln!(
            text,
            "  {}\n      {:>9} {} {:<9} {scale:<3}  mean {}, median {}, p99 {}",
            shape.name,
            show(shape.low),
            shape.bars(),
            show(shape.high),
            show(shape.mean),
            show(shape.median),
            show(shape.p99),
        );
    }
    text
}

fn figure(unit: Unit, value: f64) -> String {
    match unit {
        Unit::Bytes => bytes(value as u64),
        Unit::Seconds => match Duration::try_from_secs_f64(value.abs()) {
            Ok(time) if value < 0.0 => format!("-{}", show_duration(time)),
            Ok(time) if time > Duration::from_secs(2 * 86_400) => format!("{:.1}d", value / 86_400.0),
            Ok(time) => show_duration(time),
            Err(_) => format!("{value:.2e}s"),
        },
        Unit::Count => format!("{value:.0}"),
    }
}

#[cfg(test)]
mod tests {
    use assay_workload::model::Distribution;

    use super::*;

    #[test]
    fn every_unit_is_written_as_people_write_it() {
        assert_eq!(figure(Unit::Bytes, 13_517.0), "13.2 KB");
        assert_eq!(figure(Unit::Seconds, 2.5), "2.5s");
        assert_eq!(figure(Unit::Seconds, -0.25), "-250ms");
        assert_eq!(figure(Unit::Seconds, 7.0 * 86_400.0), "7.0d");
        assert_eq!(figure(Unit::Count, 4.0), "4");
    }

    #[test]
    fn a_distribution_takes_two_lines_with_its_bars() {
        let law = Distribution::Exponential { mean: 8.5 * 1024.0 };
        let printed = text(&[Shape::of("content \"HTML\": size", Unit::Bytes, &law).unwrap()]);
        assert_eq!(printed.lines().count(), 4, "{printed}");
        assert!(printed.contains('█') && printed.contains("mean 8.5 KB"), "{printed}");
        assert_eq!(text(&[]), "");
    }
}
