//! What the lines of a log add up to. One pass, in memory of a fixed size.

mod failed;
mod finish;
mod hosts;
mod notes;
mod phases;
mod request_kinds;
mod senders;
mod series;
mod tally;

use crate::access::{Access, strip_default_port};
use crate::class::{self, Class, HierarchyCode, OutcomeWord, REQUEST_CLASSES};
use crate::document::{Lines, MalformedLine, PeerQueries};
use crate::format::{DetectedFormats, Fact, FactSet, Format, FormatTracker};
use crate::hash::{hash, hash_on};
use crate::input::{Input, LINE_BYTES, LineChunk};
use crate::not_logged;
use crate::remarks::Remarks;
use crate::replay::{self, Cacheability, Replay};
use crate::sketch::distinct::DistinctCounter;
use crate::sketch::durations::FineDurationHistogram;
use crate::sketch::heavy_hitters::{HeavyHitters, Weights};
use failed::FailedUrls;
use hosts::HostTable;
pub use phases::PhaseSpan;
use phases::PhaseTallies;
use request_kinds::{RequestKind, RequestKinds};
use senders::{AgentTable, ReferrerTable};
use series::{StepMarks, StepSeries};
use tally::{GroupTally, Groups, RequestSample};

/// URLs that are followed one by one.
const MAX_URLS: usize = 65_536;
/// Objects that simulated caches follow, all together.
const MAX_OBJECTS: usize = 1_500_000;
/// Names of a group, after which the rest is counted together.
const MAX_NAMES: usize = 1024;
/// Malformed lines that are shown.
const MAX_SHOWN_MALFORMED: usize = 5;
/// Doublings of the size of a response: 0, 1, 2–3, 4–7 bytes, and so on.
const SIZE_BUCKETS: usize = 48;
/// Requests whose URLs are counted together: while one waits for memory, so do the others.
const BATCH: usize = 128;

const SECOND_US: i64 = 1_000_000;
/// Stands for a status where the format has none: neither a failure nor the lack of a response.
const STATUS_NOT_LOGGED: u16 = 1;

/// The options of an analysis.
#[derive(Debug, Clone, Default)]
pub struct AnalysisOptions {
    /// Only requests from this time on, Unix time in microseconds.
    pub from_us: Option<i64>,
    /// Only requests before this time.
    pub to_us: Option<i64>,
    /// Width of a step in time, in microseconds.
    pub every_us: Option<i64>,
    /// Sizes of the LRU caches to try the log on.
    pub cache_bytes: Vec<u64>,
    /// URLs to list.
    pub top: usize,
    /// Phases to tell apart.
    pub phases: Vec<PhaseSpan>,
    /// Only requests whose URL has this in it; none: all.
    pub url_contains: Option<String>,
}

pub struct Analyser {
    options: AnalysisOptions,
    lines: Lines,
    malformed: Vec<MalformedLine>,
    inputs: Vec<crate::document::InputInfo>,
    first_us: Option<i64>,
    last_us: Option<i64>,
    previous_us: Option<i64>,
    max_backstep_us: i64,
    classes: Vec<(GroupTally, FineDurationHistogram)>,
    request_kinds: RequestKinds,
    outcomes: Groups<OutcomeWord>,
    hierarchies: Groups<HierarchyCode>,
    peers: Groups<()>,
    types: Groups<()>,
    methods: Groups<()>,
    statuses: Vec<Option<Box<GroupTally>>>,
    sizes: Vec<GroupTally>,
    urls: HeavyHitters,
    url_count: DistinctCounter,
    hosts: HostTable,
    clients: DistinctCounter,
    agents: AgentTable,
    referrers: ReferrerTable,
    failed: FailedUrls,
    series: StepSeries,
    phases: PhaseTallies,
    /// GETs with a 200 response.
    plain: GroupTally,
    queries: PeerQueries,
    replay: Replay,
    /// Some log counts heads among the bytes.
    counts_heads: bool,
    /// Facts that lines of the current format state.
    facts: FactSet,
    /// The current format has user agents or referrers.
    has_senders: bool,
    /// Facts that some log states.
    any_facts: FactSet,
    /// Facts that every log states.
    all_facts: FactSet,
    /// The coarsest unit in which some log has durations.
    duration_unit_us: u64,
    /// Some time is no whole second.
    has_fractions: bool,
    /// There are requests before and after the selected time: the log has all of it.
    outside: [bool; 2],
    /// The last line of some log has no end and was read all the same.
    has_unended_line: bool,
    /// Requests whose host was written with the port that its scheme has anyway.
    default_ports: u64,
    /// Some request has an outcome that is understood.
    has_outcome: bool,
    remarks: Remarks,
}

