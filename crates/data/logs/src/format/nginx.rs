//! nginx's `log_format`: `$variable` and `${variable}`.

use super::error::SyntaxError;
use super::field::{DurationUnit, Field, FieldSource, request_field, response_field, sent_response_field};
use super::squid::braces;
use super::time::TimePattern;
use super::token::{Token, consumed};

/// A format string in pieces.
pub(super) fn tokenize(format: &str) -> Result<Vec<Token>, SyntaxError> {
    let mut tokens = Vec::new();
    let mut rest = format;
    while let Some(at) = rest.find('$') {
        if at > 0 {
            tokens.push(Token::Literal(rest[..at].to_owned()));
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
            return Err(SyntaxError::LoneDollar);
        }
        tokens.push(Token::field(field(name), consumed(start, rest)));
    }
    if !rest.is_empty() {
        tokens.push(Token::Literal(rest.to_owned()));
    }
    Ok(tokens)
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
        "request_time" => Field::Duration(DurationUnit::Second),
        "remote_addr" => Field::Client(FieldSource::Direct),
        "realip_remote_addr" | "proxy_add_x_forwarded_for" => Field::Client(FieldSource::Indirect),
        "upstream_cache_status" => Field::Outcome(FieldSource::Direct),
        "status" => Field::Status,
        "body_bytes_sent" => Field::LineLayout,
        "bytes_sent" => Field::Bytes,
        "request" => Field::RequestLine,
        "server_protocol" => Field::Version,
        "request_method" => Field::Method,
        "scheme" => Field::Scheme,
        "http_host" | "host" => Field::Host(FieldSource::Direct),
        "server_name" => Field::Host(FieldSource::Indirect),
        "request_uri" => Field::Url,
        "uri" | "document_uri" => Field::Path,
        "http_user_agent" => Field::Agent,
        "http_referer" => Field::Referrer,
        "args" | "query_string" => Field::Query,
        "is_args" => Field::Query,
        "upstream_addr" => Field::PeerList,
        name if name.starts_with("http_") => request_field(&name["http_".len()..].replace('_', "-")),
        name if name.starts_with("cookie_") => Field::Cookie(name["cookie_".len()..].into()),
        name => {
            let sent = name.strip_prefix("sent_http_").map(|header| header.replace('_', "-"));
            let upstream = name.strip_prefix("upstream_http_").map(|header| header.replace('_', "-"));
            let known = sent
                .and_then(|header| sent_response_field(&header))
                .or_else(|| upstream.and_then(|header| response_field(&header)));
            known.unwrap_or(if name.starts_with("upstream_") { Field::SkipList } else { Field::Skip })
        }
    }
}
