//! Sources of responses, response times by source, and the agreement of the caches' logs with the robots.
//!
//! From `caches.json`, in which the lab has put both together request by request. Where robots kept no log of every request,
//! their sums are held against the logs' sums.

mod agreement;
pub mod document;
mod views;

use assay_measurement::counts::{OriginCounts, RobotCounts};
use assay_measurement::histogram::Histogram;
use assay_measurement::measured::Series;
use assay_record::caches::{CacheLogs, Responses, Source, Traffic};
use assay_record::run::RunInfo;
use strum::VariantArray;

use self::document::{CacheLogFigures, CacheSources, SourceFigures, TrafficFigures};
use crate::figures::{percentiles, ratio};
pub use views::{sentences, tables};

/// Name of the row for all caches together.
const ALL: &str = "all";

/// The figures of the phase called `baseline` (of the whole run, where there is none), and what both sides counted in all.
pub fn figures(
    info: &RunInfo,
    series: &Series,
    logs: Option<&CacheLogs>,
    baseline: Option<&str>,
) -> Option<CacheLogFigures> {
    let logs = logs.filter(|logs| logs.logs.iter().any(|log| log.unread.is_empty()))?;
    let phase = info.phases.iter().position(|phase| Some(phase.name.as_str()) == baseline);
    let counts = |of: u16| phase.is_none_or(|phase| usize::from(of) == phase);
    let chosen: Vec<&Responses> =
        logs.responses.iter().filter(|row| row.basic && counts(row.phase)).collect();
    let mut caches = Vec::new();
    if logs.logs.len() > 1 {
        let of = |name: &str| sources(name, chosen.iter().copied().filter(|row| row.cache == name));
        let each = logs.logs.iter().map(|log| of(&log.cache));
        // One that no robot speaks to has nothing to say here.
        caches.extend(each.filter(|cache| cache.requests > 0));
    }
    caches.push(sources(ALL, chosen.iter().copied()));
    let (mut robots, mut origins) = (RobotCounts::default(), OriginCounts::default());
    series.robots.iter().for_each(|interval| robots.merge(&interval.counts));
    series.origins.iter().for_each(|interval| origins.merge(&interval.counts));
    Some(CacheLogFigures {
        phase: phase.map(|phase| info.phases[phase].name.clone()),
        joined: logs.joined,
        caches,
        traffic: traffic(logs.traffic.iter().filter(|row| counts(row.phase))),
        agreement: agreement::agreement(logs, &robots, &origins),
    })
}

/// Sources of the responses in some phases, over all of several caches; none: there is only one cache, or nothing is
/// known.
pub fn together(logs: &CacheLogs, phases: &[usize]) -> Option<CacheSources> {
    let rows = logs.responses.iter().filter(|row| row.basic && phases.contains(&usize::from(row.phase)));
    let is_known = logs.logs.len() > 1 && logs.logs.iter().any(|log| log.unread.is_empty());
    is_known.then(|| sources(ALL, rows)).filter(|all| all.requests > 0)
}

/// Sources of the responses of one cache, or of all.
fn sources<'a>(name: &str, rows: impl Iterator<Item = &'a Responses> + Clone) -> CacheSources {
    let whole: u64 = rows.clone().map(|row| row.requests).sum();
    let of = |source: Source| {
        let rows = rows.clone().filter(move |row| row.source == source);
        let requests: u64 = rows.clone().map(|row| row.requests).sum();
        let (mut response, mut logged) = (Histogram::new(), Histogram::new());
        for row in rows.clone() {
            response.merge_sparse(&row.response);
            logged.merge_sparse(&row.duration);
        }
        (requests > 0).then(|| SourceFigures {
            source: source.name().to_owned(),
            requests,
            ratio: ratio(requests, whole),
            body_bytes: rows.map(|row| row.body_bytes).sum(),
            response_ms: percentiles(&response),
            logged_ms: percentiles(&logged),
        })
    };
    let hits: u64 = rows.clone().filter(|row| row.source.is_hit()).map(|row| row.requests).sum();
    CacheSources {
        cache: name.to_owned(),
        requests: whole,
        hit_ratio: ratio(hits, whole),
        sources: Source::VARIANTS.iter().copied().filter_map(of).collect(),
    }
}

