//! What do the lines of a log add up to? One pass, in memory of a fixed size.

mod finish;
mod series;
mod tally;

use assay_record::histogram::Histogram;

use crate::access::Access;
use crate::class::{self, Class, REQUEST_CLASSES, Route, Word};
use crate::document::{Lines, MalformedLine, PeerQueries};
use crate::format::{Format, Recognised};
use crate::hash::{hash, hash_on};
use crate::input::{Input, LINE_BYTES, Piece};
use crate::replay::{self, Replay};
use crate::sketch::distinct::Distinct;
use crate::sketch::frequent::{Entry, Frequent};
use series::Series;
use tally::{Counted, Groups, Tally};

/// URLs that are followed one by one.
const URLS: usize = 65_536;
/// Hosts that are.
const HOSTS: usize = 16_384;
/// Objects that simulated caches follow, all together.
const OBJECTS: usize = 1_500_000;
/// Names of a group, after which the rest is counted together.
const NAMES: usize = 1024;
/// Malformed lines that are shown.
const SHOWN_MALFORMED: usize = 5;
/// Doublings of the size of an answer: 0, 1, 2–3, 4–7 bytes, and so on.
const SIZES: usize = 48;

/// What is asked of an analysis.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// Only requests from this time on, Unix time in microseconds.
    pub from_us: Option<i64>,
    /// Only requests before this time.
    pub to_us: Option<i64>,
    /// Width of a step in time, in microseconds.
    pub every_us: Option<i64>,
    /// Sizes of the LRU caches to try the log on.
    pub cache_bytes: Vec<u64>,
    /// How many URLs to list.
    pub top: usize,
    /// Phases to tell apart.
    pub phases: Vec<PhaseSpan>,
    /// Only requests whose URL has this in it; none: all.
    pub url_contains: Option<String>,
}

/// A phase of a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PhaseSpan {
    /// Its name.
    pub name: String,
    /// When it began, Unix time in microseconds.
    pub from_us: i64,
    /// When it ended.
    pub to_us: i64,
}

/// Adds up lines.
pub struct Analyser {
    options: Options,
    lines: Lines,
    malformed: Vec<MalformedLine>,
    inputs: Vec<crate::document::InputInfo>,
    first_us: Option<i64>,
    last_us: Option<i64>,
    before_us: Option<i64>,
    longest_back_us: i64,
    classes: Vec<(Tally, Option<Histogram>)>,
    outcomes: Groups<Word>,
    hierarchies: Groups<Route>,
    peers: Groups<()>,
    types: Groups<()>,
    methods: Groups<()>,
    statuses: Vec<Option<Box<Tally>>>,
    sizes: Vec<Tally>,
    urls: Frequent,
    url_count: Distinct,
    hosts: Frequent,
    clients: Distinct,
    host_count: Distinct,
    series: Series,
    phases: Vec<Tally>,
    /// GETs that were answered with 200.
    plain: Tally,
    queries: PeerQueries,
    replay: Replay,
    /// Some log counts heads among the bytes.
    with_heads: bool,
    /// Some log's times have no zone.
    without_zone: bool,
    has_time: bool,
    has_outcome: bool,
}

impl Analyser {
    /// Nothing is counted yet.
    pub fn new(options: Options) -> Self {
        let limit = OBJECTS / (1 + options.cache_bytes.len());
        Self {
            lines: Lines::default(),
            malformed: Vec::new(),
            inputs: Vec::new(),
            first_us: None,
            last_us: None,
            before_us: None,
            longest_back_us: 0,
            classes: (0..REQUEST_CLASSES).map(|_| (Tally::default(), None)).collect(),
            outcomes: Groups::new(NAMES),
            hierarchies: Groups::new(NAMES),
            peers: Groups::new(NAMES),
            types: Groups::new(NAMES),
            methods: Groups::new(64),
            statuses: (0..1000).map(|_| None).collect(),
            sizes: vec![Tally::default(); SIZES],
            urls: Frequent::new(URLS),
            url_count: Distinct::default(),
            hosts: Frequent::new(HOSTS),
            clients: Distinct::default(),
            host_count: Distinct::default(),
            series: Series::new(options.every_us),
            phases: vec![Tally::default(); options.phases.len()],
            plain: Tally::default(),
            queries: PeerQueries::default(),
            replay: Replay::new(&options.cache_bytes, limit),
            with_heads: false,
            without_zone: false,
            has_time: false,
            has_outcome: false,
            options,
        }
    }

