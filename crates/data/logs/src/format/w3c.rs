//! W3C extended: a line of the log itself (`#Fields: date time c-ip cs-method cs-uri-stem …`) says what the others hold.

use super::error::SyntaxError;
use super::field::{DurationUnit, Field, FieldSource, request_field, response_field, sent_response_field};
use super::time::{Clock, TimePattern};
use super::token::Token;
use super::{Dialect, Format};

/// Beginning of the line that names the fields.
pub(super) const DIRECTIVE: &str = "#Fields:";

/// The format that a line of a log names, if it is a line that does; an error says why it cannot be used.
pub(super) fn from_directive(line: &[u8]) -> Option<Result<Format, SyntaxError>> {
    if !line.starts_with(DIRECTIVE.as_bytes()) {
        return None;
    }
    let Ok(text) = std::str::from_utf8(line) else { return Some(Err(SyntaxError::NoUtf8)) };
    let format = Format::compile(Dialect::W3c, text).map_err(|error| error.why);
    Some(format.map(|format| Format {
        name: "w3c".into(),
        about: "W3C extended, as the log itself names its fields".into(),
        is_self_described: true,
        ..format
    }))
}

/// The day that a line of a log begins (`#Date: 2025-10-10 13:55:36`), since 1970, if it is a line that does.
pub(super) fn day_of_directive(line: &[u8]) -> Option<i64> {
    let written = line.strip_prefix(b"#Date:")?.trim_ascii_start();
    ["%Y-%m-%d", "%d-%b-%Y"].iter().find_map(|pattern| {
        let mut clock = Clock::default();
        TimePattern::known(pattern).read(written, &mut clock)?;
        clock.day()
    })
}

/// The line that names the fields, in pieces.
pub(super) fn tokenize(format: &str) -> Result<Vec<Token>, SyntaxError> {
    let format = format.strip_prefix(DIRECTIVE).unwrap_or(format);
    let writer = Writer::of(format);
    // CloudFront names its fields with blanks between them, and writes lines with tabs.
    let has_tabs = writer == Writer::CloudFront || format.trim().contains('\t');
    let mut tokens = Vec::new();
    let (mut has_time, mut has_url) = (false, false);
    for name in format.split_ascii_whitespace() {
        if !tokens.is_empty() {
            tokens.push(Token::Literal(if has_tabs { "\t" } else { " " }.into()));
        }
        let field = field(&name.to_ascii_lowercase(), writer);
        has_time |= matches!(&field, Field::Time(pattern) if pattern.has_time_of_day());
        has_url |= matches!(field, Field::Url | Field::Path);
        // Some programs put texts with blanks in them into quotes.
        let is_text = matches!(
            field,
            Field::Skip
                | Field::Version
                | Field::Url
                | Field::Path
                | Field::Agent
                | Field::Referrer
                | Field::Request(_)
                | Field::Vary
                | Field::Validator
        );
        tokens.push(if is_text { Token::quoted(field, name) } else { Token::field(field, name) });
    }
    if has_time && has_url { Ok(tokens) } else { Err(SyntaxError::LacksDirectives) }
}

/// Product that writes the log, as far as its fields differ.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Writer {
    /// Microsoft IIS, known by the statuses that only it has. It counts `time-consumed` in milliseconds.
    Iis,
    /// Amazon CloudFront, known by the fields of its edge. It counts `time-consumed` in seconds, with a fraction.
    CloudFront,
    Other,
}

impl Writer {
    fn of(names: &str) -> Self {
        let has = |wanted: &[&str]| {
            names.split_ascii_whitespace().any(|name| wanted.iter().any(|own| name.eq_ignore_ascii_case(own)))
        };
        if has(&["x-edge-result-type", "x-edge-location", "x-edge-request-id"]) {
            Self::CloudFront
        } else if has(&["sc-win32-status", "sc-substatus", "cs-win32-status"]) {
            Self::Iis
        } else {
            Self::Other
        }
    }
}

/// The field of a name in lower case.
pub(super) fn field(name: &str, writer: Writer) -> Field {
    match name {
        "date" | "gmtdate" => Field::Time(TimePattern::known("%Y-%m-%d")),
        "time" | "gmttime" => Field::Time(TimePattern::known("%H:%M:%S")),
        "c-ip" => Field::Client(FieldSource::Direct),
        "cs-method" => Field::Method,
        // The second is CloudFront's.
        "cs-version" | "cs-protocol-version" => Field::Version,
        "cs-protocol" => Field::Scheme,
        "cs-uri" => Field::Url,
        "cs-uri-stem" => Field::Path,
        "cs-uri-query" => Field::Query,
        // The host that was asked for; cs(Host) is the name of the distribution.
        "x-host-header" => Field::Host(FieldSource::Direct),
        "cs-host" | "cs(host)" if writer == Writer::CloudFront => Field::Host(FieldSource::Indirect),
        "cs-host" | "cs(host)" => Field::Host(FieldSource::Direct),
        "cs(user-agent)" => Field::Agent,
        "cs(referer)" => Field::Referrer,
        "sc-status" => Field::Status,
        "sc-bytes" => Field::Bytes,
        "sc-content-type" => Field::ContentType,
        "s-action" | "x-edge-result-type" => Field::Outcome(FieldSource::Direct),
        "x-cache" | "x-cache-status" | "cache-status" => Field::Outcome(FieldSource::Indirect),
        "x-edge-response-result-type" | "x-edge-detailed-result-type" => {
            Field::Outcome(FieldSource::Indirect)
        }
        "s-hierarchy" => Field::Hierarchy,
        "time-taken" => match writer {
            Writer::Iis => Field::Duration(DurationUnit::WholeMillisecond),
            Writer::CloudFront => Field::Duration(DurationUnit::Second),
            // Milliseconds here and seconds there: it is not taken.
            Writer::Other => Field::Skip,
        },
        name => {
            let header = |begin: &str| name.strip_prefix(begin)?.strip_suffix(')');
            if let Some(header) = header("cs(") {
                return request_field(header);
            }
            let sent = header("sc(").and_then(sent_response_field);
            sent.or_else(|| header("rs(").and_then(response_field)).unwrap_or(Field::Skip)
        }
    }
}
