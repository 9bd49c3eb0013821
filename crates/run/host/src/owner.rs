//! Marks in the names of things that outlive their process: work directories, control groups, trace instances.
//!
//! A mark names the process, when it started (so that another process with its number is not taken for it) and its
//! namespace of process ids (in another one the number means nothing, and the thing is left alone).

use std::fs;
use std::path::PathBuf;

/// What every marked name begins with.
pub const PREFIX: &str = "assay-";
/// What the mark itself begins with.
const MARK: char = 'm';

/// Who made a thing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Owner {
    pid: u32,
    /// Start of the process, in the kernel's ticks since the machine was started.
    started: u64,
    /// Number of its namespace of process ids.
    namespace: u64,
}

impl Owner {
    pub fn me() -> Self {
        let pid = std::process::id();
        Self { pid, started: start_of(pid).unwrap_or(0), namespace: namespace().unwrap_or(0) }
    }

    /// The mark in the name of a thing: letters, digits and `_`.
    pub fn mark(&self) -> String {
        format!("{MARK}{}_{}_{}", self.pid, self.started, self.namespace)
    }

    /// What the name of a directory begins with that is this process's and of one kind: [`abandoned`] finds it later.
    pub fn prefix(&self, kind: &str) -> String {
        format!("{PREFIX}{kind}-{}-", self.mark())
    }

    /// The owner whose mark is a part (between `-`) of a name.
    pub fn of(name: &str) -> Option<Self> {
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

    /// True when this process can tell that the owner does not run any more.
    fn is_gone(&self) -> bool {
        namespace() == Some(self.namespace) && start_of(self.pid) != Some(self.started)
    }
}

/// When a process started, in ticks; none when there is none (one that has ended and waits to be collected is none).
fn start_of(pid: u32) -> Option<u64> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name of the program may hold anything, also brackets.
    let mut fields = stat.rsplit_once(')')?.1.split_whitespace();
    let state = fields.next()?;
    if matches!(state, "Z" | "X") { None } else { fields.nth(18)?.parse().ok() }
}

/// The number of this process's namespace of process ids.
fn namespace() -> Option<u64> {
    let link = fs::read_link("/proc/self/ns/pid").ok()?;
    link.to_str()?.strip_prefix("pid:[")?.strip_suffix(']')?.parse().ok()
}

/// Marked directories, directly in `parents`, whose owner is gone. A link is none of ours.
pub fn abandoned(parents: &[PathBuf]) -> Vec<PathBuf> {
    let entries = parents.iter().filter_map(|parent| fs::read_dir(parent).ok()).flatten().flatten();
    let ours = entries.filter(|entry| {
        let owner = entry.file_name().to_str().and_then(Owner::of);
        entry.file_type().is_ok_and(|kind| kind.is_dir()) && owner.is_some_and(|owner| owner.is_gone())
    });
    let mut found: Vec<PathBuf> = ours.map(|entry| entry.path()).collect();
    found.sort();
    found.dedup();
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mark_can_be_read_back_wherever_it_stands() {
        let me = Owner::me();
        assert!(me.started > 0 && me.namespace > 0 && !me.is_gone());
        for name in [format!("assay-varnish-{}-x1", me.mark()), format!("assay-{}-1", me.mark())] {
            assert_eq!(Owner::of(&name), Some(me.clone()), "{name}");
        }
        for name in ["assay-varnish-Ab3xYz", "assay-m1_2", "assay-m1_2_3_4", "other-m1_2_3", "assay-mx_2_3"] {
            assert_eq!(Owner::of(name), None, "{name}");
        }
    }

    #[test]
    fn a_process_that_was_killed_is_gone_and_one_that_runs_is_not() {
        let mut child = std::process::Command::new("sleep").arg("600").spawn().unwrap();
        let owner = Owner { pid: child.id(), started: start_of(child.id()).unwrap(), ..Owner::me() };
        assert!(!owner.is_gone());
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(owner.is_gone());
    }
}
