//! Sources of plans: logs and lists, read in a thread of their own, as far ahead as is needed.

use std::io;
use std::ops::ControlFlow;
use std::path::PathBuf;

use assay_logs::access::{Access, HttpVersion};
use assay_logs::class::{self, Class};
use assay_logs::error::LogsError;
use assay_logs::format::Format;
use assay_logs::{ReadSet, for_each_access};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tokio::sync::mpsc::Sender;

use crate::replay::ReplayError;
use crate::replay::catalogue::Catalogue;
use crate::replay::filter::Filter;
use crate::replay::plan::list::{Arrivals, ListPlan};
use crate::replay::plan::log::{LogEntry, LogPlan};
use crate::replay::plan::{LoggedOutcome, Planned};
use crate::replay::request::{ReplayRequest, UnusableUrl};

/// Most URLs of a list.
const MOST_URLS: usize = 10_000_000;

/// Source of a replay's requests.
#[derive(Debug, Clone)]
pub enum RequestSource {
    /// Access logs, in their own time.
    Log(LogSource),
    /// A list of URLs, at random.
    List(ListSource),
}

#[derive(Debug, Clone)]
pub struct LogSource {
    /// Files, as `assay logs` takes them.
    pub files: Vec<PathBuf>,
    /// None: the format is recognised.
    pub format: Option<Box<Format>>,
    /// Factor by which the replay is faster than the log.
    pub speed: f64,
    /// Host of paths without one.
    pub host: Option<String>,
    pub filter: Filter,
    /// Requests at most.
    pub limit: Option<u64>,
    /// The replay lasts so long at most, in nanoseconds of its own time.
    pub for_ns: Option<u64>,
    /// Leave out `https` URLs: it is not known whose certificates are to be trusted.
    pub skips_https: bool,
}

/// A list of URLs.
#[derive(Debug, Clone)]
pub struct ListSource {
    /// Files with a URL per line.
    pub files: Vec<PathBuf>,
    /// Host of paths without one.
    pub host: Option<String>,
    /// Arrivals of the connections.
    pub arrivals: Arrivals,
    /// As many connections as request every URL once.
    pub once: bool,
    /// Longest duration, in nanoseconds.
    pub for_ns: Option<u64>,
    /// Leave out `https` URLs, as in [`LogSource`].
    pub skips_https: bool,
}

/// What was read, and what of it is not sent.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Fed")]
pub struct ReadSummary {
    /// Lines that hold something.
    pub lines: u64,
    /// Lines that are not of the log's format.
    pub malformed: u64,
    /// Requests that the filter leaves out.
    #[serde(default)]
    pub filtered: u64,
    /// Requests of other methods than GET and HEAD: a log does not hold their bodies.
    pub other_methods: u64,
    /// Requests without a usable URL: tunnels, `-`, paths of no known host.
    pub unusable: u64,
    /// Requests for other schemes than `http` and `https`.
    pub other_schemes: u64,
    /// Requests for `https` URLs through a forward proxy that nobody said how to verify.
    #[serde(default)]
    pub unverified: u64,
    /// Lines without a time.
    pub timeless: u64,
    /// Files, in the order in which they were read.
    pub files: Vec<String>,
    /// Format of the log; empty: a list.
    pub format: String,
    /// What should be known of how it was read, a sentence each.
    #[serde(default)]
    pub notes: Vec<String>,
    /// How much of the log's own time was planned, in seconds.
    pub covered_s: f64,
    /// What the log says became of the requests that were planned.
    #[serde(default)]
    pub logged: LoggedTotals,
}

/// What a log says of its requests.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Logged")]
pub struct LoggedTotals {
    /// Requests of which it says whether they were hits.
    pub known: u64,
    /// Those that were.
    pub hits: u64,
    /// Bytes of the responses to those of which it says so.
    pub known_bytes: u64,
    /// Bytes of the hits.
    pub hit_bytes: u64,
    /// Requests that came in HTTP/2 or HTTP/3. They are sent in HTTP/1.1.
    #[serde(default)]
    pub newer_versions: u64,
}

impl LoggedTotals {
    fn count(&mut self, logged_outcome: LoggedOutcome) {
        self.newer_versions +=
            u64::from(matches!(logged_outcome.version, Some(HttpVersion::Http2 | HttpVersion::Http3)));
        let Some(hit) = logged_outcome.hit else { return };
        self.known += 1;
        self.known_bytes += logged_outcome.bytes;
        if hit {
            self.hits += 1;
            self.hit_bytes += logged_outcome.bytes;
        }
    }
}

/// Reason for which `https` URLs are not sent through a forward proxy.
pub(crate) const UNVERIFIED: &str = "of https without --ca or --insecure";

