//! The formulas: from what was added up to the numbers of the document.

use std::collections::BTreeMap;

use assay_measurement::histogram::Histogram;
use assay_measurement::own_error::Certainty;
use assay_measurement::ratios;
use assay_measurement::times::SpanOf;

use crate::document::{
    Bandwidth, ByClass, Connections, Disk, Errors, Figures, HitRatio, Lateness, OriginFigures, Outcomes,
    Percentiles, Rate, Resources, Seeks,
};
use crate::estimate::{FigureEstimate, TimesEstimate, XactClass};
use crate::host::seek_mb;
use crate::special::special;
use crate::tally::{DiskUsage, ProcessUsage, Tally};

/// Rounds for people; every digit that is left is measured.
pub fn round(value: f64, digits: i32) -> f64 {
    let scale = 10f64.powi(digits);
    (value * scale).round() / scale
}

fn per_second(count: u64, seconds: Option<f64>) -> Option<f64> {
    seconds.filter(|s| *s > 0.0).map(|s| round(count as f64 / s, 3))
}

fn six_digits(value: f64) -> f64 {
    round(value, 6)
}

/// A share, to six decimals; none of nothing.
pub fn ratio(part: u64, whole: u64) -> Option<f64> {
    ratios::ratio(part, whole).map(six_digits)
}

fn megabits(bytes: u64, seconds: Option<f64>) -> Option<f64> {
    seconds.filter(|s| *s > 0.0).map(|s| round(bytes as f64 * 8.0 / 1e6 / s, 3))
}

/// A histogram's percentiles, in milliseconds, as they were seen.
pub fn percentiles(histogram: &Histogram) -> Percentiles {
    let us = |quantile| histogram.quantile_us(quantile).map(|us| us as f64 / 1000.0);
    Percentiles {
        count: histogram.count(),
        mean: histogram.mean_us().map(|us| round(us / 1000.0, 4)),
        p50: us(0.5),
        p90: us(0.9),
        p99: us(0.99),
        p999: us(0.999),
        max: histogram.max_us().map(|us| us as f64 / 1000.0),
        ..Percentiles::default()
    }
}

/// Percentiles in milliseconds with their own error. Bounds from below where requests without an end leave them open.
fn percentiles_with_error(times: &TimesEstimate) -> Percentiles {
    let (mut at_least, mut own) = (Vec::new(), BTreeMap::new());
    let mut figure = |name: &str, stated: Option<FigureEstimate>, digits: i32| -> Option<f64> {
        let stated = stated?.map(|us| round(us / 1000.0, digits));
        if times.is_recorded() {
            own.insert(name.to_owned(), stated.own);
        }
        if stated.own.certainty == Certainty::Unknown {
            return None;
        }
        if stated.is_at_least() {
            at_least.push(name.to_owned());
        }
        Some(stated.value)
    };
    Percentiles {
        count: times.times().count(),
        mean: figure("mean", times.mean(), 4),
        p50: figure("p50", times.quantile(0.5), 3),
        p90: figure("p90", times.quantile(0.9), 3),
        p99: figure("p99", times.quantile(0.99), 3),
        p999: figure("p999", times.quantile(0.999), 3),
        max: figure("max", times.max(), 3),
        at_least,
        own,
    }
}

fn lateness(histogram: &Histogram) -> Lateness {
    Lateness { p50: histogram.quantile_us(0.5), p99: histogram.quantile_us(0.99), max: histogram.max_us() }
}

fn by_class(tally: &Tally, span: SpanOf) -> ByClass {
    let of = |class| percentiles_with_error(&tally.times(span, class));
    ByClass {
        all: of(XactClass::All),
        completed: of(XactClass::Completed),
        hit: of(XactClass::Hit),
        miss: of(XactClass::Miss),
        other: of(XactClass::Other),
    }
}

fn origin_figures(tally: &Tally, seconds: Option<f64>) -> OriginFigures {
    let counts = &tally.origins;
    OriginFigures {
        counts: counts.into(),
        rate: per_second(counts.requests, seconds),
        service_time_ms: percentiles(&tally.origin_service),
        lateness_us: lateness(&tally.origin_lateness),
    }
}

