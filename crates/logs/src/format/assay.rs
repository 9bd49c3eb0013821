//! `{field}`: how descriptions of proxies say what stands in a line of their access log.

use super::field::Field;
use super::piece::Piece;

/// Fields of a line, and what they are.
pub const FIELDS: [(&str, &str); 20] = [
    ("time-s", "when it ended or began, in seconds since 1970"),
    ("duration-s", "how long it took, in seconds"),
    ("duration-ms", "the same in milliseconds"),
    ("duration-us", "the same in microseconds"),
    ("client", "address of the client"),
    ("outcome", "hit or miss, in the proxy's own words"),
    ("server", "who responded, as HAProxy says it: a server, or `<CACHE>`"),
    ("status", "status of the response"),
    ("bytes", "bytes of the response, as the proxy counts them"),
    ("method", "method of the request"),
    ("url", "URL of the request, with its host"),
    ("host", "host of the request"),
    ("path", "path and query of the request"),
    ("hierarchy", "how the proxy chose the server"),
    ("origin", "the server that got the request"),
    ("content-type", "content type of the response"),
    ("user-agent", "`User-Agent` of the request, in quotes: there are blanks in it"),
    ("referrer", "`Referer` of the request"),
    ("xact", "the request's `X-Assay`: by it, a run's requests are found in the logs of its caches"),
    ("other", "anything without a blank"),
];

/// A format string in pieces.
pub(super) fn pieces(format: &str) -> Result<Vec<Piece>, String> {
    let mut pieces = Vec::new();
    let mut rest = format;
    let mut seen = Vec::new();
    while let Some((before, after)) = rest.split_once('{') {
        if !before.is_empty() {
            pieces.push(Piece::Text(before.to_owned()));
        }
        let Some((name, behind)) = after.split_once('}') else {
            return Err(format!("`{{{after}` has no end; a field is written `{{status}}`"));
        };
        let Some(field) = field(name) else {
            let names: Vec<&str> = FIELDS.iter().map(|(name, _)| *name).collect();
            return Err(format!("`{{{name}}}` is no field of a line; there are {}", names.join(", ")));
        };
        if name != "other" && seen.contains(&name) {
            return Err(format!("`{{{name}}}` stands in it twice"));
        }
        if behind.starts_with('{') {
            return Err(format!("nothing stands between `{{{name}}}` and the field after it"));
        }
        seen.push(name);
        pieces.push(Piece::Field(field));
        rest = behind;
    }
    if !rest.is_empty() {
        pieces.push(Piece::Text(rest.to_owned()));
    }
    let has = |field: &str| seen.contains(&field);
    if has("time-s") && has("status") && (has("url") || has("path")) {
        Ok(pieces)
    } else {
        Err("must have at least {time-s}, {status}, and {url} or {path}".into())
    }
}

fn field(name: &str) -> Option<Field> {
    Some(match name {
        "time-s" => Field::EpochSeconds,
        "duration-s" => Field::DurationSeconds,
        "duration-ms" => Field::DurationMs,
        "duration-us" => Field::DurationUs,
        "client" => Field::Client,
        "outcome" => Field::Outcome,
        "server" => Field::Server,
        "status" => Field::Status,
        "bytes" => Field::Bytes,
        "method" => Field::Method,
        "url" => Field::Url,
        "host" => Field::Host,
        "path" => Field::Path,
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
        _ => return None,
    })
}