impl Analyser {
    /// Nothing is counted yet.
    pub fn new(options: AnalysisOptions) -> Self {
        let limit = MAX_OBJECTS / (1 + options.cache_bytes.len());
        Self {
            lines: Lines::default(),
            malformed: Vec::new(),
            inputs: Vec::new(),
            first_us: None,
            last_us: None,
            previous_us: None,
            max_backstep_us: 0,
            classes: (0..REQUEST_CLASSES).map(|_| Default::default()).collect(),
            request_kinds: RequestKinds::default(),
            outcomes: Groups::new(MAX_NAMES),
            hierarchies: Groups::new(MAX_NAMES),
            peers: Groups::new(MAX_NAMES),
            types: Groups::new(MAX_NAMES),
            methods: Groups::new(64),
            statuses: (0..1000).map(|_| None).collect(),
            sizes: vec![GroupTally::default(); SIZE_BUCKETS],
            urls: HeavyHitters::new(MAX_URLS),
            url_count: DistinctCounter::default(),
            hosts: HostTable::default(),
            clients: DistinctCounter::default(),
            agents: AgentTable::default(),
            referrers: ReferrerTable::default(),
            failed: FailedUrls::default(),
            series: StepSeries::new(options.every_us),
            phases: PhaseTallies::new(&options.phases),
            plain: GroupTally::default(),
            queries: PeerQueries::default(),
            replay: Replay::new(&options.cache_bytes, limit),
            counts_heads: false,
            facts: FactSet::default(),
            has_senders: false,
            any_facts: FactSet::default(),
            all_facts: FactSet::default(),
            duration_unit_us: 1,
            has_fractions: false,
            outside: [false; 2],
            has_unended_line: false,
            default_ports: 0,
            has_outcome: false,
            remarks: Remarks::default(),
            options,
        }
    }

