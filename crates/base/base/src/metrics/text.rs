//! Metrics as text: Prometheus' exposition format 0.0.4, and OpenMetrics 1.0.

use std::fmt::Write;

use crate::metrics::family::{Family, Histogram, Kind, Sample, SampleValue};

/// `Content-Type` of [`prometheus`].
pub const PROMETHEUS_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";
/// `Content-Type` of [`openmetrics`].
pub const OPENMETRICS_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// Prometheus' text format, which everybody reads.
pub fn prometheus<H: Histogram>(families: &[Family<H>]) -> String {
    write(families, false)
}

/// OpenMetrics: the same with units and a last line.
pub fn openmetrics<H: Histogram>(families: &[Family<H>]) -> String {
    write(families, true) + "# EOF\n"
}

fn write<H: Histogram>(families: &[Family<H>], open: bool) -> String {
    let mut out = String::new();
    for family in families.iter().filter(|family| !family.samples.is_empty()) {
        let name = if open { family.base_name() } else { family.name() };
        let kind = match family.kind {
            Kind::Counter => "counter",
            Kind::Gauge => "gauge",
            Kind::Histogram => "histogram",
        };
        line(&mut out, format_args!("# TYPE {name} {kind}"));
        if let (true, Some(unit)) = (open, family.unit.suffix()) {
            line(&mut out, format_args!("# UNIT {name} {unit}"));
        }
        line(&mut out, format_args!("# HELP {name} {}", escaped(&family.help, open)));
        for sample in &family.samples {
            let value = match &sample.value {
                SampleValue::Number(value) => number(*value),
                SampleValue::Count(count) => count.to_string(),
                SampleValue::Times(times) => {
                    histogram(&mut out, &name, sample, times.as_ref());
                    continue;
                }
            };
            line(&mut out, format_args!("{}{} {value}", family.name(), labels(sample, None)));
        }
    }
    out
}

/// Adds a line. Writing to a text cannot fail.
fn line(out: &mut String, words: std::fmt::Arguments<'_>) {
    let _ = out.write_fmt(words);
    out.push('\n');
}

fn histogram<H: Histogram>(out: &mut String, name: &str, sample: &Sample<H>, times: &H) {
    for (bound, count) in times.cumulative() {
        line(out, format_args!("{name}_bucket{} {count}", labels(sample, Some(&number(bound)))));
    }
    line(out, format_args!("{name}_bucket{} {}", labels(sample, Some("+Inf")), times.count()));
    line(out, format_args!("{name}_sum{} {}", labels(sample, None), number(times.sum_s())));
    line(out, format_args!("{name}_count{} {}", labels(sample, None), times.count()));
}

/// `{name="value",le="0.1"}`; nothing when there are none.
fn labels<H>(sample: &Sample<H>, bound: Option<&str>) -> String {
    let own = sample.labels.iter().map(|(name, value)| (*name, value.as_str()));
    let mut out = String::new();
    for (name, value) in own.chain(bound.map(|bound| ("le", bound))) {
        out.push(if out.is_empty() { '{' } else { ',' });
        let _ = write!(out, "{name}=\"{}\"", escaped(value, true));
    }
    if !out.is_empty() {
        out.push('}');
    }
    out
}

/// Backslashes and ends of lines cannot stand in a text, and quotes only outside of quotes. Other control characters would steer the terminal of
/// somebody who looks at it.
fn escaped(text: &str, quotes: bool) -> String {
    let text = text.replace('\\', "\\\\").replace('\n', "\\n").replace(char::is_control, "\u{fffd}");
    if quotes { text.replace('"', "\\\"") } else { text }
}

