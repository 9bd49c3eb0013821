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
use crate::replay::{HEAD_BYTES, Wanted, wanted};
use assay_base::settings::show;
use assay_cache::ideal::RequestClass as Kind;

use crate::size::error::SizeError;
use crate::size::form::Form;
use crate::size::http::{AS_ALL_MS, FOREVER_S, Http, Meaning, USUAL};
use crate::size::keys::fields::Fields;
use crate::size::keys::logged::{Logged, Varies};
use crate::size::keys::pattern::Shown;
use crate::size::keys::suggest::{Suggest, Suggestion, Taken};
use crate::size::keys::{self, Rules, parts};
use crate::size::labels::By;
use crate::size::requests::{Gather, LARGEST_BYTES, Requests, Sizes};
use crate::size::sample::Sampling;
use crate::size::told::Told;
use crate::size::trace::operation::Counted;
use crate::size::trace::text::{example_of, is_record};
use crate::size::traces::traces;
use assay_cache::behaviour::CacheBehaviour;

/// What follows from an input of which the sizes are not known.
pub(crate) const IN_OBJECTS: &str = "caches are measured in objects, and there is no byte hit ratio.";

/// How much is read, and what of it is told apart.
#[derive(Debug, Clone, Copy, Default)]
pub struct How {
    /// All requests, or a sample.
    pub sampling: Sampling,
    /// What the figures are divided by; none: nothing.
    pub by: Option<By>,
    /// Who made each request is kept.
    pub clients: bool,
    /// As what proxy requests act on caches; none: as the rules of the reference say, which no proxy changes.
    pub behaviour: Option<CacheBehaviour>,
    /// How long responses take; none: they are there at once.
    pub response: Option<Response>,
    /// What responses of a log say of their storing does not count: the log is held against a replay, whose origins say nothing.
    pub as_replayed: bool,
}

/// How long the origin takes for responses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Response {
    /// All of them so many milliseconds.
    Ms(u64),
    /// As long as the log or the trace says.
    Logged,
}

impl How {
    /// What HTTP says of requests for which nothing else says it.
    pub(crate) fn http(&self) -> Http {
        let response_ms = match self.response {
            Some(Response::Ms(ms)) => ms,
            _ => 0,
        };
        Http { response_ms, ..Http::new(self.behaviour.unwrap_or(USUAL)) }
    }

    pub(crate) fn is_logged(&self) -> bool {
        self.response == Some(Response::Logged)
    }
}

/// Inputs and their requests.
#[derive(Debug)]
pub struct Read {
    /// The files, in the order in which they were read.
    pub files: Vec<PathBuf>,
    /// Name of their form.
    pub form: String,
    /// It is an access log, or several.
    pub is_log: bool,
    pub requests: Requests,
    /// Lines or records that could not be read.
    pub malformed: u64,
    /// The first of them, where it is known why: in traces of text.
    pub malformed_lines: Vec<MalformedLine>,
    /// What else than reading was done with objects of a trace.
    pub other_operations: Vec<Counted>,
    /// Changes of the key that would gain hits, and how often a parameter was not examined; none: nobody asked.
    pub suggestions: Option<(Vec<Suggestion>, u64)>,
    /// What a reader should know, a sentence each.
    pub notes: Vec<String>,
}