    /// Reads a log to its end. Lines that cannot be read are counted, shown and skipped.
    pub fn read(&mut self, input: &mut Input, recognised: &DetectedFormats, was_given: bool) {
        let format = &recognised.format;
        self.begin(format);
        // Where the format changes within a log, this does not.
        self.replay.set_bodies_only(format.counts_bodies());
        let mut current = FormatTracker::new(recognised);
        let before = self.lines;
        let (name, mut number) = (input.name.clone(), 0);
        while let Some(chunk) = input.next_chunk() {
            let mut back = 0;
            match chunk {
                LineChunk::Lines(text) => {
                    let mut rest = text;
                    let mut batch = Vec::with_capacity(BATCH);
                    while !rest.is_empty() {
                        let end = memchr::memchr(b'\n', rest).unwrap_or(rest.len());
                        number += 1;
                        match self.line(&mut current, &rest[..end], rest, &name, number) {
                            LineOutcome::Done => {}
                            LineOutcome::Request(url_request) => batch.push(url_request),
                            LineOutcome::Again => {
                                number -= 1;
                                back = rest.len();
                                break;
                            }
                        }
                        if batch.len() == BATCH {
                            self.count_urls(&mut batch);
                        }
                        rest = rest.get(end + 1..).unwrap_or_default();
                    }
                    self.count_urls(&mut batch);
                }
                LineChunk::Unended { line, cut } => {
                    number += 1;
                    // Behind lines that could be read, one that cannot is cut off, and no other kind of line.
                    let follows = self.lines.requests > before.requests;
                    if cut || (follows && !is_readable(&current, line)) {
                        self.lines.read += 1;
                        self.lines.cut += 1;
                    } else {
                        self.has_unended_line |= follows;
                        if let LineOutcome::Request(url_request) =
                            self.line(&mut current, line, b"", &name, number)
                        {
                            self.count_urls(&mut vec![url_request]);
                        }
                    }
                }
                LineChunk::TooLong(head) => {
                    number += 1;
                    self.lines.read += 1;
                    self.add_malformed(&name, number, head, too_long());
                }
                LineChunk::Torn(line) => {
                    number += 1;
                    self.lines.read += 1;
                    let reason = "there are NULs in it: parts of two lines stand in one";
                    self.add_malformed(&name, number, line, reason.into());
                }
            }
            if back > 0 {
                input.unread(back);
                input.is_json |= current.format().is_json();
            }
        }
        self.lines.bytes += input.bytes;
        self.remarks.add(input, &current);
        let format_name = format.name.clone();
        let recognised = (!was_given).then(|| recognised.fit as f64 / recognised.tried.max(1) as f64);
        self.inputs.push(crate::document::InputInfo {
            name,
            format: format_name,
            format_about: format.about.clone(),
            not_logged: not_logged::missing_facts(format, current.facts()),
            recognised,
            compression: input.compression.map(str::to_owned),
            bytes: input.bytes,
            lines: self.lines.read - before.read,
            malformed: self.lines.malformed - before.malformed,
            broken: input.read_error.as_ref().map(ToString::to_string),
        });
    }

    /// Before the first line of a format. What a kind of requests is depends on what its format says.
    fn begin(&mut self, format: &Format) {
        self.add_kinds();
        self.facts = format.facts();
        self.counts_heads |= !format.counts_bodies();
        self.duration_unit_us = self.duration_unit_us.max(format.duration_unit_us());
        self.has_senders = self.facts.contains(Fact::Agent) || self.facts.contains(Fact::Referrer);
        self.any_facts = self.any_facts.union(self.facts);
        // Before any request there is nothing that the facts of this format could be fewer than.
        let is_first = self.inputs.is_empty() && self.lines.requests == 0;
        self.all_facts = if is_first { self.facts } else { self.all_facts.intersection(self.facts) };
    }