/// A number as Go reads it. OpenMetrics wants bounds to look like numbers with a point, and lets values be anything.
fn number(value: f64) -> String {
    match value {
        value if value.is_nan() => "NaN".into(),
        f64::INFINITY => "+Inf".into(),
        f64::NEG_INFINITY => "-Inf".into(),
        value if value.fract() == 0.0 && value.abs() < 1e15 => format!("{value:.1}"),
        value => format!("{value}"),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::metrics::family::Unit;

    /// Two times of 10 µs at most, and three in all.
    #[derive(Debug, Clone, PartialEq)]
    struct Three;

    impl Histogram for Three {
        fn cumulative(&self) -> impl Iterator<Item = (f64, u64)> {
            [(1e-5, 2), (1.0, 2)].into_iter()
        }

        fn sum_s(&self) -> f64 {
            1.5
        }

        fn count(&self) -> u64 {
            3
        }
    }

    fn errors(kind: &str, value: f64) -> Family<Three> {
        Family {
            kind: Kind::Counter,
            stem: "errors",
            unit: Unit::None,
            help: "Errors \\ by\nkind.".into(),
            samples: vec![Sample { labels: vec![("kind", kind.into())], value: SampleValue::Number(value) }],
        }
    }

    /// The value of the label of a line, as a reader understands it, and what follows the labels.
    fn read(line: &str) -> (String, &str) {
        let inner = line.strip_prefix("assay_errors_total{kind=\"").expect("one label");
        let (mut value, mut chars) = (String::new(), inner.char_indices());
        while let Some((at, c)) = chars.next() {
            match c {
                '"' => return (value, &inner[at + 1..]),
                '\\' => value.extend(chars.next().map(|(_, c)| if c == 'n' { '\n' } else { c })),
                c => value.push(c),
            }
        }
        panic!("the label of {line:?} does not end");
    }

    #[test]
    fn hostile_text_is_the_value_of_one_label_on_one_line() {
        for text in crate::quote::HOSTILE {
            for shown in [prometheus(&[errors(text, 3.0)]), openmetrics(&[errors(text, 3.0)])] {
                let samples: Vec<_> = shown.lines().filter(|line| !line.starts_with('#')).collect();
                assert_eq!(samples.len(), 1, "{shown:?}");
                let seen = text.replace(|c: char| c.is_control() && c != '\n', "\u{fffd}");
                assert_eq!(read(samples[0]), (seen, "} 3.0"));
            }
        }
    }

    #[test]
    fn a_counter_is_named_as_each_format_wants_it() {
        let families = [errors("a\"b\\c\nd", 3.0)];
        assert_eq!(
            prometheus(&families),
            "# TYPE assay_errors_total counter\n# HELP assay_errors_total Errors \\\\ by\\nkind.\n\
             assay_errors_total{kind=\"a\\\"b\\\\c\\nd\"} 3.0\n"
        );
        assert_eq!(
            openmetrics(&families),
            "# TYPE assay_errors counter\n# HELP assay_errors Errors \\\\ by\\nkind.\n\
             assay_errors_total{kind=\"a\\\"b\\\\c\\nd\"} 3.0\n# EOF\n"
        );
    }

    #[test]
    fn a_histogram_has_bounds_a_sum_and_a_count() {
        let family = Family {
            kind: Kind::Histogram,
            stem: "lateness",
            unit: Unit::Seconds,
            help: "Late.".into(),
            samples: vec![Sample { labels: Vec::new(), value: SampleValue::Times(Box::new(Three)) }],
        };
        let text = openmetrics(&[family]);
        assert!(text.contains("# UNIT assay_lateness_seconds seconds\n"), "{text}");
        assert!(text.contains("assay_lateness_seconds_bucket{le=\"0.00001\"} 2\n"), "{text}");
        assert!(text.contains("assay_lateness_seconds_bucket{le=\"1.0\"} 2\n"), "{text}");
        assert!(text.contains(
            "_bucket{le=\"+Inf\"} 3\nassay_lateness_seconds_sum 1.5\nassay_lateness_seconds_count 3\n"
        ));
    }

    #[test]
    fn a_whole_number_has_no_point() {
        let mut family = errors("a", 0.0);
        family.samples[0].value = SampleValue::Count(u64::MAX);
        assert!(prometheus(&[family]).ends_with("{kind=\"a\"} 18446744073709551615\n"));
    }

    #[test]
    fn families_without_series_are_left_out() {
        assert_eq!(prometheus(&[Family { samples: Vec::new(), ..errors("", 0.0) }]), "");
    }

    /// Reads one line back, as the format's grammar has it.
    fn parsed(line: &str) -> (String, String, f64) {
        let (name, rest) = line.split_once("{kind=\"").unwrap();
        let (mut value, mut chars) = (String::new(), rest.chars());
        loop {
            match chars.next().unwrap() {
                '"' => break,
                '\\' => value.push(match chars.next().unwrap() {
                    'n' => '\n',
                    other => other,
                }),
                other => value.push(other),
            }
        }
        (name.into(), value, chars.as_str().strip_prefix("} ").unwrap().parse().unwrap())
    }

    proptest! {
        #[test]
        fn what_is_written_is_read_back(label in "\\PC*|[\\\\\"\n]{0,9}", value in any::<f64>().prop_filter("a number", |v| v.is_finite())) {
            let text = prometheus(&[errors(&label, value)]);
            let last = text.strip_suffix('\n').unwrap().split("\nassay_errors_total{").nth(1).unwrap();
            let read = parsed(&format!("assay_errors_total{{{last}"));
            prop_assert_eq!(read, ("assay_errors_total".to_owned(), label, value));
        }
    }
}