/// Requests between caches, phases added up.
fn traffic<'a>(rows: impl Iterator<Item = &'a Traffic>) -> Vec<TrafficFigures> {
    let mut found: Vec<(TrafficFigures, Histogram)> = Vec::new();
    for row in rows {
        let is_same = |known: &(TrafficFigures, Histogram)| known.0.from == row.from && known.0.to == row.to;
        let index = found.iter().position(is_same).unwrap_or_else(|| {
            let (from, to, relation) = (row.from.clone(), row.to.clone(), row.relation.clone());
            found.push((TrafficFigures { from, to, relation, ..Default::default() }, Histogram::new()));
            found.len() - 1
        });
        let (sums, logged) = &mut found[index];
        sums.requests += row.requests;
        sums.hits += row.hits;
        sums.false_hits += row.false_hits;
        sums.bytes += row.bytes;
        logged.merge_sparse(&row.duration);
    }
    let finished =
        found.into_iter().map(|(sums, logged)| TrafficFigures { logged_ms: percentiles(&logged), ..sums });
    finished.collect()
}

#[cfg(test)]
mod tests {
    use assay_measurement::interval::{OriginInterval, RobotInterval};
    use assay_record::caches::{LogRead, Seen};
    use assay_record::run::PhaseInfo;

    use super::*;

    fn row(cache: &str, phase: u16, seen: Seen, source: Source, requests: u64) -> Responses {
        let mut times = Histogram::new();
        (0..requests).for_each(|_| times.record(2000));
        Responses {
            cache: cache.into(),
            phase,
            basic: true,
            seen,
            source,
            requests,
            other_status: 0,
            body_bytes: 10 * requests,
            logged_bytes: 12 * requests,
            response: times.to_sparse(),
            duration: times.to_sparse(),
        }
    }

    fn logs(responses: Vec<Responses>) -> CacheLogs {
        let log = |cache: &str| LogRead { cache: cache.into(), ..LogRead::default() };
        let edge = |phase| Traffic {
            from: "a".into(),
            to: "b".into(),
            relation: "sibling".into(),
            phase,
            requests: 3,
            hits: 2,
            false_hits: 1,
            bytes: 5,
            ..Traffic::default()
        };
        CacheLogs {
            joined: true,
            logs: vec![log("a"), log("b")],
            responses,
            traffic: vec![edge(0), edge(1)],
            ..CacheLogs::default()
        }
    }

    fn info() -> RunInfo {
        let phase = |name: &str| PhaseInfo { name: name.into(), ..PhaseInfo::default() };
        RunInfo { phases: vec![phase("fill"), phase("top")], ..RunInfo::default() }
    }

    #[test]
    fn ratios_and_times_are_of_the_phase_that_counts_by_where_the_response_came_from() {
        let logs = logs(vec![
            row("a", 0, Seen::Miss, Source::Origin, 50),
            row("a", 1, Seen::Hit, Source::Local, 6),
            row("a", 1, Seen::Hit, Source::Sibling, 2),
            row("a", 1, Seen::Miss, Source::Origin, 2),
            row("b", 1, Seen::Hit, Source::Local, 10),
        ]);
        let found = figures(&info(), &Series::default(), Some(&logs), Some("top")).unwrap();
        let [a, b, all] = &found.caches[..] else { panic!("{:?}", found.caches) };
        assert_eq!((a.requests, a.hit_ratio, b.hit_ratio), (10, Some(0.8), Some(1.0)));
        assert_eq!((a.sources[1].source.as_str(), a.sources[1].ratio), ("sibling", Some(0.2)));
        assert_eq!((all.cache.as_str(), all.requests, all.sources[0].body_bytes), ("all", 20, 160));
        assert_eq!(all.sources[0].response_ms.p50, Some(2.0));
        assert_eq!((found.traffic[0].requests, found.traffic[0].false_hits), (3, 1));
        let whole = figures(&info(), &Series::default(), Some(&logs), None).unwrap();
        assert_eq!((whole.caches[2].requests, whole.traffic[0].requests), (70, 6));
        assert_eq!(figures(&info(), &Series::default(), None, None), None);
    }