/// All numbers of a phase or a run.
pub fn figures(tally: &Tally) -> Figures {
    let counts = &tally.robots;
    let seconds = tally.span.map(|span| span.length_s());
    let mut figures = Figures {
        duration_s: seconds,
        counts: counts.into(),
        due_digest: format!("{:016x}", counts.due_digest),
        rate: Rate {
            offered: per_second(counts.due, seconds),
            measured: per_second(counts.completed, seconds),
        },
        dhr: HitRatio::of_documents(counts, &tally.origins).map(six_digits),
        bhr: HitRatio::of_bytes(counts, &tally.origins).map(six_digits),
        offload: tally.offload().map(six_digits),
        outcomes: Outcomes::of(counts, &tally.origins),
        response_time_ms: by_class(tally, SpanOf::Response),
        service_time_ms: by_class(tally, SpanOf::Service),
        ttfb_ms: by_class(tally, SpanOf::FirstByte),
        lateness_us: lateness(&tally.times.lateness),
        handshake_ms: percentiles(&tally.times.handshake),
        by_tls: counts.by_tls.clone(),
        changed_fields: counts.changed_fields.clone(),
        errors: Errors { total: counts.error_total(), by_kind: counts.errors.clone() },
        bandwidth_mbit_s: Bandwidth {
            client_in: megabits(counts.wire_bytes_in, seconds),
            client_out: megabits(counts.wire_bytes_out, seconds),
            origin_in: megabits(tally.origins.wire_bytes_in, seconds),
            origin_out: megabits(tally.origins.wire_bytes_out, seconds),
        },
        connections: Connections {
            client_opened: counts.connections_opened,
            client_peak: tally.peaks.connections,
            origin_opened: tally.origins.connections_opened,
            origin_peak: tally.origin_connections_peak,
        },
        waiting_peak: tally.peaks.waiting,
        in_flight_peak: tally.peaks.in_flight,
        origins: origin_figures(tally, seconds),
        by_method: counts.by_method.clone(),
        by_type: counts.by_type.clone(),
        by_status: counts.by_status.iter().map(|(status, n)| (status.to_string(), *n)).collect(),
        special: special(tally),
        ..Figures::default()
    };
    add_own_errors(&mut figures, tally);
    add_resources(&mut figures, tally);
    figures.disk = tally.disk.as_ref().map(disk);
    figures
}

/// Numbers that are no times: those that Assay can have touched get an interval, those of which nothing is known are taken
/// away.
fn add_own_errors(figures: &mut Figures, tally: &Tally) {
    let counts = &tally.robots;
    let seconds = tally.span.map(|span| span.length_s());
    let share = |value: Option<f64>, whole: u64| value.map(|value| tally.share(value, whole));
    let Figures { rate, dhr, bhr, offload, own, .. } = figures;
    let rate_stated = tally.completed_per_s(seconds).map(|rate| rate.map(|rate| round(rate, 3)));
    let [documents, bytes] = [dhr.measured, bhr.measured].map(|ratio| share(ratio, counts.basic));
    let [requests, body] = [offload.requests, offload.bytes].map(|ratio| share(ratio, counts.sent));
    let stated = [
        ("rate.measured", &mut rate.measured, rate_stated),
        ("dhr.measured", &mut dhr.measured, documents),
        ("bhr.measured", &mut bhr.measured, bytes),
        ("offload.requests", &mut offload.requests, requests),
        ("offload.bytes", &mut offload.bytes, body),
    ];
    for (name, value, stated) in stated {
        let Some(stated) = stated else { continue };
        if stated.own != FigureEstimate::exact(stated.value).own {
            own.insert(name.to_owned(), stated.own.map(six_digits));
        }
        if stated.own.certainty == Certainty::Unknown {
            *value = None;
        }
    }
}

fn add_resources(figures: &mut Figures, tally: &Tally) {
    for (role, used) in &tally.resources {
        figures.resources.insert(role.clone(), resources(role, used));
        if role != "host" {
            let per_request =
                (tally.robots.sent > 0).then(|| round(used.cpu_us / tally.robots.sent as f64, 3));
            figures.cpu_us_per_request.insert(role.clone(), per_request);
        }
    }
}

fn resources(role: &str, used: &ProcessUsage) -> Resources {
    let mean = |us: f64| (used.watched_ms > 0.0).then(|| round(us / 1000.0 / used.watched_ms, 4));
    let told_apart = |us: f64| (used.user_us + used.system_us > 0.0).then(|| mean(us)).flatten();
    let per_second = |count: f64| {
        (used.has_threads && used.watched_ms > 0.0).then(|| round(count * 1000.0 / used.watched_ms, 1))
    };
    Resources {
        cpu_cores: mean(used.cpu_us),
        rss_peak_bytes: used.rss_peak_bytes,
        starved_threads: mean(used.run_delay_us),
        descriptors_peak: used.descriptors_peak,
        stolen_cores: (role == "host").then(|| mean(used.steal_us)).flatten(),
        user_cores: told_apart(used.user_us),
        system_cores: told_apart(used.system_us),
        pss_peak_bytes: used.pss_peak_bytes,
        cache_peak_bytes: used.cache_peak_bytes,
        voluntary_switches_per_s: per_second(used.switches[0]),
        involuntary_switches_per_s: per_second(used.switches[1]),
        disk_read_bytes: used.disk_read_bytes.map(|bytes| bytes.round() as u64),
        disk_written_bytes: used.disk_written_bytes.map(|bytes| bytes.round() as u64),
    }
}

