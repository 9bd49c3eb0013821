//! Why there are no curves.

use std::path::{Path, PathBuf};

use crate::error::LogsError;
use crate::format::FormatError;
use thiserror::Error;

use crate::size::trace::lcs::LcsError;
use crate::size::trace::text::ColumnsError;
use crate::size::trace::vscsi::VscsiError;

/// Reason for which inputs could not be read or a result could not be written.
#[derive(Debug, Error)]
pub enum SizeError {
    /// A file cannot be read, or an access log is of no known format.
    #[error(transparent)]
    Logs(#[from] LogsError),
    /// The format that was given cannot be used.
    #[error(transparent)]
    Format(#[from] FormatError),
    /// The columns of a trace are not known, or its form is not.
    #[error("{}", assay_base::quote::line::path(path))]
    Columns { path: PathBuf, source: Box<ColumnsError> },
    /// A binary trace in another form.
    #[error("{}", assay_base::quote::line::path(path))]
    Lcs { path: PathBuf, source: LcsError },
    /// A binary trace that is not in the form of CloudPhysics.
    #[error("{}", assay_base::quote::line::path(path))]
    Vscsi { path: PathBuf, source: VscsiError },
    /// A file is no access log, and looks like a trace whose form is not known.
    #[error(
        "cannot read {}: it is no access log, and if it is a trace, its first line (`{line}`) names no columns",
        shown(path)
    )]
    NoNames {
        path: PathBuf,
        line: String,
        /// Suggested `--columns`.
        example: String,
    },
    /// A file is no text, and no binary trace whose form is known.
    #[error(
        "cannot read {}: it is no text, and neither its name nor its first bytes say which form it has",
        shown(path)
    )]
    NoText { path: PathBuf },
    /// A size in bytes for caches of objects.
    #[error(
        "cannot simulate a cache of {size}: the sizes of objects are not known, so caches are measured in objects"
    )]
    NoSizes {
        /// The size, as it was typed.
        size: String,
    },
    /// Traces and access logs at once.
    #[error(
        "cannot simulate {} together with {}: one is a trace, the other an access log",
        assay_base::quote::line::path(one),
        assay_base::quote::line::path(other)
    )]
    Mixed { one: PathBuf, other: PathBuf },
    #[error(
        "there is no request in {names}{}{}",
        left_out(*malformed),
        also(notes)
    )]
    NoRequests {
        names: String,
        /// Lines and records that could not be read.
        malformed: u64,
        /// Further sentences about the inputs.
        notes: Vec<String>,
    },
    /// Sums of bytes that no number holds.
    #[error("cannot add up the bytes of all requests: together they are more than 4 EB")]
    TooManyBytes,
    /// More objects than numbers.
    #[error("cannot simulate more than 4,294,967,294 different objects")]
    TooManyObjects,
    /// Rules for access logs, with a trace.
    #[error("a trace has no hosts, paths, queries and content types that rules or --by could be for")]
    RulesForTrace,
    /// A workload without an end.
    #[error("{name} has no end: its schedule has no phases")]
    Endless { name: String },
    /// Best-effort robots beside others, in a schedule whose phases end at counts.
    #[error(
        "cannot simulate {name}: some robots have a rate, others send the next request after a response, and a phase ends at a count"
    )]
    MixedRobots { name: String },
    /// A phase that the workload does not have.
    #[error("{name} has no phase `{phase}`; it has {phases}")]
    NoPhase {
        name: String,
        phase: String,
        /// Phases of the workload.
        phases: String,
    },
    /// A sample says nothing.
    #[error("cannot estimate anything from a sample of {objects} objects ({:.4} % of all): {fewest} are the least", rate * 100.0)]
    SampleTooSmall {
        /// Objects in the sample.
        objects: u64,
        /// Share of all objects.
        rate: f64,
        /// Minimum number of objects.
        fewest: u64,
    },
    /// All sizes are too small for a sample.
    #[error(
        "cannot simulate these sizes with a sample of {:.4} %: it says nothing of caches below {smallest_bytes} bytes, because its \
         part of them cannot hold the larger objects", rate * 100.0
    )]
    SizesTooSmall {
        /// Share of the objects in the sample.
        rate: f64,
        /// The smallest size that it says something of.
        smallest_bytes: u64,
    },
    /// A trace does not say who made a request.
    #[error("a trace has no clients that caches side by side could share")]
    ClientsOfTrace,
    /// Nothing says how long responses took.
    #[error(
        "cannot take response times from {input}: it does not say how long a response from the origin took"
    )]
    NoResponseTimes { input: String },
    /// A workload has no log.
    #[error("cannot tell the requests of a workload apart by class: that is what a log says became of them")]
    ClassOfWorkload,
    /// The result cannot be written as JSON.
    #[error("cannot write the result as JSON")]
    Json(#[from] serde_json::Error),
}

/// An argument of `assay size` that cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum ArgumentError {
    #[error("requests are not told apart by `{text}`; write host, type or class")]
    Label { text: String },
    #[error("`{text}` is not a policy; there are {names}{near}")]
    Policy {
        text: String,
        /// Names of all policies.
        names: String,
        /// Suggestion of a similar name, or nothing.
        near: String,
    },
    #[error(
        "`{part}` is not a rule of a key; there are `drop NAME,…`, `sort query`, `ignore query`, `ignore host`, \
         `ignore cookie`, `ignore cookie NAME,…`, `ignore field NAME,…`, `vary FIELD,…`, `cookie NAME,…`, `lower host` \
         and `lower path`"
    )]
    KeyRule { part: String },
    #[error("`{field}` is nothing that a rule can look at; write path:, host: or type:")]
    PatternField { field: String },
    #[error("`{text}` has no pattern; write it like *.jpg, path:/api/* or host:img.example")]
    EmptyPattern { text: String },
    #[error(transparent)]
    Columns(#[from] Box<ColumnsError>),
    #[error(
        "`{}` does not say what a column stands for{near}; write `-` for one that is not used",
        assay_base::quote::line::line(name)
    )]
    ColumnName {
        name: String,
        /// Suggestion of a similar name, or nothing.
        near: String,
    },
    #[error("none of these columns is called `object`")]
    NoObjectColumn,
}

fn shown(path: &Path) -> String {
    if path == Path::new("-") { "standard input".into() } else { assay_base::quote::line::path(path) }
}

fn left_out(malformed: u64) -> String {
    match malformed {
        0 => String::new(),
        count => format!(" (lines or records that could not be read: {count})"),
    }
}

/// Further sentences behind a message.
fn also(notes: &[String]) -> String {
    notes.iter().map(|note| format!(". {}", note.trim_end_matches('.'))).collect()
}