    /// Counts all of one line but its URL, which is left to be counted with those of other lines. `ahead`: the line with those after it,
    /// as far as they are there.
    #[inline]
    fn line<'a>(
        &mut self,
        current: &mut FormatTracker,
        line: &'a [u8],
        ahead: &[u8],
        input: &str,
        number: u64,
    ) -> LineOutcome<'a> {
        self.lines.read += 1;
        let line = crate::format::trim(line);
        if line.is_empty() || line[0] == b'#' {
            match current.read_remark(line) {
                Ok(()) => self.lines.empty += 1,
                Err(error) => self.add_malformed(input, number, line, error.to_string()),
            }
            return LineOutcome::Done;
        }
        if line.len() > LINE_BYTES {
            self.add_malformed(input, number, line, too_long());
            return LineOutcome::Done;
        }
        let mut access = Access::default();
        match current.read(line, &mut access) {
            Ok(()) => {
                if current.format_changed() {
                    self.begin(current.format());
                }
                self.access(&access).map_or(LineOutcome::Done, LineOutcome::Request)
            }
            Err(_) if current.should_reread(ahead) => {
                // The line is read once more, in another format, and counted then.
                self.lines.read -= 1;
                LineOutcome::Again
            }
            Err(malformed) => {
                // Lines that are not shown need no explanation.
                let reason = if self.malformed.len() < MAX_SHOWN_MALFORMED {
                    current.explain(malformed.as_ref())
                } else {
                    String::new()
                };
                self.add_malformed(input, number, line, reason);
                LineOutcome::Done
            }
        }
    }

    #[cold]
    fn add_malformed(&mut self, input: &str, line: u64, text: &[u8], reason: String) {
        self.lines.malformed += 1;
        if self.malformed.len() < MAX_SHOWN_MALFORMED {
            let text = printable(&text[..text.len().min(120)]);
            self.malformed.push(MalformedLine { input: input.to_owned(), line, reason, text });
        }
    }

    /// Counts one request without its URL.
    #[inline]
    fn access<'a>(&mut self, access: &Access<'a>) -> Option<UrlRequest<'a>> {
        if let Some(time_us) = access.time_us
            && self.is_outside(time_us)
        {
            self.lines.outside += 1;
            return None;
        }
        if let Some(part) = &self.options.url_contains
            && memchr::memmem::find(access.url, part.as_bytes()).is_none()
        {
            self.lines.other_urls += 1;
            return None;
        }
        let hash = RequestKinds::hash(access);
        if self.request_kinds.find(hash).is_none() {
            self.add_kind(hash, access);
        }
        let kind = self.request_kinds.find(hash)?;
        let (class, cacheability, status_class) = (kind.class, kind.cacheability, kind.status_class);
        if !class.is_request() {
            self.count_other(class, access.bytes);
            return None;
        }
        kind.count(access.bytes, access.duration_us);
        self.lines.requests += 1;
        let counted = RequestSample::new(class, access.bytes, access.duration_us);
        self.count_groups(access, counted);
        let url_request = UrlRequest::new(access, counted, cacheability);
        let mut marks = StepMarks { status_class, ..StepMarks::default() };
        if self.has_senders {
            self.count_senders(access, counted, url_request.host, &mut marks);
        }
        if access.status >= failed::FIRST_STATUS {
            let write = |text: &mut Vec<u8>| url_request.write_url(text);
            self.failed.count(access.status, url_request.url_key, access.bytes, second(access), write);
        }
        self.count_time(access, counted, marks);
        self.default_ports += u64::from(url_request.has_default_port);
        Some(url_request)
    }

    #[inline]
    fn is_outside(&mut self, time_us: i64) -> bool {
        let before = self.options.from_us.is_some_and(|from| time_us < from);
        let after = self.options.to_us.is_some_and(|to| time_us >= to);
        self.outside[0] |= before;
        self.outside[1] |= after;
        before || after
    }

    /// Finds out what a kind of requests is that has not been seen, or not for a while.
    #[cold]
    fn add_kind(&mut self, hash: u64, access: &Access<'_>) {
        if self.request_kinds.is_full() {
            self.add_kinds();
        }
        let outcome = self.outcomes.index_of(access.outcome, class::parse_outcome);
        let hierarchy = self.hierarchies.index_of(access.hierarchy, class::parse_hierarchy);
        let word =
            if access.outcome.is_empty() { OutcomeWord::Unknown } else { self.outcomes.parsed[outcome] };
        let route = self.hierarchies.parsed[hierarchy];
        self.has_outcome |= word != OutcomeWord::Unknown;
        // A format without statuses does not say that there was no response.
        let status = if self.facts.contains(Fact::Status) { access.status } else { STATUS_NOT_LOGGED };
        let kind = RequestKind {
            class: class::classify_parsed(word, route, access, status),
            cacheability: replay::cacheability(access.method, access.status),
            outcome,
            hierarchy,
            content_type: self.types.index_of(media_type(access.content_type), |_| ()),
            method: self.methods.index_of(access.method, |_| ()),
            status: access.status.min(999),
            status_class: series::status_class(access.status),
            is_plain: access.method == b"GET" && access.status == 200,
            requests: 0,
            bytes: 0,
            times: None,
        };
        self.request_kinds.insert(hash, kind);
    }

    /// Adds kinds to the groups that they belong to.
    fn add_kinds(&mut self) {
        for kind in self.request_kinds.drain() {
            if kind.requests == 0 {
                continue;
            }
            let status = self.statuses[usize::from(kind.status)].get_or_insert_default();
            let groups = [
                &mut self.classes[kind.class as usize].0,
                &mut self.outcomes.tallies[kind.outcome],
                &mut self.hierarchies.tallies[kind.hierarchy],
                &mut self.types.tallies[kind.content_type],
                &mut self.methods.tallies[kind.method],
                status,
            ];
            let plain = kind.is_plain.then_some(&mut self.plain);
            for tally in groups.into_iter().chain(plain) {
                tally.add(kind.class, kind.requests, kind.bytes, kind.times.as_deref());
            }
        }
    }

    fn count_other(&mut self, class: Class, bytes: u64) {
        match class {
            Class::QueryHit => self.queries.hits += 1,
            Class::QueryMiss => self.queries.misses += 1,
            Class::Fetch => {
                self.lines.fetches += 1;
                self.remarks.fetches += 1;
                return;
            }
            _ => {
                self.lines.without_request += 1;
                return;
            }
        }
        self.queries.bytes += bytes;
        self.lines.peer_queries += 1;
    }

    #[inline]
    fn count_groups(&mut self, access: &Access<'_>, counted: RequestSample) {
        if let Some(us) = counted.duration_us {
            self.classes[counted.class as usize].1.record(us);
        }
        let at = self.peers.index_of(access.peer, |_| ());
        self.peers.tallies[at].count(counted);
        let size = (64 - access.bytes.leading_zeros()) as usize;
        self.sizes[size.min(SIZE_BUCKETS - 1)].count(counted);
    }

    /// Counts who sent a request and where it came from, as far as the format says.
    fn count_senders(
        &mut self,
        access: &Access<'_>,
        counted: RequestSample,
        host: &[u8],
        marks: &mut StepMarks,
    ) {
        let second = second(access);
        if self.facts.contains(Fact::Agent) {
            marks.agent = Some(self.agents.count(access.agent, counted, second));
        }
        if self.facts.contains(Fact::Referrer) {
            marks.referrer = Some(self.referrers.count(access.referrer, host, counted, second));
        }
    }

    #[inline]
    fn count_time(&mut self, access: &Access<'_>, counted: RequestSample, marks: StepMarks) {
        if self.phases.any() {
            self.phases.count(access, counted);
        }
        let Some(time_us) = access.time_us else { return };
        if !self.has_fractions {
            self.has_fractions = time_us % SECOND_US != 0;
        }
        self.first_us = Some(self.first_us.map_or(time_us, |first| first.min(time_us)));
        self.last_us = Some(self.last_us.map_or(time_us, |last| last.max(time_us)));
        if let Some(before) = self.previous_us.replace(time_us)
            && time_us < before
        {
            self.lines.backwards += 1;
            self.max_backstep_us = self.max_backstep_us.max(before - time_us);
        }
        self.series.count(time_us, counted, marks);
    }

    /// Counts a request. Tables of URLs are larger than caches of processors: the lines of memory that all requests
    /// need are looked at first, so that they come together and not one after the other.
    fn count_urls(&mut self, batch: &mut Vec<UrlRequest<'_>>) {
        let mut seen = 0;
        for url_request in batch.iter() {
            seen ^= self.urls.prefetch_slot(url_request.url_key) ^ self.replay.prefetch(url_request.url_key);
        }
        for url_request in batch.iter() {
            seen ^= self.urls.prefetch_entry(url_request.url_key);
        }
        // Nobody wants what was seen; it must not be left out for that.
        std::hint::black_box(seen);
        for url_request in batch.drain(..) {
            self.count_url(&url_request);
        }
    }

    #[inline]
    fn count_url(&mut self, url_request: &UrlRequest<'_>) {
        let one = Weights {
            requests: 1,
            bytes: url_request.counted.bytes,
            misses: u64::from(url_request.counted.class == Class::Miss),
        };
        match self.urls.find(url_request.url_key) {
            _ if url_request.url.is_empty() && !url_request.is_rootless => {}
            Some(entry) => entry.sums += one,
            None => {
                // What is in the table has been counted.
                self.url_count.insert(url_request.url_key);
                self.urls.add(url_request.url_key, |text| url_request.write_url(text)).sums += one;
            }
        }
        self.hosts.count(url_request.host_key, url_request.host, url_request.counted, one);
        if url_request.has_client {
            self.clients.insert(url_request.client_key);
        }
        self.replay.request(url_request.url_key, url_request.cacheability, url_request.counted.bytes);
    }
}