    #[test]
    fn sums_agree_where_responses_showed_some_validations_and_hid_others() {
        // Six hits, of which two were validated without a sign of it; three validations that the response showed; one fetch.
        let mut robots = RobotInterval::default();
        robots.counts.completed = 10;
        (robots.counts.hits, robots.counts.revalidated, robots.counts.misses) = (6, 3, 1);
        let mut origins = OriginInterval::default();
        origins.counts.validated_basic = 2 + 3;
        let series = Series { robots: vec![robots], origins: vec![origins], ..Series::default() };
        let logs = CacheLogs {
            joined: false,
            ..logs(vec![
                row("a", 0, Seen::Nothing, Source::Local, 4),
                row("a", 0, Seen::Nothing, Source::Revalidated, 5),
                row("a", 0, Seen::Nothing, Source::Origin, 1),
            ])
        };
        let found = figures(&info(), &series, Some(&logs), None).unwrap();
        let of = |what: &str| found.agreement.iter().find(|row| row.what == what).unwrap();
        for (what, expected) in
            [("requests answered", 10), ("plain GETs: hits", 4), ("plain GETs: revalidated", 5)]
        {
            let row = of(what);
            assert_eq!((row.robots, row.logs, row.why.as_str()), (expected, expected, ""), "{what}");
        }
    }

    #[test]
    fn where_both_sides_agree_nothing_is_explained_and_where_not_each_request_is() {
        let agreed =
            logs(vec![row("a", 0, Seen::Hit, Source::Local, 4), row("b", 0, Seen::Miss, Source::Origin, 1)]);
        let found = figures(&info(), &Series::default(), Some(&agreed), None).unwrap();
        assert!(
            found.agreement.iter().filter(|row| !row.what.contains("bytes")).all(|row| row.why.is_empty())
        );
        assert!(
            found.agreement.iter().any(|row| row.what.contains("bytes") && row.why.contains("2.0 bytes"))
        );
        let said = sentences(&found).join("\n");
        assert!(said.contains("robots and logs agree"), "{said}");
        let odd = logs(vec![
            row("a", 0, Seen::Hit, Source::Local, 4),
            row("a", 0, Seen::Hit, Source::Revalidated, 3),
            row("a", 0, Seen::Failed, Source::Failed, 2),
            row("b", 0, Seen::Miss, Source::Unlogged, 1),
        ]);
        let found = figures(&info(), &Series::default(), Some(&odd), None).unwrap();
        let of =
            |what: &str| found.agreement.iter().find(|row| row.cache == "all" && row.what == what).unwrap();
        let responded = of("requests answered");
        assert_eq!((responded.robots, responded.logs), (8, 9));
        assert!(responded.why.contains("2 ") && responded.why.contains("1 "), "{responded:?}");
        let hits = of("plain GETs: hits");
        assert_eq!((hits.robots, hits.logs), (7, 4));
        assert!(hits.why.contains("3 ") && hits.why.contains("confirmed"), "{hits:?}");
        assert!(!sentences(&found).join("\n").contains("robots and logs agree"));
        assert!(tables(&found).iter().all(|table| {
            let groups: usize = table.groups.iter().map(|group| group.1).sum();
            groups == table.heads.len() && table.rows.iter().all(|row| row.cells.len() == table.heads.len())
        }));
    }
}
