//! Traffic Server's `logging.yaml`: `%<field>` and `%<{Header}container>`.

use super::error::SyntaxError;
use super::field::{DurationUnit, Field, FieldSource, request_field, response_field, sent_response_field};
use super::time::TimePattern;
use super::token::Token;

/// True when its fields are closed, as Squid's `%<st` never are.
pub(super) fn looks_like(format: &str) -> bool {
    let is_of_name = |c: char| c.is_ascii_alphanumeric() || "{}[]:-_.".contains(c);
    format.split("%<").skip(1).all(|rest| rest.trim_start_matches(is_of_name).starts_with('>'))
}

/// A format string in pieces.
pub(super) fn tokenize(format: &str) -> Result<Vec<Token>, SyntaxError> {
    let mut tokens = Vec::new();
    let mut rest = format;
    while let Some((before, after)) = rest.split_once("%<") {
        if !before.is_empty() {
            tokens.push(Token::Literal(before.to_owned()));
        }
        let Some((name, behind)) = after.split_once('>') else {
            return Err(SyntaxError::Unclosed { text: format!("%<{after}"), closing: '>' });
        };
        tokens.push(Token::field(field(name)?, format!("%<{name}>")));
        rest = behind;
    }
    if !rest.is_empty() {
        tokens.push(Token::Literal(rest.to_owned()));
    }
    Ok(tokens)
}

fn field(name: &str) -> Result<Field, SyntaxError> {
    if let Some((header, container)) = name.strip_prefix('{').and_then(|rest| rest.split_once('}')) {
        let header = header.to_ascii_lowercase();
        return Ok(match (header.as_str(), container) {
            (header, "cqh" | "pqh") => request_field(header),
            (header, "psh") => sent_response_field(header).unwrap_or(Field::Skip),
            (header, "ssh") => response_field(header).unwrap_or(Field::Skip),
            _ => Field::Skip,
        });
    }
    // A part of a field: `%<cquc[0:100]>`.
    let name = name.split('[').next().unwrap_or(name);
    if name.is_empty() || !name.bytes().all(|byte| byte.is_ascii_alphanumeric()) {
        return Err(SyntaxError::TrafficServerField(name.to_owned()));
    }
    Ok(match name {
        "cqtq" | "cqts" => Field::EpochSeconds,
        "cqtn" => Field::Time(TimePattern::common()),
        "cqtd" => Field::Time(TimePattern::known("%Y-%m-%d")),
        "cqtt" => Field::Time(TimePattern::known("%H:%M:%S")),
        "ttms" => Field::Duration(DurationUnit::WholeMillisecond),
        "ttmsf" => Field::Duration(DurationUnit::Second),
        "tts" => Field::Duration(DurationUnit::WholeSecond),
        "chi" => Field::Client(FieldSource::Direct),
        "crc" => Field::Outcome(FieldSource::Direct),
        "pssc" => Field::Status,
        "psql" => Field::Bytes,
        "pscl" => Field::LineLayout,
        "cqhv" | "cqpv" => Field::Version,
        "cqhm" => Field::Method,
        "cquc" | "cquuc" | "cqu" | "pqu" => Field::Url,
        "cqup" | "pqup" => Field::Path,
        "cqus" | "pqus" => Field::Scheme,
        "cqtx" => Field::RequestLine,
        "psct" => Field::ContentType,
        "phr" => Field::Hierarchy,
        "pqsn" | "shn" | "shi" => Field::Peer,
        _ => Field::Skip,
    })
}
