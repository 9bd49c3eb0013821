//! The metrics that can be required of a run. The metrics, and how each is read from what was added up.

use assay_measurement::doubt::Extent;
use assay_measurement::error_kind::ErrorKind;
use assay_measurement::histogram::Histogram;
use assay_measurement::own_error::Certainty;
use assay_measurement::ratios::{HitRatio, ratio};
use assay_measurement::times::SpanOf;

use crate::disturbance;
use crate::document::BoundedFigure;
use crate::estimate::{FigureEstimate, TimesEstimate, XactClass};
use crate::format;
use crate::log_agreement::LogAgreement;
use crate::tally::Tally;

/// Metric of a requirement.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum RequiredMetric {
    Time {
        kind: TimeKind,
        class: XactClass,
        stat: Statistic,
    },
    /// A hit ratio, perhaps divided by another one of its kind.
    HitRatio {
        bytes: bool,
        which: RatioKind,
        over: Option<RatioKind>,
    },
    Offload {
        bytes: bool,
    },
    Rate {
        offered: bool,
    },
    /// A number of requests, or (`share`) its part of those it is a part of.
    Count {
        of: RequestCounter,
        share: bool,
    },
    /// Plain GETs that robots call a hit and logs a miss, or the reverse; or (`share`) their part of those in both.
    Misreported {
        share: bool,
    },
}

/// A span of time in the life of an xact, how late it was sent, or how long a TLS handshake took.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TimeKind {
    Span(SpanOf),
    Lateness,
    Handshake,
}

/// Statistic of a distribution of times.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Statistic {
    /// 0 to 1.
    Quantile(f64),
    Mean,
    Min,
    Max,
}

/// A hit ratio thrice.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RatioKind {
    Offered,
    Ideal,
    Measured,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RequestCounter {
    Errors(Option<ErrorKind>),
    Unsent,
    Requests,
    Completed,
}

