//! What Assay knows of its machine. Plans that it cannot carry are refused with the sums, processors are kept, calibrations
//! found again.

use std::io::{BufRead, BufReader};
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};

use assay_measurement::health::Calibration;
use assay_record::run::RunInfo;
use serde_json::Value;

use crate::support::{Assay, Said, assert_nothing_left, send, wait_for};

/// A workload of two seconds that requests `rate` (`100/sec`, or nothing for best effort).
pub fn small(rate: &str) -> String {
    let rate = if rate.is_empty() { String::new() } else { format!("req_rate = {rate};") };
    format!(
        r#"
Content C = {{ kind = "c"; size = const(1KB); cachable = 100%; }};
Server S = {{ kind = "s"; contents = [C]; direct_access = contents; addresses = ['10.0.0.1:80'];
    pconn_use_lmt = const(1000000); }};
Robot R = {{ kind = "r"; origins = S.addresses; {rate} recurrence = 50%; pconn_use_lmt = const(1000000);
    open_conn_lmt = 4; pop_model = {{ pop_distr = popUnif(); }}; addresses = ['10.0.1.1-4']; }};
Phase P = {{ name = "p"; goal.duration = 2sec; }};
schedule(P);
use(S, R);
"#
    )
}

/// Processors that this test may use.
fn processors() -> Vec<String> {
    let text = std::fs::read_to_string("/proc/self/status").expect("Linux");
    let line = text.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:")).expect("a list");
    let mut all = Vec::new();
    for range in line.trim().split(',') {
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        let number = |text: &str| text.parse::<u32>().expect("a number");
        all.extend((number(first)..=number(last)).map(|cpu| cpu.to_string()));
    }
    all
}

fn info(assay: &Assay, run_dir: &str) -> RunInfo {
    let text = std::fs::read_to_string(assay.path(run_dir).join("run.json")).expect("a run directory");
    serde_json::from_str(&text).expect("run.json")
}

/// Exit code 2, and no run directory.
fn refused(assay: &Assay, said: Said) -> Said {
    let said = said.exits(2);
    assert!(!assay.path("r").exists(), "a run directory was made for nothing");
    assert!(!said.stderr.contains("starting"), "{}", said.stderr);
    said
}

#[test]
fn processors_that_are_not_there_are_refused() {
    let assay = Assay::new();
    let run = |flags: &[&str]| assay.run(&[&["run", "demo", "--run-dir", "r"], flags].concat());
    let beyond = run(&["--robot-cpus", "0,4095"]);
    refused(&assay, beyond).complains("--robot-cpus names processor 4095, and Assay may use");
    refused(&assay, run(&["--origin-cpus", "3-1"])).complains("goes backwards");
    refused(&assay, run(&["--proxy-cpus", "x"])).complains("write processors like 0,2-3");
    refused(&assay, run(&["--direct", "--proxy-cpus", &processors()[0]])).complains("this run has none");
    refused(&assay, run(&["--no-pin", "--robot-cpus", "0"])).complains("--no-pin");
}

#[test]
fn spinning_has_an_end() {
    let assay = Assay::new();
    let run = |spin: &str| assay.run(&["run", "demo", "--run-dir", "r", "--spin", spin]);
    refused(&assay, run("2ms")).complains("1ms is the most");
    refused(&assay, run("50")).complains("50us");
}

#[test]
fn real_time_is_refused_where_the_kernel_does_not_allow_it() {
    const CAP_SYS_NICE: libc::c_ulong = 23;
    let assay = Assay::new();
    let mut command = assay.command(&["run", "demo", "--run-dir", "r", "--realtime"]);
    let give_up = || {
        let nothing = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
        // SAFETY: between fork and exec only plain system calls are made. A refusal of the first means that there was
        // no right to give up.
        unsafe {
            libc::prctl(libc::PR_CAPBSET_DROP, CAP_SYS_NICE, 0, 0, 0);
            match libc::setrlimit(libc::RLIMIT_RTPRIO, &raw const nothing) {
                0 => Ok(()),
                _ => Err(std::io::Error::last_os_error()),
            }
        }
    };
    // SAFETY: see above; nothing is allocated and no lock is taken.
    unsafe { command.pre_exec(give_up) };
    let said = refused(&assay, command.output().expect("the binary starts").into());
    said.complains("SCHED_FIFO").complains("CAP_SYS_NICE").complains("RLIMIT_RTPRIO is 0");
}

