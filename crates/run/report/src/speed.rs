//! Finding on whether the target kept up: rate and times of the phases that measure, and requests without a response.

use assay_measurement::error_kind::ErrorKind;
use assay_record::run::BedInfo;

use crate::document::{Figures, Finding, Mood, Percentiles, Summary, Topic};
use crate::failed_requests::{FEW, is_more_than_few};
use crate::figure_text::{in_words, time};
use crate::format::{count, duration_s, number, share, time_ms};
use crate::text::{capital, completeness, finding, in_headline, is_direct, rehearsed, sentence};

/// Share of requests due up to which those that were not sent before their phase ended leave open no more than any number may.
const A_TENTH: f64 = 0.1;

/// Requests below which a phase's shares and ratios say little.
pub(crate) const ENOUGH: u64 = 2000;

/// Did it keep up? With rate and times.
pub(crate) fn speed(summary: &Summary) -> Finding {
    let total = &summary.total;
    if total.counts.due == 0 {
        let mood = if summary.partial { Mood::Doubtful } else { Mood::Bad };
        return finding(Topic::Speed, mood, nothing_due(summary));
    }
    let it = if is_direct(summary) { "they" } else { "it" };
    let times = headline_times(summary);
    let short = Shortfall::from_figures(total);
    let verdict = keep_up(summary);
    let unknown = match verdict {
        KeepUp::Late => Some((
            short.kept_waiting(),
            "were not sent before their phase ended, and that can be because of Assay or the machine",
        )),
        KeepUp::ShortPhases => Some((
            short.kept_waiting(),
            "were not sent before their phase ended: phases are short beside response times",
        )),
        KeepUp::FullLink => {
            Some((short.sum(), "got no response, and the queue of an emulated link was full"))
        }
        KeepUp::Yes | KeepUp::No => None,
    };
    if let Some((number, why)) = unknown {
        let text = format!(
            "Whether {it} kept up is unknown: {} of {} requests due ({}) {why}.{times}",
            count(number),
            count(total.counts.due),
            share(number, total.counts.due)
        );
        return finding(Topic::Speed, Mood::Doubtful, text);
    }
    if verdict == KeepUp::Yes {
        let most = match short.sum() {
            0 => "all requests that came due got a response".to_owned(),
            some => format!(
                "all but {} of {} requests due ({}) got a response{}",
                count(some),
                count(total.counts.due),
                share(some, total.counts.due),
                match is_more_than_few(some, total.counts.due) {
                    true => format!(", {} of them because their phase ended", count(short.kept_waiting())),
                    false => String::new(),
                }
            ),
        };
        let due = total.counts.due;
        let with_share = |number: u64| match is_more_than_few(number, due) {
            true => format!("{} ({})", count(number), share(number, due)),
            false => count(number),
        };
        let (wrong, own) = (wrong_responses(total), own_losses(total));
        // A few are said where errors are.
        let errors = match is_more_than_few(wrong, due) {
            true => format!(", but {} were errors", with_share(wrong)),
            false => String::new(),
        };
        let lost = match own {
            0 => String::new(),
            own => format!(", apart from {} that Assay itself lost", with_share(own)),
        };
        let is_good = !is_more_than_few(wrong.max(own), due);
        let (mood, reported) = completeness(summary, if is_good { Mood::Good } else { Mood::Doubtful });
        let text = sentence(&format!("{reported}{it} kept up: {most}{errors}{lost}"));
        return finding(Topic::Speed, mood, format!("{text}{times}"));
    }
    let p99 = total.response_time_ms.completed.figure("p99").filter(|p99| p99.value.is_some());
    let responded = p99.map_or_else(String::new, |p99| {
        format!(" The 99th percentile of the responses that came is {}.", time(p99))
    });
    finding(Topic::Speed, Mood::Bad, format!("{}.{times}{responded}", capital(&fell_behind(summary))))
}

