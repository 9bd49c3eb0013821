//! Errors of tables, and of any other file beside them.

use std::io;
use std::path::{Path, PathBuf};

use parquet::errors::ParquetError;

use crate::table::unfinished::rows_path;

/// Limited size that a footer claims.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Claim {
    Bytes,
    Columns,
    /// List entries: columns, row groups, columns in these.
    Entries,
}

impl Claim {
    /// Refuses more than `most`.
    pub(crate) fn check(self, path: &Path, seen: u64, most: u64) -> Result<(), FileError> {
        match seen > most {
            true => Err(FileError::Footer { path: path.to_owned(), claim: self, seen, most }),
            false => Ok(()),
        }
    }

    /// Message for a claim of more than `most`.
    pub fn refusal(self, seen: u64, most: u64) -> String {
        let unit = match self {
            Self::Bytes => "bytes",
            Self::Columns => "columns",
            Self::Entries => "entries",
        };
        format!(
            "its footer claims {seen} {unit}, and that of a table of Assay has {most} at most: it is damaged, or Assay did not write it"
        )
    }
}

/// Error of writing or reading a file.
#[derive(Debug, thiserror::Error)]
pub enum FileError {
    /// The file cannot be read.
    #[error("cannot read {}: {cause}", assay_base::quote::line::path(path))]
    Read {
        path: PathBuf,
        /// Error of the system call; part of the message, and therefore no `source` of this error.
        cause: io::Error,
    },
    /// The file cannot be written.
    #[error("cannot write {}: {cause}", assay_base::quote::line::path(path))]
    Write {
        path: PathBuf,
        /// Error of the system call; part of the message, and therefore no `source` of this error.
        cause: io::Error,
    },
    /// A table cannot be finished, as a rule because the disk has no room, and can be read as it is. Nothing is lost.
    #[error(
        "cannot finish {} ({cause}): it can be read as it is, with {rows} rows beside it, in {}",
        assay_base::quote::line::path(path), assay_base::quote::line::path(&rows_path(path))
    )]
    Kept {
        path: PathBuf,
        /// Rows that are in no row group.
        rows: u64,
        /// Error of the system call.
        cause: io::ErrorKind,
    },
    /// The footer of a table claims more than that of any table of Assay. It is not decoded: that would take time and memory for
    /// whatever it claims.
    #[error(
        "cannot read {}: {}; take a copy of the file that is whole",
        assay_base::quote::line::path(path), claim.refusal(*seen, *most)
    )]
    Footer {
        path: PathBuf,
        /// Exceeded limit.
        claim: Claim,
        /// Number that the footer claims.
        seen: u64,
        /// Largest number allowed.
        most: u64,
    },
    /// The file does not hold what its name says: it is not a table, or not with these columns.
    #[error("cannot make sense of {}: {detail}", assay_base::quote::line::path(path))]
    Damaged {
        path: PathBuf,
        /// Description of the damage.
        detail: String,
    },
}

impl FileError {
    pub fn read(path: &Path, cause: io::Error) -> Self {
        Self::Read { path: path.to_owned(), cause }
    }

    pub fn write(path: &Path, cause: io::Error) -> Self {
        Self::Write { path: path.to_owned(), cause }
    }

    pub fn damaged(path: &Path, detail: impl Into<String>) -> Self {
        Self::Damaged { path: path.to_owned(), detail: detail.into() }
    }

    /// Whether the error loses no data.
    pub fn is_kept(&self) -> bool {
        matches!(self, Self::Kept { .. })
    }

    /// Kind of the system's error.
    pub(crate) fn kind(&self) -> io::ErrorKind {
        match self {
            Self::Read { cause, .. } | Self::Write { cause, .. } => cause.kind(),
            Self::Kept { cause, .. } => *cause,
            Self::Damaged { .. } | Self::Footer { .. } => io::ErrorKind::InvalidData,
        }
    }

    /// A Parquet writer's error; the system's own error is taken out of it, for the sake of the advice.
    pub(crate) fn write_parquet(path: &Path, source: ParquetError) -> Self {
        let cause = match source {
            ParquetError::External(inner) => match inner.downcast::<io::Error>() {
                Ok(cause) => *cause,
                Err(other) => io::Error::other(other.to_string()),
            },
            // The column writer keeps only the text of the system's error.
            other if other.to_string().contains("os error 28") => io::ErrorKind::StorageFull.into(),
            other => io::Error::other(other.to_string()),
        };
        Self::write(path, cause)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_system_said_is_taken_out_of_the_writers_error() {
        let inner = ParquetError::External(Box::new(io::Error::from_raw_os_error(28)));
        for source in [inner, ParquetError::General("No space left on device (os error 28)".into())] {
            let error = FileError::write_parquet(Path::new("/x/robots.parquet"), source);
            assert!(
                matches!(&error, FileError::Write { cause, .. } if cause.kind() == io::ErrorKind::StorageFull),
                "{error}"
            );
        }
    }
}