/// The receiver is gone.
struct ReceiverGone;

impl RequestSource {
    /// Reads, plans, and hands the plan over piece by piece; blocks while that is far enough ahead.
    pub(crate) fn feed(&self, to: &Sender<Planned>) -> Result<ReadSummary, ReplayError> {
        match self {
            RequestSource::Log(log) => log.feed(to),
            RequestSource::List(list) => list.feed(to),
        }
    }

    /// Reads it once, before anything is sent, to find out what it has.
    pub fn survey(&self) -> Result<Catalogue, ReplayError> {
        let mut catalogue = Catalogue::default();
        let (summary, files) = match self {
            RequestSource::Log(log) => (log.survey(&mut catalogue)?, &log.files),
            RequestSource::List(list) => {
                let (requests, summary) = list.read()?;
                requests.iter().for_each(|request| catalogue.mention(request));
                (summary, &list.files)
            }
        };
        if catalogue.urls() == 0 {
            return Err(nothing(&summary, files));
        }
        Ok(catalogue)
    }
}

/// Refuses a log that breaks off: what it has is not what was requested.
fn whole(read: ReadSet) -> Result<ReadSet, LogsError> {
    match read.broken.first() {
        Some((path, why)) => {
            Err(LogsError::Read { path: path.clone(), source: io::Error::other(why.clone()) })
        }
        None => Ok(read),
    }
}

impl LogSource {
    fn feed(&self, to: &Sender<Planned>) -> Result<ReadSummary, ReplayError> {
        let mut summary = ReadSummary::default();
        let mut plan = LogPlan::new(self.speed);
        let mut handed = 0;
        let read = for_each_access(&self.files, self.format.as_deref(), |access, format| {
            if let Some(entry) = self.entry(access, format, &mut summary) {
                plan.push(entry);
            }
            match self.hand_over(&mut plan, &mut handed, &mut summary.logged, to) {
                Ok(()) => ControlFlow::Continue(()),
                Err(ReceiverGone) => ControlFlow::Break(()),
            }
        })?;
        let read = whole(read)?;
        plan.finish();
        let _ = self.hand_over(&mut plan, &mut handed, &mut summary.logged, to);
        summary.lines = read.lines;
        summary.malformed = read.malformed;
        summary.files = read.files.iter().map(|file| file.display().to_string()).collect();
        summary.notes = read.remarks.notes();
        summary.format = read.format;
        summary.covered_s = plan.covered_us() as f64 / 1e6;
        if handed == 0 && !to.is_closed() {
            return Err(nothing(&summary, &self.files));
        }
        Ok(summary)
    }

    fn hand_over(
        &self,
        plan: &mut LogPlan,
        handed: &mut u64,
        logged: &mut LoggedTotals,
        to: &Sender<Planned>,
    ) -> Result<(), ReceiverGone> {
        while let Some(planned) = plan.pop() {
            let enough = self.limit.is_some_and(|limit| *handed >= limit);
            if enough || self.for_ns.is_some_and(|for_ns| planned.due_ns > for_ns) {
                return Err(ReceiverGone);
            }
            *handed += 1;
            logged.count(planned.logged_outcome);
            to.blocking_send(planned).map_err(|_| ReceiverGone)?;
        }
        Ok(())
    }

    fn survey(&self, catalogue: &mut Catalogue) -> Result<ReadSummary, ReplayError> {
        let mut summary = ReadSummary::default();
        let read = for_each_access(&self.files, self.format.as_deref(), |access, _| {
            if let Some(request) = self.request(access, &mut summary) {
                catalogue.add(&request, access);
            }
            ControlFlow::Continue(())
        })?;
        let read = whole(read)?;
        Ok(ReadSummary { lines: read.lines, malformed: read.malformed, ..summary })
    }

    fn entry(&self, access: &Access<'_>, format: &Format, summary: &mut ReadSummary) -> Option<LogEntry> {
        let request = self.request(access, summary)?;
        let Some(time_us) = access.time_us else {
            summary.timeless += 1;
            return None;
        };
        // Squid dates a line when the request ends; it was made as much earlier as it took.
        let took_us = if format.name == "squid" { access.duration_us.unwrap_or(0) } else { 0 };
        Some(LogEntry {
            at_us: time_us.saturating_sub_unsigned(took_us),
            client: String::from_utf8_lossy(access.client).into_owned().into_boxed_str(),
            request,
            logged_outcome: LoggedOutcome {
                hit: was_hit(access),
                bytes: access.bytes,
                version: access.version,
            },
        })
    }

