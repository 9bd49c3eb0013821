//! The private directory that a real proxy works in, and what of it is kept.

use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use assay_host::owner;

use crate::error::LabError;
use crate::shared_memory;

/// A directory of the proxy's own, gone when this is dropped, with the shared memory of what worked in it.
#[derive(Debug)]
pub struct WorkDir {
    dir: tempfile::TempDir,
    owner: Option<Owner>,
}

/// Owner of the files in a work directory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Owner {
    pub uid: u32,
    pub gid: u32,
}

impl WorkDir {
    /// Makes one below `temp` (the system's temporary directory when none), for the user `owner` when the lab
    /// runs as root. It is a directory that any user can reach, whatever the directory that the lab was
    /// started in.
    pub fn create(proxy: &str, temp: Option<&Path>, owner: Option<Owner>) -> Result<Self, LabError> {
        let parent = temp.map_or_else(|| reachable_temp_dir(owner.is_some()), Path::to_owned);
        let cannot = |what: &str, e: io::Error| {
            LabError::run(format!(
                "cannot {what} the proxy's work directory below {}: {e}; name another directory in TMPDIR",
                parent.display()
            ))
        };
        let parent_dir = std::path::absolute(&parent).map_err(|e| cannot("name", e))?;
        let dir = tempfile::Builder::new()
            .prefix(&owner::Owner::current().prefix(proxy))
            .tempdir_in(parent_dir)
            .map_err(|e| cannot("make", e))?;
        std::fs::set_permissions(dir.path(), std::fs::Permissions::from_mode(0o755))
            .map_err(|e| cannot("open", e))?;
        let work = Self { dir, owner };
        work.give(work.path()).map_err(|e| cannot("give away", e))?;
        Ok(work)
    }

    /// Absolute path of it.
    pub fn path(&self) -> &Path {
        self.dir.path()
    }

    /// Removes it, beside everything else: some proxies fill theirs with thousands of directories. What cannot be
    /// removed now is tried again when this is dropped.
    pub async fn remove(&self) {
        let path = self.path().to_owned();
        let _ = tokio::task::spawn_blocking(move || std::fs::remove_dir_all(path)).await;
    }

    /// Makes a directory in it (and those above).
    pub fn make_dir(&self, relative: &str) -> io::Result<PathBuf> {
        let path = self.path().join(relative);
        std::fs::create_dir_all(&path)?;
        self.give_with_parents(&path)?;
        Ok(path)
    }

    /// Writes a file in it.
    pub fn write(&self, relative: &str, text: &str) -> io::Result<PathBuf> {
        let path = self.path().join(relative);
        if let Some(parent) = path.parent() {
            std::fs::create_dir_all(parent)?;
            self.give_with_parents(parent)?;
        }
        std::fs::write(&path, text)?;
        self.give(&path)?;
        Ok(path)
    }

    /// Writes a file in it that nobody but its owner can read. Its directory is there.
    pub fn write_private(&self, relative: &str, text: &str) -> io::Result<()> {
        let path = self.path().join(relative);
        crate::tls::write_private(&path, text)?;
        self.give(&path)
    }

    fn give(&self, path: &Path) -> io::Result<()> {
        match self.owner {
            Some(owner) => std::os::unix::fs::chown(path, Some(owner.uid), Some(owner.gid)),
            None => Ok(()),
        }
    }

    fn give_with_parents(&self, path: &Path) -> io::Result<()> {
        path.ancestors().take_while(|above| *above != self.path()).try_for_each(|above| self.give(above))
    }

    /// Copies files of it into `to`, flat; those that are not there are passed over. Says what could not be
    /// copied.
    pub fn keep(&self, files: &[String], to: &Path) -> Vec<String> {
        let mut failures = Vec::new();
        for relative in files {
            let from = self.path().join(relative);
            let Some(name) = from.file_name() else { continue };
            if !from.is_file() {
                continue;
            }
            if let Err(e) = std::fs::copy(&from, to.join(name)) {
                failures.push(format!("{relative} of the proxy could not be kept: {e}"));
            }
        }
        failures
    }
}

