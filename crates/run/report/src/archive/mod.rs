//! The directory in which results are kept (`runs/`): which runs and experiments are in it, when they were made, how they
//! ended, how much room they take; and the removal of old ones ([`selection`], [`remove()`]).
//!
//! *Does not:* read measurements, or make a summary or a report of anything; what has no summary has no verdict.

mod entry;
mod remove;
pub mod selection;

use std::io;
use std::path::{Path, PathBuf};

pub use entry::{ArchiveEntry, ResultKind, ResultState};
pub use remove::remove;

/// Failure to read or change the directory of results.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ArchiveError {
    /// A directory cannot be listed.
    #[error(
        "cannot list {}: {cause}; name a directory in which runs are kept",
        assay_base::quote::line::path(path)
    )]
    List {
        path: PathBuf,
        /// The system's error. Part of the message, and so no `source`.
        cause: io::Error,
    },
    /// Something that was named is not the directory of a run or of an experiment.
    #[error("{} is not the directory of a run or of an experiment; `assay runs` lists them", assay_base::quote::line::path(.0))]
    NotAResult(PathBuf),
    /// Removal failed.
    #[error("cannot remove {}: {cause}; check its permissions", assay_base::quote::line::path(path))]
    Remove {
        path: PathBuf,
        /// The system's error. Part of the message, and so no `source`.
        cause: io::Error,
    },
}

/// The runs and experiments that are directly in a directory, the latest first. A directory that does not exist holds none.
/// Anything else that is in it (calibrations, files of the user's own) is passed over.
pub fn list(dir: &Path) -> Result<Vec<ArchiveEntry>, ArchiveError> {
    let cannot = |cause| ArchiveError::List { path: dir.to_owned(), cause };
    let inner = match std::fs::read_dir(dir) {
        Ok(inner) => inner,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(cannot(error)),
    };
    let mut found = Vec::new();
    for one in inner {
        let one = one.map_err(cannot)?;
        // A link to a run is not a run of this directory: removing it would not remove what it leads to.
        if one.file_type().map_err(cannot)?.is_dir() {
            found.extend(ArchiveEntry::read(&one.path()));
        }
    }
    found.sort_by(|one, other| (other.started_unix_ms, &other.name).cmp(&(one.started_unix_ms, &one.name)));
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::archive::entry::testing::{experiment, run};

    #[test]
    fn the_latest_is_first_and_what_is_no_result_is_passed_over() {
        let tmp = tempfile::tempdir().unwrap();
        run(tmp.path(), "old", 1_000);
        run(tmp.path(), "new", 3_000);
        experiment(tmp.path(), "middle", 2_000, &["done"]);
        std::fs::create_dir(tmp.path().join("calibrations")).unwrap();
        std::fs::write(tmp.path().join("notes.txt"), "mine").unwrap();
        std::os::unix::fs::symlink(tmp.path().join("old"), tmp.path().join("link")).unwrap();
        let names: Vec<String> = list(tmp.path()).unwrap().into_iter().map(|entry| entry.name).collect();
        assert_eq!(names, ["new", "middle", "old"]);
    }

    #[test]
    fn a_directory_that_is_not_there_holds_nothing_and_a_file_is_refused() {
        let tmp = tempfile::tempdir().unwrap();
        assert_eq!(list(&tmp.path().join("none")).unwrap(), []);
        let file = tmp.path().join("file");
        std::fs::write(&file, "").unwrap();
        assert!(list(&file).unwrap_err().to_string().contains("cannot list"));
    }
}
