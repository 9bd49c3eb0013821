//! HAProxy's `log-format`: `%[{flags}]variable` and `%[expression]`.

use super::error::SyntaxError;
use super::field::{DurationUnit, Field, FieldSource};
use super::time::TimePattern;
use super::token::{Token, consumed};

const DATE: &str = "%d/%b/%Y:%H:%M:%S.%f";

/// A format string in pieces.
pub(super) fn tokenize(format: &str) -> Result<Vec<Token>, SyntaxError> {
    let mut tokens = Vec::new();
    let mut rest = format;
    let mut all_quoted = false;
    while let Some(at) = rest.find('%') {
        if at > 0 {
            tokens.push(Token::Literal(rest[..at].replace("\\ ", " ")));
        }
        let start = &rest[at..];
        rest = &start[1..];
        if let Some(after) = rest.strip_prefix('%') {
            tokens.push(Token::Literal("%".into()));
            rest = after;
            continue;
        }
        let mut quoted = all_quoted;
        if let Some(inside) = rest.strip_prefix('{') {
            let Some((flags, after)) = inside.split_once('}') else {
                return Err(SyntaxError::Unclosed { text: rest.to_owned(), closing: '}' });
            };
            quoted = flags.contains("+Q") || (quoted && !flags.contains("-Q"));
            rest = after;
        }
        let field = if rest.starts_with('[') {
            let (expression, after) = expression(rest)?;
            rest = after;
            Some(of_expression(expression))
        } else {
            let end = rest.find(|c: char| !c.is_ascii_alphanumeric()).unwrap_or(rest.len());
            let (name, after) = variable(&rest[..end])
                .map(|name| rest.split_at(name.len()))
                .unwrap_or((&rest[..end], &rest[end..]));
            rest = after;
            if name == "o" {
                // Flags for all that follows.
                all_quoted = quoted;
                rest = rest.trim_start();
                None
            } else {
                Some(field(name)?)
            }
        };
        let word = consumed(start, rest);
        match field {
            // They end by themselves, with the blank behind them.
            Some(Field::Braces) => {
                tokens.push(Token::field(Field::Braces, word));
                rest = rest.strip_prefix(' ').unwrap_or(rest);
            }
            Some(field) if quoted => tokens.push(Token::quoted(field, word)),
            Some(field) => tokens.push(Token::field(field, word)),
            None => {}
        }
    }
    if !rest.is_empty() {
        tokens.push(Token::Literal(rest.replace("\\ ", " ")));
    }
    Ok(tokens)
}

/// Content of square brackets, which may be nested.
fn expression(text: &str) -> Result<(&str, &str), SyntaxError> {
    let mut depth = 0;
    for (at, c) in text.char_indices() {
        depth += match c {
            '[' => 1,
            ']' => -1,
            _ => 0,
        };
        if depth == 0 {
            return Ok((&text[1..at], &text[at + 1..]));
        }
    }
    Err(SyntaxError::Unclosed { text: text.to_owned(), closing: ']' })
}

fn of_expression(expression: &str) -> Field {
    let words = expression.to_ascii_lowercase();
    if words.contains("cache_hit") {
        Field::CacheHit
    } else if ["user-agent", "user_agent"].iter().any(|name| words.contains(name)) {
        Field::Agent
    } else if words.contains("referer") {
        Field::Referrer
    } else if words.contains("host") {
        Field::Host(FieldSource::Direct)
    } else if words.contains("content-type") || words.contains("content_type") {
        Field::ContentType
    } else if words.contains("cache-control") || words.contains("cache_control") {
        Field::CacheControl
    } else if words.contains("expires") {
        Field::Expires
    } else if words.contains("content-encoding") || words.contains("content_encoding") {
        Field::Coding
    } else if words.contains("vary") {
        Field::Vary
    } else if ["etag", "last-modified", "last_modified"].iter().any(|name| words.contains(name)) {
        Field::Validator
    } else if words.replace('_', "-").contains("set-cookie") {
        Field::Skip
    } else if let Some(name) = SPLITTING.iter().find(|name| words.replace('_', "-").contains(**name)) {
        Field::Request((*name).into())
    } else if words.starts_with("src") {
        Field::Client(FieldSource::Direct)
    } else {
        Field::Skip
    }
}

/// Header fields that responses vary by; longer ones before those they begin with.
const SPLITTING: [&str; 4] = ["accept-language", "accept-encoding", "accept", "cookie"];

/// Names, longer ones before those they begin with.
const NAMES: [&str; 62] = [
    "trg", "trl", "tsc", "hrl", "hsl", "HPO", "pid", "sslc", "sslv", "tr", "ts", "ci", "cp", "fi", "fp",
    "bi", "bp", "si", "sp", "ft", "sq", "bq", "ac", "fc", "bc", "sc", "rc", "lc", "rt", "hr", "hs", "ms",
    "ST", "HM", "HU", "HP", "HQ", "HV", "CC", "CS", "ID", "TR", "Tw", "Tc", "Tr", "Ta", "Tt", "Tq", "Th",
    "Ti", "Td", "Tu", "Ts", "Tl", "T", "t", "b", "s", "f", "B", "U", "r",
];

fn variable(text: &str) -> Option<&'static str> {
    let more = ["H", "o"];
    NAMES.iter().chain(&more).find(|name| text.starts_with(**name)).copied()
}

fn field(name: &str) -> Result<Field, SyntaxError> {
    Ok(match name {
        "Ts" => Field::EpochSeconds,
        "ms" => Field::Fraction,
        "t" | "tr" => Field::Time(TimePattern::known(DATE)),
        "T" | "Tl" | "trg" | "trl" => Field::Time(TimePattern::common()),
        "Ta" => Field::Duration(DurationUnit::WholeMillisecond),
        "ci" => Field::Client(FieldSource::Direct),
        "s" => Field::Server,
        "tsc" | "ts" => Field::Termination,
        "ST" => Field::Status,
        "B" => Field::Bytes,
        "HV" => Field::Version,
        "HM" => Field::Method,
        "HU" => Field::Url,
        "HP" | "HPO" => Field::Path,
        "HQ" => Field::Query,
        "r" => Field::RequestLine,
        "hr" | "hs" => Field::Braces,
        name if variable(name) == Some(name) => Field::Skip,
        other => return Err(SyntaxError::HaproxyVariable(other.to_owned())),
    })
}
