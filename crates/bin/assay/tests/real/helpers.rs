//! What the tests of runs share: how they went, processes of theirs, and programs of this machine.

use std::path::Path;
use std::time::{Duration, Instant};

use crate::support::{Said, program, wait_until};

/// Nothing here takes longer, unless it hangs.
const PATIENCE: Duration = Duration::from_secs(300);

impl Said {
    /// Nothing was wrong. On a busy machine (96), a headline number may not be known.
    pub fn went_well(&self) -> bool {
        matches!(self.code, Some(0 | 96))
    }

    /// Checks that it went well, and shows everything when it did not.
    #[track_caller]
    pub fn ends_well(self) -> Self {
        assert!(self.went_well(), "code {:?}, stdout:\n{}\nstderr:\n{}", self.code, self.stdout, self.stderr);
        self
    }
}

/// Reads lines of standard error until a run has come to its `second`; gives that of the line, which may be a later one: on a busy
/// machine, not every second has a line.
pub fn wait_for_second(lines: &mut impl Iterator<Item = std::io::Result<String>>, second: u32) -> u32 {
    wait_until(lines, &format!("second {second}"), |line| {
        let (minutes, seconds) = line.split_whitespace().next()?.split_once(':')?;
        let at = minutes.parse::<u32>().ok()? * 60 + seconds.parse::<u32>().ok()?;
        (at >= second).then_some(at)
    })
}

/// The figures of a run in which this share of what came due was sent and completed: a machine that is very busy keeps requests from
/// being sent, and the run is repeated.
pub fn all_sent(share: f64, mut run: impl FnMut() -> serde_json::Value) -> serde_json::Value {
    let is_sent = |total: &serde_json::Value| {
        let counted =
            |field: &str| total[field].as_f64().unwrap_or_else(|| panic!("no {field} in {total:#}"));
        counted("completed") >= share * counted("due")
    };
    std::iter::repeat_with(&mut run).take(8).find(is_sent).expect("requests are sent in one of eight runs")
}

/// Processes whose command line names `directory`.
pub fn processes_of(directory: &Path) -> Vec<String> {
    let name = directory.display().to_string();
    let mut found = Vec::new();
    for entry in std::fs::read_dir("/proc").expect("Linux").flatten() {
        if let Ok(command) = std::fs::read(entry.path().join("cmdline")) {
            let command = String::from_utf8_lossy(&command).replace('\0', " ");
            if command.contains(&name) {
                found.push(command);
            }
        }
    }
    found
}

/// Waits until no process names `directory`.
pub fn assert_nothing_left(directory: &Path) {
    let started = Instant::now();
    loop {
        let left = processes_of(directory);
        if left.is_empty() {
            return;
        }
        assert!(started.elapsed() < PATIENCE, "still running: {left:#?}");
        std::thread::yield_now();
    }
}

/// Waits for the process whose command line ends in this file below the directory.
pub fn process_of(directory: &Path, file: &str) -> i32 {
    let begin = Instant::now();
    loop {
        for entry in std::fs::read_dir("/proc").expect("Linux").flatten() {
            let command = std::fs::read(entry.path().join("cmdline")).unwrap_or_default();
            let command = String::from_utf8_lossy(&command).replace('\0', " ");
            let is_it =
                command.contains(&directory.display().to_string()) && command.trim_end().ends_with(file);
            if let (true, Ok(pid)) = (is_it, entry.file_name().to_string_lossy().parse()) {
                return pid;
            }
        }
        assert!(begin.elapsed() < PATIENCE, "no process of {file}");
        std::thread::yield_now();
    }
}

/// Stops a role: nothing but its end reaches it until it is thawed.
pub fn freeze(pid: i32) {
    signal(pid, libc::SIGSTOP);
}

/// Lets a stopped role go on.
pub fn thaw(pid: i32) {
    signal(pid, libc::SIGCONT);
}

fn signal(pid: i32, signal: i32) {
    // SAFETY: a plain system call; the process is one that our child has started and holds.
    assert_eq!(unsafe { libc::kill(pid, signal) }, 0);
}

/// True where a program is on this machine; what [`program`] says of one that is not.
pub fn has(name: &str, package: &str) -> bool {
    let beyond_path = ["/usr/sbin", "/usr/local/sbin"].map(|directory| format!("{directory}/{name}"));
    program(&[name, &beyond_path[0], &beyond_path[1]], package).is_some()
}
