//! Several caches that work together: what each of them had itself, and what it got from others.
//!
//! From the caches' own counters, over the phase that counts (or the whole run): the difference between the last readings
//! before its end and before its beginning.

use std::collections::BTreeMap;

use assay_measurement::measured::Series;
use assay_record::run::{CacheInfo, RunInfo};

use assay_measurement::ratios::ratio;

use crate::document::{CacheFigures, Hierarchy, IcpFigures, PhaseFigures};
use crate::format::{NOTHING, bytes, count, percent, time_ms};
use crate::page::{RowView, TableView};

/// Figures of the caches in the phase called `baseline`, or in the whole run; none: there was one target only.
pub(crate) fn figures(
    info: &RunInfo,
    series: &Series,
    phases: &[PhaseFigures],
    baseline: Option<&str>,
) -> Option<Hierarchy> {
    let caches = &info.target.caches;
    if caches.is_empty() {
        return None;
    }
    let phase = phases.iter().find(|phase| Some(phase.name.as_str()) == baseline);
    let (from, to) = phase.map_or((None, None), |phase| (phase.start_ms, phase.end_ms));
    let of = |cache: &CacheInfo| {
        let before = from.map(|from| reading(series, &cache.name, from)).unwrap_or_default();
        let after = reading(series, &cache.name, to.unwrap_or(u64::MAX));
        let counted = |name: &str| {
            let value = |counters: &BTreeMap<String, f64>| counters.get(name).copied().unwrap_or(0.0);
            // A counter is whole and never falls.
            (value(&after) - value(&before)).max(0.0) as u64
        };
        cache_figures(cache, counted)
    };
    let caches: Vec<CacheFigures> = caches.iter().map(of).collect();
    let all = sum(&caches);
    Some(Hierarchy { phase: phase.map(|phase| phase.name.clone()), caches, all })
}

/// The last reading of a cache's counters until then.
fn reading(series: &Series, cache: &str, until_ms: u64) -> BTreeMap<String, f64> {
    let mut counters = BTreeMap::new();
    for sample in series.proxy.iter().filter(|sample| sample.cache == cache && sample.at_ms <= until_ms) {
        counters.extend(sample.counters.iter().map(|(name, value)| (name.clone(), *value)));
    }
    counters
}

fn cache_figures(cache: &CacheInfo, counted: impl Fn(&str) -> u64) -> CacheFigures {
    // To a cache that no robot speaks to, all requests are of other caches, whether or not it tells them apart.
    let (of_caches, hits_for_caches) = match cache.robots {
        0 => (counted("requests"), counted("hits")),
        _ => (counted("peer_requests"), counted("peer_hits")),
    };
    let mut figures = CacheFigures {
        name: cache.name.clone(),
        proxy: cache.proxy.clone(),
        robots: cache.robots,
        requests: counted("requests").saturating_sub(of_caches),
        local_hits: counted("hits").saturating_sub(hits_for_caches),
        sibling_hits: counted("sibling_hits"),
        parent_fetches: counted("parent_fetches"),
        parent_hits: counted("parent_hits"),
        requests_of_caches: of_caches,
        hits_for_caches,
        sibling_bytes: counted("sibling_bytes"),
        parent_bytes: counted("parent_bytes"),
        icp: IcpFigures {
            sent: counted("icp_sent"),
            responses: counted("icp_responses"),
            timeouts: counted("icp_timeouts"),
            responses_sent: counted("icp_responses_sent"),
            hits_sent: counted("icp_hits_sent"),
            false_hits: counted("false_hits"),
            bytes: counted("icp_bytes"),
            wait_ms: counted("icp_wait_us") as f64 / 1000.0,
        },
        ..CacheFigures::default()
    };
    ratios(&mut figures);
    figures
}

/// Shares of the robots' requests; none where there were none.
fn ratios(figures: &mut CacheFigures) {
    let share = |part: u64| ratio(part, figures.requests);
    let (local, sibling, parent) =
        (share(figures.local_hits), share(figures.sibling_hits), share(figures.parent_hits));
    (figures.local_hit_ratio, figures.sibling_hit_ratio, figures.parent_hit_ratio) = (local, sibling, parent);
}

fn sum(caches: &[CacheFigures]) -> CacheFigures {
    let mut all = CacheFigures { name: "all".into(), ..CacheFigures::default() };
    for cache in caches {
        all.robots += cache.robots;
        let icp = &cache.icp;
        all.icp.wait_ms += icp.wait_ms;
        for (sum, more) in [
            (&mut all.requests, cache.requests),
            (&mut all.local_hits, cache.local_hits),
            (&mut all.sibling_hits, cache.sibling_hits),
            (&mut all.parent_fetches, cache.parent_fetches),
            (&mut all.parent_hits, cache.parent_hits),
            (&mut all.requests_of_caches, cache.requests_of_caches),
            (&mut all.hits_for_caches, cache.hits_for_caches),
            (&mut all.sibling_bytes, cache.sibling_bytes),
            (&mut all.parent_bytes, cache.parent_bytes),
            (&mut all.icp.sent, icp.sent),
            (&mut all.icp.responses, icp.responses),
            (&mut all.icp.timeouts, icp.timeouts),
            (&mut all.icp.responses_sent, icp.responses_sent),
            (&mut all.icp.hits_sent, icp.hits_sent),
            (&mut all.icp.false_hits, icp.false_hits),
            (&mut all.icp.bytes, icp.bytes),
        ] {
            *sum += more;
        }
    }
    ratios(&mut all);
    all
}

