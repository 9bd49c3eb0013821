//! The document, made of sums.

use std::collections::BTreeMap;

use assay_base::settings::show::bytes;
use assay_measurement::ratios::ratio;
use strum::VariantArray;

use super::senders::SenderCounts;
use super::series::StepCounts;
use super::tally::{GroupTally, Groups};
use super::{Analyser, SECOND_US, printable};
use crate::class::Class;
use crate::document::{
    Agents, Cache, Caches, ClassFigures, Count, Distinct, Failed, FailedStatus, FailedUrl, Figures, Group,
    Grouping, LogsDocument, Phase, PhasesBy, ResponseTimes, SCHEMA, Slots, TimeStep, Top, TopAgent, TopUrl,
};
use crate::format::Fact;
use crate::replay::HEAD_BYTES;
use crate::sketch::distinct;
use crate::sketch::durations::DurationHistogram;
use crate::sketch::heavy_hitters::{Entry, HeavyHitters};
use crate::sketch::time_counts::{TimeCounts, TimeGrid};
use crate::{agent, referrer};

/// Groups of one kind that are listed.
const LISTED: usize = 50;
/// Groups that are listed of a kind with few values, as of methods.
const LISTED_OF_FEW: usize = 1000;
/// First digits of statuses.
const STATUSES: [&str; super::series::STATUSES] = ["none", "1xx", "2xx", "3xx", "4xx", "5xx", "other"];

/// Quantities that some log has: figures of the others are not stated.
#[derive(Debug, Clone, Copy)]
struct KnownQuantities {
    outcomes: bool,
    statuses: bool,
    bytes: bool,
}

impl Analyser {
    /// Adds everything up to the document.
    pub fn finish(mut self) -> LogsDocument {
        self.add_kinds();
        let mut all = GroupTally::default();
        self.classes.iter().for_each(|(tally, _)| all.merge(tally));
        let (known, any_facts) = (self.known(), self.any_facts);
        let figures = |tally: &GroupTally| figures(tally, known);
        let has_fact = |fact| any_facts.contains(fact);
        let (every_us, steps) = self.series.finish();
        let grid = self.first_us.zip(self.last_us).map(|(first, last)| TimeGrid::covering(first, last));
        LogsDocument {
            schema: SCHEMA.into(),
            assay_version: env!("CARGO_PKG_VERSION").into(),
            all: figures(&all),
            plain: (has_fact(Fact::Method) && has_fact(Fact::Status)).then(|| figures(&self.plain)),
            response_resolution_ms: (all.times.as_ref().and_then(|times| times.resolution_us()))
                .map(|us| in_ms(us.min(self.duration_unit_us))),
            by_class: self.by_class(),
            groups: self.groupings(grid),
            every_ms: has_fact(Fact::Time).then_some(every_us as f64 / 1e3),
            time: steps.iter().map(|(from_us, counts)| self.step(*from_us, every_us, counts)).collect(),
            slots: grid.map(|grid| self.slots(grid)),
            phases_by: self
                .phases
                .any()
                .then_some(PhasesBy { due: self.phases.by_due, logged: self.phases.by_time }),
            phases: (self.phases.phases.iter())
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
            top: top(&self.urls, self.options.top, self.has_outcome),
            failed: has_fact(Fact::Status).then(|| self.failed_urls(grid)),
            agents: has_fact(Fact::Agent).then(|| self.top_agents()),
            distinct: self.distinct(),
            caches: self.caches(),
            notes: self.notes(&all),
            reconciliation: None,
            lines: self.lines,
            malformed: self.malformed,
            inputs: self.inputs,
        }
    }

    fn known(&self) -> KnownQuantities {
        let has_fact = |fact| self.any_facts.contains(fact);
        KnownQuantities {
            outcomes: self.has_outcome,
            statuses: has_fact(Fact::Status),
            bytes: has_fact(Fact::Bytes),
        }
    }

