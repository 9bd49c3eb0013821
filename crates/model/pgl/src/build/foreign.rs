//! URLs of a trace: robots with a foreign interest request them, of origins of this workload only.

use std::collections::HashMap;

use assay_workload::model::ForeignUrl;

use super::{Builder, wanted};
use crate::diagnostic::{Code, Diagnostic};
use crate::schema::Topic;
use crate::source::Span;
use crate::trace::{self, UrlError};
use crate::value::Record;

/// URLs in all traces of a workload.
const MAX_URLS: usize = 1 << 20;

impl Builder<'_> {
    /// Adds the trace of robots that have an interest in foreign URLs.
    pub(super) fn foreign(&mut self, record: &Record, share: f64, span: Span) {
        if share <= 0.0 {
            if let Some(slot) = wanted(record, "foreign_trace") {
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
        if !self.traces.insert(name.clone()) {
            return;
        }
        if self.traces.len() > 1 {
            self.warn(
                Code::Duplicate,
                at,
                "robots have different traces",
                "all of them walk through one list: this trace after the others",
            );
        }
        let Some(text) = self.named_text(record, "foreign_trace") else { return };
        let before = self.foreign.len();
        self.read_trace(&name, &text, at);
        if self.foreign.len() == before && !self.diagnostics.failed() {
            self.error(Code::Files, at, format!("there is no URL in `{name}`"), "expected one on each line");
        }
    }

    fn read_trace(&mut self, name: &str, text: &str, at: Span) {
        let mut known: HashMap<String, Option<u16>> = HashMap::new();
        for line in trace::lines(text) {
            let url = match line.url {
                Ok(url) => url,
                Err(UrlError::Scheme(scheme)) => {
                    self.other_scheme(&scheme, name, line.number, at);
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
                        self.stranger(&url.authority, name, line.number, at);
                    }
                    known.insert(url.authority.clone(), origin);
                    origin
                }
            };
            let path = url.path.replace("${worker}", "1");
            self.foreign.extend(origin.map(|origin| ForeignUrl { origin, path }));
        }
    }

    /// URLs of HTTPS and FTP are passed over with one warning each; others are mistakes.
    fn other_scheme(&mut self, scheme: &str, name: &str, line: usize, at: Span) {
        match scheme {
            "https" => self.diagnostics.left_out(Topic::Https, at),
            "ftp" => self.diagnostics.left_out(Topic::Ftp, at),
            _ => self.diagnostics.add_once(
                format!("scheme {name}"),
                Diagnostic::error(Code::Files, at, format!("`{scheme}://` is not understood"))
                    .label(format!("line {line} of `{name}`; expected URLs of HTTP")),
            ),
        }
    }

    /// The origin that a host of a trace is; the first of them when it is a name for several.
    fn origin_of_host(&mut self, authority: &str) -> Option<u16> {
        let authority = super::origins::with_port(authority)?;
        self.seen_as(&authority).first().and_then(|index| u16::try_from(*index).ok())
    }

    fn stranger(&mut self, host: &str, name: &str, line: usize, at: Span) {
        self.diagnostics.add(
            Diagnostic::error(Code::Stranger, at, format!("`{host}` is no origin of this workload"))
                .label(format!("line {line} of `{name}` requests it"))
                .help(
                    "Assay never loads strangers: let servers stand for the hosts of the trace with `AddrMap M = { names = \
                     tracedHosts(\"trace.urls\"); addresses = S.addresses; }; use(M);`",
                ),
        );
    }
}