impl RequiredMetric {
    /// Value of the metric; none: there is nothing to measure.
    pub(super) fn read(self, tally: &Tally, seconds: Option<f64>) -> Option<FigureEstimate> {
        let counts = &tally.robots;
        match self {
            RequiredMetric::Time { kind: TimeKind::Span(span), class, stat } => {
                stat.estimate(&tally.times(span, class))
            }
            // It is Assay's own, and measured.
            RequiredMetric::Time { kind: TimeKind::Lateness, stat, .. } => {
                stat.measured(&tally.times.lateness).map(FigureEstimate::exact)
            }
            RequiredMetric::Time { kind: TimeKind::Handshake, stat, .. } => {
                let stated = stat.measured(&tally.times.handshake).map(FigureEstimate::exact);
                stated.map(|time| time.unless(tally.disturbance.unknown == Extent::Everything))
            }
            RequiredMetric::HitRatio { bytes, which, over } => {
                let of = if bytes { HitRatio::of_bytes } else { HitRatio::of_documents };
                let ratios = of(counts, &tally.origins);
                let pick = |which| match which {
                    RatioKind::Offered => ratios.offered,
                    RatioKind::Ideal => ratios.ideal,
                    RatioKind::Measured => ratios.measured,
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
            RequiredMetric::Offload { bytes } => {
                let offload = tally.offload();
                let value = if bytes { offload.bytes } else { offload.requests };
                value.map(|value| tally.share(value, counts.sent))
            }
            RequiredMetric::Rate { offered: true } => {
                let seconds = seconds.filter(|length| *length > 0.0)?;
                Some(FigureEstimate::exact(counts.due as f64 / seconds))
            }
            RequiredMetric::Rate { offered: false } => tally.completed_per_s(seconds),
            RequiredMetric::Count { of, share: false } => Some(of.estimate(tally)),
            RequiredMetric::Count { of, share: true } => {
                let whole = of.total(tally);
                let value = ratio(of.count(tally), whole)?;
                Some(of.estimate(tally).map(|count| count / whole as f64)).filter(|_| value.is_finite())
            }
            RequiredMetric::Misreported { share } => {
                let LogAgreement { plain, misreported } =
                    tally.log_agreement.filter(|logs| logs.plain > 0)?;
                let (value, unsure) = (misreported as f64, counts.unsure_outcomes as f64);
                let count =
                    FigureEstimate::between(value, (value - unsure).max(0.0), Some(value + unsure), 0.0)
                        .unless(tally.disturbance.unknown == Extent::Everything);
                Some(if share { count.map(|count| count / plain as f64) } else { count })
            }
        }
    }

    /// True from the number of values, requests or seconds on that a first statement takes.
    pub(super) fn has_enough(self, tally: &Tally, seconds: Option<f64>) -> bool {
        /// Fewer basic xacts say little about a ratio.
        const FEW: u64 = 100;
        /// Shorter than that, a rate says little.
        const SHORT_S: f64 = 3.0;
        let counts = &tally.robots;
        match self {
            RequiredMetric::Time { kind, class, stat } => {
                let needed = match stat {
                    Statistic::Quantile(quantile) => 1.0 / (1.0 - quantile).max(1e-4),
                    _ => 1.0,
                };
                let count = match kind {
                    TimeKind::Span(span) => tally.times(span, class).times().count(),
                    TimeKind::Lateness => tally.times.lateness.count(),
                    TimeKind::Handshake => tally.times.handshake.count(),
                };
                count as f64 >= needed.round()
            }
            RequiredMetric::HitRatio { .. } => counts.basic >= FEW,
            RequiredMetric::Offload { .. } => counts.sent >= FEW,
            RequiredMetric::Rate { .. } => seconds.is_some_and(|length| length >= SHORT_S),
            RequiredMetric::Count { .. } => counts.due > 0,
            RequiredMetric::Misreported { .. } => tally.log_agreement.is_some(),
        }
    }

    /// The unit of the document's value.
    pub(super) fn unit(self) -> &'static str {
        match self {
            RequiredMetric::Time { .. } => "ms",
            RequiredMetric::Rate { .. } => "per_second",
            RequiredMetric::Count { share: false, .. } | RequiredMetric::Misreported { share: false } => {
                "count"
            }
            _ => "ratio",
        }
    }

    /// Converts a value to [`RequiredMetric::unit`].
    pub(super) fn in_unit(self, value: f64) -> f64 {
        if matches!(self, RequiredMetric::Time { .. }) { value / 1000.0 } else { value }
    }

    pub(super) fn value_text(self, value: FigureEstimate, percent: bool) -> String {
        let show = |value: f64| match self {
            RequiredMetric::Time { .. } => format::time_ms(value / 1000.0),
            RequiredMetric::Rate { .. } => format!("{}/s", format::number(value)),
            RequiredMetric::Count { share: false, .. } | RequiredMetric::Misreported { share: false } => {
                format::count(value.round().max(0.0) as u64)
            }
            _ if percent => format!("{} %", trimmed(value * 100.0, 2)),
            _ => trimmed(value, 4),
        };
        let (at_least, FigureEstimate { value, own, .. }) = (value.is_at_least(), value);
        let value = (own.certainty != Certainty::Unknown).then_some(value);
        format::figure_with(Some(BoundedFigure { value, at_least, own: Some(own) }), show)
    }
}

/// So many decimals at most, and no zeros at the end.
fn trimmed(value: f64, decimals: usize) -> String {
    let text = format!("{value:.decimals$}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

impl RequestCounter {
    pub(super) fn count(self, tally: &Tally) -> u64 {
        let counts = &tally.robots;
        match self {
            RequestCounter::Errors(None) => counts.errors.values().sum(),
            // Who requires that there is none means those too that are no errors unless required.
            RequestCounter::Errors(Some(ErrorKind::HitOnReload)) => {
                counts.reloads_from_store + counts.errors.get(&ErrorKind::HitOnReload).copied().unwrap_or(0)
            }
            RequestCounter::Errors(Some(kind)) => counts.errors.get(&kind).copied().unwrap_or(0),
            RequestCounter::Unsent => counts.unsent,
            RequestCounter::Requests => counts.sent,
            RequestCounter::Completed => counts.completed,
        }
    }

    /// The same, with what Assay lost: that could have been more of it. Its own errors are known to be its own.
    fn estimate(self, tally: &Tally) -> FigureEstimate {
        let count = self.count(tally) as f64;
        let lost = match self {
            RequestCounter::Completed | RequestCounter::Requests => disturbance::lost(tally) as f64,
            RequestCounter::Errors(_) => 0.0,
            // What Assay came to too late is among them.
            RequestCounter::Unsent => {
                let own = tally.robots.unsent_late as f64;
                return FigureEstimate::between(count, count - own, Some(count), 0.0)
                    .unless(tally.disturbance.unknown == Extent::Everything);
            }
        };
        FigureEstimate::between(count, count, Some(count + lost), 0.0)
            .unless(tally.disturbance.unknown == Extent::Everything)
    }

    /// Total that the count is a part of: errors of ended requests, all else of those that came due.
    pub(super) fn total(self, tally: &Tally) -> u64 {
        match self {
            RequestCounter::Errors(_) => tally.robots.completed + RequestCounter::Errors(None).count(tally),
            _ => tally.robots.due,
        }
    }
}

impl Statistic {
    fn estimate(self, times: &TimesEstimate) -> Option<FigureEstimate> {
        match self {
            Statistic::Quantile(quantile) => times.quantile(quantile),
            Statistic::Mean => times.mean(),
            Statistic::Min => times.min(),
            Statistic::Max => times.max(),
        }
    }

    fn measured(self, times: &Histogram) -> Option<f64> {
        match self {
            Statistic::Quantile(quantile) => times.quantile_us(quantile).map(|us| us as f64),
            Statistic::Mean => times.mean_us(),
            Statistic::Min => times.min_us().map(|us| us as f64),
            Statistic::Max => times.max_us().map(|us| us as f64),
        }
    }
}
