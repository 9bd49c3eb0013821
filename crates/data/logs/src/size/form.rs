//! The form of an input: what is said of it, or else what its name and its first bytes look like.

use std::path::Path;

use crate::format::Format;
use crate::input::Input;

use crate::size::error::SizeError;
use crate::size::trace::lcs::is_lcs;
use crate::size::trace::published::PublishedTrace;
use crate::size::trace::text::{ColumnNaming, are_columns_named_in, trim};
use crate::size::trace::vscsi::is_vscsi;

/// The form of an input.
#[derive(Debug, Clone)]
pub enum Form {
    /// libCacheSim's binary form.
    Oracle,
    Lcs,
    /// CloudPhysics' binary form.
    Vscsi,
    Text(ColumnNaming),
    /// An access log; none: of a format that is recognised.
    Log(Option<Box<Format>>),
}

impl Form {
    /// Reads what was typed: the name of a form of traces, or a format of access logs.
    ///
    /// # Errors
    /// If it is none of them.
    pub fn parse(text: &str) -> Result<Self, SizeError> {
        let name = text.to_ascii_lowercase();
        match name.as_str() {
            "oraclegeneral" | "oracle" => Ok(Self::Oracle),
            "lcs" => Ok(Self::Lcs),
            "vscsi" => Ok(Self::Vscsi),
            "csv" | "tsv" | "libcachesim" => Ok(Self::Text(ColumnNaming::FirstLine)),
            _ => match PublishedTrace::named(&name) {
                Some(known) => Ok(Self::Text(ColumnNaming::PublishedTrace(known))),
                None => Ok(Self::Log(Some(Box::new(Format::parse(text)?)))),
            },
        }
    }

    /// Detects the form of a file by its name, or else by its first line. Published traces are not always called
    /// `.csv`.
    pub(crate) fn of(path: &Path) -> Self {
        let name = path.file_name().unwrap_or_default().to_string_lossy().to_ascii_lowercase();
        let plain = [".gz", ".zst", ".zstd", ".bz2", ".xz"]
            .iter()
            .find_map(|ending| name.strip_suffix(ending))
            .unwrap_or(&name);
        if plain.contains("oraclegeneral") {
            return Self::Oracle;
        }
        // What cannot be opened is reported when it is read.
        let mut input = if path == Path::new("-") {
            Input::beginning_of_standard_input().ok()
        } else {
            Some(path).filter(|path| path.is_file()).and_then(|path| Input::open(path).ok())
        };
        let head = input.as_mut().map_or(&[][..], Input::head);
        let mut lines = head.split(|byte| *byte == b'\n').map(trim).filter(|line| !line.is_empty());
        let first = lines.next().unwrap_or_default();
        let record =
            lines.find(|line| !line.starts_with(b"#")).filter(|_| first.starts_with(b"#")).unwrap_or(first);
        if is_lcs(head) {
            Self::Lcs
        } else if is_vscsi(head) {
            Self::Vscsi
        } else if let Some(known) = PublishedTrace::of_line(record, plain) {
            Self::Text(ColumnNaming::PublishedTrace(known))
        } else if plain.ends_with(".csv") || plain.ends_with(".tsv") || are_columns_named_in(first) {
            Self::Text(ColumnNaming::FirstLine)
        } else {
            Self::Log(None)
        }
    }

    pub(crate) fn is_log(&self) -> bool {
        matches!(self, Self::Log(_))
    }

    /// Text, of a trace or a log.
    pub(crate) fn is_text(&self) -> bool {
        matches!(self, Self::Text(_) | Self::Log(_))
    }

    /// The name of the form of a trace.
    pub(crate) fn name(&self) -> &'static str {
        match self {
            Self::Oracle => "oracleGeneral",
            Self::Lcs => "lcs",
            Self::Vscsi => "vscsi",
            Self::Text(ColumnNaming::PublishedTrace(known)) => known.name,
            Self::Text(_) => "csv",
            Self::Log(_) => "access log",
        }
    }
}
