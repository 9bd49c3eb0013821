//! Inputs and their requests: those of access logs, and of traces ([`crate::size::traces`]).

use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use crate::access::Access;
use crate::class::{self, Class};
use crate::document::MalformedLine;
use crate::error::LogsError;
use crate::format::{Fact, Format};
use crate::hash::{hash, hash_on};
use crate::input;
use crate::replay::{Cacheability, HEAD_BYTES, cacheability};
use assay_base::settings::show;
use assay_cache::ideal::RequestClass as CacheRequest;

use crate::size::error::SizeError;
use crate::size::form::Form;
use crate::size::group_by::GroupBy;
use crate::size::http::{AS_ALL_MS, FOREVER_S, Http, RequestSemantics, USUAL};
use crate::size::keys::fields::RequestFields;
use crate::size::keys::logged_fields::{LoggedFields, VariesBy};
use crate::size::keys::pattern::RuleSubject;
use crate::size::keys::suggest::{KeySuggester, KeySuggestion, WholeRequest};
use crate::size::keys::{self, LogRules, parts};
use crate::size::requests::{LARGEST_BYTES, RequestCollector, Requests, Sizes};
use crate::size::response_metadata::ResponseMetadata;
use crate::size::sample::Sampling;
use crate::size::trace::operation::OperationCount;
use crate::size::trace::text::{example_of, is_record};
use crate::size::traces::traces;
use assay_cache::behaviour::CacheBehaviour;

/// Consequence of an input without sizes, for messages.
pub(crate) const IN_OBJECTS: &str = "caches are measured in objects, and there is no byte hit ratio.";

/// Options of reading an input.
#[derive(Debug, Clone, Copy, Default)]
pub struct ReadOptions {
    /// All requests, or a sample.
    pub sampling: Sampling,
    /// Label by which figures are divided; none: they are not.
    pub by: Option<GroupBy>,
    /// Keep the client of each request.
    pub clients: bool,
    /// As what proxy requests act on caches; none: as the rules of the reference say, which no proxy changes.
    pub behaviour: Option<CacheBehaviour>,
    /// Response times; none: responses are immediate.
    pub response: Option<ResponseTime>,
    /// Ignore the caching fields of responses: the log is compared with a replay, whose origins send none.
    pub as_replayed: bool,
}

/// Response times of the origin.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ResponseTime {
    /// All of them so many milliseconds.
    Ms(u64),
    /// As long as the log or the trace says.
    Logged,
}

impl ReadOptions {
    /// Semantics of requests without a statement of their own.
    pub(crate) fn http(&self) -> Http {
        let response_ms = match self.response {
            Some(ResponseTime::Ms(ms)) => ms,
            _ => 0,
        };
        Http { response_ms, ..Http::new(self.behaviour.unwrap_or(USUAL)) }
    }

    pub(crate) fn is_logged(&self) -> bool {
        self.response == Some(ResponseTime::Logged)
    }
}

/// Inputs and their requests.
#[derive(Debug)]
pub struct SizeInput {
    /// The files, in the order in which they were read.
    pub files: Vec<PathBuf>,
    /// Name of their form.
    pub form: String,
    /// True for access logs.
    pub is_log: bool,
    pub requests: Requests,
    /// Lines or records that could not be read.
    pub malformed: u64,
    /// The first of them, where it is known why: in traces of text.
    pub malformed_lines: Vec<MalformedLine>,
    /// Operations other than reads on objects of a trace.
    pub other_operations: Vec<OperationCount>,
    /// Changes of the key that would gain hits, and how often a parameter was not examined; none: nobody asked.
    pub suggestions: Option<(Vec<KeySuggestion>, u64)>,
    /// Sentences for the reader.
    pub notes: Vec<String>,
}

