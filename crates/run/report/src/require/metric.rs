//! The metrics that can be required of a run. The metrics, and how each is read from what was added up.

use assay_measurement::doubt::Extent;
use assay_measurement::error_kind::ErrorKind;
use assay_measurement::histogram::Histogram;
use assay_measurement::own_error::Certainty;
use assay_measurement::ratios::{HitRatio, ratio};
use assay_measurement::times::SpanOf;

use crate::document::Figure;
use crate::format;
use crate::influence;
use crate::log_agreement::LogAgreement;
use crate::stated::{Class, Stated, StatedTimes};
use crate::tally::Tally;

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
    /// Plain GETs that robots call a hit and logs a miss, or the reverse; or (`share`) their part of those in both.
    Misreported {
        share: bool,
    },
}

/// A span of time in the life of an xact, how late it was sent, or how long a TLS handshake took.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Span(SpanOf),
    Lateness,
    Handshake,
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

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Counted {
    Errors(Option<ErrorKind>),
    Unsent,
    Requests,
    Completed,
}

impl Metric {
    /// Its value; none: there is nothing to measure.
    pub(super) fn read(self, tally: &Tally, seconds: Option<f64>) -> Option<Stated> {
        let counts = &tally.robots;
        match self {
            Metric::Time { kind: Kind::Span(span), class, stat } => stat.of(&tally.times(span, class)),
            // It is Assay's own, and measured.
            Metric::Time { kind: Kind::Lateness, stat, .. } => {
                stat.of_exact(&tally.lateness).map(Stated::exact)
            }
            Metric::Time { kind: Kind::Handshake, stat, .. } => {
                let stated = stat.of_exact(&tally.handshake).map(Stated::exact);
                stated.map(|time| time.unless(tally.influence.unknown == Extent::Everything))
            }
            Metric::HitRatio { bytes, which, over } => {
                let of = if bytes { HitRatio::of_bytes } else { HitRatio::of_documents };
                let ratios = of(counts, &tally.origins);
                let pick = |which| match which {
                    Which::Offered => ratios.offered,
                    Which::Ideal => ratios.ideal,
                    Which::Measured => ratios.measured,
                };
                let part = tally.share(pick(which)?, counts.basic);
                match over {
                    None => Some(part),
                    Some(over) => {
                        let whole = pick(over).filter(|whole| *whole > 0.0)?;
                        Some(part.map(|part| part / whole))
                    }
                }
            }
            Metric::Offload { bytes } => {
                let offload = tally.offload();
                let value = if bytes { offload.bytes } else { offload.requests };
                value.map(|value| tally.share(value, counts.sent))
            }
            Metric::Rate { offered: true } => {
                let seconds = seconds.filter(|length| *length > 0.0)?;
                Some(Stated::exact(counts.due as f64 / seconds))
            }
            Metric::Rate { offered: false } => tally.completed_per_s(seconds),
            Metric::Count { of, share: false } => Some(of.stated(tally)),
            Metric::Count { of, share: true } => {
                let whole = of.whole(tally);
                let value = ratio(of.count(tally), whole)?;
                Some(of.stated(tally).map(|count| count / whole as f64)).filter(|_| value.is_finite())
            }
            Metric::Misreported { share } => {
                let LogAgreement { plain, misreported } = tally.log_agreement?;
                let (value, unsure) = (misreported as f64, counts.unsure_outcomes as f64);
                let count = Stated::between(value, (value - unsure).max(0.0), Some(value + unsure), 0.0)
                    .unless(tally.influence.unknown == Extent::Everything);
                match share {
                    true if plain == 0 => None,
                    true => Some(count.map(|count| count / plain as f64)),
                    false => Some(count),
                }
            }
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
                let count = match kind {
                    Kind::Span(span) => tally.times(span, class).times().count(),
                    Kind::Lateness => tally.lateness.count(),
                    Kind::Handshake => tally.handshake.count(),
                };
                count as f64 >= needed.round()
            }
            Metric::HitRatio { .. } => counts.basic >= FEW,
            Metric::Offload { .. } => counts.sent >= FEW,
            Metric::Rate { .. } => seconds.is_some_and(|length| length >= SHORT_S),
            Metric::Count { .. } => counts.due > 0,
            Metric::Misreported { .. } => tally.log_agreement.is_some(),
        }
    }

    /// The unit of the document's value.
    pub(super) fn unit(self) -> &'static str {
        match self {
            Metric::Time { .. } => "ms",
            Metric::Rate { .. } => "per_second",
            Metric::Count { share: false, .. } | Metric::Misreported { share: false } => "count",
            _ => "ratio",
        }
    }

    /// In that unit.
    pub(super) fn in_unit(self, value: f64) -> f64 {
        if matches!(self, Metric::Time { .. }) { value / 1000.0 } else { value }
    }

    pub(super) fn words(self, value: Stated, percent: bool) -> String {
        let show = |value: f64| match self {
            Metric::Time { .. } => format::time_ms(value / 1000.0),
            Metric::Rate { .. } => format!("{}/s", format::number(value)),
            Metric::Count { share: false, .. } | Metric::Misreported { share: false } => {
                format::count(value.round().max(0.0) as u64)
            }
            _ if percent => format!("{} %", trimmed(value * 100.0, 2)),
            _ => trimmed(value, 4),
        };
        let (at_least, Stated { value, own, .. }) = (value.is_at_least(), value);
        let value = (own.certainty != Certainty::Unknown).then_some(value);
        format::figure_with(Some(Figure { value, at_least, own: Some(own) }), show)
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
            // Who requires that there is none means those too that are no errors unless required.
            Counted::Errors(Some(ErrorKind::HitOnReload)) => {
                counts.reloads_from_store + counts.errors.get(&ErrorKind::HitOnReload).copied().unwrap_or(0)
            }
            Counted::Errors(Some(kind)) => counts.errors.get(&kind).copied().unwrap_or(0),
            Counted::Unsent => counts.unsent,
            Counted::Requests => counts.sent,
            Counted::Completed => counts.completed,
        }
    }

    /// The same, with what Assay lost: that could have been more of it. Its own errors are known to be its own.
    fn stated(self, tally: &Tally) -> Stated {
        let count = self.count(tally) as f64;
        let lost = match self {
            Counted::Completed | Counted::Requests => influence::lost(tally) as f64,
            Counted::Errors(_) => 0.0,
            // What Assay came to too late is among them.
            Counted::Unsent => {
                let own = tally.robots.unsent_late as f64;
                return Stated::between(count, count - own, Some(count), 0.0)
                    .unless(tally.influence.unknown == Extent::Everything);
            }
        };
        Stated::between(count, count, Some(count + lost), 0.0)
            .unless(tally.influence.unknown == Extent::Everything)
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
    fn of(self, times: &StatedTimes) -> Option<Stated> {
        match self {
            Stat::Quantile(quantile) => times.quantile(quantile),
            Stat::Mean => times.mean(),
            Stat::Min => times.min(),
            Stat::Max => times.max(),
        }
    }

    fn of_exact(self, times: &Histogram) -> Option<f64> {
        match self {
            Stat::Quantile(quantile) => times.quantile_us(quantile).map(|us| us as f64),
            Stat::Mean => times.mean_us(),
            Stat::Min => times.min_us().map(|us| us as f64),
            Stat::Max => times.max_us().map(|us| us as f64),
        }
    }
}
