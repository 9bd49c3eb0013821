//! Requirements, as they are written. From text to [`Requirement`], with errors that point at the place.

use assay_base::settings::suggest::did_you_mean;
use assay_measurement::error_kind::ErrorKind;
use assay_measurement::times::SpanOf;
use strum::VariantArray;

use super::metric::{RatioKind, RequestCounter, RequiredMetric, Statistic, TimeKind};
use super::{Comparator, Requirement};
use crate::estimate::XactClass;

/// A place in the text: first byte, one past the last.
type ByteRange = (usize, usize);

/// More than any hit ratio is of another one of its kind.
const MOST_OVER: f64 = 2.0;
/// Longer texts are no requirements.
const LONGEST: usize = 400;
/// Names of metrics; any percentile is one too.
const METRICS: [&str; 18] = [
    "p50",
    "p90",
    "p95",
    "p99",
    "p99.9",
    "mean",
    "min",
    "max",
    "dhr",
    "bhr",
    "offload",
    "rate",
    "throughput",
    "errors",
    "unsent",
    "requests",
    "completed",
    "misreported",
];
const KINDS: [(&str, TimeKind); 5] = [
    ("response", TimeKind::Span(SpanOf::Response)),
    ("service", TimeKind::Span(SpanOf::Service)),
    ("ttfb", TimeKind::Span(SpanOf::FirstByte)),
    ("lateness", TimeKind::Lateness),
    ("handshake", TimeKind::Handshake),
];
const CLASSES: [(&str, XactClass); 4] = [
    ("all", XactClass::All),
    ("completed", XactClass::Completed),
    ("hit", XactClass::Hit),
    ("miss", XactClass::Miss),
];
const RATIOS: [(&str, RatioKind); 3] =
    [("offered", RatioKind::Offered), ("ideal", RatioKind::Ideal), ("measured", RatioKind::Measured)];
/// Units of time, in microseconds.
const TIMES: [(&str, f64); 7] =
    [("us", 1.0), ("µs", 1.0), ("ms", 1e3), ("msec", 1e3), ("s", 1e6), ("sec", 1e6), ("min", 6e7)];

/// Error in the text of a requirement.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}", self.render())]
pub struct RequirementError {
    pub text: String,
    /// Bytes at fault: the first, and one past the last.
    pub span: (usize, usize),
    pub message: String,
    /// Suggested correction.
    pub help: Option<String>,
}

impl RequirementError {
    /// The message, the text with the place underlined, and what to write instead.
    fn render(&self) -> String {
        let clean: String = self.text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
        let chars = |to: usize| self.text.char_indices().filter(|(at, _)| *at < to).count();
        let (start, end) = (chars(self.span.0), chars(self.span.1));
        let carets = "^".repeat(end.saturating_sub(start).max(1));
        let help = self.help.as_ref().map_or_else(String::new, |help| format!("\n  help: {help}"));
        format!("{}\n  {clean}\n  {:start$}{carets}{help}", self.message, "")
    }
}

pub(super) fn parse(text: &str) -> Result<Requirement, RequirementError> {
    let parser = RequirementParser { text, at: 0 };
    if text.len() > LONGEST {
        return parser.fail((0, 1), "this is too long for a requirement", None);
    }
    parser.requirement()
}

/// The error of a requirement that names a phase which is not there.
pub(super) fn no_such_phase<'a>(
    text: &str,
    span: ByteRange,
    name: &str,
    known: impl Iterator<Item = &'a str> + Clone,
) -> RequirementError {
    let all: Vec<&str> = known.clone().collect();
    let help = did_you_mean(name, known)
        .unwrap_or_else(|| format!("the phases are {}; `run` is all of them", all.join(", ")));
    let message = format!("the schedule has no phase `{name}`");
    RequirementError { text: text.to_owned(), span, message, help: Some(help) }
}

/// The error of a requirement that names a phase where stretches are searched through, of which none is a phase.
pub(super) fn no_phases(text: &str, span: ByteRange, name: &str) -> RequirementError {
    let message = "a search has no phases".to_owned();
    RequirementError { text: text.to_owned(), span, message, help: Some(format!("leave `{name}.` out")) }
}