/// Reads files, with `*` and `?` in their names. Traces are read in the given order, access logs in that of their times.
///
/// # Errors
/// If a file cannot be read, has no known form, or there is no request in any of them.
pub fn read(
    names: &[PathBuf],
    form: Option<&Form>,
    rules: LogRules,
    read_options: ReadOptions,
) -> Result<SizeInput, SizeError> {
    let mut files = Vec::new();
    for name in names {
        files.extend(input::expand(name)?);
    }
    let forms: Vec<Form> = files.iter().map(|file| form.cloned().unwrap_or_else(|| Form::of(file))).collect();
    let log = forms.iter().position(Form::is_log);
    let trace = forms.iter().position(|form| !form.is_log());
    let mut read = match (trace, log) {
        (Some(one), Some(other)) => {
            let (one, other) = (files[one].clone(), files[other].clone());
            return Err(SizeError::Mixed { one, other });
        }
        (None, _) => logs(&files, form, rules, read_options)?,
        (Some(_), None) if !rules.is_empty() => return Err(SizeError::RulesForTrace),
        (Some(_), None) if read_options.by.is_some() => return Err(SizeError::RulesForTrace),
        (Some(_), None) if read_options.clients => return Err(SizeError::ClientsOfTrace),
        (Some(_), None) => traces(files, &forms, read_options)?,
    };
    if read.requests.read() == 0 {
        // Standard input has no length.
        let is_empty = |file: &PathBuf| file.metadata().is_ok_and(|file| file.is_file() && file.len() == 0);
        if let [file] = &read.files[..]
            && is_empty(file)
        {
            return Err(LogsError::Empty { name: file.display().to_string() }.into());
        }
        let names: Vec<String> = read.files.iter().map(|file| file.display().to_string()).collect();
        let lines = read.malformed_lines.iter().map(malformed_line);
        return Err(SizeError::NoRequests {
            names: names.join(", "),
            malformed: read.malformed,
            notes: lines.chain(read.notes).collect(),
        });
    }
    if !read.requests.can_be_summed() {
        return Err(SizeError::TooManyBytes);
    }
    let empty = read.requests.empty();
    if empty > 0 && read.requests.has_sizes {
        let of_empty = show::several(empty, "request");
        let are = show::verb(empty, "is", "are");
        let elsewhere = if read.is_log {
            ""
        } else {
            " They are counted here; cachesim of libCacheSim leaves such requests out."
        };
        read.notes.push(format!(
            "{of_empty} {are} for objects without a body, which take no room of their own.{elsewhere}"
        ));
    }
    Ok(read)
}

/// A line that could not be read, and why.
pub(crate) fn malformed_line(line: &MalformedLine) -> String {
    let (input, text) =
        (assay_base::quote::line::line(&line.input), assay_base::quote::line::line(&line.text));
    format!("Line {} of {input} (`{text}`): {}.", show::count(line.line), line.reason)
}

/// A file could not be read to its end.
pub(crate) fn ends_early(path: &Path, why: &impl std::fmt::Display) -> String {
    format!("{} ends early ({why}): what comes before that is simulated.", path.display())
}

