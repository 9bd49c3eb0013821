//! What is left when the lab itself is killed: nothing.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::examples::example;

fn start_lab(how: &str, temp: &Path) -> Child {
    let mut command = Command::new(example("killed_lab"));
    command.arg(how).arg(temp).stdout(Stdio::piped()).spawn().unwrap()
}

fn first_process(lab: &mut Child) -> u32 {
    let mut line = String::new();
    BufReader::new(lab.stdout.take().unwrap()).read_line(&mut line).unwrap();
    line.trim().parse().unwrap()
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

/// Gone, or waiting to be collected by the process that inherits orphans.
fn is_gone(pid: u32) -> bool {
    std::fs::read_to_string(format!("/proc/{pid}/stat")).map_or(true, |stat| stat.contains(") Z "))
}

#[test]
fn a_killed_lab_leaves_no_process_and_no_directory_behind() {
    let temp = tempfile::tempdir().unwrap();
    let mut lab = start_lab("running", temp.path());
    let first = first_process(&mut lab);
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

/// The id that a program wrote into a file of the only directory in `temp`.
fn pid_in(temp: &Path, file: &str) -> Option<u32> {
    let work = std::fs::read_dir(temp).ok()?.flatten().next()?;
    std::fs::read_to_string(work.path().join(file)).ok()?.trim().parse().ok()
}

#[test]
fn a_lab_that_is_killed_before_its_proxy_runs_leaves_nothing_behind_either() {
    let temp = tempfile::tempdir().unwrap();
    let mut lab = start_lab("preparing", temp.path());
    let preparing = wait_for("the preparation", || pid_in(temp.path(), "preparing.pid"));
    lab.kill().unwrap();
    lab.wait().unwrap();
    wait_for("the end of the preparation", || is_gone(preparing).then_some(()));
    let is_empty = || (std::fs::read_dir(temp.path()).unwrap().count() == 0).then_some(());
    wait_for("the end of the work directory", is_empty);
}

/// The process that watches over a work directory below `temp`.
fn keeper(temp: &Path) -> Option<u32> {
    let temp = temp.display().to_string();
    std::fs::read_dir("/proc").ok()?.flatten().find_map(|entry| {
        let command =
            String::from_utf8_lossy(&std::fs::read(entry.path().join("cmdline")).ok()?).into_owned();
        let is_it = command.contains("assay-keeper") && command.contains(&temp);
        is_it.then(|| entry.file_name().to_string_lossy().parse().ok())?
    })
}

#[test]
fn what_is_left_when_everything_is_killed_goes_at_the_next_start() {
    let temp = tempfile::tempdir().unwrap();
    let temps = [temp.path().to_owned()];
    let mut lab = start_lab("running", temp.path());
    let first = first_process(&mut lab);
    let work: PathBuf = std::fs::read_link(format!("/proc/{first}/cwd")).unwrap();
    let second = wait_for("the second process", || {
        std::fs::read_to_string(work.join("second.pid")).ok()?.trim().parse::<u32>().ok()
    });
    assert_eq!(assay_lab::cleanup::clear_in(&temps, &[]), [""; 0], "its owner still runs");
    let keeper = wait_for("the keeper", || keeper(temp.path()));
    for pid in [keeper, second] {
        let pid = rustix::process::Pid::from_raw(i32::try_from(pid).unwrap()).unwrap();
        rustix::process::kill_process(pid, rustix::process::Signal::KILL).unwrap();
    }
    lab.kill().unwrap();
    lab.wait().unwrap();
    wait_for("the end of the first process", || is_gone(first).then_some(()));
    assert!(work.exists());
    let said = assay_lab::cleanup::clear_in(&temps, &[]);
    assert!(said.len() == 1 && said[0].contains("removed the work directory"), "{said:?}");
    assert!(!work.exists());
}
