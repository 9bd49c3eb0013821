//! What can go wrong before a line is read.

use std::io;
use std::path::PathBuf;

use thiserror::Error;

use crate::format::{DetectError, FormatError};

/// Reason for which a log cannot be analysed at all. Defects of single lines are never an error.
#[derive(Debug, Error)]
pub enum LogsError {
    /// The file cannot be opened or read.
    #[error("cannot read {}", assay_base::quote::line::path(path))]
    Read { path: PathBuf, source: io::Error },
    /// No file has such a name.
    #[error("no file is called {}", assay_base::quote::line::path(pattern))]
    NoFile {
        /// A path, or a pattern with `*` and `?`.
        pattern: PathBuf,
    },
    /// There is nothing in it.
    #[error("{} is empty: there is no request in it", shown(name))]
    Empty { name: String },
    /// The format was not recognised.
    #[error("the format of {} was not recognised; its first line is `{line}`: {why}", shown(name))]
    Unrecognised {
        name: String,
        /// First line, truncated.
        line: String,
        why: DetectError,
    },
    /// The file is no text in UTF-8.
    #[error("{} is {what}, and no text in UTF-8", shown(name))]
    Unreadable { name: String, what: &'static str },
    /// Not a single line could be read.
    #[error(
        "no line of {} could be read as {format} (there are {lines}): line {line} is `{text}`, and {why}",
        shown(name)
    )]
    NoLine {
        /// The file, or the first of several.
        name: String,
        lines: u64,
        /// Name of the format.
        format: String,
        /// Number of the first line.
        line: u64,
        /// Text of that line, truncated.
        text: String,
        why: String,
    },
    /// The format that was given cannot be used.
    #[error(transparent)]
    Format(#[from] FormatError),
    /// The result cannot be written.
    #[error("cannot write {}", assay_base::quote::line::path(path))]
    Write { path: PathBuf, source: io::Error },
    /// The document cannot be written as JSON.
    #[error("cannot write the result as JSON")]
    Json(#[from] serde_json::Error),
}

fn shown(name: &str) -> &str {
    if name == "-" { "standard input" } else { name }
}