fn logs(
    files: &[PathBuf],
    form: Option<&Form>,
    rules: LogRules,
    read_options: ReadOptions,
) -> Result<SizeInput, SizeError> {
    let format = match form {
        Some(Form::Log(format)) => format.as_deref(),
        _ => None,
    };
    let mut collector = RequestCollector::new(Sizes::Within(0), read_options.sampling);
    if let Some(by) = read_options.by {
        collector.set_labels(by);
    }
    if read_options.clients {
        collector.set_clients();
    }
    let actions = CacheActions {
        as_proxy: read_options.behaviour.is_some(),
        is_logged: read_options.is_logged(),
        ..CacheActions::default()
    };
    if !rules.ttl.is_empty() || actions.as_proxy || read_options.response.is_some() {
        collector.set_http(read_options.http());
    }
    let is_plain = rules.is_empty() && !actions.as_proxy && read_options.response.is_none();
    let mut log = LogReader {
        rules,
        is_plain,
        actions,
        by: read_options.by,
        has_clients: read_options.clients,
        http: read_options.http(),
        format: None,
        assumes_get: false,
        assumes_success: false,
        is_full: false,
        malformed: 0,
        notes: Vec::new(),
        metadata: ResponseMetadata::default(),
        logged: LoggedFields::default(),
        as_replayed: read_options.as_replayed,
    };
    let set = crate::for_each_access(files, format, |access, format| {
        log.read_access(access, format, &mut collector);
        if log.is_full { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    });
    let set = set.map_err(|error| match error {
        LogsError::Unrecognised { name, line, .. } if is_record(line.as_bytes()) => {
            let example = example_of(line.as_bytes());
            SizeError::NoNames { path: name.into(), line, example }
        }
        // NULs, as they are shown.
        LogsError::Unrecognised { name, line, .. } if line.contains("\\u{0}") => {
            SizeError::NoText { path: name.into() }
        }
        error => error.into(),
    })?;
    if log.is_full {
        return Err(SizeError::TooManyObjects);
    }
    if read_options.is_logged() && log.actions.fetches == 0 {
        return Err(SizeError::NoResponseTimes { input: "the log".into() });
    }
    let size_return_notes = size_return_notes(&collector);
    let requests = collector.finish();
    if !requests.has_sizes {
        log.notes.push(format!("The input has no sizes: {IN_OBJECTS}"));
    }
    Ok(SizeInput {
        files: set.files,
        form: set.format,
        is_log: true,
        notes: [
            set.broken.iter().map(|(path, why)| ends_early(path, why)).collect(),
            set.remarks.notes(),
            log.notes,
            log.metadata.notes(),
            log.logged.notes(),
            log.rules.notes(log.metadata.has_lifetimes),
            log.rules.notes_of_key(&log.logged),
            size_return_notes,
        ]
        .concat(),
        requests,
        malformed: set.malformed + log.malformed,
        malformed_lines: Vec::new(),
        other_operations: Vec::new(),
        suggestions: log.rules.suggest.take().map(KeySuggester::finish),
    })
}

/// Effect of the lines of a log on caches.
#[derive(Debug, Default)]
struct CacheActions {
    /// HEAD, conditional requests, requests for parts and POST act as on a given proxy; if not, most of them are misses.
    as_proxy: bool,
    /// Responses take as long as the log says.
    is_logged: bool,
    /// Requests whose responses came from the origin, as far as is known, and how long all of them took.
    fetches: u64,
    fetches_us: u64,
}

impl CacheActions {
    /// Response time of the origin. The log does not state that of a hit: it is taken to be the mean of the others
    /// until now.
    fn takes_ms(&mut self, access: &Access<'_>) -> u32 {
        if !self.is_logged {
            return AS_ALL_MS;
        }
        // A hit takes as long as the cache, not as the origin.
        let from_origin =
            matches!(class::classify(access), Class::Miss | Class::Revalidated | Class::Unknown);
        if let Some(took_us) = access.duration_us.filter(|_| from_origin) {
            (self.fetches, self.fetches_us) = (self.fetches + 1, self.fetches_us.saturating_add(took_us));
            return milliseconds(took_us);
        }
        milliseconds(self.fetches_us / self.fetches.max(1))
    }

    /// Kind of a request to the given proxy, if it is not a plain GET.
    fn kind(&self, method: &[u8], status: u16) -> Option<CacheRequest> {
        match (method, status) {
            _ if !self.as_proxy => None,
            (b"HEAD", 200..=299) => Some(CacheRequest::Head),
            (b"GET", 206) => Some(CacheRequest::Range),
            // A 304 of a log confirms what the client had: the object is as it was.
            (b"GET", 304) => Some(CacheRequest::ConditionalUnchanged),
            (b"POST", _) => Some(CacheRequest::Post),
            _ => None,
        }
    }
}

fn milliseconds(time_us: u64) -> u32 {
    u32::try_from((time_us + 500) / 1000).unwrap_or(u32::MAX - 1).min(u32::MAX - 1)
}

/// Reader of access logs.
#[derive(Debug)]
struct LogReader {
    /// Stands for the format of the line before ([`Format::key`]).
    format: Option<u64>,
    assumes_get: bool,
    assumes_success: bool,
    is_full: bool,
    /// Lines whose numbers cannot be.
    malformed: u64,
    notes: Vec<String>,
    rules: LogRules,
    /// There are no rules, and nothing else that the plain reading does not know.
    is_plain: bool,
    actions: CacheActions,
    by: Option<GroupBy>,
    has_clients: bool,
    metadata: ResponseMetadata,
    logged: LoggedFields,
    as_replayed: bool,
    /// Behaviour of caches, where requests have HTTP semantics.
    http: Http,
}

impl LogReader {
    fn read_access(&mut self, access: &Access<'_>, format: &Format, collector: &mut RequestCollector) {
        if self.format != Some(format.key()) {
            self.begin(format, collector);
        }
        if !class::classify(access).is_request() {
            return;
        }
        // Nothing is so large: the line is damaged.
        if access.bytes > LARGEST_BYTES {
            self.malformed += 1;
            return;
        }
        let method = if self.assumes_get { b"GET" } else { access.method };
        let status = if self.assumes_success { 200 } else { access.status };
        let at_s = access.time_us.map(|time_us| time_us.div_euclid(1_000_000));
        if !self.is_plain {
            let reads_fields = self.rules.read_fields() || self.logged.has_vary();
            let fields =
                if reads_fields { RequestFields::of(access, format) } else { RequestFields::default() };
            if self.read_by_rules(access, &fields, method, status, at_s, collector) {
                self.label(access, collector);
            }
            return;
        }
        match cacheability(method, status) {
            Cacheability::Whole => self.is_full |= !collector.add_whole(key(access), access.bytes, at_s),
            Cacheability::Part => collector.add_partial(key(access), access.bytes, at_s),
            Cacheability::Never => collector.add_uncachable(access.bytes, at_s),
        }
        self.label(access, collector);
    }

    /// Labels the request that was taken last.
    fn label(&self, access: &Access<'_>, collector: &mut RequestCollector) {
        if self.has_clients {
            collector.set_client((hash(access.client) >> 32) as u32);
        }
        match self.by {
            None => {}
            Some(GroupBy::Host) => collector.set_label(&access.host().to_ascii_lowercase()),
            Some(GroupBy::Type) => {
                // Parameters such as a charset make no other type.
                let end = access.content_type.iter().position(|byte| *byte == b';');
                let plain = &access.content_type[..end.unwrap_or(access.content_type.len())];
                collector.set_label(&plain.trim_ascii().to_ascii_lowercase());
            }
            Some(GroupBy::Class) => collector.set_label(class::classify(access).name().as_bytes()),
        }
    }

    /// A request of which something is said; false: it was left out.
    fn read_by_rules(
        &mut self,
        access: &Access<'_>,
        fields: &RequestFields<'_>,
        method: &[u8],
        status: u16,
        at_s: Option<i64>,
        collector: &mut RequestCollector,
    ) -> bool {
        let (host, path, query) = parts(access);
        let shown = RuleSubject { host, path, content_type: access.content_type };
        let rules = &mut self.rules;
        if !rules.hosts.is_empty() && !rules.hosts.iter().any(|host| host.matches(&shown)) {
            rules.left_out += 1;
            return false;
        }
        let kind = self.actions.kind(method, status);
        rules.strike_matched(query, fields);
        let url = rules.key.key(host, path, query);
        let (cacheability, logged_s) =
            self.metadata.lifetime(access, method, status, cacheability(method, status), url);
        let (cacheability, varies) = match self.logged.varies(url, fields) {
            VariesBy::Fields(varies) => (cacheability, varies),
            VariesBy::Everything => (Cacheability::Never, &[][..]),
        };
        let key = self.metadata.variant(access, cacheability, rules.key.variant(url, fields, varies));
        if keys::first(&mut rules.uncachable, &shown).is_some()
            || (cacheability == Cacheability::Never && kind.is_none())
        {
            collector.add_uncachable(access.bytes, at_s);
            return true;
        }
        let rule_s = keys::first(&mut rules.ttl, &shown).copied();
        // A lifetime in the log goes before one by a rule.
        let life_s = logged_s.or(rule_s).unwrap_or(FOREVER_S);
        if cacheability != Cacheability::Whole {
            collector.add_partial(key, access.bytes, at_s);
        } else {
            if let Some(suggest) = &mut rules.suggest {
                suggest.take(&WholeRequest { url: (host, path, query), fields, varies, bytes: access.bytes });
            }
            self.is_full |= !collector.add_whole(key, access.bytes, at_s);
        }
        collector.set_semantics(RequestSemantics {
            life_s,
            takes_ms: self.actions.takes_ms(access),
            ms: access.time_us.map_or(0, |time_us| (time_us.rem_euclid(1_000_000) / 1000) as u16),
            kind: kind.unwrap_or(CacheRequest::Get),
            ..RequestSemantics::PLAIN
        });
        true
    }

    /// Before the first line of a format: what it leaves out, and what is assumed instead.
    fn begin(&mut self, format: &Format, collector: &mut RequestCollector) {
        self.format = Some(format.key());
        let facts = format.facts();
        let mut note = |is_missing: bool, text: &str| {
            if is_missing && !self.notes.iter().any(|note| note == text) {
                self.notes.push(text.to_owned());
            }
            is_missing
        };
        self.assumes_get =
            note(!facts.contains(Fact::Method), "The log has no methods: all requests are taken for GETs.");
        self.assumes_success =
            note(!facts.contains(Fact::Status), "The log has no statuses: all are taken for 200.");
        let has_heads = facts.contains(Fact::Bytes) && !format.counts_bodies();
        note(
            has_heads,
            "The log counts heads of responses among their bytes: an object whose size differs by no more than 512 bytes is taken \
             for unchanged.",
        );
        self.metadata.has_lifetimes |= facts.contains(Fact::Lifetime) && !self.as_replayed;
        self.metadata.has_codings |= facts.contains(Fact::Coding) && !self.as_replayed;
        self.logged.begin(format, !self.as_replayed, self.metadata.has_codings);
        self.is_plain &=
            !self.metadata.has_lifetimes && !self.metadata.has_codings && !self.logged.has_vary();
        if self.metadata.has_lifetimes {
            collector.set_http(self.http.clone());
        }
        collector.set_sizes(match (facts.contains(Fact::Bytes), has_heads) {
            (false, _) => Sizes::Unknown,
            (true, true) => Sizes::Within(HEAD_BYTES),
            (true, false) => Sizes::Within(0),
        });
    }
}

/// Note on sizes that change and change back.
fn size_return_notes(collector: &RequestCollector) -> Vec<String> {
    let (returns, changes) = collector.size_returns();
    if returns * 10 < changes || returns < 10 {
        return Vec::new();
    }
    vec![format!(
        "{} of {} changes of size are back to the size before, as those of variants of one object are (coded and not, for instance): each is simulated as a changed object, which no cache with variants would see. Log Content-Encoding to have them told apart.",
        show::count(returns),
        show::count(changes)
    )]
}

/// Stands for the object: its host and its URL with the query, as they were written.
fn key(access: &Access<'_>) -> u64 {
    let is_path = access.is_path();
    let url = if is_path { hash_on(hash(access.host()), access.url) } else { hash(access.url) };
    if access.query.is_empty() { url } else { hash_on(url, access.query) }
}
