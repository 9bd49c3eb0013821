//! The document, made of sums.

use assay_measurement::ratios::ratio;
use assay_settings::show::bytes;

use super::tally::{Groups, Tally};
use super::{Analyser, printable};
use crate::class::Class;
use crate::document::{
    Cache, Caches, ClassFigures, Count, Distinct, Document, Figures, Group, Grouping, Phase, Response,
    SCHEMA, Step, Top, TopUrl,
};
use crate::replay::HEAD_BYTES;
use crate::sketch::frequent::{Entry, Frequent};
use crate::sketch::times::Times;
use crate::sketch::{distinct, times};

/// Groups of one kind that are listed.
const LISTED: usize = 50;

impl Analyser {
    /// What it all adds up to.
    pub fn finish(mut self) -> Document {
        self.add_kinds();
        let known = self.has_outcome;
        let mut all = Tally::default();
        self.classes.iter().for_each(|(tally, _)| all.merge(tally));
        let figures = |tally: &Tally| figures(tally, known);
        let notes = self.notes();
        let caches = self.caches();
        let has_time = self.has_time;
        let groups = self.groupings();
        let series = std::mem::replace(&mut self.series, super::Series::new(None));
        let (every_us, steps) = series.finish();
        let spans = self.options.phases.iter().zip(&self.phases);
        Document {
            schema: SCHEMA.into(),
            assay_version: env!("CARGO_PKG_VERSION").into(),
            all: figures(&all),
            plain: figures(&self.plain),
            by_class: self.by_class(),
            groups,
            every_ms: has_time.then_some(every_us as f64 / 1e3),
            time: steps
                .iter()
                .map(|(from, tally)| Step { from_unix_ms: *from as f64 / 1e3, figures: figures(tally) })
                .collect(),
            phases: spans
                .map(|(span, tally)| Phase {
                    name: span.name.clone(),
                    from_unix_ms: span.from_us as f64 / 1e3,
                    to_unix_ms: span.to_us as f64 / 1e3,
                    figures: figures(tally),
                })
                .collect(),
            first_unix_ms: self.first_us.map(|us| us as f64 / 1e3),
            last_unix_ms: self.last_us.map(|us| us as f64 / 1e3),
            peer_queries: self.queries,
            top: top(&self.urls, self.options.top),
            distinct: Distinct {
                urls: count(&self.url_count),
                hosts: count(&self.hosts.count),
                clients: count(&self.clients),
            },
            caches,
            notes,
            reconciliation: None,
            lines: self.lines,
            malformed: self.malformed,
            inputs: self.inputs,
        }
    }

    fn by_class(&self) -> Vec<ClassFigures> {
        let seen = Class::REQUESTS.iter().zip(&self.classes).filter(|(_, (tally, _))| tally.requests() > 0);
        seen.map(|(class, (tally, histogram))| ClassFigures {
            class: *class,
            name: class.name().into(),
            figures: Figures { response: times_of(histogram), ..figures(tally, self.has_outcome) },
            distribution: tally.times.iter().flat_map(|times| times.buckets()).map(in_ms).collect(),
        })
        .collect()
    }

    fn groupings(&self) -> Vec<Grouping> {
        let statuses = self.statuses.iter().enumerate();
        let statuses = statuses.filter_map(|(status, tally)| {
            let name = if status == 0 { "none".into() } else { status.to_string() };
            tally.as_deref().map(|tally| (name, tally))
        });
        let sizes = self.sizes.iter().enumerate().map(|(size, tally)| (size_name(size), tally));
        let mut groupings = vec![
            self.named("outcome", "Proxy's own words", &self.outcomes),
            self.named("hierarchy", "Hierarchy code", &self.hierarchies),
            self.named("peer", "Peer or server asked", &self.peers),
            self.named("content-type", "Content type", &self.types),
            self.ordered("size", "Size of the response", sizes),
            self.ordered("status", "Status", statuses),
            self.named("method", "Method", &self.methods),
            hosts(&self.hosts.table, self.has_outcome),
        ];
        groupings.retain(|grouping| !grouping.groups.is_empty());
        groupings
    }