/// Clause that says that the target did not keep up, with the requests that got no response.
pub(crate) fn fell_behind(summary: &Summary) -> String {
    let (short, due) = (Shortfall::from_figures(&summary.total), summary.total.counts.due);
    let it = if is_direct(summary) { "they" } else { "it" };
    let worst = summary.phases.iter().max_by_key(|phase| Shortfall::from_figures(&phase.figures).sum());
    let worst_phase =
        worst.map_or_else(String::new, |phase| format!(", most of them in phase {}", phase.name));
    // A link keeps requests, too.
    let has_links = summary.bed.as_ref().is_some_and(|bed| !bed.links.is_empty());
    let waited =
        worst.filter(|_| !has_links && !is_direct(summary)).and_then(|phase| miss_time(&phase.figures));
    format!(
        "{it} did not keep up: {} of {} requests due ({}) got no response{worst_phase}: {}{}",
        count(short.sum()),
        count(due),
        share(short.sum(), due),
        short.text(),
        waited.map_or_else(String::new, |waited| format!("; {waited}"))
    )
}

/// Mean wait of misses, beside the origins' service time; none: one of them is not known.
fn miss_time(figures: &Figures) -> Option<String> {
    let (misses, origins) = (figures.ttfb_ms.miss.mean?, figures.origins.service_time_ms.mean?);
    Some(format!(
        "a miss waited {} on average; origins took {} for a response",
        time_ms(misses),
        time_ms(origins)
    ))
}

/// Sentence for a run without requests, with a remedy.
fn nothing_due(summary: &Summary) -> String {
    let within = summary.total.duration_s.map_or_else(String::new, |s| format!(" in {}", duration_s(s)));
    if summary.partial {
        return format!("No request came due{within}, so nothing can be said about speed.");
    }
    let remedy = match rehearsed(summary.workload_info.scale) {
        Some(rehearsed) => format!("the run was {rehearsed}, and ended before its first request; rehearse for longer"),
        None => "let phases take longer (`--duration`, `goal`), or raise rates and loads; `assay check` shows how many requests \
                 are expected"
            .to_owned(),
    };
    format!("No request came due{within}, so nothing was measured: {remedy}.")
}

/// Responses that came and were errors.
fn wrong_responses(figures: &Figures) -> u64 {
    figures.errors.of(|kind| !kind.is_own() && !kind.is_without_response())
}

/// Requests that came due and never reached the target, or were never sent, because of Assay.
fn own_losses(figures: &Figures) -> u64 {
    figures.errors.of(ErrorKind::is_own) + figures.counts.unsent_late
}

/// Requests that came due and got no response, for other reasons than Assay's own.
struct Shortfall {
    /// Waited for a connection until their phase ended.
    unsent: u64,
    /// Belonged to pages that failed, or came too late.
    not_reached: u64,
    /// Ended in an error without a response, by its name.
    errors: Vec<(ErrorKind, u64)>,
}

impl Shortfall {
    fn from_figures(figures: &Figures) -> Self {
        let counts = &figures.counts;
        let errors = figures.errors.by_kind.iter().map(|(kind, number)| (*kind, *number));
        Self {
            unsent: counts.unsent.saturating_sub(counts.unsent_late),
            not_reached: counts.not_reached,
            errors: errors.filter(|(kind, _)| kind.is_without_response()).collect(),
        }
    }

    /// Requests that were not sent before their phase ended.
    fn kept_waiting(&self) -> u64 {
        self.unsent + self.not_reached
    }

    fn sum(&self) -> u64 {
        self.kept_waiting() + self.errors.iter().map(|(_, count)| count).sum::<u64>()
    }

    fn text(&self) -> String {
        let mut parts = Vec::new();
        for (number, what) in [
            (self.unsent, "were not sent before their phase ended"),
            (self.not_reached, "were embedded in pages that did not come"),
        ] {
            if number > 0 {
                parts.push(format!("{} {what}", count(number)));
            }
        }
        let mut by_words: Vec<(&str, u64)> = Vec::new();
        for (kind, number) in &self.errors {
            match by_words.iter_mut().find(|(words, _)| *words == error_text(*kind)) {
                Some((_, all)) => *all += number,
                None => by_words.push((error_text(*kind), *number)),
            }
        }
        parts.extend(by_words.into_iter().map(|(words, number)| format!("{} {words}", count(number))));
        parts.join(", ")
    }
}