/// Result of reading a line.
enum LineOutcome<'a> {
    Done,
    /// The request is counted, except for its URL.
    Request(UrlRequest<'a>),
    /// The line, and those after it, must be read again.
    Again,
}

/// URL, host and client of a request, counted in batches: their tables are larger than processor caches.
struct UrlRequest<'a> {
    url: &'a [u8],
    query: &'a [u8],
    host: &'a [u8],
    /// The URL holds its host.
    is_absolute: bool,
    is_rootless: bool,
    /// The host was written with the port that its scheme has anyway.
    has_default_port: bool,
    has_client: bool,
    client_key: u64,
    url_key: u64,
    host_key: u64,
    cacheability: Cacheability,
    counted: RequestSample,
}

impl<'a> UrlRequest<'a> {
    #[inline]
    fn new(access: &Access<'a>, counted: RequestSample, cacheability: Cacheability) -> Self {
        let (scheme, written) = access.authority();
        let host = strip_default_port(scheme, written);
        let has_default_port = host.len() < written.len();
        let host_key = hash(host);
        // An absolute URL holds its host; a path does not.
        let is_absolute = access.host.is_empty() || !access.is_path();
        let path_key = if is_absolute { hash(access.url) } else { hash_on(host_key, access.url) };
        let url_key = if access.query.is_empty() { path_key } else { hash_on(path_key, access.query) };
        Self {
            url: access.url,
            query: access.query,
            host,
            has_client: !access.client.is_empty(),
            client_key: hash(access.client),
            is_absolute,
            is_rootless: access.is_rootless,
            has_default_port,
            url_key,
            host_key,
            cacheability,
            counted,
        }
    }

