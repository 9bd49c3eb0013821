//! Defects of format strings.

use thiserror::Error;

/// A format string that cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("`{format}` cannot be used as a log format: {why}")]
pub struct FormatError {
    /// The format, as given.
    pub format: String,
    pub why: SyntaxError,
}

/// A defect of a format string. The text says what to do about it where that is not obvious.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum SyntaxError {
    #[error(
        "it is no format string (nothing in it begins with `%`, `$` or `{{`), and there is no format of that name; there are \
         {names}"
    )]
    UnknownName {
        /// Names of all formats.
        names: String,
    },
    #[error("JSON lines are read by their own keys")]
    Json,
    #[error("there is no field in it")]
    NoField,
    #[error("nothing stands between the {field} and the {next} after it")]
    Adjacent { field: &'static str, next: &'static str },
    #[error("`{written}` stands behind `{word}`, which counts in {counted}; {remedy}")]
    Unit { written: String, word: String, counted: &'static str, remedy: &'static str },
    #[error("`{text}` has no `{closing}`")]
    Unclosed { text: String, closing: char },
    #[error("`{{{text}` has no end; a field is written `{{status}}`")]
    UnclosedField { text: String },
    #[error("`{{{name}}}` is no field of a line; there are {known}")]
    UnknownField {
        name: String,
        /// Names of all fields.
        known: String,
    },
    #[error("`{{{name}}}` stands in it twice")]
    Repeated { name: String },
    #[error("nothing stands between `{{{name}}}` and the field after it")]
    AdjacentToField { name: String },
    #[error("must have at least a time like {{time-s}}, {{status}}, and {{url}}, {{path}} or {{request}}")]
    LacksFields,
    #[error("`%{0}` is no variable of HAProxy's log-format")]
    HaproxyVariable(String),
    #[error("it ends in `%`; a percent sign itself is written `%%`")]
    LonePercent,
    #[error("`%{0}` is no letter that httpd or varnishncsa know")]
    NcsaLetter(String),
    #[error("a `$` without the name of a variable behind it")]
    LoneDollar,
    #[error("`%{0}` is no code of Squid's logformat that is known here")]
    SquidCode(String),
    #[error("`%<{0}>` is no field of Traffic Server's logs")]
    TrafficServerField(String),
    #[error("a time pattern ends in `%`")]
    TimeEndsInPercent,
    #[error("`%{0}` is no part of a time that is understood")]
    TimePart(char),
    #[error("it is no UTF-8")]
    NoUtf8,
    #[error("must name at least time, and cs-uri or cs-uri-stem")]
    LacksDirectives,
}

/// A directive of a log that cannot be used, after one that could.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("the line names the fields of those after it, which are not read: {0}")]
pub struct DirectiveError(pub SyntaxError);