    fn request(&self, access: &Access<'_>, summary: &mut ReadSummary) -> Option<ReplayRequest> {
        if !self.filter.keeps(access) {
            summary.filtered += 1;
            return None;
        }
        let head_only = match access.method {
            b"GET" => false,
            b"HEAD" => true,
            _ => {
                summary.other_methods += 1;
                return None;
            }
        };
        let logged = Some(access.host).filter(|host| !host.is_empty());
        let host = logged.or(self.host.as_deref().map(str::as_bytes));
        let joined;
        let url = if access.query.is_empty() && !access.is_rootless {
            access.url
        } else {
            let root: &[u8] = if access.is_rootless { b"/" } else { b"" };
            let mark: &[u8] = if access.query.is_empty() { b"" } else { b"?" };
            joined = [root, access.url, mark, access.query].concat();
            &joined
        };
        summary.request(head_only, url, host, self.skips_https)
    }
}

/// Whether a line is of a hit; none: the line has nothing about a cache.
fn was_hit(access: &Access<'_>) -> Option<bool> {
    let says_nothing = access.outcome.is_empty() && access.termination.is_empty();
    match class::classify(access) {
        Class::Unknown => None,
        _ if says_nothing => None,
        class => class.is_request().then(|| class.is_hit()),
    }
}

impl ListSource {
    /// Reads all entries.
    fn read(&self) -> Result<(Vec<ReplayRequest>, ReadSummary), ReplayError> {
        let mut summary = ReadSummary::default();
        let mut requests = Vec::new();
        for path in &self.files {
            let read = |cause| ReplayError::List { path: path.clone(), cause };
            let text = match path.as_os_str() == "-" {
                true => assay_base::files::limited(std::io::stdin(), assay_base::files::SOURCE_MAX),
                false => assay_base::files::bytes(path, assay_base::files::SOURCE_MAX),
            };
            let text = text.map_err(read)?;
            for line in text.split(|byte| *byte == b'\n').map(<[u8]>::trim_ascii) {
                if line.is_empty() || line[0] == b'#' || requests.len() >= MOST_URLS {
                    continue;
                }
                summary.lines += 1;
                requests.extend(summary.request(
                    false,
                    line,
                    self.host.as_deref().map(str::as_bytes),
                    self.skips_https,
                ));
            }
            summary.files.push(path.display().to_string());
        }
        Ok((requests, summary))
    }

    fn feed(&self, to: &Sender<Planned>) -> Result<ReadSummary, ReplayError> {
        let (requests, summary) = self.read()?;
        if requests.is_empty() {
            return Err(nothing(&summary, &self.files));
        }
        let mut arrivals = self.arrivals.clone();
        if self.once {
            let connections = requests.len().div_ceil(arrivals.requests_each as usize) as u64;
            arrivals.connections = arrivals.connections.min(connections);
        }
        for planned in ListPlan::new(requests, arrivals) {
            let late = self.for_ns.is_some_and(|for_ns| planned.due_ns > for_ns);
            if late || to.blocking_send(planned).is_err() {
                break;
            }
        }
        Ok(summary)
    }
}

impl ReadSummary {
    fn request(
        &mut self,
        head_only: bool,
        url: &[u8],
        host: Option<&[u8]>,
        skips_https: bool,
    ) -> Option<ReplayRequest> {
        match ReplayRequest::new(head_only, url, host) {
            Ok(request) if request.is_https && skips_https => {
                self.unverified += 1;
                None
            }
            Ok(request) => Some(request),
            Err(UnusableUrl::Scheme) => {
                self.other_schemes += 1;
                None
            }
            Err(UnusableUrl::NoUrl | UnusableUrl::NoHost) => {
                self.unusable += 1;
                None
            }
        }
    }
}

fn nothing(summary: &ReadSummary, files: &[PathBuf]) -> ReplayError {
    let name = files.iter().map(|file| file.display().to_string()).collect::<Vec<_>>().join(", ");
    let reasons = [
        (summary.malformed, "not of the format"),
        (summary.filtered, "left out by --method, --status, --result or --static"),
        (summary.unusable, "without a usable URL (a path needs a host: --host)"),
        (summary.other_schemes, "of other schemes than http and https"),
        (summary.unverified, UNVERIFIED),
        (summary.other_methods, "with other methods than GET and HEAD"),
        (summary.timeless, "without a time"),
    ];
    let seen: Vec<String> = reasons
        .iter()
        .filter(|(count, _)| *count > 0)
        .map(|(count, what)| format!("{count} {what}"))
        .collect();
    let why = match summary.lines {
        0 => "it is empty".to_owned(),
        lines if seen.is_empty() => format!("no line of {lines} is within --limit and --for"),
        1 => format!("of 1 line, there is {}", seen.join(", ")),
        lines => format!("of {lines} lines, there are {}", seen.join(", ")),
    };
    ReplayError::Nothing { name, why }
}
