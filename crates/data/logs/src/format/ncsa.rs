//! Apache httpd's `LogFormat` and varnishncsa's `-F`: `%[condition][<|>][{argument}]letter`.

use super::error::SyntaxError;
use super::field::{DurationUnit, Field, FieldSource, request_field, sent_response_field};
use super::squid::braces;
use super::time::TimePattern;
use super::token::{Token, consumed};

/// A format string in pieces.
pub(super) fn tokenize(format: &str) -> Result<Vec<Token>, SyntaxError> {
    let mut tokens = Vec::new();
    // In a configuration file the quotes of the format are written with a backslash.
    let format = format.replace("\\\"", "\"").replace("\\t", "\t");
    let mut rest = format.as_str();
    while let Some(at) = rest.find('%') {
        if at > 0 {
            tokens.push(Token::Literal(rest[..at].to_owned()));
        }
        let start = &rest[at..];
        rest = &start[1..];
        if let Some(after) = rest.strip_prefix('%') {
            tokens.push(Token::Literal("%".into()));
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
            return Err(SyntaxError::LonePercent);
        };
        rest = after;
        let word = consumed(start, rest);
        if letter == "t" {
            time(argument, word, &mut tokens)?;
        } else {
            tokens.push(Token::field(field(letter, argument.unwrap_or_default())?, word));
        }
    }
    if !rest.is_empty() {
        tokens.push(Token::Literal(rest.to_owned()));
    }
    Ok(tokens)
}

/// `%t` comes with its own brackets; `%{…}t` does not.
fn time(argument: Option<&str>, word: &str, tokens: &mut Vec<Token>) -> Result<(), SyntaxError> {
    let Some(argument) = argument else {
        tokens.push(Token::Literal("[".into()));
        tokens.push(Token::field(Field::Time(TimePattern::common()), word));
        tokens.push(Token::Literal("]".into()));
        return Ok(());
    };
    let pattern = argument.trim_start_matches("begin:").trim_start_matches("end:");
    let field = match pattern {
        "sec" | "%s" => Field::EpochSeconds,
        "msec" => Field::EpochMillis,
        "usec" => Field::EpochMicros,
        "msec_frac" | "usec_frac" => Field::Fraction,
        pattern => Field::Time(TimePattern::compile(pattern)?),
    };
    tokens.push(Token::field(field, word));
    Ok(())
}

fn field(letter: &str, argument: &str) -> Result<Field, SyntaxError> {
    let header = argument.to_ascii_lowercase();
    Ok(match letter {
        "a" | "h" => Field::Client(FieldSource::Direct),
        "s" => Field::Status,
        "b" | "B" => Field::LineLayout,
        "O" => Field::Bytes,
        "D" => Field::Duration(DurationUnit::Microsecond),
        "T" => Field::Duration(match argument {
            "ms" => DurationUnit::WholeMillisecond,
            "us" => DurationUnit::Microsecond,
            _ => DurationUnit::WholeSecond,
        }),
        "m" => Field::Method,
        "r" => Field::RequestLine,
        "H" => Field::Version,
        "U" => Field::Path,
        "q" => Field::Query,
        "v" | "V" => Field::Host(FieldSource::Indirect),
        "i" => request_field(&header),
        "C" if !argument.is_empty() => Field::Cookie(argument.into()),
        "o" => sent_response_field(&header).unwrap_or(Field::Skip),
        "e" if header == "cache-status" => Field::Outcome(FieldSource::Direct),
        "x" if header == "varnish:handling" => Field::Outcome(FieldSource::Direct),
        // It does not tell a pass from a miss.
        "x" if header == "varnish:hitmiss" => Field::Outcome(FieldSource::Indirect),
        "x" if header == "varnish:side" => Field::Side,
        "A" | "C" | "e" | "f" | "I" | "k" | "l" | "L" | "M" | "n" | "p" | "P" | "R" | "S" | "u" | "X"
        | "x" | "^ti" | "^to" => Field::Skip,
        other => return Err(SyntaxError::NcsaLetter(other.to_owned())),
    })
}
