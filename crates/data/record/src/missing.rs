//! Parts of a run directory that a reader did not find or understand.
//!
//! A directory that was damaged, cut short or written by a newer version can still be read in part:
//! [`RunDir::read_partial`](crate::dir::RunDir::read_partial) returns that part, and a list of what is missing.

use std::io;
use std::path::Path;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::dir::RunDirError;
use crate::table::FileError;

/// A file of a run directory, or a part of one, that does not speak.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Missing {
    /// The file's name in the run directory.
    pub file: String,
    /// Why it does not speak.
    pub gap: Gap,
    /// What was seen.
    pub what: String,
}

/// Why something is missing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Gap {
    /// The file is not there, though the run made one.
    Absent,
    /// It, or a part of it, is not what the run wrote.
    Damaged,
    /// It is from another version of Assay, and this one does not know what it means.
    Unknown,
}

impl Missing {
    pub fn sentence(&self) -> String {
        match self.gap {
            Gap::Absent => format!("{} is missing.", self.file),
            Gap::Damaged => format!("{} is damaged: {}.", self.file, self.what),
            Gap::Unknown => format!("{} is of another version of Assay: {}.", self.file, self.what),
        }
    }

    /// True when something is lost that the run had written.
    pub fn is_loss(&self) -> bool {
        self.gap != Gap::Unknown
    }
}

/// Collector of missing parts; a strict one returns the first as an error.
#[derive(Debug, Default)]
pub(crate) struct Gaps {
    strict: bool,
    found: Vec<(Missing, u64)>,
}

impl Gaps {
    /// A collector that makes the first missing part an error.
    pub(crate) fn strict() -> Self {
        Self { strict: true, found: Vec::new() }
    }

    /// A collector that accepts all missing parts.
    pub(crate) fn tolerant() -> Self {
        Self::default()
    }

    /// Adds a part that cannot be read. Of the same file only the first such part is kept, with the number of others.
    pub(crate) fn error(&mut self, error: impl Into<RunDirError>) -> Result<(), RunDirError> {
        let error = error.into();
        if self.strict {
            return Err(error);
        }
        let (path, gap, what) = match error {
            RunDirError::File(FileError::Damaged { path, detail }) => (path, Gap::Damaged, detail),
            RunDirError::File(FileError::Footer { path, claim, seen, most }) => {
                (path, Gap::Damaged, claim.refusal(seen, most))
            }
            RunDirError::File(FileError::Read { path, cause }) if cause.kind() == io::ErrorKind::NotFound => {
                (path, Gap::Absent, "it is not there".to_owned())
            }
            RunDirError::File(FileError::Read { path, cause }) => (path, Gap::Damaged, cause.to_string()),
            other => return Err(other),
        };
        self.note(&path, gap, what);
        Ok(())
    }

    /// Adds a gap that is no error of reading.
    pub(crate) fn note(&mut self, path: &Path, gap: Gap, what: impl Into<String>) {
        let file = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        match self.found.iter_mut().find(|(known, _)| known.file == file && known.gap == gap) {
            Some((_, more)) => *more += 1,
            None => self.found.push((Missing { file, gap, what: what.into() }, 0)),
        }
    }

    pub(crate) fn into_found(self) -> Vec<Missing> {
        let with_count = |(mut missing, more): (Missing, u64)| {
            if more > 0 {
                missing.what = format!("{} (and {more} more of the kind)", missing.what);
            }
            missing
        };
        self.found.into_iter().map(with_count).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_damaged_rows_of_one_file_are_told_once() {
        let mut gaps = Gaps::tolerant();
        for row in 0..5 {
            gaps.error(FileError::damaged(Path::new("/x/errors.parquet"), format!("row {row}"))).unwrap();
        }
        let found = gaps.into_found();
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].sentence(), "errors.parquet is damaged: row 0 (and 4 more of the kind).");
        assert!(Gaps::strict().error(FileError::damaged(Path::new("x"), "y")).is_err());
    }
}