struct RequirementParser<'a> {
    text: &'a str,
    at: usize,
}

type Parsed<T> = Result<T, RequirementError>;

impl<'a> RequirementParser<'a> {
    fn fail<T>(&self, span: ByteRange, message: impl Into<String>, help: Option<String>) -> Parsed<T> {
        Err(RequirementError { text: self.text.to_owned(), span, message: message.into(), help })
    }

    fn rest(&self) -> &'a str {
        &self.text[self.at..]
    }

    fn skip_spaces(&mut self) {
        self.at += self.rest().len() - self.rest().trim_start().len();
    }

    /// The character that is next, as a place.
    fn next_char(&self) -> ByteRange {
        (self.at, self.at + self.rest().chars().next().map_or(1, char::len_utf8))
    }

    fn consume(&mut self, mark: &str) -> bool {
        self.skip_spaces();
        let found = self.rest().starts_with(mark);
        self.at += if found { mark.len() } else { 0 };
        found
    }

    /// A name; `p99.9` is one.
    fn word(&mut self) -> Option<(&'a str, ByteRange)> {
        self.skip_spaces();
        let rest = self.rest();
        let mut length = 0;
        for (at, c) in rest.char_indices() {
            let next = rest[at + c.len_utf8()..].chars().next();
            let begins = c.is_alphabetic() || c == '_';
            let goes_on = c.is_ascii_digit() || (c == '-' && next.is_some_and(char::is_alphanumeric));
            let fraction = c == '.'
                && next.is_some_and(|next| next.is_ascii_digit())
                && rest[..at].strip_prefix('p').is_some_and(is_digits);
            // The digits behind the point of a percentile belong to it as well.
            if !(begins || (at > 0 && goes_on) || fraction) {
                break;
            }
            length = at + c.len_utf8();
        }
        let start = self.at;
        self.at += length;
        (length > 0).then(|| (&rest[..length], (start, start + length)))
    }

    /// A name, or anything in double quotes.
    fn name(&mut self) -> Parsed<(&'a str, ByteRange)> {
        self.skip_spaces();
        let start = self.at;
        if let Some(inner) = self.rest().strip_prefix('"') {
            let Some(length) = inner.find('"') else {
                return self.fail((start, self.text.len()), "a quotation mark is missing", None);
            };
            self.at += length + 2;
            return Ok((&inner[..length], (start, self.at)));
        }
        match self.word() {
            Some(found) => Ok(found),
            None => self.fail(
                self.next_char(),
                "expected a metric, or a phase and a metric",
                Some("like `p99(hit) < 5ms`, `top1.dhr > 0.55` or `errors == 0`".into()),
            ),
        }
    }

    fn requirement(mut self) -> Parsed<Requirement> {
        let mut path = vec![self.name()?];
        while self.consume(".") {
            path.push(self.name()?);
        }
        let class = self.class()?;
        let (phase, metric) = self.resolve(&path, class)?;
        let metric = self.divisor(metric)?;
        let op = self.op()?;
        self.skip_spaces();
        let start = self.at;
        let (limit, percent) = self.limit(&metric)?;
        self.check_range(&metric, limit, percent, (start, self.text[..self.at].trim_end().len()))?;
        let metric = match metric {
            RequiredMetric::Count { of, .. } => RequiredMetric::Count { of, share: percent },
            RequiredMetric::Misreported { .. } => RequiredMetric::Misreported { share: percent },
            metric => metric,
        };
        self.skip_spaces();
        if !self.rest().is_empty() {
            let help = "one requirement at a time; give --require again for another".to_owned();
            return self.fail((self.at, self.text.len()), "this is too much", Some(help));
        }
        // Places are in the text that is kept.
        let before = self.text.len() - self.text.trim_start().len();
        let phase = phase.map(|(name, (start, end))| (name, (start - before, end - before)));
        Ok(Requirement { text: self.text.trim().to_owned(), phase, metric, op, limit, percent })
    }

    fn class(&mut self) -> Parsed<Option<(&'a str, ByteRange)>> {
        if !self.consume("(") {
            return Ok(None);
        }
        let Some(word) = self.word() else {
            return self.fail(self.next_char(), "expected a class, such as `hit`", None);
        };
        if !self.consume(")") {
            return self.fail(self.next_char(), "expected `)`", None);
        }
        Ok(Some(word))
    }

    /// From names to phase and metric: the last names the metric, the one before it may name a kind of time.
    fn resolve(
        &self,
        path: &[(&'a str, ByteRange)],
        class: Option<(&'a str, ByteRange)>,
    ) -> Parsed<(Option<(String, ByteRange)>, RequiredMetric)> {
        let Some(((name, place), before)) = path.split_last() else {
            return self.fail(self.next_char(), "expected a metric", None);
        };
        let kind = before.last().and_then(|(word, _)| lookup(&KINDS, word));
        let phases = &before[..before.len() - usize::from(kind.is_some())];
        let metric = self.metric(name, *place, kind, class)?;
        let phase = match phases {
            [] => None,
            [(name, place)] => Some(((*name).to_owned(), *place)),
            [_, (name, place), ..] => {
                let names: Vec<&str> = KINDS.iter().map(|(name, _)| *name).collect();
                let help = did_you_mean(name, names.iter().copied())
                    .unwrap_or_else(|| format!("kinds of time are {}", names.join(", ")));
                return self.fail(*place, format!("`{name}` is no kind of time"), Some(help));
            }
        };
        Ok((phase, metric))
    }

    fn metric(
        &self,
        name: &str,
        place: ByteRange,
        kind: Option<TimeKind>,
        class: Option<(&'a str, ByteRange)>,
    ) -> Parsed<RequiredMetric> {
        if let Some(stat) = self.stat(name, place)? {
            // `p99(handshake)` means `handshake.p99`: handshakes are of connections, not of a class of requests.
            let (kind, class) = match class {
                Some(("handshake", _)) if kind.is_none() => (Some(TimeKind::Handshake), None),
                class => (kind, class),
            };
            let kind = kind.unwrap_or(TimeKind::Span(SpanOf::Response));
            let class = self.choice(class, &CLASSES, XactClass::All, "class of requests")?;
            if matches!(kind, TimeKind::Lateness | TimeKind::Handshake) && class != XactClass::All {
                let help = Some("leave it out".into());
                return self.fail(place, "these times are not kept apart by that class", help);
            }
            return Ok(RequiredMetric::Time { kind, class, stat });
        }
        if lookup(&KINDS, name).is_some() {
            let help = format!("which one: `{name}.p99`, `{name}.mean`, `{name}.max`?");
            return self.fail(place, format!("`{name}` is many times"), Some(help));
        }
        if kind.is_some() {
            let help = "expected a percentile such as `p99`, or mean, min, max".to_owned();
            return self.fail(place, format!("`{name}` is no time"), Some(help));
        }
        Ok(match name {
            "dhr" | "bhr" => {
                let which = self.choice(class, &RATIOS, RatioKind::Measured, "hit ratio")?;
                RequiredMetric::HitRatio { bytes: name == "bhr", which, over: None }
            }
            "offload" => {
                let of = [("requests", false), ("bytes", true)];
                RequiredMetric::Offload { bytes: self.choice(class, &of, false, "kind of offload")? }
            }
            "rate" | "throughput" => {
                let of = [("measured", false), ("offered", true)];
                RequiredMetric::Rate { offered: self.choice(class, &of, false, "rate")? }
            }
            "errors" => {
                let of: Vec<_> = ErrorKind::VARIANTS.iter().map(|kind| (kind.name(), Some(*kind))).collect();
                let of = RequestCounter::Errors(self.choice(class, &of, None, "class of errors")?);
                RequiredMetric::Count { of, share: false }
            }
            "unsent" | "requests" | "completed" | "misreported" => {
                let of = [("all", ())];
                self.choice(class, &of, (), "class of these")?;
                let of = |of| RequiredMetric::Count { of, share: false };
                match name {
                    "unsent" => of(RequestCounter::Unsent),
                    "requests" => of(RequestCounter::Requests),
                    "completed" => of(RequestCounter::Completed),
                    _ => RequiredMetric::Misreported { share: false },
                }
            }
            _ => {
                let help = did_you_mean(name, METRICS).unwrap_or_else(|| {
                    let kinds: Vec<&str> = KINDS.iter().map(|(name, _)| *name).collect();
                    format!(
                        "metrics are {}; before a percentile, mean, min or max there may be a kind of time, as in `ttfb.p99`: {}",
                        METRICS.join(", "),
                        kinds.join(", ")
                    )
                });
                return self.fail(place, format!("there is no metric `{name}`"), Some(help));
            }
        })
    }

    /// A percentile, the mean, or an end.
    fn stat(&self, name: &str, place: ByteRange) -> Parsed<Option<Statistic>> {
        Ok(Some(match name {
            "mean" => Statistic::Mean,
            "min" => Statistic::Min,
            "max" => Statistic::Max,
            _ => {
                let digits =
                    name.strip_prefix('p').filter(|rest| rest.starts_with(|c: char| c.is_ascii_digit()));
                let Some(percent) = digits.and_then(|digits| digits.parse::<f64>().ok()) else {
                    return Ok(None);
                };
                if !(0.0..100.0).contains(&percent) {
                    let help = "a percentile is below 100: `p99.9`; the longest is `max`".to_owned();
                    return self.fail(place, format!("there is no percentile {percent}"), Some(help));
                }
                Statistic::Quantile(percent / 100.0)
            }
        }))
    }

    /// Value of the word in parentheses, out of those that are `known`.
    fn choice<T: Copy>(
        &self,
        class: Option<(&'a str, ByteRange)>,
        known: &[(&str, T)],
        usual: T,
        what: &str,
    ) -> Parsed<T> {
        let Some((word, place)) = class else { return Ok(usual) };
        if let Some(found) = lookup(known, word) {
            return Ok(found);
        }
        let names = || known.iter().map(|(name, _)| *name);
        let help = did_you_mean(word, names())
            .unwrap_or_else(|| format!("expected {}", names().collect::<Vec<_>>().join(", ")));
        self.fail(place, format!("there is no {what} `{word}`"), Some(help))
    }

    /// `/ ideal`.
    fn divisor(&mut self, metric: RequiredMetric) -> Parsed<RequiredMetric> {
        if !self.consume("/") {
            return Ok(metric);
        }
        let help = Some("a hit ratio can be divided by `ideal` or `offered`: `dhr / ideal > 0.9`".to_owned());
        let Some((word, place)) = self.word() else {
            return self.fail(self.next_char(), "expected `ideal`", help);
        };
        match (metric, lookup(&RATIOS, word)) {
            (RequiredMetric::HitRatio { bytes, which, .. }, Some(over)) => {
                Ok(RequiredMetric::HitRatio { bytes, which, over: Some(over) })
            }
            _ => self.fail(place, "this cannot be divided so", help),
        }
    }

    fn op(&mut self) -> Parsed<Comparator> {
        const OPS: [(&str, Comparator); 7] = [
            ("<=", Comparator::AtMost),
            (">=", Comparator::AtLeast),
            ("==", Comparator::Equal),
            ("!=", Comparator::NotEqual),
            ("<", Comparator::Less),
            (">", Comparator::More),
            ("=", Comparator::Equal),
        ];
        for (mark, op) in OPS {
            if self.consume(mark) {
                return Ok(op);
            }
        }
        self.skip_spaces();
        self.fail(self.next_char(), "expected one of < <= > >= == !=", None)
    }

    /// Refuses a limit that no run can come near, with what may have been meant.
    fn check_range(
        &self,
        metric: &RequiredMetric,
        limit: f64,
        percent: bool,
        place: ByteRange,
    ) -> Parsed<()> {
        let (what, most) = match metric {
            RequiredMetric::Time { .. } => ("a time is 0 or more", f64::MAX),
            RequiredMetric::Rate { .. } => ("a rate is 0 or more", f64::MAX),
            RequiredMetric::Count { .. } | RequiredMetric::Misreported { .. } if percent => {
                ("a share is from 0 % to 100 %", 1.0)
            }
            RequiredMetric::Count { .. } | RequiredMetric::Misreported { .. } => {
                ("a number of requests is 0 or more", f64::MAX)
            }
            RequiredMetric::HitRatio { over: None, .. } => {
                ("a hit ratio is from 0 to 1, or from 0 % to 100 %", 1.0)
            }
            // One of them may be a little more than the other.
            RequiredMetric::HitRatio { .. } => {
                ("one hit ratio divided by another is from 0 to about 1", MOST_OVER)
            }
            // It is negative where a proxy sends more to origins than it was sent.
            RequiredMetric::Offload { .. } => ("an offload is at most 1, or 100 %", 1.0),
        };
        let least = if matches!(metric, RequiredMetric::Offload { .. }) { f64::MIN } else { 0.0 };
        if (least..=most).contains(&limit) {
            return Ok(());
        }
        let before = self.text[..place.0].trim();
        let written = &self.text[place.0..place.1];
        // Without its sign, or as a percentage.
        let positive = written.trim_start_matches('-');
        let help = if limit < least && limit.abs() <= most {
            Some(format!("did you mean `{before} {positive}`?"))
        } else if !percent && limit > 1.0 && limit <= 100.0 {
            Some(format!("did you mean `{before} {written}%` or `{before} {}`?", limit / 100.0))
        } else {
            None
        };
        self.fail(place, format!("`{written}` is out of range: {what}"), help)
    }

    /// A number with its unit; true when the unit is a percent sign.
    fn limit(&mut self, metric: &RequiredMetric) -> Parsed<(f64, bool)> {
        self.skip_spaces();
        let start = self.at;
        let digits = |c: char| c.is_ascii_digit() || c == '.' || c == ',' || c == '_';
        let sign = usize::from(self.rest().starts_with('-'));
        let length = self.rest()[sign..].find(|c| !digits(c)).unwrap_or(self.rest().len() - sign) + sign;
        let range = (start, start + length.max(1));
        let number = self.rest()[..length].replace([',', '_'], "");
        let Some(value) = number.parse::<f64>().ok().filter(|value| value.is_finite()) else {
            return self.fail(range, "expected a number", None);
        };
        self.at += length;
        self.skip_spaces();
        let unit_start = self.at;
        if self.consume("%") {
            return match metric {
                RequiredMetric::Time { .. } | RequiredMetric::Rate { .. } => {
                    self.fail((unit_start, self.at), "this is no share of anything", None)
                }
                _ => Ok((value / 100.0, true)),
            };
        }
        let slash = self.consume("/");
        let unit = self.word().map_or("", |(word, _)| word);
        let range = (unit_start.min(range.1), self.at.max(range.1));
        match (metric, slash, unit) {
            (RequiredMetric::Time { .. }, false, unit) => match lookup(&TIMES, unit) {
                Some(us) => Ok((value * us, false)),
                None if unit.is_empty() => self.fail(
                    (start, self.at),
                    "a time needs its unit",
                    Some(format!("`{number}ms`, `{number}s`?")),
                ),
                None => {
                    self.fail(range, format!("`{unit}` is no unit of time"), Some("us, ms, s or min".into()))
                }
            },
            (_, false, "") | (RequiredMetric::Rate { .. }, true, "s" | "sec") => Ok((value, false)),
            (RequiredMetric::Rate { .. }, ..) => {
                self.fail(range, "expected requests per second", Some(format!("`{number}/s`")))
            }
            _ => {
                self.fail(range, "this has no unit", Some(format!("`{number}`, or in percent: `{number}%`")))
            }
        }
    }
}

fn is_digits(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit())
}

fn lookup<T: Copy>(known: &[(&str, T)], word: &str) -> Option<T> {
    known.iter().find(|(name, _)| *name == word).map(|(_, found)| *found)
}