    /// Groups by name, most requests first; a log in which nothing has a name has no such groups.
    fn named<T: Copy>(&self, by: &str, title: &str, groups: &Groups<T>) -> Grouping {
        let mut tallies: Vec<_> =
            groups.names.iter().zip(&groups.tallies).filter(|(_, t)| t.requests() > 0).collect();
        tallies.sort_by(|(name, one), (other_name, other)| {
            other.requests().cmp(&one.requests()).then_with(|| name.cmp(other_name))
        });
        if tallies.iter().all(|(name, _)| name.is_empty()) {
            tallies.clear();
        }
        let named = tallies
            .into_iter()
            .map(|(name, tally)| (if name.is_empty() { "(none)".into() } else { printable(name) }, tally));
        self.ordered(by, title, named)
    }

    fn ordered<'a>(
        &self,
        by: &str,
        title: &str,
        groups: impl Iterator<Item = (String, &'a Tally)>,
    ) -> Grouping {
        let groups = groups.filter(|(_, tally)| tally.requests() > 0).take(LISTED.max(1000));
        Grouping {
            by: by.into(),
            title: title.into(),
            groups: groups
                .map(|(name, tally)| Group { name, figures: figures(tally, self.has_outcome) })
                .collect(),
            error_requests: 0,
        }
    }

    fn caches(&self) -> Caches {
        let requests = self.replay.requests() as f64;
        let bytes: u64 = self.classes.iter().map(|(tally, _)| tally.bytes).sum();
        let ratio = |part: f64, whole: f64| (whole > 0.0).then(|| part / whole);
        let caches = self.replay.reached().into_iter().map(|reached| Cache {
            kind: if reached.cache_bytes.is_some() { "lru" } else { "ideal" }.into(),
            size_bytes: reached.cache_bytes,
            dhr: ratio(reached.hits, requests),
            bhr: ratio(reached.hit_bytes, bytes as f64),
            dhr_standard_error: reached.standard_error.and_then(|error| ratio(error, requests)),
        });
        let mut assumptions = vec![
            "an object is its URL, and responses to GET with status 200, 203, 300, 301, 308, 404 and 410 are kept; a \
             log does not say which responses may not be"
                .to_owned(),
            "responses with status 206 and 304 are taken from what is kept, and put nothing there; everything else is \
             a miss"
                .into(),
            "nothing expires; an object whose response has another size has been modified".into(),
            "the caches are empty when the log begins, and requests come in the order of the log".into(),
        ];
        if self.with_heads {
            assumptions.push(format!(
                "this log counts heads among the bytes (or may), so sizes that differ by no more than {HEAD_BYTES} bytes are \
                 the same"
            ));
        }
        Caches {
            caches: caches.collect(),
            sampling_rate: self.replay.rate(),
            objects: self.replay.objects() as u64,
            assumptions,
        }
    }

    fn notes(&self) -> Vec<String> {
        let mut notes = Vec::new();
        if !self.has_outcome && self.lines.requests > 0 {
            notes.push(
                "This format does not say what became of a request: there are no hit ratios but those that other \
                 caches would have had."
                    .into(),
            );
        }
        if self.without_zone {
            notes.push("Times in this log have no zone and were taken as UTC.".into());
        }
        if self.usual_ports > 0 {
            notes.push(format!(
                "{} requests name their host with the port that their scheme has anyway (http 80, https 443): they are \
                 counted under the host without it.",
                self.usual_ports
            ));
        }
        if self.longest_back_us > 0 {
            notes.push(format!(
                "{} lines are earlier than the line before them, by up to {:.1} s: proxies write at the end of a \
                 request, or from several processes.",
                self.lines.backwards,
                self.longest_back_us as f64 / 1e6
            ));
        }
        if self.series.widened {
            notes.push(
                "There were too many steps of the width that was requested: they were made wider.".into(),
            );
        }
        if self.classes.iter().any(|(tally, _)| tally.times.is_some()) {
            notes.push(format!(
                "Means and maxima are exact; percentiles of groups are within {:.1} %, those of classes within 0.1 %.",
                times::RELATIVE_ERROR * 100.0
            ));
        }
        notes
    }
}

