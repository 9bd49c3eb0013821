//! Traces of URLs.

use crate::diagnostic::{Code, Diagnostic};
use crate::source::{REPLACEMENT, Span};

/// A line of a trace that is neither empty nor a comment.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct TraceLine {
    /// Line number, from 1.
    pub number: usize,
    pub url: Result<TraceUrl, UrlError>,
}

/// A URL that robots cannot request.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum UrlError {
    /// There is no absolute URL in the line.
    Missing,
    /// The scheme is this, and not `http`.
    Scheme(String),
    /// Bytes from this column on (from 1, in characters) are not UTF-8.
    NotText(usize),
}

impl UrlError {
    /// Error about a URL that is not UTF-8, in a file that is named at `at`.
    pub fn not_text(at: Span, line: usize, column: usize) -> Diagnostic {
        Diagnostic::error(Code::Files, at, "a URL is not text (UTF-8)")
            .label(format!("line {line} of the file, column {column}"))
    }
}

/// A URL of HTTP.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct TraceUrl {
    /// `host`, or `host:port` with another port than 80, in lower case.
    pub authority: String,
    /// Path and query; at least `/`.
    pub path: String,
}

/// The first URL of each line, without lines that are empty or begin with `#`.
pub(crate) fn lines(text: &str) -> impl Iterator<Item = TraceLine> {
    let lines = text.lines().enumerate();
    let lines = lines.filter(|(_, line)| !line.trim().is_empty() && !line.trim_start().starts_with('#'));
    lines.map(|(index, line)| TraceLine { number: index + 1, url: first_url(line) })
}

fn first_url(line: &str) -> Result<TraceUrl, UrlError> {
    let separator = line.find("://").ok_or(UrlError::Missing)?;
    let begin = line[..separator].trim_end_matches(|letter: char| !letter.is_whitespace()).len();
    let written = line[begin..].split_whitespace().next().unwrap_or_default();
    match written.find(REPLACEMENT) {
        None => url(written),
        Some(at) => Err(UrlError::NotText(line[..begin + at].chars().count() + 1)),
    }
}

fn url(written: &str) -> Result<TraceUrl, UrlError> {
    let (scheme, rest) = written.split_once("://").unwrap_or(("", written));
    if !scheme.eq_ignore_ascii_case("http") {
        return Err(UrlError::Scheme(scheme.to_ascii_lowercase()));
    }
    let rest = rest.split('#').next().unwrap_or(rest);
    let end = rest.find(['/', '?']).unwrap_or(rest.len());
    let (authority, path) = rest.split_at(end);
    let authority = authority.rsplit('@').next().unwrap_or(authority);
    // A port that is empty, or that of HTTP, says nothing (RFC 9110, 4.2.3).
    let authority = authority.strip_suffix(":80").or(authority.strip_suffix(':')).unwrap_or(authority);
    let authority = authority.to_ascii_lowercase();
    let slash = if path.starts_with('/') { "" } else { "/" };
    Ok(TraceUrl { authority, path: format!("{slash}{path}") })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_requests_its_first_url_and_a_comment_none() {
        let text =
            "# http://no.test/\nGET http://me@A.test:8080/x?y#z 200\n\nhttp://b.test\nftp://c.test/f\n /x\n";
        let all: Vec<TraceLine> = lines(text).collect();
        let url =
            |authority: &str, path: &str| Ok(TraceUrl { authority: authority.into(), path: path.into() });
        assert_eq!(all[0], TraceLine { number: 2, url: url("a.test:8080", "/x?y") });
        assert_eq!(all[1], TraceLine { number: 4, url: url("b.test", "/") });
        assert_eq!(all[2].url, Err(UrlError::Scheme("ftp".into())));
        assert_eq!(all[3..], [TraceLine { number: 6, url: Err(UrlError::Missing) }]);
        let replaced = "# caf\u{fffd} http://no.test/\n\u{fffd} GET http://a.test/caf\u{fffd}\n\u{fffd}\n";
        assert_eq!(
            lines(replaced).collect::<Vec<_>>(),
            [
                TraceLine { number: 2, url: Err(UrlError::NotText(24)) },
                TraceLine { number: 3, url: Err(UrlError::Missing) }
            ]
        );
        assert_eq!(super::url("http://a.test?q"), url("a.test", "/?q"));
        for written in ["http://a.test/", "http://a.test:80/", "http://A.TEST:/", "http://a.test:80"] {
            assert_eq!(super::url(written), url("a.test", "/"), "{written}");
        }
        assert_eq!(super::url("http://[2001:db8::80]/"), url("[2001:db8::80]", "/"));
    }
}
