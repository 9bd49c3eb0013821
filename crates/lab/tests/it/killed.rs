//! What is left when the lab itself is killed: nothing.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::runs::example;

fn start_lab() -> (Child, u32) {
    let mut lab = Command::new(example("killed_lab")).stdout(Stdio::piped()).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(lab.stdout.take().unwrap()).read_line(&mut line).unwrap();
    (lab, line.trim().parse().unwrap())
}

/// Waits for something that happens soon or never.
fn wait_for<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let deadline = Instant::now() + Duration::from_secs(30);
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(Instant::now() < deadline, "{what} did not happen");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Gone, or waiting to be collected by whoever inherits orphans.
fn is_gone(pid: u32) -> bool {
    std::fs::read_to_string(format!("/proc/{pid}/stat")).map_or(true, |stat| stat.contains(") Z "))
}

#[test]
fn a_killed_lab_leaves_no_process_and_no_directory_behind() {
    let (mut lab, first) = start_lab();
    let work: PathBuf = std::fs::read_link(format!("/proc/{first}/cwd")).unwrap();
    let second = wait_for("the second process", || {
        std::fs::read_to_string(work.join("second.pid")).ok()?.trim().parse::<u32>().ok()
    });
    lab.kill().unwrap();
    lab.wait().unwrap();
    wait_for("the end of the first process", || is_gone(first).then_some(()));
    wait_for("the end of the second process", || is_gone(second).then_some(()));
    wait_for("the end of the work directory", || (!Path::new(&work).exists()).then_some(()));
}