    /// The last instant that the log covers: times in whole seconds cover the second that they name.
    fn covered_to_us(&self) -> i64 {
        let last_us = self.last_us.unwrap_or_default();
        if self.has_fractions { last_us } else { last_us.saturating_add(SECOND_US) }
    }

    /// Part of a stretch of time that the log covers: it begins with the first request and ends with the last one,
    /// unless only a part of a longer log was selected.
    fn covered_us(&self, from_us: i64, every_us: i64) -> i64 {
        let [before, after] = self.outside;
        let selected = |outside: bool, selected: Option<i64>| selected.filter(|_| outside);
        let begin_us = selected(before, self.options.from_us).or(self.first_us).unwrap_or(from_us);
        let end_us = selected(after, self.options.to_us).unwrap_or(self.covered_to_us());
        let covered_us = from_us.saturating_add(every_us).min(end_us).saturating_sub(from_us.max(begin_us));
        covered_us.clamp(0, every_us)
    }

    fn slots(&self, grid: TimeGrid) -> Slots {
        let (from_us, every_us) =
            (grid.from_s().saturating_mul(SECOND_US), grid.every_s().saturating_mul(SECOND_US));
        let covered_ms = (0i64..).take(grid.slots).map(|slot| {
            let slot_us = from_us.saturating_add(slot.saturating_mul(every_us));
            self.covered_us(slot_us, every_us) as f64 / 1e3
        });
        Slots {
            from_unix_ms: in_ms_signed(from_us),
            every_ms: in_ms_signed(every_us),
            covered_ms: covered_ms.collect(),
        }
    }

