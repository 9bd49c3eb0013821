//! Removal of a run or of an experiment with everything in it.

use std::path::Path;

use crate::archive::ArchiveError;
use crate::archive::entry::ArchiveEntry;

/// Removes the directory of a run or of an experiment, and nothing else: any other directory is refused.
pub fn remove(path: &Path) -> Result<(), ArchiveError> {
    let is_directory = path.symlink_metadata().is_ok_and(|metadata| metadata.is_dir());
    if !is_directory || ArchiveEntry::read(path).is_none() {
        return Err(ArchiveError::NotAResult(path.to_owned()));
    }
    std::fs::remove_dir_all(path).map_err(|cause| ArchiveError::Remove { path: path.to_owned(), cause })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::archive::entry::testing::run;

    #[test]
    fn a_run_is_removed_with_everything_in_it() {
        let tmp = tempfile::tempdir().unwrap();
        let dir = run(tmp.path(), "one", 1);
        std::fs::write(dir.proxy_dir().join("log"), "text").unwrap();
        remove(dir.path()).unwrap();
        assert!(!dir.path().exists());
    }

    #[test]
    fn what_is_no_result_stays() {
        let tmp = tempfile::tempdir().unwrap();
        let (other, link) = (tmp.path().join("other"), tmp.path().join("link"));
        std::fs::create_dir(&other).unwrap();
        let kept = run(tmp.path(), "kept", 1);
        std::os::unix::fs::symlink(kept.path(), &link).unwrap();
        for path in [&other, &link, &tmp.path().join("none"), &tmp.path().to_owned()] {
            assert!(matches!(remove(path), Err(ArchiveError::NotAResult(_))), "{}", path.display());
        }
        assert!(other.exists() && link.exists() && kept.path().exists());
    }
}
