//! Filter of a log's requests: by method, status, what the proxy called the outcome, and whether the resource looks static.

use assay_logs::access::Access;
use serde::{Deserialize, Serialize};
use thiserror::Error;

/// Methods of which a log holds all there is to a request.
pub const METHODS: [&str; 2] = ["GET", "HEAD"];

/// Requests to keep. The default keeps all.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Filter {
    /// Methods, of [`METHODS`]; empty: both.
    pub methods: Vec<String>,
    /// Statuses; empty: all.
    pub statuses: Vec<Statuses>,
    /// What the proxy calls the outcome of a request (`TCP_HIT`), in any case; empty: anything.
    pub results: Vec<String>,
    /// Leave out what looks generated: a `?`, `cgi-bin` or `.cgi` in the URL. (The heuristic of Davison's evaluation, section
    /// 11.4.1.)
    pub is_static: bool,
}

/// One status, or all of a class.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Statuses {
    pub first: u16,
    pub last: u16,
}

/// Text that names no status and no class of statuses.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("`{0}` is no status; write one like 304, or a class like 2xx")]
pub struct StatusError(String);

impl Statuses {
    /// Reads `200`, or `2xx` for all that begin with it.
    pub fn parse(text: &str) -> Result<Self, StatusError> {
        let class = text.strip_suffix("xx").or_else(|| text.strip_suffix("XX"));
        let wrong = || StatusError(text.to_owned());
        let number: u16 = class.unwrap_or(text).parse().map_err(|_| wrong())?;
        match class {
            Some(_) if (1..=5).contains(&number) => Ok(Self { first: number * 100, last: number * 100 + 99 }),
            None if (100..=599).contains(&number) => Ok(Self { first: number, last: number }),
            _ => Err(wrong()),
        }
    }
}

impl Filter {
    /// Whether a request is kept.
    pub fn keeps(&self, access: &Access<'_>) -> bool {
        let method = |name: &String| name.as_bytes() == access.method;
        let status = |range: &Statuses| (range.first..=range.last).contains(&access.status);
        let result = |name: &String| name.as_bytes().eq_ignore_ascii_case(access.outcome);
        (self.methods.is_empty() || self.methods.iter().any(method))
            && (self.statuses.is_empty() || self.statuses.iter().any(status))
            && (self.results.is_empty() || self.results.iter().any(result))
            && !(self.is_static && looks_generated(access))
    }
}

fn looks_generated(access: &Access<'_>) -> bool {
    let has = |needle: &[u8]| access.url.windows(needle.len()).any(|part| part == needle);
    !access.query.is_empty() || has(b"?") || has(b"cgi-bin") || has(b".cgi")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn access<'a>(method: &'a str, url: &'a str, status: u16, outcome: &'a str) -> Access<'a> {
        let (method, url, outcome) = (method.as_bytes(), url.as_bytes(), outcome.as_bytes());
        Access { method, url, status, outcome, ..Access::default() }
    }

    #[test]
    fn a_status_is_one_or_a_class() {
        assert_eq!(Statuses::parse("304"), Ok(Statuses { first: 304, last: 304 }));
        assert_eq!(Statuses::parse("2xx"), Ok(Statuses { first: 200, last: 299 }));
        for wrong in ["", "xx", "9xx", "20", "2000", "ok"] {
            assert!(Statuses::parse(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_request_is_kept_if_all_that_is_said_fits() {
        let filter = Filter {
            statuses: vec![Statuses::parse("2xx").unwrap()],
            results: vec!["tcp_hit".into(), "TCP_MEM_HIT".into()],
            is_static: true,
            methods: vec!["GET".into()],
        };
        assert!(filter.keeps(&access("GET", "http://a/x.html", 200, "TCP_HIT")));
        for other in [
            access("HEAD", "http://a/x.html", 200, "TCP_HIT"),
            access("GET", "http://a/x.html", 304, "TCP_HIT"),
            access("GET", "http://a/x.html", 200, "TCP_MISS"),
            access("GET", "http://a/x?y", 200, "TCP_HIT"),
            access("GET", "http://a/cgi-bin/x", 200, "TCP_HIT"),
            access("GET", "http://a/x.cgi", 200, "TCP_HIT"),
            Access { query: b"y", ..access("GET", "/x", 200, "TCP_HIT") },
        ] {
            assert!(!filter.keeps(&other), "{other:?}");
            assert!(Filter::default().keeps(&other));
        }
    }
}
