//! Files that the bodies of a workload are made of.
//!
//! They are read whole, once, before a role is ready: nothing touches a disk during a run.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use assay_workload::body::FileBytes;
use assay_workload::model::Workload;
use thiserror::Error;

/// A file of the workload cannot be read.
#[derive(Debug, Error)]
#[error("cannot read {path}, which the workload makes bodies of: {cause}")]
pub struct WorkloadFileError {
    path: PathBuf,
    cause: io::Error,
}

/// Reads all files that the workload names, for [`assay_workload::Universe::with_files`], which finds out whether they are
/// still the same.
pub fn read_files(workload: &Workload) -> Result<FileBytes, WorkloadFileError> {
    let read = |path: PathBuf| match assay_base::files::bytes(&path, assay_base::files::BODY_MAX) {
        Ok(bytes) => Ok(Arc::from(bytes)),
        Err(cause) => Err(WorkloadFileError { path, cause }),
    };
    let sets = workload.files.iter().map(|set| {
        let paths = set.files.iter().map(|file| match file.path.as_os_str().is_empty() {
            true => set.root.clone(),
            false => set.root.join(&file.path),
        });
        paths.map(read).collect()
    });
    sets.collect()
}

#[cfg(test)]
mod tests {
    use assay_workload::model::{FileEntry, FileSet};

    use super::*;

    #[test]
    fn files_are_read_in_order_and_a_missing_one_is_named() {
        let dir = tempfile::tempdir().expect("a directory");
        std::fs::write(dir.path().join("a"), b"one").expect("is written");
        std::fs::write(dir.path().join("b"), b"two").expect("is written");
        let entry = |path: &str| FileEntry { path: path.into(), ..FileEntry::default() };
        let set =
            |root: PathBuf, files: &[&str]| FileSet { root, files: files.iter().map(|f| entry(f)).collect() };
        let mut workload = Workload {
            files: vec![set(dir.path().into(), &["b", "a"]), set(dir.path().join("a"), &[""])],
            ..Workload::default()
        };
        let read = read_files(&workload).expect("are there");
        let texts: Vec<Vec<&[u8]>> =
            read.iter().map(|set| set.iter().map(|file| &file[..]).collect()).collect();
        assert_eq!(texts, [vec![&b"two"[..], b"one"], vec![b"one"]]);
        workload.files[0].files.push(entry("missing"));
        let error = read_files(&workload).expect_err("is not there").to_string();
        assert!(error.contains("missing"), "{error}");
    }
}
