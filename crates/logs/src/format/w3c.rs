//! W3C extended: a line of the log itself (`#Fields: date time c-ip cs-method cs-uri-stem …`) says what the others hold.

use super::field::{Field, of_header, of_response_header};
use super::piece::Piece;
use super::time::TimePattern;
use super::{Dialect, Format};

/// What the line begins with that names the fields.
pub(super) const DIRECTIVE: &str = "#Fields:";

/// The format that a line of a log names, if it is a line that does; an error says why it cannot be used.
pub(super) fn named(line: &[u8]) -> Option<Result<Format, String>> {
    if !line.starts_with(DIRECTIVE.as_bytes()) {
        return None;
    }
    let Ok(text) = std::str::from_utf8(line) else { return Some(Err("it is no UTF-8".into())) };
    let format = Format::compile(Dialect::W3c, text).map_err(|error| error.why);
    Some(format.map(|format| Format {
        name: "w3c".into(),
        about: "W3C extended, as the log itself names its fields".into(),
        is_of_log: true,
        ..format
    }))
}

/// The line that names the fields, in pieces.
pub(super) fn pieces(format: &str) -> Result<Vec<Piece>, String> {
    let names = format.strip_prefix(DIRECTIVE).unwrap_or(format).split_ascii_whitespace();
    let mut pieces = Vec::new();
    let (mut has_time, mut has_url) = (false, false);
    for name in names {
        if !pieces.is_empty() {
            pieces.push(Piece::Text(" ".into()));
        }
        let field = field(name);
        has_time |= matches!(name.to_ascii_lowercase().as_str(), "time" | "gmttime");
        has_url |= matches!(field, Field::Url | Field::Path);
        pieces.push(match field {
            // Some programs put texts with blanks in them into quotes.
            Field::Skip
            | Field::Version
            | Field::Url
            | Field::Path
            | Field::Agent
            | Field::Referrer
            | Field::Request(_)
            | Field::Vary
            | Field::Validator => Piece::Quoted(field),
            field => Piece::Field(field),
        });
    }
    if has_time && has_url {
        Ok(pieces)
    } else {
        Err("must name at least time, and cs-uri or cs-uri-stem".into())
    }
}

fn field(name: &str) -> Field {
    match name.to_ascii_lowercase().as_str() {
        "date" | "gmtdate" => Field::Time(TimePattern::known("%Y-%m-%d")),
        "time" | "gmttime" => Field::Time(TimePattern::known("%H:%M:%S")),
        "c-ip" => Field::Client,
        "cs-method" => Field::Method,
        // The second is CloudFront's.
        "cs-version" | "cs-protocol-version" => Field::Version,
        "cs-uri" => Field::Url,
        "cs-uri-stem" => Field::Path,
        "cs-uri-query" => Field::Query,
        "cs-host" | "cs(host)" => Field::Host,
        "cs(user-agent)" => Field::Agent,
        "cs(referer)" => Field::Referrer,
        "sc-status" => Field::Status,
        "sc-bytes" => Field::Bytes,
        "s-action" => Field::Outcome,
        "s-hierarchy" => Field::Hierarchy,
        // How long it took is in milliseconds here and in seconds there: it is not taken.
        name => {
            if let Some(header) = name.strip_prefix("cs(").and_then(|rest| rest.strip_suffix(')')) {
                return of_header(header);
            }
            let header = ["rs(", "sc("].iter().find_map(|begin| name.strip_prefix(begin)?.strip_suffix(')'));
            header.and_then(of_response_header).unwrap_or(Field::Skip)
        }
    }
}
