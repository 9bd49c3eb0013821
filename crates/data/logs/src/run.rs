//! The log of a run: which lines are its robots', in which phase, and whether the log agrees with what robots counted.

use assay_measurement::counts::{OriginCounts, RobotCounts};
use assay_measurement::measured::Series;
use assay_measurement::ratios::Outcomes;
use assay_record::run::RunInfo;

use crate::analysis::PhaseSpan;
use crate::class::Class;
use crate::document::{LogsDocument, Reconciled, Reconciliation};

/// The phases of a run that began, as times of a log.
pub fn phases(info: &RunInfo) -> Vec<PhaseSpan> {
    let at = |ms: u64| (info.started_unix_ms + ms) as i64 * 1000;
    let begun = (0..).zip(&info.phases).filter_map(|(number, phase)| {
        let start_ms = phase.start_ms?;
        Some(PhaseSpan {
            number,
            name: phase.name.clone(),
            from_us: at(start_ms),
            to_us: phase.end_ms.map_or(i64::MAX, at),
        })
    });
    begun.collect()
}

/// Part of the URL of every request of the run's robots; none when its workload names URLs of its own.
pub fn mark(info: &RunInfo, foreign_urls: bool) -> Option<String> {
    (!foreign_urls).then(|| format!("/w{:08x}/", info.world))
}

/// Holds a log against what robots and origins counted.
pub fn reconcile(
    document: &LogsDocument,
    info: &RunInfo,
    series: &Series,
    bodies_only: bool,
) -> Reconciliation {
    let (mut robots, mut origins) = (RobotCounts::default(), OriginCounts::default());
    series.robots.iter().for_each(|interval| robots.merge(&interval.counts));
    series.origins.iter().for_each(|interval| origins.merge(&interval.counts));
    let outcomes = Outcomes::of(&robots, &origins);
    let responded = robots.completed + robots.retries;
    let mut rows = vec![row(
        "responses",
        responded,
        document.all.requests,
        "a request that a robot gave up, or whose response was broken off, is a line of the log and no response to the robot",
    )];
    if let Some(plain) = document.plain.as_ref().filter(|plain| plain.dhr.is_some()) {
        let hits =
            [plain.local_hits, plain.sibling_hits, plain.parent_hits].into_iter().flatten().sum::<u64>();
        let revalidated = plain.revalidated.unwrap_or_default();
        rows.extend([
            row(
                "plain GETs: hits and joined",
                outcomes.hit + outcomes.collapsed,
                hits,
                "robots tell a hit by who caused the response that they got; the proxy calls a hit what its cache had, \
                 also for requests that robots do not count as plain (reloads, requests with a condition)",
            ),
            row(
                "plain GETs: revalidated",
                outcomes.revalidated,
                revalidated,
                "robots see a revalidation only where the origin responded 304 to a request without a condition of their own; \
                 not every proxy has a word for it",
            ),
            row(
                "plain GETs: fetched",
                robots.misses,
                plain.requests - hits - revalidated,
                "reloads, and requests with a condition that got the whole object, are plain GETs in a log",
            ),
        ]);
    }
    let not_modified = robots.by_status.get(&304).copied().unwrap_or_default();
    rows.push(row("responses with 304", not_modified, status(document, "304"), ""));
    let (what, bytes) = if bodies_only {
        ("bytes of bodies", robots.body_bytes_in)
    } else {
        ("bytes, with heads", robots.wire_bytes_in)
    };
    rows.push(row(
        what,
        bytes,
        document.all.bytes.unwrap_or_default(),
        "proxies count what they wrote or meant to write, some without heads; robots count what arrived",
    ));
    rows.extend(by_phase(document, info, series));
    let errors = class(document, Class::Error);
    rows.push(row(
        "errors",
        robots.error_total(),
        errors,
        "what is an error to a robot need not be one to the proxy",
    ));
    Reconciliation {
        rows,
        why: vec![
            "Only lines whose URL is one of this run's are counted: what the lab asks a proxy itself (is it ready? its \
             counters) is in the log too."
                .into(),
        ],
    }
}

/// Requests by phase: the log has that in which they were due where its lines have `X-Assay`, as robots count them.
fn by_phase<'a>(
    document: &'a LogsDocument,
    info: &'a RunInfo,
    series: &'a Series,
) -> impl Iterator<Item = Reconciled> + 'a {
    let by_time = document.phases_by.is_some_and(|by| by.logged > 0);
    let why = if by_time {
        "robots count a request in the phase in which it was due; the log has the time at which it ended or began"
    } else {
        "a request that a robot gave up, or whose response was broken off, is a line of the log and no response to the robot"
    };
    document.phases.iter().map(move |phase| {
        let number = info.phases.iter().position(|known| known.name == phase.name);
        let own = series.robots.iter().filter(|interval| Some(usize::from(interval.phase)) == number);
        let completed = own.map(|interval| interval.counts.completed).sum();
        row(&format!("phase {}: requests", phase.name), completed, phase.figures.requests, why)
    })
}