fn in_ms((us, count): (u64, u64)) -> (f64, u64) {
    (us as f64 / 1e3, count)
}

fn count(sketch: &crate::sketch::distinct::Distinct) -> Count {
    let (count, estimate) = sketch.count();
    Count { count: count.round(), standard_error: if estimate { distinct::STANDARD_ERROR } else { 0.0 } }
}

/// Counts and ratios; without outcomes there are no ratios.
fn figures(tally: &Tally, known: bool) -> Figures {
    let requests = tally.requests();
    let ratio = |part, whole| ratio(part, whole).filter(|_| known);
    Figures {
        requests,
        bytes: tally.bytes,
        local_hits: tally.local_hits(),
        sibling_hits: tally.class(Class::SiblingHit),
        parent_hits: tally.class(Class::ParentHit),
        revalidated: tally.class(Class::Revalidated),
        errors: tally.class(Class::Error),
        unknown: tally.class(Class::Unknown),
        dhr: ratio(tally.hits(), requests),
        bhr: ratio(tally.hit_bytes, tally.bytes),
        response: response(tally),
    }
}

fn response(tally: &Tally) -> Option<Response> {
    times_of(tally.times.as_deref()?)
}

fn times_of<const SUB_BITS: u32>(times: &Times<SUB_BITS>) -> Option<Response> {
    let mean_us = times.mean_us()?;
    let quantile = |share| times.quantile_us(share).map(|us| us / 1e3);
    Some(Response {
        count: times.count(),
        mean_ms: mean_us / 1e3,
        p50_ms: quantile(0.5)?,
        p90_ms: quantile(0.9)?,
        p95_ms: quantile(0.95)?,
        p99_ms: quantile(0.99)?,
        p999_ms: quantile(0.999)?,
        max_ms: times.max_us()? as f64 / 1e3,
    })
}

/// Sizes from 2^(n−1) on, below 2^n.
fn size_name(size: usize) -> String {
    if size == 0 { "0 B".into() } else { format!("{} to {}", bytes(1 << (size - 1)), bytes(1 << size)) }
}

fn hosts(table: &Frequent<Tally>, known: bool) -> Grouping {
    let mut entries: Vec<&Entry<Tally>> = table.entries().collect();
    entries.sort_by(|one, other| {
        other.sums.requests.cmp(&one.sums.requests).then_with(|| one.text.cmp(&other.text))
    });
    if entries.iter().all(|entry| entry.text.is_empty()) {
        entries.clear();
    }
    let groups = entries.into_iter().take(LISTED).map(|entry| Group {
        name: if entry.text.is_empty() { "(none)".into() } else { printable(&entry.text) },
        figures: figures(&entry.more, known),
    });
    Grouping {
        by: "host".into(),
        title: "Host".into(),
        groups: groups.collect(),
        error_requests: table.floor().requests,
    }
}

fn top(table: &Frequent, listed: usize) -> Top {
    let best = |of: fn(&Entry) -> u64| {
        let mut entries: Vec<&Entry> = table.entries().filter(|entry| of(entry) > 0).collect();
        let order =
            |one: &&Entry, other: &&Entry| of(other).cmp(&of(one)).then_with(|| one.text.cmp(&other.text));
        if entries.len() > listed {
            entries.select_nth_unstable_by(listed, order);
            entries.truncate(listed);
        }
        entries.sort_by(order);
        entries.into_iter().map(top_url).collect()
    };
    let floor = table.floor();
    Top {
        by_requests: best(|entry| entry.sums.requests),
        by_bytes: best(|entry| entry.sums.bytes),
        by_misses: best(|entry| entry.sums.misses),
        floor_requests: floor.requests,
        floor_bytes: floor.bytes,
        floor_misses: floor.misses,
    }
}

fn top_url(entry: &Entry) -> TopUrl {
    TopUrl {
        url: printable(&entry.text),
        requests: entry.sums.requests,
        bytes: entry.sums.bytes,
        misses: entry.sums.misses,
        requests_error: entry.missed.requests,
        bytes_error: entry.missed.bytes,
        misses_error: entry.missed.misses,
    }
}