impl Drop for WorkDir {
    fn drop(&mut self) {
        // Here and not with the proxy: a run can be interrupted while what comes before the proxy (`squid -z`) is at work.
        shared_memory::remove(self.path());
    }
}

/// Directories in which work directories may lie.
pub fn temp_dirs() -> Vec<PathBuf> {
    let mut dirs = vec![std::env::temp_dir(), "/tmp".into(), "/var/tmp".into()];
    dirs.dedup();
    dirs
}

/// A temporary directory that other users can reach when they must: the one that the environment names, or
/// the system's.
fn reachable_temp_dir(others: bool) -> PathBuf {
    let named = std::env::temp_dir();
    if !others {
        return named;
    }
    temp_dirs().into_iter().find(|dir| others_can_reach(dir)).unwrap_or(named)
}

/// True when every directory on the way lets anyone through.
fn others_can_reach(dir: &Path) -> bool {
    let Ok(dir) = dir.canonicalize() else { return false };
    dir.ancestors().all(|above| above.metadata().is_ok_and(|meta| meta.permissions().mode() & 0o001 != 0))
}

/// The user called `name`, as the system's user list says.
pub fn find_user(name: &str) -> Option<Owner> {
    find_user_in(&std::fs::read_to_string("/etc/passwd").ok()?, name)
}

fn find_user_in(passwd: &str, name: &str) -> Option<Owner> {
    passwd.lines().find_map(|line| {
        let mut fields = line.split(':');
        let is_it = fields.next() == Some(name);
        let uid = fields.nth(1)?.parse().ok()?;
        let gid = fields.next()?.parse().ok()?;
        is_it.then_some(Owner { uid, gid })
    })
}

/// Writes what a failed proxy said, and everything else that is kept of it, where the user can look at it.
pub fn keep_text(to: &Path, name: &str, text: &str) -> io::Result<()> {
    std::fs::create_dir_all(to)?;
    std::fs::write(to.join(name), text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_gone_when_dropped_and_keeps_what_it_is_told_to() {
        let (temp, run) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let work = WorkDir::create("toy", Some(temp.path()), None).unwrap();
        let path = work.path().to_owned();
        assert_eq!(path.metadata().unwrap().permissions().mode() & 0o777, 0o755);
        work.make_dir("cache/deep").unwrap();
        work.write("conf/toy.conf", "listen\n").unwrap();
        let failures = work.keep(&["conf/toy.conf".into(), "log/none.log".into()], run.path());
        assert!(failures.is_empty());
        assert_eq!(std::fs::read_to_string(run.path().join("toy.conf")).unwrap(), "listen\n");
        drop(work);
        assert!(!path.exists());
    }

    #[test]
    fn shared_memory_of_what_worked_in_it_goes_with_it() {
        let temp = tempfile::tempdir().unwrap();
        let work = WorkDir::create("toy", Some(temp.path()), None).unwrap();
        let segment = shared_memory::segment(work.path(), "x");
        std::fs::write(&segment, "x").unwrap();
        drop(work);
        assert!(!segment.exists(), "{}", segment.display());
    }

    #[test]
    fn a_directory_that_cannot_be_made_says_where_and_what_to_do() {
        let error = WorkDir::create("toy", Some(Path::new("/no/such/place")), None).unwrap_err().to_string();
        assert!(error.contains("/no/such/place") && error.contains("TMPDIR"), "{error}");
    }

    #[test]
    fn users_are_found_by_name_only() {
        let passwd = "root:x:0:0:root:/root:/bin/sh\nvcache:x:104:107::/none:/bin/false\nodd line\n";
        assert_eq!(find_user_in(passwd, "vcache"), Some(Owner { uid: 104, gid: 107 }));
        assert_eq!(find_user_in(passwd, "x"), None);
        assert_eq!(find_user_in(passwd, "odd line"), None);
    }

    #[test]
    fn a_directory_below_a_private_one_cannot_be_reached_by_others() {
        let private = tempfile::tempdir().unwrap();
        std::fs::set_permissions(private.path(), std::fs::Permissions::from_mode(0o700)).unwrap();
        let below = private.path().join("below");
        std::fs::create_dir(&below).unwrap();
        assert!(!others_can_reach(&below));
        assert!(others_can_reach(Path::new("/")));
    }
}
