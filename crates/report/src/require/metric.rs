//! The metrics that can be required of a run. The metrics, and how each is read from what was added up.

use assay_measurement::censored::{Bounds, Censored};
use assay_measurement::error_kind::ErrorKind;
use assay_measurement::histogram::Histogram;
use assay_measurement::ratios::{HitRatio, ratio};

use crate::format;
use crate::tally::{MergedTimes, Tally};

/// A value, as far as it is known: microseconds, requests, requests per second, or a share.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Reading {
    /// It is not less.
    pub(super) low: f64,
    /// It is not more; none: it has no bound.
    pub(super) high: Option<f64>,
}

impl Reading {
    /// A value that is known.
    pub(super) fn exact(value: f64) -> Self {
        Self { low: value, high: Some(value) }
    }

    /// True where no more is known than that it is not less than `low`, or between two bounds.
    pub(super) fn is_at_least(self) -> bool {
        self.high != Some(self.low)
    }
}

impl From<Bounds> for Reading {
    fn from(bounds: Bounds) -> Self {
        Self { low: bounds.low_us, high: bounds.high_us }
    }
}

/// What is looked at.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Metric {
    Time {
        kind: Kind,
        class: Class,
        stat: Stat,
    },
    /// A hit ratio, perhaps divided by another one of its kind.
    HitRatio {
        bytes: bool,
        which: Which,
        over: Option<Which>,
    },
    Offload {
        bytes: bool,
    },
    Rate {
        offered: bool,
    },
    /// A number of requests, or (`share`) its part of those it is a part of.
    Count {
        of: Counted,
        share: bool,
    },
}

/// A span of time in the life of an xact.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Response,
    Service,
    Ttfb,
    Lateness,
}

/// Of which xacts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Class {
    /// Those among them that were never sent, or timed out: as long as they had waited, or longer.
    All,
    Completed,
    Hit,
    Miss,
}

/// Which one of many times.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Stat {
    /// 0 to 1.
    Quantile(f64),
    Mean,
    Min,
    Max,
}

/// A hit ratio thrice.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Which {
    Offered,
    Ideal,
    Measured,
}

/// What is counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Counted {
    Errors(Option<ErrorKind>),
    Unsent,
    Requests,
    Completed,
}

impl Metric {
    /// Its value; none: there is nothing to measure.
    pub(super) fn read(self, tally: &Tally, seconds: Option<f64>) -> Option<Reading> {
        match self {
            Metric::Time { kind, class, stat } => stat.of(&times(kind, class, tally)).map(Reading::from),
            _ => self.read_exact(tally, seconds).map(Reading::exact),
        }
    }

    /// The value of what is no time.
    fn read_exact(self, tally: &Tally, seconds: Option<f64>) -> Option<f64> {
        let counts = &tally.robots;
        match self {
            Metric::Time { .. } => None,
            Metric::HitRatio { bytes, which, over } => {
                let of = if bytes { HitRatio::of_bytes } else { HitRatio::of_documents };
                let ratios = of(counts, &tally.origins);
                let pick = |which| match which {
                    Which::Offered => ratios.offered,
                    Which::Ideal => ratios.ideal,
                    Which::Measured => ratios.measured,
                };
                match over {
                    None => pick(which),
                    Some(over) => {
                        pick(over).filter(|whole| *whole > 0.0).and_then(|whole| Some(pick(which)? / whole))
                    }
                }
            }
            Metric::Offload { bytes } => {
                let offload = tally.offload();
                if bytes { offload.bytes } else { offload.requests }
            }
            Metric::Rate { offered } => {
                let count = if offered { counts.due } else { counts.completed };
                seconds.filter(|length| *length > 0.0).map(|length| count as f64 / length)
            }
            Metric::Count { of, share: false } => Some(of.count(tally) as f64),
            Metric::Count { of, share: true } => ratio(of.count(tally), of.whole(tally)),
        }
    }

