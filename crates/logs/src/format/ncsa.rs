//! Apache httpd's `LogFormat` and varnishncsa's `-F`: `%[condition][<|>][{argument}]letter`.

use super::field::{Field, of_header, of_response_header};
use super::piece::Piece;
use super::squid::braces;
use super::time::TimePattern;

/// A format string in pieces.
pub(super) fn pieces(format: &str) -> Result<Vec<Piece>, String> {
    let mut pieces = Vec::new();
    // In a configuration file the quotes of the format are written with a backslash.
    let format = format.replace("\\\"", "\"").replace("\\t", "\t");
    let mut rest = format.as_str();
    while let Some(at) = rest.find('%') {
        if at > 0 {
            pieces.push(Piece::Text(rest[..at].to_owned()));
        }
        rest = &rest[at + 1..];
        if let Some(after) = rest.strip_prefix('%') {
            pieces.push(Piece::Text("%".into()));
            rest = after;
            continue;
        }
        // For which statuses it is written at all, and of which of several requests it speaks.
        rest = rest.trim_start_matches(|c: char| c.is_ascii_digit() || matches!(c, '!' | ',' | '<' | '>'));
        let mut argument = None;
        if rest.starts_with('{') {
            (argument, rest) = braces(rest)?;
        }
        let letters = if rest.starts_with('^') { 3 } else { 1 };
        let Some((letter, after)) = rest.split_at_checked(letters) else {
            return Err("it ends in `%`; a percent sign itself is written `%%`".into());
        };
        rest = after;
        push(letter, argument, &mut pieces)?;
    }
    if !rest.is_empty() {
        pieces.push(Piece::Text(rest.to_owned()));
    }
    Ok(pieces)
}

fn push(letter: &str, argument: Option<&str>, pieces: &mut Vec<Piece>) -> Result<(), String> {
    if letter == "t" {
        return time(argument, pieces);
    }
    pieces.push(Piece::Field(field(letter, argument.unwrap_or_default())?));
    Ok(())
}

/// `%t` comes with its own brackets; `%{…}t` does not.
fn time(argument: Option<&str>, pieces: &mut Vec<Piece>) -> Result<(), String> {
    let Some(argument) = argument else {
        pieces.push(Piece::Text("[".into()));
        pieces.push(Piece::Field(Field::Time(TimePattern::common())));
        pieces.push(Piece::Text("]".into()));
        return Ok(());
    };
    let pattern = argument.trim_start_matches("begin:").trim_start_matches("end:");
    pieces.push(Piece::Field(match pattern {
        "sec" | "%s" => Field::EpochSeconds,
        "msec" => Field::EpochMillis,
        "usec" => Field::EpochMicros,
        "msec_frac" | "usec_frac" => Field::Fraction,
        pattern => Field::Time(TimePattern::compile(pattern)?),
    }));
    Ok(())
}

fn field(letter: &str, argument: &str) -> Result<Field, String> {
    let header = argument.to_ascii_lowercase();
    Ok(match letter {
        "a" | "h" => Field::Client,
        "s" => Field::Status,
        "b" | "B" => Field::Body,
        "O" => Field::Bytes,
        "D" => Field::DurationUs,
        "T" => match argument {
            "ms" => Field::DurationMs,
            "us" => Field::DurationUs,
            _ => Field::DurationSeconds,
        },
        "m" => Field::Method,
        "r" => Field::RequestLine,
        "H" => Field::Version,
        "U" => Field::Path,
        "q" => Field::Query,
        "v" | "V" => Field::Host,
        "i" => of_header(&header),
        "C" if !argument.is_empty() => Field::Cookie(argument.into()),
        "o" if matches!(header.as_str(), "x-cache" | "x-cache-status" | "cache-status") => Field::Outcome,
        "o" => of_response_header(&header).unwrap_or(Field::Skip),
        "e" if header == "cache-status" => Field::Outcome,
        "x" if matches!(header.as_str(), "varnish:hitmiss" | "varnish:handling") => Field::Outcome,
        "A" | "C" | "e" | "f" | "I" | "k" | "l" | "L" | "M" | "n" | "p" | "P" | "R" | "S" | "u" | "X"
        | "x" | "^ti" | "^to" => Field::Skip,
        other => return Err(format!("`%{other}` is no letter that httpd or varnishncsa know")),
    })
}
