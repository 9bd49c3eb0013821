//! `{field}`: how descriptions of proxies say what stands in a line of their access log.

use super::error::SyntaxError;
use super::field::{DurationUnit, Field, FieldSource};
use super::time::TimePattern;
use super::token::Token;

/// Fields of a line, and what they are.
pub const FIELDS: [(&str, &str); 31] = [
    ("time-s", "when it ended or began, in seconds since 1970"),
    ("time-ms", "the same in milliseconds"),
    ("time-us", "the same in microseconds"),
    ("time-iso", "the same as `2026-01-31T12:00:00.5Z`, with any zone"),
    ("time-common", "the same as `31/Jan/2026:12:00:00 +0000`"),
    ("duration-s", "how long it took, in seconds"),
    ("duration-ms", "the same in milliseconds"),
    ("duration-us", "the same in microseconds"),
    ("duration-ns", "the same in nanoseconds"),
    ("part-s", "a part of how long it took, in seconds; the parts are added"),
    ("client", "address of the client, with a port or without"),
    ("forwarded", "`X-Forwarded-For`: its first address is the client where nothing else says it"),
    ("outcome", "hit or miss, in the proxy's own words"),
    ("server", "who responded, as HAProxy says it: a server, or `<CACHE>`"),
    ("status", "status of the response"),
    ("bytes", "bytes of the response, as the proxy counts them"),
    ("body", "bytes of its body alone"),
    ("request", "the request line, in quotes: `GET /a HTTP/1.1`"),
    ("method", "method of the request"),
    ("url", "URL of the request, with its host"),
    ("host", "host of the request"),
    ("path", "path and query of the request"),
    ("version", "version of HTTP of the request"),
    ("hierarchy", "how the proxy chose the server"),
    ("origin", "the server that got the request"),
    ("content-type", "content type of the response"),
    ("user-agent", "`User-Agent` of the request, in quotes: there are blanks in it"),
    ("referrer", "`Referer` of the request"),
    ("xact", "the request's `X-Assay`: by it, a run's requests are found in the logs of its caches"),
    ("other", "anything without a blank"),
    ("rest", "all that is left of the line"),
];

/// A format string in pieces.
pub(super) fn tokenize(format: &str) -> Result<Vec<Token>, SyntaxError> {
    let mut tokens = Vec::new();
    let mut rest = format;
    let mut used = Vec::new();
    while let Some((before, after)) = rest.split_once('{') {
        if !before.is_empty() {
            tokens.push(Token::Literal(before.to_owned()));
        }
        let Some((name, behind)) = after.split_once('}') else {
            return Err(SyntaxError::UnclosedField { text: after.to_owned() });
        };
        let Some(field) = field(name) else {
            let names: Vec<&str> = FIELDS.iter().map(|(name, _)| *name).collect();
            return Err(SyntaxError::UnknownField { name: name.to_owned(), known: names.join(", ") });
        };
        if !matches!(name, "other" | "part-s") && used.contains(&name) {
            return Err(SyntaxError::Repeated { name: name.to_owned() });
        }
        if behind.starts_with('{') {
            return Err(SyntaxError::AdjacentToField { name: name.to_owned() });
        }
        used.push(name);
        tokens.push(Token::field(field, format!("{{{name}}}")));
        rest = behind;
    }
    if !rest.is_empty() {
        tokens.push(Token::Literal(rest.to_owned()));
    }
    let has = |field: &str| used.contains(&field);
    let has_time = used.iter().any(|name| name.starts_with("time-"));
    if has_time && has("status") && (has("url") || has("path") || has("request")) {
        Ok(tokens)
    } else {
        Err(SyntaxError::LacksFields)
    }
}

fn field(name: &str) -> Option<Field> {
    Some(match name {
        "time-s" => Field::EpochSeconds,
        "time-ms" => Field::EpochMillis,
        "time-us" => Field::EpochMicros,
        "time-iso" => Field::Time(TimePattern::iso8601()),
        "time-common" => Field::Time(TimePattern::common()),
        "duration-s" => Field::Duration(DurationUnit::Second),
        "duration-ms" => Field::Duration(DurationUnit::Millisecond),
        "duration-us" => Field::Duration(DurationUnit::Microsecond),
        "duration-ns" => Field::Duration(DurationUnit::Nanosecond),
        "part-s" => Field::DurationPart(DurationUnit::Second),
        "client" => Field::Client(FieldSource::Direct),
        "forwarded" => Field::Client(FieldSource::Indirect),
        "outcome" => Field::Outcome(FieldSource::Direct),
        "server" => Field::Server,
        "status" => Field::Status,
        "bytes" => Field::Bytes,
        "body" => Field::LineLayout,
        "request" => Field::RequestLine,
        "method" => Field::Method,
        "url" => Field::Url,
        "host" => Field::Host(FieldSource::Direct),
        "path" => Field::Path,
        "version" => Field::Version,
        "hierarchy" => Field::Hierarchy,
        "origin" => Field::Peer,
        "content-type" => Field::ContentType,
        "cache-control" => Field::CacheControl,
        "expires" => Field::Expires,
        "content-encoding" => Field::Coding,
        "user-agent" => Field::Agent,
        "referrer" => Field::Referrer,
        "xact" => Field::Xact,
        // nginx writes lists where it tried more than one server.
        "other" => Field::SkipList,
        "rest" => Field::Rest,
        _ => return None,
    })
}