/// Fate of requests that ended in this error, which leaves them without a response.
fn error_text(kind: ErrorKind) -> &'static str {
    use ErrorKind::{
        ConnectFailed, QueueOverflow, StreamReset, TimedOut, TlsCertificateExpired, TlsCertificateName,
        TlsCertificateUntrusted, TlsFailed, TlsNoCommonParameters, TlsNotSpoken,
    };
    match kind {
        TimedOut => "timed out",
        ConnectFailed => "could not connect",
        QueueOverflow => "found too many waiting before them",
        TlsCertificateExpired | TlsCertificateName | TlsCertificateUntrusted => {
            "found a certificate that is not valid"
        }
        TlsNoCommonParameters | TlsNotSpoken | TlsFailed => "failed in TLS",
        StreamReset => "had their stream reset",
        _ => "lost their connection",
    }
}

/// Rate and times of the phases that measure: hits and misses apart, where there are both.
fn headline_times(summary: &Summary) -> String {
    let Some(figures) = &summary.headline.figures else { return String::new() };
    let times = &figures.response_time_ms;
    let apart = times.hit.count > 0 && times.miss.count > 0;
    let classes: Vec<(&str, &Percentiles)> = match apart {
        true => vec![("the median hit took", &times.hit), ("the median miss", &times.miss)],
        false => vec![("the median response took", &times.all)],
    };
    let class = |(name, times): &(&str, &Percentiles)| -> Option<String> {
        let (p50, p99) = (times.figure("p50")?, times.figure("p99")?);
        Some(format!("{name} {} (99th percentile {})", time(p50), time(p99)))
    };
    let class_times: Vec<String> = classes.iter().filter_map(class).collect();
    let scope = in_headline(summary);
    if figures.figure("rate.measured").is_some_and(|rate| rate.value.is_none()) {
        return format!(" Its rate and its times{scope} are not known.");
    }
    let text = match figures.figure("rate.measured").filter(|_| !class_times.is_empty()) {
        Some(rate) => {
            format!(
                "at {} responses per second{scope}, {}",
                in_words(rate, number),
                class_times.join(" and ")
            )
        }
        None => return String::new(),
    };
    format!(" {}", sentence(&text))
}

/// Whether the target kept up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum KeepUp {
    /// Next to nothing was left without a response, but for a few objects of pages that were under way when their phase ended.
    Yes,
    /// Only requests that were not sent before their phase ended were, and that can have been because of Assay or the machine.
    Late,
    /// More was, and an emulated link could carry no more.
    FullLink,
    /// Only requests that were not sent before their phase ended were: no more than response times explain, and more than a few.
    ShortPhases,
    No,
}

/// Whether it kept up, in the whole run and in every phase that is long enough to judge.
pub(crate) fn keep_up(summary: &Summary) -> KeepUp {
    let phases: Vec<&Figures> = summary.phases.iter().map(|phase| &phase.figures).collect();
    match judge(&summary.total, &phases, summary.disturbance.is_some()) {
        KeepUp::No if summary.bed.as_ref().is_some_and(has_full_link) => KeepUp::FullLink,
        judged => judged,
    }
}

/// More packets than a few found the queue of an emulated link full. (Connections fill queues to find out what there is room for.)
fn has_full_link(bed: &BedInfo) -> bool {
    let mut ways = bed.links.iter().flat_map(|link| &link.directions);
    ways.any(|way| is_more_than_few(way.queue_full, way.packets))
}

