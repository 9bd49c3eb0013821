//! Squid's `logformat`: `%[flags][width]code`, `%{Header}>h`, `%code{argument}`.

use super::error::SyntaxError;
use super::field::{DurationUnit, Field, FieldSource, request_field, sent_response_field};
use super::time::TimePattern;
use super::token::{Token, consumed};

/// A format string in pieces.
pub(super) fn tokenize(format: &str) -> Result<Vec<Token>, SyntaxError> {
    let mut tokens = Vec::new();
    let mut rest = format;
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
        let quoted = rest.starts_with('"');
        // How it is quoted, padded and cut says nothing about what it is.
        rest = rest.trim_start_matches(['"', '[', '#', '\'', '/', '-']);
        rest = rest.trim_start_matches(|c: char| c.is_ascii_digit() || c == '.');
        let mut argument = None;
        if rest.starts_with('{') {
            (argument, rest) = braces(rest)?;
        }
        let (code, after) = code(rest)?;
        rest = after;
        if rest.starts_with('{') && argument.is_none() {
            (argument, rest) = braces(rest)?;
        }
        let field = field(code, argument)?;
        let word = consumed(start, rest);
        tokens.push(if quoted { Token::quoted(field, word) } else { Token::field(field, word) });
    }
    if !rest.is_empty() {
        tokens.push(Token::Literal(rest.to_owned()));
    }
    Ok(tokens)
}

/// Content of braces, and the rest behind them.
pub(super) fn braces(text: &str) -> Result<(Option<&str>, &str), SyntaxError> {
    let inside = text.strip_prefix('{').unwrap_or(text);
    match inside.split_once('}') {
        Some((inside, after)) => Ok((Some(inside), after)),
        None => Err(SyntaxError::Unclosed { text: text.to_owned(), closing: '}' }),
    }
}

/// Codes, longer ones before those they begin with.
const CODES: [&str; 94] = [
    "adapt::all_trs",
    "adapt::sum_trs",
    "adapt::<last_h",
    "icap::tt",
    "http::rm",
    "http::ru",
    "http::rp",
    "http::rv",
    "http::mt",
    "http::<st",
    "http::>st",
    "http::>Hs",
    "http::<Hs",
    "http::>rm",
    "http::>ru",
    "http::>rp",
    "http::>rv",
    "http::<rm",
    "http::<ru",
    "http::>h",
    "http::<h",
    "http::>ha",
    "transport::>connection_id",
    "proxy_protocol::>h",
    "ssl::>cert_subject",
    "ssl::>cert_issuer",
    "ssl::>sni",
    "ssl::bump_mode",
    "ssl::<cert_errors",
    "tls::>negotiated_version",
    "tls::<negotiated_version",
    "tls::>negotiated_cipher",
    "tls::<negotiated_cipher",
    "err_code",
    "err_detail",
    "request_attempts",
    "master_xaction",
    "busy_time",
    "credentials",
    "note",
    "ssl_sni",
    "ext_user",
    "<service_name",
    ">eui",
    ">qos",
    "<qos",
    ">nfmark",
    "<nfmark",
    "<sH",
    "<sh",
    ">sh",
    ">ha",
    ">Hs",
    "<Hs",
    ">st",
    "<st",
    ">rs",
    ">rd",
    ">rP",
    ">rp",
    ">rm",
    ">ru",
    ">rv",
    "<rs",
    "<rd",
    "<rP",
    "<rp",
    "<rm",
    "<ru",
    "<rv",
    ">la",
    ">lp",
    "<la",
    "<lp",
    ">a",
    ">A",
    ">p",
    "<a",
    "<A",
    "<p",
    ">h",
    "<h",
    "<pt",
    "<tt",
    "<bs",
    "sn",
    "ts",
    "tu",
    "tl",
    "tg",
    "tr",
    "tS",
    "dt",
    "un",
];

/// The code at the beginning, and what is behind it.
fn code(text: &str) -> Result<(&str, &str), SyntaxError> {
    const SHORT: [&str; 14] =
        ["ul", "ui", "ue", "us", "rm", "ru", "rp", "rv", "mt", "Hs", "Ss", "Sh", "et", "ea"];
    let known = CODES.iter().chain(&SHORT).find(|code| text.starts_with(**code));
    let more = ["la", "lp", "st"];
    match known.or_else(|| more.iter().find(|code| text.starts_with(**code))) {
        Some(code) => Ok(text.split_at(code.len())),
        None => {
            let word: String = text.chars().take_while(|c| !c.is_whitespace()).take(16).collect();
            Err(SyntaxError::SquidCode(word))
        }
    }
}

fn field(code: &str, argument: Option<&str>) -> Result<Field, SyntaxError> {
    let code = code.strip_prefix("http::").unwrap_or(code);
    Ok(match code {
        "ts" => Field::EpochSeconds,
        "tu" => Field::Fraction,
        "tl" | "tg" => match argument {
            Some(pattern) => Field::Time(TimePattern::compile(pattern)?),
            None => Field::Time(TimePattern::common()),
        },
        "tr" => Field::Duration(DurationUnit::WholeMillisecond),
        ">a" | ">A" => Field::Client(FieldSource::Direct),
        "Ss" => Field::Outcome(FieldSource::Direct),
        ">Hs" | "Hs" => Field::Status,
        "<st" | "st" => Field::Bytes,
        "rv" | ">rv" => Field::Version,
        "rm" | ">rm" => Field::Method,
        "ru" | ">ru" => Field::Url,
        "rp" | ">rp" => Field::Path,
        ">rd" => Field::Host(FieldSource::Direct),
        ">h" => argument.map_or(Field::Skip, of_request),
        "<h" => argument
            .and_then(|header| sent_response_field(&header.to_ascii_lowercase()))
            .unwrap_or(Field::Skip),
        "mt" => Field::ContentType,
        "Sh" => Field::Hierarchy,
        "<a" | "<A" => Field::Peer,
        _ => Field::Skip,
    })
}

/// A header field of the request, or one member of it: `Cookie:;sid`.
fn of_request(argument: &str) -> Field {
    match argument.split_once(':') {
        None => request_field(&argument.to_ascii_lowercase()),
        Some((header, member)) if header.eq_ignore_ascii_case("cookie") => {
            member.strip_prefix(';').map_or(Field::Skip, |name| Field::Cookie(name.into()))
        }
        Some(_) => Field::Skip,
    }
}