#[test]
fn a_plan_for_which_there_are_too_few_descriptors_is_refused_with_all_the_sums() {
    let assay = Assay::new();
    let line = format!("ulimit -n 64; exec '{}' run demo --run-dir r", env!("CARGO_BIN_EXE_assay"));
    let mut command = Command::new("/bin/sh");
    command.args(["-c", &line]).current_dir(assay.directory.path());
    let said = refused(&assay, command.output().expect("a shell").into());
    for words in [
        "descriptors of robots: 3300 needed (3200 connections open at once and 100 files, pipes and timers)",
        "there are 64 (the limit of a process, ulimit -n)",
        "descriptors of origins:",
        "descriptors of the proxy (builtin):",
        "open_conn_lmt",
    ] {
        assert!(said.stderr.contains(words), "no `{words}` in {}", said.stderr);
    }
}

#[test]
fn a_rate_that_no_processor_of_this_machine_can_carry_is_refused() {
    let assay = Assay::new();
    let name = assay.file("fast.pg", &small("2500000/sec"));
    for target in ["--direct", "--proxy=builtin"] {
        let said = refused(&assay, assay.run(&["run", name, "--run-dir", "r", target]));
        said.complains("processors of robots").complains("10000000 requests/s").complains("--calibrate");
    }
    // Nothing is said of processors where robots wait for their responses.
    let name = assay.file("best.pg", &small(""));
    let said = assay.run(&["check", name]).exits(0).stdout;
    assert!(said.contains("robots send each request when the last response is complete"), "{said}");
}

#[test]
fn more_memory_than_there_is_is_refused() {
    let assay = Assay::new();
    let said = refused(&assay, assay.run(&["run", "demo", "--run-dir", "r", "--memory", "900TB"]));
    said.complains("bytes of memory: 1.1 PB")
        .complains("cache 900 TB and a quarter more")
        .complains("--memory");
}

#[test]
fn check_shows_what_a_run_would_need_of_this_machine() {
    let assay = Assay::new();
    let said = assay.run(&["check", "image"]).exits(0).stdout;
    for words in [
        "this machine, through the built-in proxy",
        "descriptors of the proxy (builtin)",
        "source ports of a robot address",
        "bytes of memory",
        "processors of robots",
        "by processor time it can carry about",
    ] {
        assert!(said.contains(words), "no `{words}` in {said}");
    }
    let said = assay.run(&["check", "image", "--json"]).exits(0).stdout;
    let document: Value = serde_json::from_str(&said).expect("one JSON document");
    for need in document["machine"].as_array().expect("needs") {
        for field in ["name", "resource", "at_least", "needed", "available", "how", "has", "advice"] {
            assert!(!need[field].is_null(), "no {field} in {need:#}");
        }
    }
    // A machine that is too small for a workload can still explain it.
    let name = assay.file("fast.pg", &small("2500000/sec"));
    let said = assay.run(&["check", name]).exits(0).stdout;
    assert!(said.contains("TOO LITTLE"), "{said}");
}

#[test]
fn processors_that_are_named_are_used_and_kept_in_the_record() {
    let assay = Assay::new();
    let name = assay.file("small.pg", &small("10/sec"));
    let cpus = processors();
    let (first, last) = (&cpus[0], &cpus[cpus.len() - 1]);
    let flags = ["--robot-cpus", last, "--origin-cpus", first, "--spin", "20us", "--no-report"];
    let said = assay.run(&[&["run", name, "--direct", "--run-dir", "r"], flags.as_slice()].concat());
    assert!(said.went_well(), "{said:?}");
    let info = info(&assay, "r");
    let placed = |role: &str| {
        let of_role = info.placement.iter().find(|placed| placed.role == role).expect("placed");
        of_role.cpus.iter().map(ToString::to_string).collect::<Vec<_>>()
    };
    assert_eq!((placed("robots"), placed("origins")), (vec![last.clone()], vec![first.clone()]));
}