/// `disturbed`: Assay or the machine can have kept requests waiting until their phase ended, but not until they timed out.
fn judge(total: &Figures, phases: &[&Figures], disturbed: bool) -> KeepUp {
    let few_short = |excused: &dyn Fn(&Figures) -> u64| {
        let few = |figures: &Figures, excused: u64| {
            let short = Shortfall::from_figures(figures).sum().saturating_sub(excused);
            short as f64 <= figures.counts.due as f64 * FEW
        };
        let of_all = phases.iter().map(|figures| excused(figures)).sum();
        few(total, of_all)
            && phases.iter().all(|figures| figures.counts.due < ENOUGH || few(figures, excused(figures)))
    };
    let under_way: u64 = phases.iter().map(|figures| excusable(figures)).sum();
    if few_short(&|_| 0) || (few_short(&excusable) && under_way as f64 <= total.counts.due as f64 * A_TENTH) {
        KeepUp::Yes
    } else if disturbed && few_short(&|figures| Shortfall::from_figures(figures).kept_waiting()) {
        KeepUp::Late
    } else if few_short(&excusable) {
        KeepUp::ShortPhases
    } else {
        KeepUp::No
    }
}

/// Requests that were not sent as others were still under way when the phase ended: embedded objects, of which as many at most came due
/// as in the time that 99 of 100 responses took, and others, as many as came due while origins took theirs. In a phase that is short
/// beside these times, those are many, however well the target keeps up. (How long others wait is for the target to answer for.)
fn excusable(figures: &Figures) -> u64 {
    let Some(duration_s) = figures.duration_s else { return 0 };
    let due_within = |ms: Option<f64>| {
        let share = ms.unwrap_or(0.0) / 1000.0 / duration_s;
        (figures.counts.due as f64 * share.min(1.0)).ceil() as u64
    };
    let (responses, origins) = (&figures.response_time_ms.all, &figures.origins.service_time_ms);
    let unsent = figures.counts.unsent.saturating_sub(figures.counts.unsent_late);
    figures.counts.not_reached.min(due_within(responses.p99)) + unsent.min(due_within(origins.p99))
}

#[cfg(test)]
mod tests {
    use assay_measurement::counts::RobotRequests;
    use assay_record::run::{LinkInfo, LinkTotals};

    use super::*;

    #[test]
    fn a_few_requests_left_at_the_ends_of_short_phases_are_no_failure() {
        let figures = |due, unsent| Figures {
            counts: RobotRequests { due, unsent, ..RobotRequests::default() },
            ..Figures::default()
        };
        let keep_up = |phases: &[Figures]| {
            let sum = |of: fn(&Figures) -> u64| phases.iter().map(of).sum();
            let total = figures(sum(|f| f.counts.due), sum(|f| f.counts.unsent));
            judge(&total, &phases.iter().collect::<Vec<_>>(), false) == KeepUp::Yes
        };
        assert!(keep_up(&[figures(200, 20), figures(30_000, 60)]));
        assert!(!keep_up(&[figures(200, 20)]));
        assert!(!keep_up(&[figures(200, 0), figures(5_000, 60), figures(100_000, 0)]));
    }

    #[test]
    fn pages_that_are_under_way_when_a_short_phase_ends_are_no_failure_of_the_target() {
        let keep_up = |not_reached: u64, p99_ms: f64, errors: u64| {
            let mut figures = Figures { duration_s: Some(2.0), ..Figures::default() };
            (figures.counts.due, figures.counts.not_reached) = (1000, not_reached);
            figures.response_time_ms.all.p99 = Some(p99_ms);
            figures.errors.by_kind.insert(ErrorKind::TimedOut, errors);
            judge(&figures, &[&figures], false)
        };
        // 1,000 in 2 s are 30 in 60 ms, and 200 in 400 ms.
        assert_eq!(keep_up(25, 60.0, 0), KeepUp::Yes);
        assert_eq!(keep_up(100, 400.0, 0), KeepUp::Yes);
        assert_eq!(keep_up(101, 400.0, 0), KeepUp::ShortPhases, "more than a tenth is open");
        assert_eq!(keep_up(25, 60.0, 11), KeepUp::No, "others got no response either");
        assert_eq!(keep_up(60, 60.0, 0), KeepUp::No, "more than were under way");
        assert_eq!(keep_up(9, 60.0, 0), KeepUp::Yes);
    }