    /// Reads a log to its end. Lines that cannot be read are counted, shown and skipped.
    pub fn read(&mut self, input: &mut Input, recognised: &Recognised, was_given: bool) {
        let format = &recognised.format;
        self.replay.set_bodies_only(format.counts_bodies());
        self.with_heads |= !format.counts_bodies();
        self.without_zone |= format.has_time() && !format.has_zone();
        self.has_time |= format.has_time();
        self.has_outcome |= format.has_outcome();
        let before = self.lines;
        let (name, mut number) = (input.name.clone(), 0);
        while let Some(piece) = input.next_piece() {
            match piece {
                Piece::Lines(text) => {
                    let mut rest = text;
                    while !rest.is_empty() {
                        let end = memchr::memchr(b'\n', rest).unwrap_or(rest.len());
                        number += 1;
                        self.line(format, &rest[..end], &name, number);
                        rest = rest.get(end + 1..).unwrap_or_default();
                    }
                }
                Piece::TooLong(head) => {
                    number += 1;
                    self.lines.read += 1;
                    self.broken_line(&name, number, head, too_long());
                }
            }
        }
        self.lines.bytes += input.bytes;
        let format_name = format.name.clone();
        let recognised = (!was_given).then(|| recognised.fit as f64 / recognised.tried.max(1) as f64);
        self.inputs.push(crate::document::InputInfo {
            name,
            format: format_name,
            format_about: format.about.clone(),
            recognised,
            compression: input.compression.map(str::to_owned),
            bytes: input.bytes,
            lines: self.lines.read - before.read,
            malformed: self.lines.malformed - before.malformed,
            broken: input.broken.as_ref().map(ToString::to_string),
        });
    }

    /// Counts one line.
    #[inline]
    pub fn line(&mut self, format: &Format, line: &[u8], input: &str, number: u64) {
        self.lines.read += 1;
        let line = crate::format::trim(line);
        if line.is_empty() || line[0] == b'#' {
            self.lines.empty += 1;
            return;
        }
        if line.len() > LINE_BYTES {
            self.broken_line(input, number, line, too_long());
            return;
        }
        let mut access = Access::default();
        match crate::format::read_line(format, line, &mut access) {
            Ok(()) => self.access(&access),
            Err(malformed) => {
                let reason = if self.malformed.len() < SHOWN_MALFORMED {
                    format.explain(&malformed)
                } else {
                    String::new()
                };
                self.broken_line(input, number, line, reason);
            }
        }
    }

    #[cold]
    fn broken_line(&mut self, input: &str, line: u64, text: &[u8], reason: String) {
        self.lines.malformed += 1;
        if self.malformed.len() < SHOWN_MALFORMED {
            let text = printable(&text[..text.len().min(120)]);
            self.malformed.push(MalformedLine { input: input.to_owned(), line, reason, text });
        }
    }

    /// Counts one request.
    #[inline]
    pub fn access(&mut self, access: &Access<'_>) {
        if let Some(time_us) = access.time_us
            && (self.options.from_us.is_some_and(|from| time_us < from)
                || self.options.to_us.is_some_and(|to| time_us >= to))
        {
            self.lines.outside += 1;
            return;
        }
        if let Some(part) = &self.options.url_contains
            && memchr::memmem::find(access.url, part.as_bytes()).is_none()
        {
            self.lines.other_urls += 1;
            return;
        }
        let outcome = self.outcomes.place(access.outcome, class::word);
        let hierarchy = self.hierarchies.place(access.hierarchy, class::route);
        let word = if access.outcome.is_empty() { Word::Unknown } else { self.outcomes.known[outcome] };
        let class = class::class(word, self.hierarchies.known[hierarchy], access.termination, access.status);
        if !class.is_request() {
            self.no_request(class, access.bytes);
            return;
        }
        self.lines.requests += 1;
        let counted = Counted { class, bytes: access.bytes, duration_us: access.duration_us };
        self.outcomes.tallies[outcome].count(counted);
        self.hierarchies.tallies[hierarchy].count(counted);
        if access.method == b"GET" && access.status == 200 {
            self.plain.count(counted);
        }
        self.count_groups(access, counted);
        self.count_time(access, counted);
        self.count_url(access, counted);
    }

