//! Removes what an Assay that was killed left behind: marked things (`assay_host::owner`) whose owner is gone, and
//! nothing else.

use std::fs;
use std::path::{Path, PathBuf};

use assay_host::owner::{Owner, abandoned};
use rustix::process::{Pid, Signal};

use crate::{cgroup, shared_memory, workdir};

/// Removes what an Assay that is gone left behind: work directories and control groups. Says what it did, a line each.
pub fn clear() -> Vec<String> {
    clear_in(&workdir::temp_dirs(), &cgroup::parents())
}

/// The same, for directories and groups that lie directly in these.
pub fn clear_in(temp_dirs: &[PathBuf], group_parents: &[PathBuf]) -> Vec<String> {
    let mut notes = Vec::new();
    // Groups first: processes in them may still write into the directories.
    for group in abandoned(group_parents) {
        let ended = end_all(&group);
        let done = cgroup::remove_dir(&group);
        notes.push(describe_removal("the control group", &group, done, ended));
    }
    for dir in abandoned(temp_dirs) {
        shared_memory::remove(&dir);
        let done = fs::remove_dir_all(&dir);
        notes.push(describe_removal("the work directory", &dir, done, 0));
    }
    notes
}

/// A new directory for temporary files. If its owner is killed, [`clear`] removes it later.
pub fn temporary_dir(kind: &str) -> std::io::Result<tempfile::TempDir> {
    tempfile::Builder::new().prefix(&Owner::current().prefix(kind)).tempdir()
}

fn describe_removal(what: &str, path: &Path, done: std::io::Result<()>, ended: usize) -> String {
    let path = path.display();
    let with = if ended > 0 { format!(" and ended {ended} processes in it") } else { String::new() };
    match done {
        Ok(()) => format!("removed {what} {path}{with}, left behind by an Assay that was killed"),
        Err(error) => {
            format!("an Assay that was killed left {what} {path} behind, which cannot be removed: {error}")
        }
    }
}

/// Ends every process of a control group; they are ours, and nobody is left to stop them well.
fn end_all(group: &Path) -> usize {
    let listed = fs::read_to_string(group.join("cgroup.procs")).unwrap_or_default();
    let pids = listed.lines().filter_map(|line| line.trim().parse::<i32>().ok());
    let pids: Vec<Pid> = pids.filter_map(Pid::from_raw).collect();
    for pid in &pids {
        // An error means that it has ended meanwhile.
        let _ = rustix::process::kill_process(*pid, Signal::KILL);
    }
    pids.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The mark of this process, with other numbers where some are given.
    fn mark(others: [Option<&str>; 3]) -> String {
        let mine = Owner::current().mark();
        let numbers = mine.strip_prefix('m').unwrap().split('_').zip(others);
        format!("m{}", numbers.map(|(mine, other)| other.unwrap_or(mine)).collect::<Vec<_>>().join("_"))
    }

    #[test]
    fn only_what_is_marked_by_somebody_who_is_gone_is_removed() {
        let temp = tempfile::tempdir().unwrap();
        let make = |name: String| {
            let path = temp.path().join(name);
            fs::create_dir_all(path.join("deep/inside")).unwrap();
            path
        };
        let left = make(format!("assay-squid-{}-aB3", mark([None, Some("1"), None])));
        let mine = make(format!("assay-squid-{}-aB3", Owner::current().mark()));
        let remote = make(format!("assay-squid-{}-aB3", mark([None, Some("1"), Some("7")])));
        let users = make("assay-squid-precious".into());
        let target = make("target".into());
        let link = temp.path().join(format!("assay-squid-{}-link", mark([None, Some("1"), None])));
        std::os::unix::fs::symlink(&target, &link).unwrap();
        let notes = clear_in(&[temp.path().to_owned(), temp.path().to_owned()], &[]);
        assert_eq!(notes.len(), 1, "{notes:?}");
        assert!(notes[0].contains("assay-squid-m") && !left.exists());
        assert!([mine, remote, users, target.join("deep"), link].iter().all(|path| path.exists()));
    }
}