/// The columns, and whether a row needs more than its own cache to be read.
const HEADS: [&str; 15] = [
    "robots",
    "requests",
    "local %",
    "sibling %",
    "parent %",
    "requests",
    "hits",
    "queries",
    "late",
    "responses",
    "hits",
    "false hits",
    "bytes",
    "waited",
    "bytes from others",
];

/// Figures of each cache, as a table; none where there is one target only.
pub(crate) fn table(hierarchy: Option<&Hierarchy>) -> Option<TableView> {
    let hierarchy = hierarchy?;
    let row = |cache: &CacheFigures, total: bool| RowView {
        name: cache.name.clone(),
        cells: vec![
            cache.robots.to_string(),
            count(cache.requests),
            percent(cache.local_hit_ratio),
            percent(cache.sibling_hit_ratio),
            percent(cache.parent_hit_ratio),
            count(cache.requests_of_caches),
            count(cache.hits_for_caches),
            count(cache.icp.sent),
            count(cache.icp.timeouts),
            count(cache.icp.responses_sent),
            count(cache.icp.hits_sent),
            count(cache.icp.false_hits),
            bytes(cache.icp.bytes),
            if cache.icp.wait_ms > 0.0 { time_ms(cache.icp.wait_ms) } else { NOTHING.to_owned() },
            bytes(cache.sibling_bytes + cache.parent_bytes),
        ],
        total,
        ..RowView::default()
    };
    let rows = hierarchy.caches.iter().map(|cache| row(cache, false));
    Some(TableView {
        id: "hierarchy-table",
        title: "Caches that work together",
        about: "As the caches themselves counted, in the phase that counts, or in the whole run where there is none. Shares \
                are of all requests of robots, whatever their kind. A proxy that does not count something shows 0.",
        first: "cache",
        groups: vec![("from robots", 5), ("from caches", 2), ("questions (ICP)", 7), ("", 1)],
        heads: HEADS.to_vec(),
        rows: rows.chain([row(&hierarchy.all, true)]).collect(),
    })
}

/// The same for a terminal: a sentence for each cache.
pub(crate) fn sentences(hierarchy: &Hierarchy) -> Vec<String> {
    hierarchy.caches.iter().chain([&hierarchy.all]).map(sentence).collect()
}

fn sentence(cache: &CacheFigures) -> String {
    let mut words = vec![format!(
        "{}: {} requests of {} robots, {} % local hits, {} % from siblings, {} % out of parents",
        cache.name,
        count(cache.requests),
        cache.robots,
        percent(cache.local_hit_ratio),
        percent(cache.sibling_hit_ratio),
        percent(cache.parent_hit_ratio),
    )];
    if cache.requests_of_caches > 0 {
        let (requested, hits) = (count(cache.requests_of_caches), count(cache.hits_for_caches));
        words.push(format!("{requested} requests of other caches, {hits} of them hits"));
    }
    if cache.icp.sent + cache.icp.responses_sent > 0 {
        let icp = &cache.icp;
        let counts = [icp.sent, icp.timeouts, icp.responses_sent, icp.hits_sent, icp.false_hits].map(count);
        let [sent, late, responses, hits, false_hits] = counts;
        let mut text = format!(
            "ICP: {sent} queries ({late} without a response), {responses} responses ({hits} hits), {false_hits} false hits, {}",
            bytes(icp.bytes)
        );
        if icp.wait_ms > 0.0 {
            text += &format!(", {} waited for responses in all", time_ms(icp.wait_ms));
        }
        words.push(text);
    }
    words.join("; ")
}

#[cfg(test)]
mod tests {
    use assay_measurement::measured::ProxySample;
    use assay_record::run::TargetInfo;

    use super::*;

    fn sample(cache: &str, at_ms: u64, counters: &[(&str, f64)]) -> ProxySample {
        let counters = counters.iter().map(|(name, value)| ((*name).to_owned(), *value)).collect();
        ProxySample { cache: cache.into(), at_ms, counters }
    }

    #[test]
    fn what_robots_got_is_told_from_what_other_caches_got_and_each_cache_from_the_others() {
        let cache = |name: &str| CacheInfo { name: name.into(), robots: 10, ..CacheInfo::default() };
        let target = TargetInfo { caches: vec![cache("a"), cache("b")], ..TargetInfo::default() };
        let info = RunInfo { target, ..RunInfo::default() };
        let a = [
            ("requests", 130.0),
            ("hits", 50.0),
            ("peer_requests", 30.0),
            ("peer_hits", 25.0),
            ("sibling_hits", 20.0),
        ];
        let b = [("requests", 100.0), ("hits", 30.0), ("icp_sent", 70.0), ("false_hits", 2.0)];
        let series = Series {
            proxy: vec![sample("a", 0, &[]), sample("a", 1000, &a), sample("b", 1000, &b)],
            ..Series::default()
        };
        let found = figures(&info, &series, &[], None).unwrap();
        assert_eq!((found.caches[0].requests, found.caches[0].local_hits), (100, 25));
        assert_eq!(found.caches[0].sibling_hit_ratio, Some(0.2));
        assert_eq!((found.all.requests, found.all.local_hits, found.all.icp.false_hits), (200, 55, 2));
        assert_eq!(found.all.local_hit_ratio, Some(0.275));
        let words = sentences(&found).join("\n");
        assert!(
            words.contains("a: 100 requests of 10 robots, 25") && words.contains("2 false hits"),
            "{words}"
        );
        let table = table(Some(&found)).unwrap();
        assert!(table.rows.iter().all(|row| row.cells.len() == table.heads.len()));
        assert_eq!(figures(&RunInfo::default(), &series, &[], None), None);
    }
}