    fn no_request(&mut self, class: Class, bytes: u64) {
        match class {
            Class::QueryHit => self.queries.hits += 1,
            Class::QueryMiss => self.queries.misses += 1,
            _ => {
                self.lines.without_request += 1;
                return;
            }
        }
        self.queries.bytes += bytes;
        self.lines.peer_queries += 1;
    }

    #[inline]
    fn count_groups(&mut self, access: &Access<'_>, counted: Counted) {
        let (tally, histogram) = &mut self.classes[counted.class as usize];
        tally.count(counted);
        if let Some(us) = counted.duration_us {
            histogram.get_or_insert_with(Histogram::new).record(us);
        }
        let at = self.peers.place(access.peer, |_| ());
        self.peers.tallies[at].count(counted);
        let at = self.types.place(plain_type(access.content_type), |_| ());
        self.types.tallies[at].count(counted);
        let at = self.methods.place(access.method, |_| ());
        self.methods.tallies[at].count(counted);
        self.statuses[usize::from(access.status).min(999)].get_or_insert_default().count(counted);
        let size = (64 - access.bytes.leading_zeros()) as usize;
        self.sizes[size.min(SIZES - 1)].count(counted);
    }

    #[inline]
    fn count_time(&mut self, access: &Access<'_>, counted: Counted) {
        let Some(time_us) = access.time_us else { return };
        self.first_us = Some(self.first_us.map_or(time_us, |first| first.min(time_us)));
        self.last_us = Some(self.last_us.map_or(time_us, |last| last.max(time_us)));
        if let Some(before) = self.before_us.replace(time_us)
            && time_us < before
        {
            self.lines.backwards += 1;
            self.longest_back_us = self.longest_back_us.max(before - time_us);
        }
        self.series.count(time_us, counted);
        let spans = self.options.phases.iter().zip(&mut self.phases);
        for (span, tally) in spans {
            if (span.from_us..span.to_us).contains(&time_us) {
                tally.count(counted);
                break;
            }
        }
    }

    #[inline]
    fn count_url(&mut self, access: &Access<'_>, counted: Counted) {
        let host = access.host();
        // An absolute URL holds its host; a path does not.
        let alone = access.host.is_empty() || access.url.first() != Some(&b'/');
        let key = if alone { hash(access.url) } else { hash_on(hash(host), access.url) };
        let entry = self.urls.entry(key, |text| {
            if !alone {
                text.extend_from_slice(host);
            }
            text.extend_from_slice(access.url);
        });
        add(entry, counted);
        self.url_count.insert(key);
        let host_key = hash(host);
        add(self.hosts.entry(host_key, |text| text.extend_from_slice(host)), counted);
        self.host_count.insert(host_key);
        if !access.client.is_empty() {
            self.clients.insert(hash(access.client));
        }
        self.replay.request(key, replay::ask(access.method, access.status), counted.bytes);
    }
}

fn too_long() -> String {
    format!("the line is longer than {LINE_BYTES} bytes")
}

#[inline]
fn add(entry: &mut Entry, counted: Counted) {
    entry.sums.requests += 1;
    entry.sums.bytes += counted.bytes;
    if counted.class.is_hit() {
        entry.hit_bytes += counted.bytes;
    } else {
        entry.sums.misses += 1;
    }
    if let Some(us) = counted.duration_us {
        entry.time_us = entry.time_us.saturating_add(us);
        entry.timed += 1;
    }
}

/// A content type without its parameters.
#[inline]
fn plain_type(text: &[u8]) -> &[u8] {
    match memchr::memchr(b';', text) {
        Some(at) => text[..at].trim_ascii_end(),
        None => text,
    }
}

/// Text that can be shown anywhere: what is no printable UTF-8 is escaped.
pub(crate) fn printable(text: &[u8]) -> String {
    let mut shown = String::with_capacity(text.len());
    for chunk in text.utf8_chunks() {
        for c in chunk.valid().chars() {
            if c.is_control() { shown.extend(c.escape_default()) } else { shown.push(c) }
        }
        chunk.invalid().iter().for_each(|byte| shown.push_str(&format!("\\x{byte:02x}")));
    }
    shown
}

#[cfg(test)]
mod tests;