/// Reads files, with `*` and `?` in their names. Traces are read in the given order, access logs in that of their times.
///
/// # Errors
/// If a file cannot be read, has no known form, or there is no request in any of them.
pub fn read(names: &[PathBuf], form: Option<&Form>, rules: Rules, how: How) -> Result<Read, SizeError> {
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
        (None, _) => logs(&files, form, rules, how)?,
        (Some(_), None) if !rules.is_empty() => return Err(SizeError::RulesForTrace),
        (Some(_), None) if how.by.is_some() => return Err(SizeError::RulesForTrace),
        (Some(_), None) if how.clients => return Err(SizeError::ClientsOfTrace),
        (Some(_), None) => traces(files, &forms, how)?,
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

fn logs(files: &[PathBuf], form: Option<&Form>, rules: Rules, how: How) -> Result<Read, SizeError> {
    let format = match form {
        Some(Form::Log(format)) => format.as_deref(),
        _ => None,
    };
    let mut gather = Gather::new(Sizes::Within(0), how.sampling);
    if let Some(by) = how.by {
        gather.set_labels(by);
    }
    if how.clients {
        gather.set_clients();
    }
    let acts = Acts { as_proxy: how.behaviour.is_some(), is_logged: how.is_logged(), ..Acts::default() };
    if !rules.ttl.is_empty() || acts.as_proxy || how.response.is_some() {
        gather.set_http(how.http());
    }
    let is_plain = rules.is_empty() && !acts.as_proxy && how.response.is_none();
    let mut log = Log {
        rules,
        is_plain,
        acts,
        by: how.by,
        has_clients: how.clients,
        http: how.http(),
        format: None,
        assumes_get: false,
        assumes_success: false,
        is_full: false,
        malformed: 0,
        notes: Vec::new(),
        told: Told::default(),
        logged: Logged::default(),
        as_replayed: how.as_replayed,
    };
    let set = crate::for_each_access(files, format, |access, format| {
        log.take(access, format, &mut gather);
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
    if how.is_logged() && log.acts.fetches == 0 {
        return Err(SizeError::NoResponseTimes { input: "the log".into() });
    }
    let returns = returns(&gather);
    let requests = gather.finish();
    if !requests.has_sizes {
        log.notes.push(format!("The input has no sizes: {IN_OBJECTS}"));
    }
    Ok(Read {
        files: set.files,
        form: set.format,
        is_log: true,
        notes: [
            set.broken.iter().map(|(path, why)| ends_early(path, why)).collect(),
            set.remarks.notes(),
            log.notes,
            log.told.notes(),
            log.logged.notes(),
            log.rules.notes(log.told.has_lifetimes),
            log.rules.notes_of_key(&log.logged),
            returns,
        ]
        .concat(),
        requests,
        malformed: set.malformed + log.malformed,
        malformed_lines: Vec::new(),
        other_operations: Vec::new(),
        suggestions: log.rules.suggest.take().map(Suggest::finish),
    })
}

/// How the lines of a log act on caches.
#[derive(Debug, Default)]
struct Acts {
    /// HEAD, conditional requests, requests for parts and POST act as on a given proxy; if not, most of them are misses.
    as_proxy: bool,
    /// Responses take as long as the log says.
    is_logged: bool,
    /// Requests whose responses came from the origin, as far as is known, and how long all of them took.
    fetches: u64,
    fetches_us: u64,
}

impl Acts {
    /// How long the origin takes for the response to a request. Of a hit the log does not say it:
    /// as long as the others until now, on average.
    fn takes_ms(&mut self, access: &Access<'_>) -> u32 {
        if !self.is_logged {
            return AS_ALL_MS;
        }
        let from_origin = matches!(class::of(access), Class::Miss | Class::Revalidated | Class::Unknown);
        if let Some(took_us) = access.duration_us.filter(|_| from_origin) {
            (self.fetches, self.fetches_us) = (self.fetches + 1, self.fetches_us.saturating_add(took_us));
            return milliseconds(took_us);
        }
        milliseconds(self.fetches_us / self.fetches.max(1))
    }

    /// What a request is to the proxy, if it is not the usual one.
    fn kind(&self, method: &[u8], status: u16) -> Option<Kind> {
        match (method, status) {
            _ if !self.as_proxy => None,
            (b"HEAD", 200..=299) => Some(Kind::Head),
            (b"GET", 206) => Some(Kind::Range),
            (b"GET", 304) => Some(Kind::ConditionalUnchanged),
            (b"POST", _) => Some(Kind::Post),
            _ => None,
        }
    }
}

fn milliseconds(time_us: u64) -> u32 {
    u32::try_from((time_us + 500) / 1000).unwrap_or(u32::MAX - 1).min(u32::MAX - 1)
}

/// What access logs say of requests.
#[derive(Debug)]
struct Log {
    /// Stands for the format of the line before ([`Format::key`]).
    format: Option<u64>,
    assumes_get: bool,
    assumes_success: bool,
    is_full: bool,
    /// Lines whose numbers cannot be.
    malformed: u64,
    notes: Vec<String>,
    rules: Rules,
    /// There are no rules, and nothing else that the plain reading does not know.
    is_plain: bool,
    acts: Acts,
    by: Option<By>,
    has_clients: bool,
    told: Told,
    logged: Logged,
    as_replayed: bool,
    /// What caches do, if lines have to be told apart by what HTTP says.
    http: Http,
}

impl Log {
    fn take(&mut self, access: &Access<'_>, format: &Format, gather: &mut Gather) {
        if self.format != Some(format.key()) {
            self.begin(format, gather);
        }
        if !class::of(access).is_request() {
            return;
        }
        if access.bytes > LARGEST_BYTES {
            self.malformed += 1;
            return;
        }
        let method = if self.assumes_get { b"GET" } else { access.method };
        let status = if self.assumes_success { 200 } else { access.status };
        let at_s = access.time_us.map(|time_us| time_us.div_euclid(1_000_000));
        if !self.is_plain {
            let reads_fields = self.rules.read_fields() || self.logged.has_vary();
            let fields = if reads_fields { Fields::of(access, format) } else { Fields::default() };
            if self.take_by_rules(access, &fields, (method, status), at_s, gather) {
                self.label(access, gather);
            }
            return;
        }
        match wanted(method, status) {
            Wanted::Whole => self.is_full |= !gather.whole(key(access), access.bytes, at_s),
            Wanted::Part => gather.part(key(access), access.bytes, at_s),
            Wanted::Never => gather.uncachable(access.bytes, at_s),
        }
        self.label(access, gather);
    }

    /// Labels the request that was taken last.
    fn label(&self, access: &Access<'_>, gather: &mut Gather) {
        if self.has_clients {
            gather.client((hash(access.client) >> 32) as u32);
        }
        match self.by {
            None => {}
            Some(By::Host) => gather.label(&access.host().to_ascii_lowercase()),
            Some(By::Type) => {
                let end = access.content_type.iter().position(|byte| *byte == b';');
                let plain = &access.content_type[..end.unwrap_or(access.content_type.len())];
                gather.label(&plain.trim_ascii().to_ascii_lowercase());
            }
            Some(By::Class) => gather.label(class::of(access).name().as_bytes()),
        }
    }

    /// A request of which something is said; false: it was left out.
    fn take_by_rules(
        &mut self,
        access: &Access<'_>,
        fields: &Fields<'_>,
        (method, status): (&[u8], u16),
        at_s: Option<i64>,
        gather: &mut Gather,
    ) -> bool {
        let (host, path, query) = parts(access);
        let shown = Shown { host, path, content_type: access.content_type };
        let rules = &mut self.rules;
        if !rules.hosts.is_empty() && !rules.hosts.iter().any(|host| host.matches(&shown)) {
            rules.left_out += 1;
            return false;
        }
        let kind = self.acts.kind(method, status);
        rules.see(query, fields);
        let url = rules.key.key(host, path, query);
        let (wanted, told_s) = self.told.lifetime(access, (method, status), wanted(method, status), url);
        let (wanted, varies) = match self.logged.varies(url, fields) {
            Varies::By(varies) => (wanted, varies),
            Varies::ByAll => (Wanted::Never, &[][..]),
        };
        let key = self.told.variant(access, wanted, rules.key.variant(url, fields, varies));
        if keys::first(&mut rules.uncachable, &shown).is_some() || (wanted == Wanted::Never && kind.is_none())
        {
            gather.uncachable(access.bytes, at_s);
            return true;
        }
        let ruled_s = keys::first(&mut rules.ttl, &shown).copied();
        let life_s = told_s.or(ruled_s).unwrap_or(FOREVER_S);
        if wanted != Wanted::Whole {
            gather.part(key, access.bytes, at_s);
        } else {
            if let Some(suggest) = &mut rules.suggest {
                suggest.take(&Taken { url: (host, path, query), fields, varies, bytes: access.bytes });
            }
            self.is_full |= !gather.whole(key, access.bytes, at_s);
        }
        gather.mean(Meaning {
            life_s,
            takes_ms: self.acts.takes_ms(access),
            ms: access.time_us.map_or(0, |time_us| (time_us.rem_euclid(1_000_000) / 1000) as u16),
            kind: kind.unwrap_or(Kind::Get),
            ..Meaning::PLAIN
        });
        true
    }

    /// Before the first line of a format: what it leaves out, and what is assumed instead.
    fn begin(&mut self, format: &Format, gather: &mut Gather) {
        self.format = Some(format.key());
        let says = format.says();
        let mut note = |is_missing: bool, text: &str| {
            if is_missing && !self.notes.iter().any(|note| note == text) {
                self.notes.push(text.to_owned());
            }
            is_missing
        };
        self.assumes_get =
            note(!says.has(Fact::Method), "The log has no methods: all requests are taken for GETs.");
        self.assumes_success =
            note(!says.has(Fact::Status), "The log has no statuses: all are taken for 200.");
        let has_heads = says.has(Fact::Bytes) && !format.counts_bodies();
        note(
            has_heads,
            "The log counts heads of responses among their bytes: an object whose size differs by no more than 512 bytes is taken \
             for unchanged.",
        );
        self.told.has_lifetimes |= says.has(Fact::Lifetime) && !self.as_replayed;
        self.told.has_codings |= says.has(Fact::Coding) && !self.as_replayed;
        self.logged.begin(format, !self.as_replayed, self.told.has_codings);
        self.is_plain &= !self.told.has_lifetimes && !self.told.has_codings && !self.logged.has_vary();
        if self.told.has_lifetimes {
            gather.set_http(self.http.clone());
        }
        gather.set_sizes(match (says.has(Fact::Bytes), has_heads) {
            (false, _) => Sizes::Unknown,
            (true, true) => Sizes::Within(HEAD_BYTES),
            (true, false) => Sizes::Within(0),
        });
    }
}

/// What a reader should know of sizes that change and change back.
fn returns(gather: &Gather) -> Vec<String> {
    let (returns, changes) = gather.size_returns();
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