    /// How many values, requests or seconds it takes before a first word on it.
    pub(super) fn enough(self, tally: &Tally, seconds: Option<f64>) -> bool {
        /// Fewer basic xacts say little about a ratio.
        const FEW: u64 = 100;
        /// Shorter than that, a rate says little.
        const SHORT_S: f64 = 3.0;
        let counts = &tally.robots;
        match self {
            Metric::Time { kind, class, stat } => {
                let needed = match stat {
                    Stat::Quantile(quantile) => 1.0 / (1.0 - quantile).max(1e-4),
                    _ => 1.0,
                };
                times(kind, class, tally).count() as f64 >= needed.round()
            }
            Metric::HitRatio { .. } => counts.basic >= FEW,
            Metric::Offload { .. } => counts.sent >= FEW,
            Metric::Rate { .. } => seconds.is_some_and(|length| length >= SHORT_S),
            Metric::Count { .. } => counts.due > 0,
        }
    }

    /// The unit of the document's value.
    pub(super) fn unit(self) -> &'static str {
        match self {
            Metric::Time { .. } => "ms",
            Metric::Rate { .. } => "per_second",
            Metric::Count { share: false, .. } => "count",
            _ => "ratio",
        }
    }

    /// In that unit.
    pub(super) fn in_unit(self, value: f64) -> f64 {
        if matches!(self, Metric::Time { .. }) { value / 1000.0 } else { value }
    }

    pub(super) fn words(self, value: Reading, percent: bool) -> String {
        let bound = if value.is_at_least() { "≥ " } else { "" };
        let value = value.low;
        match self {
            Metric::Time { .. } => format!("{bound}{}", format::time_ms(value / 1000.0)),
            Metric::Rate { .. } => format!("{}/s", format::number(value)),
            Metric::Count { share: false, .. } => format::count(value.round().max(0.0) as u64),
            _ if percent => format!("{} %", trimmed(value * 100.0, 2)),
            _ => trimmed(value, 4),
        }
    }
}

/// So many decimals at most, and no zeros at the end.
fn trimmed(value: f64, decimals: usize) -> String {
    let text = format!("{value:.decimals$}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

impl Counted {
    pub(super) fn count(self, tally: &Tally) -> u64 {
        let counts = &tally.robots;
        match self {
            Counted::Errors(None) => counts.errors.values().sum(),
            Counted::Errors(Some(kind)) => counts.errors.get(&kind).copied().unwrap_or(0),
            Counted::Unsent => counts.unsent,
            Counted::Requests => counts.sent,
            Counted::Completed => counts.completed,
        }
    }

    /// What it is a part of: errors of what ended, all else of what came due.
    pub(super) fn whole(self, tally: &Tally) -> u64 {
        match self {
            Counted::Errors(_) => tally.robots.completed + Counted::Errors(None).count(tally),
            _ => tally.robots.due,
        }
    }
}

impl Stat {
    fn of(self, times: &Censored) -> Option<Bounds> {
        match self {
            Stat::Quantile(quantile) => times.quantile(quantile),
            Stat::Mean => times.mean(),
            Stat::Min => times.min(),
            Stat::Max => times.max(),
        }
    }
}

/// The times of a class, merged.
pub(super) fn times(kind: Kind, class: Class, tally: &Tally) -> Censored {
    let of: fn(&MergedTimes) -> &Histogram = match kind {
        Kind::Service => |times| &times.service,
        Kind::Ttfb => |times| &times.ttfb,
        Kind::Response | Kind::Lateness => |times| &times.response,
    };
    match (class, kind) {
        (_, Kind::Lateness) => tally.lateness.clone().into(),
        (Class::All, Kind::Response) => tally.response(),
        (Class::All, Kind::Service) => tally.service(),
        (Class::All, Kind::Ttfb) => tally.ttfb(),
        (Class::Completed, _) => tally.completed(of).into(),
        (Class::Hit, _) => of(&tally.hit).clone().into(),
        (Class::Miss, _) => of(&tally.miss).clone().into(),
    }
}
