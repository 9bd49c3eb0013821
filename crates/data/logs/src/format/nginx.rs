//! nginx's `log_format`: `$variable` and `${variable}`.

use super::field::{Field, Source, Unit, of_header, of_response_header, of_sent_header};
use super::piece::{Piece, taken};
use super::squid::braces;
use super::time::TimePattern;

/// A format string in pieces.
pub(super) fn pieces(format: &str) -> Result<Vec<Piece>, String> {
    let mut pieces = Vec::new();
    let mut rest = format;
    while let Some(at) = rest.find('$') {
        if at > 0 {
            pieces.push(Piece::Text(rest[..at].to_owned()));
        }
        let start = &rest[at..];
        rest = &start[1..];
        let name = if rest.starts_with('{') {
            let (name, after) = braces(rest)?;
            rest = after;
            name.unwrap_or_default()
        } else {
            let end = rest.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(rest.len());
            let (name, after) = rest.split_at(end);
            rest = after;
            name
        };
        if name.is_empty() {
            return Err("a `$` without the name of a variable behind it".into());
        }
        pieces.push(Piece::field(field(name), taken(start, rest)));
    }
    if !rest.is_empty() {
        pieces.push(Piece::Text(rest.to_owned()));
    }
    Ok(pieces)
}

/// The field of a variable that is known.
pub(super) fn variable(name: &str) -> Option<Field> {
    Some(field(name)).filter(|field| !matches!(field, Field::Skip | Field::SkipList))
}

/// Every name may be a variable: of a module, or of the configuration.
fn field(name: &str) -> Field {
    match name {
        "msec" => Field::EpochSeconds,
        "time_local" => Field::Time(TimePattern::common()),
        "time_iso8601" => Field::Time(TimePattern::iso8601()),
        "request_time" => Field::Duration(Unit::Second),
        "remote_addr" => Field::Client(Source::Direct),
        "realip_remote_addr" | "proxy_add_x_forwarded_for" => Field::Client(Source::Indirect),
        "upstream_cache_status" => Field::Outcome(Source::Direct),
        "status" => Field::Status,
        "body_bytes_sent" => Field::Body,
        "bytes_sent" => Field::Bytes,
        "request" => Field::RequestLine,
        "server_protocol" => Field::Version,
        "request_method" => Field::Method,
        "scheme" => Field::Scheme,
        "http_host" | "host" => Field::Host(Source::Direct),
        "server_name" => Field::Host(Source::Indirect),
        "request_uri" => Field::Url,
        "uri" | "document_uri" => Field::Path,
        "http_user_agent" => Field::Agent,
        "http_referer" => Field::Referrer,
        "args" | "query_string" => Field::Query,
        "is_args" => Field::Query,
        "upstream_addr" => Field::PeerList,
        name if name.starts_with("http_") => of_header(&name["http_".len()..].replace('_', "-")),
        name if name.starts_with("cookie_") => Field::Cookie(name["cookie_".len()..].into()),
        name => {
            let sent = name.strip_prefix("sent_http_").map(|header| header.replace('_', "-"));
            let upstream = name.strip_prefix("upstream_http_").map(|header| header.replace('_', "-"));
            let known = sent
                .and_then(|header| of_sent_header(&header))
                .or_else(|| upstream.and_then(|header| of_response_header(&header)));
            known.unwrap_or(if name.starts_with("upstream_") { Field::SkipList } else { Field::Skip })
        }
    }
}