fn row(what: &str, run: u64, log: u64, why: &str) -> Reconciled {
    Reconciled { what: what.into(), run: run as f64, log: log as f64, why: why.into() }
}

fn status(document: &LogsDocument, status: &str) -> u64 {
    let grouping = document.groups.iter().find(|grouping| grouping.by == "status");
    let group = grouping.and_then(|grouping| grouping.groups.iter().find(|group| group.name == status));
    group.map_or(0, |group| group.figures.requests)
}

fn class(document: &LogsDocument, class: Class) -> u64 {
    let found = document.by_class.iter().find(|figures| figures.class == class);
    found.map_or(0, |class| class.figures.requests)
}

#[cfg(test)]
mod tests {
    use assay_measurement::interval::{OriginInterval, RobotInterval};
    use assay_record::run::PhaseInfo;

    use super::*;
    use crate::analysis::{Analyser, AnalysisOptions};
    use crate::format::detect;
    use crate::input::Input;

    #[test]
    fn phases_that_began_are_spans_of_the_clock() {
        let phase = |name: &str, start_ms, end_ms| PhaseInfo {
            name: name.into(),
            start_ms,
            end_ms,
            ..PhaseInfo::default()
        };
        let info = RunInfo {
            started_unix_ms: 1000,
            world: 0xab,
            phases: vec![
                phase("fill", Some(0), Some(500)),
                phase("top", Some(500), None),
                phase("never", None, None),
            ],
            ..RunInfo::default()
        };
        let spans = phases(&info);
        assert_eq!(spans.len(), 2);
        assert_eq!((spans[0].from_us, spans[0].to_us, spans[1].from_us), (1_000_000, 1_500_000, 1_500_000));
        assert!(spans[1].to_us > 2_000_000_000_000_000);
        assert_eq!(mark(&info, false).as_deref(), Some("/w000000ab/"));
    }

    /// What became of a plain GET: the proxy's word, and whether an origin validated it, and whether the response shows that.
    type Fate = (&'static str, bool, bool);
    const HIT: Fate = ("TCP_MEM_HIT", false, false);
    const JOINED: Fate = ("TCP_CF_HIT", false, false);
    const SHOWN: Fate = ("TCP_REFRESH_UNMODIFIED", true, true);
    const HIDDEN: Fate = ("TCP_REFRESH_UNMODIFIED", true, false);
    const FETCHED: Fate = ("TCP_MISS", false, false);

    /// The log of these requests.
    fn document(requests: &[Fate]) -> LogsDocument {
        let line = |(number, fate): (usize, &Fate)| {
            let word = fate.0;
            format!(
                "{}.000 10 c {word}/200 100 GET http://a/{number} - HIER_DIRECT/o text/html\n",
                100 + number
            )
        };
        let text: String = requests.iter().enumerate().map(line).collect();
        let mut input = Input::new("log".into(), Box::new(std::io::Cursor::new(text.into_bytes()))).unwrap();
        let recognised = detect(input.head()).expect("Squid's format");
        let mut analyser = Analyser::new(AnalysisOptions::default());
        analyser.read(&mut input, &recognised, false);
        analyser.finish()
    }

    /// What robots and origins count of them.
    fn series(requests: &[Fate]) -> Series {
        let (mut robots, mut origins) = (RobotCounts::default(), OriginCounts::default());
        for fate in requests {
            robots.completed += 1;
            origins.validated_basic += u64::from(fate.1);
            match *fate {
                JOINED => robots.collapsed += 1,
                FETCHED => robots.misses += 1,
                SHOWN => robots.revalidated += 1,
                _ => robots.hits += 1,
            }
        }
        Series {
            robots: vec![RobotInterval { counts: robots, ..RobotInterval::default() }],
            origins: vec![OriginInterval { counts: origins, ..OriginInterval::default() }],
            ..Series::default()
        }
    }

    #[test]
    fn validations_that_responses_showed_are_counted_once_on_both_sides() {
        let times = |count, fate: Fate| std::iter::repeat_n(fate, count);
        for (hits, joined, shown, hidden, fetched) in
            [(10, 2, 4, 0, 5), (10, 0, 0, 4, 1), (7, 1, 3, 2, 0), (0, 0, 6, 0, 2), (0, 3, 0, 1, 1)]
        {
            let requests: Vec<Fate> = times(hits, HIT)
                .chain(times(joined, JOINED))
                .chain(times(shown, SHOWN))
                .chain(times(hidden, HIDDEN))
                .chain(times(fetched, FETCHED))
                .collect();
            let found = reconcile(&document(&requests), &RunInfo::default(), &series(&requests), true);
            let of = |what: &str| {
                let row = found.rows.iter().find(|row| row.what == format!("plain GETs: {what}"));
                row.map(|row| (row.run, row.log)).expect("a row")
            };
            for (what, expected) in
                [("hits and joined", hits + joined), ("revalidated", shown + hidden), ("fetched", fetched)]
            {
                assert_eq!(of(what), (expected as f64, expected as f64), "{what} of {requests:?}");
            }
        }
    }
}