    #[test]
    fn requests_that_wait_while_origins_think_are_no_failure_of_the_target_and_others_are() {
        let keep_up = |unsent: u64, origins_ms: f64, responses_ms: f64| {
            let mut figures = Figures { duration_s: Some(2.0), ..Figures::default() };
            (figures.counts.due, figures.counts.unsent) = (1000, unsent);
            figures.origins.service_time_ms.p99 = Some(origins_ms);
            figures.response_time_ms.all.p99 = Some(responses_ms);
            judge(&figures, &[&figures], false)
        };
        assert_eq!(keep_up(300, 2500.0, 2600.0), KeepUp::ShortPhases);
        assert_eq!(keep_up(25, 60.0, 70.0), KeepUp::Yes);
        assert_eq!(keep_up(300, 60.0, 1800.0), KeepUp::No, "they waited for the target");
    }

    #[test]
    fn a_target_behind_a_full_link_is_not_blamed() {
        let keep_up = |queue_full| {
            let mut summary = Summary::default();
            (summary.total.counts.due, summary.total.counts.unsent) = (1_000, 130);
            let way = LinkTotals { packets: 10_000, queue_full, ..LinkTotals::default() };
            let link = LinkInfo { directions: vec![way], ..LinkInfo::default() };
            summary.bed = Some(BedInfo { links: vec![link], ..BedInfo::default() });
            keep_up(&summary)
        };
        assert_eq!([0, 100, 101].map(keep_up), [KeepUp::No, KeepUp::No, KeepUp::FullLink]);
    }

    #[test]
    fn requests_without_a_response_are_told_by_what_became_of_them() {
        let mut figures = Figures::default();
        for (kind, number) in [
            ("tls_certificate_name", 3),
            ("tls_certificate_untrusted", 4),
            ("tls_not_spoken", 5),
            ("stream_reset", 6),
            ("connection_lost", 7),
        ] {
            figures.errors.by_kind.insert(kind.parse().expect("a kind"), number);
        }
        let words = Shortfall::from_figures(&figures).text();
        let expected = "7 found a certificate that is not valid, 5 failed in TLS, 6 had their stream reset, 7 lost their connection";
        assert_eq!(words, expected);
    }

    #[test]
    fn every_way_to_get_no_response_counts_and_what_assay_lost_does_not() {
        let keep_up = |change: &dyn Fn(&mut Figures), disturbed: bool| {
            let mut figures = Figures::default();
            figures.counts.due = 10_000;
            change(&mut figures);
            judge(&figures, &[&figures], disturbed)
        };
        let error = |kind: &'static str| {
            move |figures: &mut Figures| _ = figures.errors.by_kind.insert(kind.parse().expect("a kind"), 101)
        };
        assert_eq!(keep_up(&|_| {}, false), KeepUp::Yes);
        for kind in ["timed_out", "connect_failed", "stream_reset", "connection_lost", "queue_overflow"] {
            assert_eq!(keep_up(&error(kind), true), KeepUp::No, "{kind}");
        }
        assert_eq!(keep_up(&|figures| figures.counts.unsent = 101, false), KeepUp::No);
        assert_eq!(keep_up(&|figures| figures.counts.unsent = 101, true), KeepUp::Late);
        assert_eq!(keep_up(&|figures| figures.counts.not_reached = 101, false), KeepUp::No);
        let late_by_assay = keep_up(&|figures| figures.counts.not_reached = 101, true);
        assert_eq!(late_by_assay, KeepUp::Late, "pages can have come late by Assay's fault");
        assert_eq!(keep_up(&|figures| figures.counts.not_reached = 99, true), KeepUp::Yes);
        for kind in ["wrong_bytes", "ports_exhausted"] {
            assert_eq!(keep_up(&error(kind), false), KeepUp::Yes, "{kind}: it came, or never got there");
        }
        let late =
            keep_up(&|figures| (figures.counts.unsent, figures.counts.unsent_late) = (101, 101), false);
        assert_eq!(late, KeepUp::Yes);
    }
}
