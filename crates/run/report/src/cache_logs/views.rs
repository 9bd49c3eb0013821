//! The logs of caches in tables of the page and sentences of a terminal.

use super::document::{CacheLogFigures, CacheSources, TrafficFigures};
use crate::document::Percentiles;
use crate::format::{NOTHING, bytes, count, percent, time_ms};
use crate::page::{RowView, TableView};

fn source_text(source: &str) -> &str {
    match source {
        "local" => "its own store",
        "joined" => "another's fetch",
        "sibling" => "a sibling",
        "parent" => "a parent's store",
        "through_parent" => "a parent, which fetched it",
        "revalidated" => "its store, confirmed",
        "origin" => "an origin",
        "failed" => "nobody (failed)",
        "unsaid" => "not said",
        "unlogged" => "not in the log",
        other => other,
    }
}

fn time(value: Option<f64>) -> String {
    value.map_or_else(|| NOTHING.to_owned(), time_ms)
}

fn times(of: &Percentiles) -> [String; 4] {
    [of.mean, of.p50, of.p90, of.p99].map(time)
}

/// The tables of the page.
pub fn tables(figures: &CacheLogFigures) -> Vec<TableView> {
    let mut tables = vec![sources(figures)];
    if !figures.traffic.is_empty() {
        tables.push(traffic(&figures.traffic));
    }
    tables.push(agreement(figures));
    tables
}

fn sources(figures: &CacheLogFigures) -> TableView {
    let rows = figures.caches.iter().flat_map(|cache| {
        let is_all = cache.cache == super::ALL;
        cache.sources.iter().map(move |source| RowView {
            name: format!("{}: {}", cache.cache, source_text(&source.source)),
            cells: [count(source.requests), percent(source.ratio), bytes(source.body_bytes)]
                .into_iter()
                .chain(times(&source.response_ms))
                .chain([time(source.logged_ms.mean), time(source.logged_ms.p99)])
                .collect(),
            total: is_all,
            ..RowView::default()
        })
    });
    TableView {
        id: "sources-table",
        title: "Where responses came from",
        about: "Plain GETs in the phase that counts, or in the whole run where there is none. Where it came from is what the \
                logs of the caches say; how long it took is what robots say, from when it was due, and beside it \
                what the queried cache logged.",
        first: "cache: from",
        groups: vec![("requests", 3), ("response time to robots", 4), ("in the log", 2)],
        heads: vec!["requests", "%", "bytes", "mean", "p50", "p90", "p99", "mean", "p99"],
        rows: rows.collect(),
    }
}

fn traffic(edges: &[TrafficFigures]) -> TableView {
    let rows = edges.iter().map(|edge| RowView {
        name: format!("{} queries {} ({})", edge.from, edge.to, edge.relation),
        cells: [count(edge.requests), count(edge.hits), count(edge.false_hits), bytes(edge.bytes)]
            .into_iter()
            .chain(times(&edge.logged_ms))
            .collect(),
        ..RowView::default()
    });
    TableView {
        id: "traffic-table",
        title: "Queries between caches",
        about: "As the queried cache logged it. A false hit: a sibling was thought to have it, and had it no more.",
        first: "who",
        groups: vec![("requests", 4), ("time to the queried cache", 4)],
        heads: vec!["requests", "hits", "false hits", "bytes", "mean", "p50", "p90", "p99"],
        rows: rows.collect(),
    }
}

fn agreement(figures: &CacheLogFigures) -> TableView {
    let rows = figures.agreement.iter().map(|row| {
        let difference = row.logs as i128 - row.robots as i128;
        let signed = if difference == 0 { "0".into() } else { format!("{difference:+}") };
        RowView {
            name: format!("{}: {}", row.cache, row.what),
            cells: vec![count(row.robots), count(row.logs), signed, row.why.clone()],
            total: row.cache == super::ALL,
            ..RowView::default()
        }
    });
    TableView {
        id: "agreement-table",
        title: "Do robots and logs agree?",
        about: "The whole run. Each request of the robots carries a name, which the caches write into their logs: both sides \
                are put together by it where robots kept a log of every request, and otherwise only their sums are compared.",
        first: "what",
        groups: vec![("counted by", 2), ("", 2)],
        heads: vec!["robots", "logs", "difference", "why"],
        rows: rows.collect(),
    }
}

/// The same for a terminal.
pub fn sentences(figures: &CacheLogFigures) -> Vec<String> {
    let mut all: Vec<String> =
        figures.caches.iter().filter(|cache| cache.requests > 0).map(sentence).collect();
    all.extend(figures.traffic.iter().map(|edge| {
        let mut text = format!(
            "{} queried {} ({}): {} requests, {} of them hits, {}",
            edge.from,
            edge.to,
            edge.relation,
            count(edge.requests),
            count(edge.hits),
            bytes(edge.bytes),
        );
        if edge.false_hits > 0 {
            text += &format!(", {} false hits", count(edge.false_hits));
        }
        text
    }));
    let odd: Vec<_> =
        figures.agreement.iter().filter(|row| row.cache == super::ALL && !row.why.is_empty()).collect();
    let in_all = figures.agreement.iter().find(|row| row.cache == super::ALL);
    if odd.iter().all(|row| row.what.contains("bytes")) {
        let requests = in_all.map_or(0, |row| row.robots);
        let how = if figures.joined { "request by request" } else { "in their sums" };
        all.push(format!("robots and logs agree {how} on {} requests", count(requests)));
    }
    all.extend(odd.iter().map(|row| {
        format!("{}: {} by robots, {} in logs: {}", row.what, count(row.robots), count(row.logs), row.why)
    }));
    all
}

fn sentence(cache: &CacheSources) -> String {
    let parts = cache.sources.iter().map(|source| {
        let mean = source.response_ms.mean.or(source.logged_ms.mean);
        format!("{} % {} ({})", percent(source.ratio), source_text(&source.source), time(mean))
    });
    let parts: Vec<String> = parts.collect();
    format!("{}: {} plain GETs, from: {}", cache.cache, count(cache.requests), parts.join(", "))
}
