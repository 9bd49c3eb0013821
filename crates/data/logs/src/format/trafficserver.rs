//! Traffic Server's `logging.yaml`: `%<field>` and `%<{Header}container>`.

use super::field::{Field, Source, Unit, of_header, of_response_header, of_sent_header};
use super::piece::Piece;
use super::time::TimePattern;

/// True when its fields are closed, as Squid's `%<st` never are.
pub(super) fn looks_like(format: &str) -> bool {
    let is_of_name = |c: char| c.is_ascii_alphanumeric() || "{}[]:-_.".contains(c);
    format.split("%<").skip(1).all(|rest| rest.trim_start_matches(is_of_name).starts_with('>'))
}

/// A format string in pieces.
pub(super) fn pieces(format: &str) -> Result<Vec<Piece>, String> {
    let mut pieces = Vec::new();
    let mut rest = format;
    while let Some((before, after)) = rest.split_once("%<") {
        if !before.is_empty() {
            pieces.push(Piece::Text(before.to_owned()));
        }
        let Some((name, behind)) = after.split_once('>') else {
            return Err(format!("`%<{after}` has no `>`"));
        };
        pieces.push(Piece::field(field(name)?, format!("%<{name}>")));
        rest = behind;
    }
    if !rest.is_empty() {
        pieces.push(Piece::Text(rest.to_owned()));
    }
    Ok(pieces)
}

fn field(name: &str) -> Result<Field, String> {
    if let Some((header, container)) = name.strip_prefix('{').and_then(|rest| rest.split_once('}')) {
        let header = header.to_ascii_lowercase();
        return Ok(match (header.as_str(), container) {
            (header, "cqh" | "pqh") => of_header(header),
            (header, "psh") => of_sent_header(header).unwrap_or(Field::Skip),
            (header, "ssh") => of_response_header(header).unwrap_or(Field::Skip),
            _ => Field::Skip,
        });
    }
    // A part of a field: `%<cquc[0:100]>`.
    let name = name.split('[').next().unwrap_or(name);
    if name.is_empty() || !name.bytes().all(|byte| byte.is_ascii_alphanumeric()) {
        return Err(format!("`%<{name}>` is no field of Traffic Server's logs"));
    }
    Ok(match name {
        "cqtq" | "cqts" => Field::EpochSeconds,
        "cqtn" => Field::Time(TimePattern::common()),
        "cqtd" => Field::Time(TimePattern::known("%Y-%m-%d")),
        "cqtt" => Field::Time(TimePattern::known("%H:%M:%S")),
        "ttms" => Field::Duration(Unit::WholeMillisecond),
        "ttmsf" => Field::Duration(Unit::Second),
        "tts" => Field::Duration(Unit::WholeSecond),
        "chi" => Field::Client(Source::Direct),
        "crc" => Field::Outcome(Source::Direct),
        "pssc" => Field::Status,
        "psql" => Field::Bytes,
        "pscl" => Field::Body,
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