    /// Figures of a step, and how much of it the log covers.
    fn step(&self, from_us: i64, every_us: i64, counts: &StepCounts) -> TimeStep {
        fn named<'a>(names: impl Iterator<Item = &'a str>, counts: &[u64]) -> BTreeMap<String, u64> {
            let nonempty = names.zip(counts).filter(|(_, count)| **count > 0);
            nonempty.map(|(name, count)| (name.to_owned(), *count)).collect()
        }
        let by_status = if self.any_facts.contains(Fact::Status) { &counts.by_status[..] } else { &[] };
        TimeStep {
            from_unix_ms: from_us as f64 / 1e3,
            covered_ms: self.covered_us(from_us, every_us) as f64 / 1e3,
            figures: figures(&counts.tally, self.known()),
            by_status: named(STATUSES.into_iter(), by_status),
            by_agent_kind: named(agent::AgentKind::VARIANTS.iter().map(|kind| kind.name()), &counts.by_agent),
            by_referrer_kind: named(
                referrer::ReferrerKind::VARIANTS.iter().map(|kind| kind.name()),
                &counts.by_referrer,
            ),
        }
    }

    fn distinct(&self) -> Distinct {
        let nonempty =
            |sketch: &distinct::DistinctCounter| Some(count(sketch)).filter(|count| count.count > 0.0);
        Distinct {
            urls: nonempty(&self.url_count),
            hosts: nonempty(&self.hosts.count),
            clients: nonempty(&self.clients),
            agents: self.any_facts.contains(Fact::Agent).then(|| count(&self.agents.different)),
            referring_sites: self
                .any_facts
                .contains(Fact::Referrer)
                .then(|| count(&self.referrers.different)),
        }
    }

    fn by_class(&self) -> Vec<ClassFigures> {
        let nonempty =
            Class::REQUESTS.iter().zip(&self.classes).filter(|(_, (tally, _))| tally.requests() > 0);
        nonempty
            .map(|(class, (tally, histogram))| ClassFigures {
                class: *class,
                name: class.name().into(),
                figures: Figures { response: times_of(histogram), ..figures(tally, self.known()) },
                distribution: (tally.times.iter().flat_map(|times| times.buckets()))
                    .map(|(us, count)| (in_ms(us), count))
                    .collect(),
            })
            .collect()
    }

    fn groupings(&self, grid: Option<TimeGrid>) -> Vec<Grouping> {
        let statuses = self.statuses.iter().enumerate();
        let statuses = statuses.filter_map(|(status, tally)| {
            let name = if status == 0 { "none".into() } else { status.to_string() };
            tally.as_deref().map(|tally| (name, tally))
        });
        let sizes = self.sizes.iter().enumerate().map(|(size, tally)| (size_name(size), tally));
        let mut groupings = vec![
            self.named("outcome", "Proxy's own words", &self.outcomes),
            self.named("hierarchy", "Hierarchy code", &self.hierarchies),
            self.named("peer", "Peer or server that got the request", &self.peers),
            self.named("content-type", "Content type", &self.types),
        ];
        if self.any_facts.contains(Fact::Bytes) {
            groupings.push(self.ordered("size", "Size of the response", sizes));
        }
        if self.any_facts.contains(Fact::Status) {
            groupings.push(self.ordered("status", "Status", statuses));
        }
        groupings.push(self.named("method", "Method", &self.methods));
        groupings.push(self.frequent("host", "Host", &self.hosts.table, |entry| (&entry.more, None)));
        groupings.extend(self.senders(grid));
        groupings.retain(|grouping| !grouping.groups.is_empty());
        groupings
    }

    /// Groups by user agent and by referrer, with how they went over time.
    fn senders(&self, grid: Option<TimeGrid>) -> Vec<Grouping> {
        let on = |over_time: &TimeCounts| grid.map(|grid| over_time.resample(grid));
        let group = |name: String, row: &SenderCounts| Group {
            name,
            figures: figures(&row.tally, self.known()),
            over_time: on(&row.over_time),
        };
        let grouping = |by: &str, title: &str, mut groups: Vec<Group>| {
            groups.retain(|group| group.figures.requests > 0);
            Grouping { by: by.into(), title: title.into(), groups, error_requests: 0 }
        };
        let kinds = agent::AgentKind::VARIANTS.iter().map(|kind| {
            let mut sum = GroupTally::default();
            let mut counts = grid.map(|grid| vec![0; grid.slots]);
            for (_, row) in self.agents.nonempty().filter(|(family, _)| family.kind == *kind) {
                sum.merge(&row.tally);
                let (into, from) = (counts.iter_mut().flatten(), on(&row.over_time).into_iter().flatten());
                into.zip(from).for_each(|(into, from)| *into += from);
            }
            Group { name: kind.name().into(), figures: figures(&sum, self.known()), over_time: counts }
        });
        let families = self.agents.nonempty().map(|(family, row)| match family.kind {
            agent::AgentKind::Unknown | agent::AgentKind::None => group(family.name.into(), row),
            kind => group(format!("{} ({})", family.name, kind.name()), row),
        });
        let mut families: Vec<Group> = families.collect();
        families.sort_by_key(|group| std::cmp::Reverse(group.figures.requests));
        let kinds_of_referrer = referrer::ReferrerKind::VARIANTS.iter().zip(&self.referrers.kinds);
        let kinds_of_referrer = kinds_of_referrer.map(|(kind, row)| group(kind.name().into(), row));
        vec![
            grouping("agent-kind", "Bots and browsers, by User-Agent", kinds.collect()),
            grouping("agent", "User agent", families),
            grouping("referrer-kind", "Referrer", kinds_of_referrer.collect()),
            self.frequent("referrer", "Referring site", &self.referrers.sites, |entry| {
                (&entry.more.tally, on(&entry.more.over_time))
            }),
        ]
    }

    /// The heaviest groups of a table.
    fn frequent<X: Default>(
        &self,
        by: &str,
        title: &str,
        table: &HeavyHitters<X>,
        parts: impl Fn(&Entry<X>) -> (&GroupTally, Option<Vec<u64>>),
    ) -> Grouping {
        let mut entries = heaviest(table.entries(), LISTED, |entry| entry.sums.requests);
        if entries.iter().all(|entry| entry.text.is_empty()) {
            entries.clear();
        }
        let groups = entries.into_iter().map(|entry| {
            let (tally, over_time) = parts(entry);
            let name = if entry.text.is_empty() { "(none)".into() } else { printable(&entry.text) };
            Group { name, figures: figures(tally, self.known()), over_time }
        });
        Grouping {
            by: by.into(),
            title: title.into(),
            groups: groups.collect(),
            error_requests: table.floor().requests,
        }
    }

    fn failed_urls(&self, grid: Option<TimeGrid>) -> Failed {
        let statuses = (0u16..).zip(&self.statuses).skip(usize::from(super::failed::FIRST_STATUS));
        let nonempty = statuses.filter_map(|(status, tally)| Some((status, tally.as_deref()?.requests())));
        let by_status = nonempty.filter(|(_, requests)| *requests > 0).map(|(status, requests)| {
            let entries = self.failed.urls.entries().filter(|entry| entry.more.status == status);
            let urls = heaviest(entries, self.options.top, |entry| entry.sums.requests);
            let urls = urls.into_iter().map(|entry| FailedUrl {
                url: shown_url(&entry.text),
                requests: entry.sums.requests,
                requests_error: entry.missed.requests,
                over_time: grid.map(|grid| entry.more.over_time.resample(grid)),
            });
            FailedStatus { status, requests, urls: urls.collect() }
        });
        Failed { by_status: by_status.collect(), floor_requests: self.failed.urls.floor().requests }
    }

    fn top_agents(&self) -> Agents {
        let top = |entry: &Entry<u16>| {
            let family = agent::families()[usize::from(entry.more)];
            TopAgent {
                text: printable(&entry.text),
                kind: family.kind.name().into(),
                name: family.name.into(),
                requests: entry.sums.requests,
                requests_error: entry.missed.requests,
            }
        };
        let listed = self.options.top;
        let unknown =
            self.agents.texts.entries().filter(|entry| usize::from(entry.more) == agent::UNKNOWN_AGENT);
        let unknown = heaviest(unknown, listed, |entry| entry.sums.requests);
        let all = heaviest(self.agents.texts.entries(), listed, |entry| entry.sums.requests);
        Agents {
            rules: agent::rule_count(),
            top: all.into_iter().map(top).collect(),
            unknown: unknown.into_iter().map(top).collect(),
            floor_requests: self.agents.texts.floor().requests,
        }
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
        groups: impl Iterator<Item = (String, &'a GroupTally)>,
    ) -> Grouping {
        let groups = groups.filter(|(_, tally)| tally.requests() > 0).take(LISTED_OF_FEW);
        Grouping {
            by: by.into(),
            title: title.into(),
            groups: groups
                .map(|(name, tally)| Group { name, figures: figures(tally, self.known()), over_time: None })
                .collect(),
            error_requests: 0,
        }
    }

    fn caches(&self) -> Caches {
        let requests = self.replay.requests() as f64;
        let bytes: u64 = self.classes.iter().map(|(tally, _)| tally.bytes).sum();
        let ratio = |part: f64, whole: f64| (whole > 0.0).then(|| part / whole);
        let has_fact = |fact| self.any_facts.contains(fact);
        // What is an object, what can be kept, and how large it is.
        let can_tell = has_fact(Fact::Url) && has_fact(Fact::Method) && has_fact(Fact::Status);
        let estimates = self
            .replay
            .estimates()
            .into_iter()
            .filter(|estimates| can_tell && (estimates.cache_bytes.is_none() || has_fact(Fact::Bytes)));
        let caches = estimates.map(|estimates| Cache {
            kind: if estimates.cache_bytes.is_some() { "lru" } else { "ideal" }.into(),
            size_bytes: estimates.cache_bytes,
            dhr: ratio(estimates.hits, requests),
            bhr: ratio(estimates.hit_bytes, bytes as f64).filter(|_| has_fact(Fact::Bytes)),
            dhr_standard_error: estimates.standard_error.and_then(|error| ratio(error, requests)),
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
        if self.counts_heads {
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
}

fn in_ms_signed(us: i64) -> f64 {
    us as f64 / 1e3
}

fn in_ms(us: u64) -> f64 {
    us as f64 / 1e3
}

fn count(sketch: &crate::sketch::distinct::DistinctCounter) -> Count {
    let (count, estimate) = sketch.count();
    Count { count: count.round(), standard_error: if estimate { distinct::STANDARD_ERROR } else { 0.0 } }
}

/// Counts and ratios, as far as they are known.
fn figures(tally: &GroupTally, known: KnownQuantities) -> Figures {
    let requests = tally.requests();
    let unknown = tally.class(Class::Unknown);
    let of_outcome = |count: u64| known.outcomes.then_some(count);
    let ratio = |part, whole| ratio(part, whole).filter(|_| known.outcomes);
    Figures {
        requests,
        bytes: known.bytes.then_some(tally.bytes),
        local_hits: of_outcome(tally.local_hits()),
        sibling_hits: of_outcome(tally.class(Class::SiblingHit)),
        parent_hits: of_outcome(tally.class(Class::ParentHit)),
        revalidated: of_outcome(tally.class(Class::Revalidated)),
        errors: (known.outcomes || known.statuses).then(|| tally.class(Class::Error)),
        unknown,
        dhr: ratio(tally.hits(), requests - unknown),
        bhr: ratio(tally.hit_bytes, tally.bytes - tally.unknown_bytes),
        response: response(tally),
    }
}

fn response(tally: &GroupTally) -> Option<ResponseTimes> {
    times_of(tally.times.as_deref()?)
}

fn times_of<const SUB_BITS: u32>(times: &DurationHistogram<SUB_BITS>) -> Option<ResponseTimes> {
    let mean_us = times.mean_us()?;
    let quantile = |share| times.quantile_us(share).map(|us| us / 1e3);
    Some(ResponseTimes {
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

/// The heaviest entries, the first of them first.
fn heaviest<'a, X: 'a>(
    entries: impl Iterator<Item = &'a Entry<X>>,
    listed: usize,
    of: fn(&Entry<X>) -> u64,
) -> Vec<&'a Entry<X>> {
    let mut entries: Vec<&Entry<X>> = entries.filter(|entry| of(entry) > 0).collect();
    let order =
        |one: &&Entry<X>, other: &&Entry<X>| of(other).cmp(&of(one)).then_with(|| one.text.cmp(&other.text));
    if entries.len() > listed {
        entries.select_nth_unstable_by(listed, order);
        entries.truncate(listed);
    }
    entries.sort_by(order);
    entries
}

fn top(table: &HeavyHitters, listed: usize, has_outcome: bool) -> Top {
    let best = |of: fn(&Entry) -> u64| {
        let entries = heaviest(table.entries(), listed, of).into_iter();
        entries.map(|entry| top_url(entry, has_outcome)).collect()
    };
    let floor = table.floor();
    Top {
        by_requests: best(|entry| entry.sums.requests),
        by_bytes: best(|entry| entry.sums.bytes),
        by_misses: if has_outcome { best(|entry| entry.sums.misses) } else { Vec::new() },
        floor_requests: floor.requests,
        floor_bytes: floor.bytes,
        floor_misses: floor.misses,
    }
}

fn shown_url(text: &[u8]) -> String {
    if text.is_empty() { "(none)".into() } else { printable(text) }
}

fn top_url(entry: &Entry, has_outcome: bool) -> TopUrl {
    TopUrl {
        url: shown_url(&entry.text),
        requests: entry.sums.requests,
        bytes: entry.sums.bytes,
        misses: has_outcome.then_some(entry.sums.misses),
        requests_error: entry.missed.requests,
        bytes_error: entry.missed.bytes,
        misses_error: entry.missed.misses,
    }
}
