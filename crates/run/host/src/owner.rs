//! Marks in the names of resources that outlive their process: work directories, control groups, trace instances.
//!
//! A mark consists of the process id, the start time of the process (to detect a reused id) and its PID namespace (in another
//! one, the id means nothing, and the resource is left alone).

use std::fs;
use std::path::PathBuf;

/// Prefix of every marked name.
pub const PREFIX: &str = "assay-";
/// First character of a mark.
const MARK: char = 'm';

/// The process that has created a resource.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Owner {
    pid: u32,
    /// Start time of the process, in clock ticks since boot.
    started: u64,
    /// Inode of the PID namespace.
    namespace: u64,
}

impl Owner {
    pub fn current() -> Self {
        let pid = std::process::id();
        Self { pid, started: start_ticks(pid).unwrap_or(0), namespace: namespace().unwrap_or(0) }
    }

    /// The mark: letters, digits and `_`.
    pub fn mark(&self) -> String {
        format!("{MARK}{}_{}_{}", self.pid, self.started, self.namespace)
    }

    /// Prefix of the names of a kind of directories, by which [`abandoned`] finds them.
    pub fn prefix(&self, kind: &str) -> String {
        format!("{PREFIX}{kind}-{}-", self.mark())
    }

    /// The owner by the mark in a name, which stands between `-`.
    pub fn from_name(name: &str) -> Option<Self> {
        name.strip_prefix(PREFIX)?.split('-').find_map(|part| {
            let mut numbers = part.strip_prefix(MARK)?.split('_');
            let owner = Self {
                pid: numbers.next()?.parse().ok()?,
                started: numbers.next()?.parse().ok()?,
                namespace: numbers.next()?.parse().ok()?,
            };
            numbers.next().is_none().then_some(owner)
        })
    }

    /// True if the owner is known not to run any more.
    fn is_gone(&self) -> bool {
        namespace() == Some(self.namespace) && start_ticks(self.pid) != Some(self.started)
    }
}

/// Start time of a process, in clock ticks since boot; none if there is no such process, or it is a zombie.
fn start_ticks(pid: u32) -> Option<u64> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name of the program may contain parentheses.
    let mut fields = stat.rsplit_once(')')?.1.split_whitespace();
    let state = fields.next()?;
    if matches!(state, "Z" | "X") { None } else { fields.nth(18)?.parse().ok() }
}

/// Inode of the PID namespace of this process.
fn namespace() -> Option<u64> {
    let link = fs::read_link("/proc/self/ns/pid").ok()?;
    link.to_str()?.strip_prefix("pid:[")?.strip_suffix(']')?.parse().ok()
}

/// Marked directories, directly in `parents`, whose owner is gone. Symbolic links are not followed.
pub fn abandoned(parents: &[PathBuf]) -> Vec<PathBuf> {
    let entries = parents.iter().filter_map(|parent| fs::read_dir(parent).ok()).flatten().flatten();
    let orphaned = entries.filter(|entry| {
        let owner = entry.file_name().to_str().and_then(Owner::from_name);
        entry.file_type().is_ok_and(|kind| kind.is_dir()) && owner.is_some_and(|owner| owner.is_gone())
    });
    let mut found: Vec<PathBuf> = orphaned.map(|entry| entry.path()).collect();
    found.sort();
    found.dedup();
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mark_can_be_read_back_wherever_it_stands() {
        let me = Owner::current();
        assert!(me.started > 0 && me.namespace > 0 && !me.is_gone());
        for name in [format!("assay-varnish-{}-x1", me.mark()), format!("assay-{}-1", me.mark())] {
            assert_eq!(Owner::from_name(&name), Some(me.clone()), "{name}");
        }
        for name in ["assay-varnish-Ab3xYz", "assay-m1_2", "assay-m1_2_3_4", "other-m1_2_3", "assay-mx_2_3"] {
            assert_eq!(Owner::from_name(name), None, "{name}");
        }
    }

    #[test]
    fn a_process_that_was_killed_is_gone_and_one_that_runs_is_not() {
        let mut child = std::process::Command::new("sleep").arg("600").spawn().unwrap();
        let owner = Owner { pid: child.id(), started: start_ticks(child.id()).unwrap(), ..Owner::current() };
        assert!(!owner.is_gone());
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(owner.is_gone());
    }
}
