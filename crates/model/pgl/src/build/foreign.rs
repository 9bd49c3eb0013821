//! Foreign URLs: robots request those of a trace, if their host is an origin of the workload.

use std::collections::HashMap;

use assay_base::settings::show::{several, verb};
use assay_workload::model::ForeignUrl;

use super::{Builder, active_slot};
use crate::diagnostic::{Code, Diagnostic};
use crate::schema::OmittedFeature;
use crate::source::Span;
use crate::trace::{self, UrlError};
use crate::value::Record;

/// Upper bound on the URLs of all traces of a workload.
const MAX_URLS: usize = 1 << 20;

/// Lines of a trace that nothing is requested for.
#[derive(Debug, Default)]
struct UnusedLines {
    count: u64,
    /// Number of the first of them.
    first: Option<usize>,
}

impl UnusedLines {
    fn add(&mut self, number: usize) {
        self.count += 1;
        self.first.get_or_insert(number);
    }
}

impl Builder<'_> {
    /// Adds the trace of robots with an interest in foreign URLs.
    pub(super) fn add_trace(&mut self, record: &Record, share: f64, span: Span) {
        if share <= 0.0 {
            if let Some(slot) = active_slot(record, "foreign_trace") {
                self.warn(
                    Code::NoEffect,
                    slot.span,
                    "`foreign_trace` has no effect",
                    "these robots have no interest in \"foreign\" URLs",
                );
            }
            return;
        }
        let help = "name a file with a URL on each line: `foreign_trace = \"trace.urls\";`";
        if !self.require(record, "foreign_trace", span, help) {
            return;
        }
        let at = record.get("foreign_trace").map_or(span, |slot| slot.span);
        let name = self.text(record, "foreign_trace").unwrap_or_default();
        if !self.trace_names.insert(name.clone()) {
            return;
        }
        if self.trace_names.len() > 1 {
            self.warn(
                Code::Duplicate,
                at,
                "robots have different traces",
                "all of them walk through one list: this trace after the others",
            );
        }
        let Some(text) = self.read_named_file(record, "foreign_trace") else { return };
        let before = self.foreign.len();
        self.read_trace(&name, &text, at);
        if self.foreign.len() == before && !self.diagnostics.has_errors() {
            self.error(Code::Files, at, format!("there is no URL in `{name}`"), "expected one on each line");
        }
    }

    fn read_trace(&mut self, name: &str, text: &str, at: Span) {
        let mut known: HashMap<String, Option<u16>> = HashMap::new();
        let mut unused = UnusedLines::default();
        for line in trace::lines(text) {
            let url = match line.url {
                Ok(url) => url,
                Err(UrlError::Missing) => {
                    unused.add(line.number);
                    continue;
                }
                Err(UrlError::Scheme(scheme)) => {
                    unused.add(line.number);
                    self.report_scheme(&scheme, name, line.number, at);
                    continue;
                }
                Err(UrlError::NotText(column)) => {
                    return self.diagnostics.add(UrlError::not_text(at, line.number, column));
                }
            };
            if self.foreign.len() >= MAX_URLS {
                self.error(
                    Code::TooMany,
                    at,
                    "the traces are too long",
                    format!("at most {MAX_URLS} URLs in all"),
                );
                return;
            }
            let origin = match known.get(&url.authority) {
                Some(origin) => *origin,
                None => {
                    let origin = self.origin_of_host(&url.authority);
                    if origin.is_none() {
                        self.report_foreign_host(&url.authority, name, line.number, at);
                    }
                    known.insert(url.authority.clone(), origin);
                    origin
                }
            };
            let path = url.path.replace("${worker}", "1");
            self.foreign.extend(origin.map(|origin| ForeignUrl { origin, path }));
        }
        if let Some(first) = unused.first {
            let lines = several(unused.count, "line");
            let are = verb(unused.count, "is", "are");
            self.warn(
                Code::Files,
                at,
                format!("{lines} of `{name}` {are} not used"),
                format!(
                    "line {first} is the first; expected absolute URLs, like `http://www.example.com/path`"
                ),
            );
        }
    }

    /// Skips URLs of HTTPS and FTP, with one warning each; reports other schemes.
    fn report_scheme(&mut self, scheme: &str, name: &str, line: usize, at: Span) {
        match scheme {
            "https" => self.diagnostics.out_of_scope(OmittedFeature::Https, at),
            "ftp" => self.diagnostics.out_of_scope(OmittedFeature::Ftp, at),
            _ => self.diagnostics.add_once(
                format!("scheme {name}"),
                Diagnostic::error(Code::Files, at, format!("`{scheme}://` is not understood"))
                    .label(format!("line {line} of `{name}`; expected URLs of HTTP")),
            ),
        }
    }

    /// The origin for a host of a trace; the first one if the name has several.
    fn origin_of_host(&mut self, authority: &str) -> Option<u16> {
        let authority = super::origins::with_port(authority)?;
        self.origins_named(&authority).first().and_then(|index| u16::try_from(*index).ok())
    }

    fn report_foreign_host(&mut self, host: &str, name: &str, line: usize, at: Span) {
        self.diagnostics.add(
            Diagnostic::error(Code::ForeignHost, at, format!("`{host}` is no origin of this workload"))
                .label(format!("line {line} of `{name}` requests it"))
                .help(
                    "Assay never loads strangers: let servers stand for the hosts of the trace with `AddrMap M = { names = \
                     tracedHosts(\"trace.urls\"); addresses = S.addresses; }; use(M);`",
                ),
        );
    }
}