#[test]
fn a_calibration_is_kept_and_later_runs_find_it() {
    let assay = Assay::new();
    let name = assay.file("small.pg", &small("50/sec"));
    let flags = ["run", name, "--calibrate", "--rehearse", "15s", "--json"];
    let said = assay.run(&flags);
    assert!(said.stderr.contains("x the peak): "), "no steps: {}", said.stderr);
    if said.code == Some(96) {
        // A machine that is busy with other tests carries nothing without a doubt, and then nothing is kept.
        assert!(!assay.path("runs/calibrations").exists());
        return;
    }
    let said = said.exits(0);
    let found: Calibration = serde_json::from_str(&said.stdout).expect("one JSON document");
    assert_eq!(found.schema, Calibration::SCHEMA);
    assert!(found.requests_per_s > 0.0 && !found.limit.is_empty() && !found.steps.is_empty(), "{found:#?}");
    let path = assay.path("runs/calibrations").join(format!("{}.json", found.key));
    let kept: Calibration = serde_json::from_slice(&std::fs::read(&path).expect("kept")).expect("whole");
    assert_eq!(kept, found);
    let files = std::fs::read_dir(assay.path("runs")).expect("a directory").count();
    assert_eq!(files, 1, "a step left its run directory");

    // Where it says that there is less than the schedule requests, the user is warned.
    let slow = Calibration { requests_per_s: 1.0, ..found };
    std::fs::write(&path, serde_json::to_vec(&slow).expect("JSON")).expect("a writable directory");
    let said = assay.run(&["run", name, "--run-dir", "runs/r", "--no-report"]);
    assert!(said.went_well(), "{said:?}");
    let said = said.complains("up to 200 requests/s, and this machine was calibrated to offer 1");
    drop(said);
    assert_eq!(info(&assay, "runs/r").calibration.expect("found").requests_per_s, 1.0);
}

#[test]
fn best_effort_robots_are_calibrated_by_their_median() {
    let assay = Assay::new();
    let name = assay.file("best.pg", &small(""));
    let said = assay.run(&["run", name, "--calibrate", "--rehearse", "15s"]).exits(0);
    assert_eq!(said.stderr.matches("best effort: ").count(), 3, "{}", said.stderr);
    assert!(said.stdout.contains("this machine can offer"), "{}", said.stdout);
}

#[test]
fn a_calibration_that_is_too_short_is_refused() {
    Assay::new().run(&["run", "demo", "--calibrate", "--rehearse", "5s"]).exits(2).complains("at least 15s");
    Assay::new().run(&["run", "demo", "--calibrate", "--xact-log"]).exits(2).complains("--xact-log");
}

#[test]
fn an_interrupted_calibration_leaves_nothing() {
    let assay = Assay::new();
    let name = assay.file("small.pg", &small("50/sec"));
    let mut command = assay.command(&["run", name, "--calibrate"]);
    command.env("TMPDIR", assay.directory.path()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().expect("the binary starts");
    let mut lines = BufReader::new(child.stderr.take().expect("piped")).lines();
    wait_for(&mut lines, "calibrating small");
    send(&child, libc::SIGINT);
    let rest: Vec<_> = lines.map_while(Result::ok).collect();
    let said = Said::from(child.wait_with_output().expect("ends"));
    assert_eq!(said.code, Some(105), "{said:?} {rest:#?}");
    assert_nothing_left(assay.directory.path());
    let left: Vec<_> = std::fs::read_dir(assay.directory.path()).expect("a directory").flatten().collect();
    assert_eq!(left.len(), 1, "{left:?}");
}