    fn write_url(&self, text: &mut Vec<u8>) {
        if !self.is_absolute {
            text.extend_from_slice(self.host);
        }
        if self.is_rootless {
            text.push(b'/');
        }
        text.extend_from_slice(self.url);
        if !self.query.is_empty() {
            text.push(b'?');
            text.extend_from_slice(self.query);
        }
    }
}

/// True for a line that is not malformed.
fn is_readable(current: &FormatTracker, line: &[u8]) -> bool {
    let mut current = current.clone();
    let line = crate::format::trim(line);
    let is_remark = line.is_empty() || line[0] == b'#';
    (is_remark && current.read_remark(line).is_ok())
        || (!is_remark && current.read(line, &mut Access::default()).is_ok())
}

/// The second that a request was in, Unix time.
fn second(access: &Access<'_>) -> Option<i64> {
    access.time_us.map(|us| us.div_euclid(SECOND_US))
}

fn too_long() -> String {
    format!("the line is longer than {LINE_BYTES} bytes")
}

/// A content type without its parameters.
#[inline]
fn media_type(text: &[u8]) -> &[u8] {
    match memchr::memchr(b';', text) {
        Some(at) => text[..at].trim_ascii_end(),
        None => text,
    }
}

/// Text that can be shown anywhere: what is no printable UTF-8 is escaped.
pub fn printable(text: &[u8]) -> String {
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