fn disk(used: &DiskUsage) -> Disk {
    const MB: f64 = (1 << 20) as f64;
    let [reads, read_bytes, writes, written_bytes, busy_ms, queue_ms] = used.sums;
    let seconds = used.watched_ms / 1000.0;
    let per = |value: f64, digits| if seconds > 0.0 { round(value / seconds, digits) } else { 0.0 };
    let seeks = used.traced.as_ref().map(|traced| Seeks {
        requests: traced.requests,
        sequential_share: ratio(traced.sequential, traced.requests).unwrap_or(0.0),
        p50_mb: seek_mb(&traced.distances, 0.5).map(|mb| round(mb, 4)),
        p90_mb: seek_mb(&traced.distances, 0.9).map(|mb| round(mb, 4)),
        lost: traced.lost,
    });
    Disk {
        device: used.device.clone(),
        read_mb_s: per(read_bytes / MB, 3),
        written_mb_s: per(written_bytes / MB, 3),
        reads_per_s: per(reads, 2),
        writes_per_s: per(writes, 2),
        busy_share: per(busy_ms / 1000.0, 4),
        queue: per(queue_ms / 1000.0, 3),
        seeks,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tally::Span;

    #[test]
    fn nothing_measured_is_null_and_never_a_number() {
        let figures = figures(&Tally::default());
        assert_eq!(figures.counts.requests, 0);
        assert_eq!(figures.rate.offered, None);
        assert_eq!(figures.dhr, HitRatio::default());
        assert_eq!(figures.offload.requests, None);
        assert_eq!(figures.response_time_ms.hit.p99, None);
        assert_eq!(figures.lateness_us.max, None);
        let text = serde_json::to_string(&figures).unwrap();
        assert!(!text.contains("NaN") && !text.contains("inf"), "{text}");
    }

    #[test]
    fn a_stretch_of_no_length_has_no_rate() {
        let mut tally = Tally { span: Some(Span { start_ms: 5, end_ms: 5 }), ..Tally::default() };
        tally.robots.due = 10;
        assert_eq!(figures(&tally).rate.offered, None);
    }

    #[test]
    fn measured_hits_leave_out_what_the_origin_validated() {
        let mut tally = Tally::default();
        tally.robots.basic = 100;
        tally.robots.hits = 50;
        tally.robots.collapsed = 10;
        tally.robots.misses = 40;
        tally.origins.validated_basic = 20;
        let figures = figures(&tally);
        assert_eq!(figures.dhr.measured, Some(0.4));
        assert_eq!(figures.outcomes, Outcomes { hit: 30, collapsed: 10, revalidated: 20, miss: 40 });
    }

    #[test]
    fn offload_is_negative_when_the_target_sends_more_requests_than_it_gets() {
        let mut tally = Tally::default();
        tally.robots.sent = 100;
        tally.origins.requests = 110;
        tally.origins_seen = true;
        assert_eq!(figures(&tally).offload.requests, Some(-0.1));
    }

    #[test]
    fn unsent_requests_stand_in_the_headline_and_their_percentiles_are_lower_bounds() {
        let mut tally = Tally::default();
        (0..89).for_each(|_| tally.times.miss.response.record(1000));
        tally.times.hit.response.record(1000);
        (0..10).for_each(|_| tally.times.unsent_wait.record(5_000_000));
        let times = figures(&tally).response_time_ms;
        assert_eq!((times.all.count, times.completed.count), (100, 90));
        assert_eq!((times.all.p50, times.all.p90), (Some(1.0), Some(1.0)));
        assert!(times.all.p99.unwrap() >= 4990.0);
        assert_eq!(times.all.at_least, ["mean", "p99", "p999", "max"]);
        assert_eq!(times.all.mean, Some(500.9));
        assert_eq!(times.all.figure("p99").map(|figure| figure.at_least), Some(true));
        assert_eq!((times.completed.max, times.completed.at_least.is_empty()), (Some(1.0), true));
    }

    #[test]
    fn requests_that_timed_out_stand_in_every_kind_of_time_that_they_had() {
        let mut tally = Tally::default();
        for times in
            [&mut tally.times.miss.response, &mut tally.times.miss.service, &mut tally.times.miss.ttfb]
        {
            (0..3).for_each(|_| times.record(1000));
        }
        tally.times.timed_out.response.record(30_000_000);
        tally.times.timed_out.service.record(29_000_000);
        tally.times.timed_out.ttfb.record(2000);
        let found = figures(&tally);
        assert_eq!(found.response_time_ms.all.max, Some(30_000.0));
        assert_eq!(found.service_time_ms.all.max, Some(29_000.0));
        assert_eq!(found.ttfb_ms.all.max, Some(2.0));
        assert_eq!(found.service_time_ms.all.at_least, ["mean", "p90", "p99", "p999", "max"]);
        assert_eq!(found.response_time_ms.completed.max, Some(1.0));
    }
}
