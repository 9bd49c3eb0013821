//! What Assay knows of its machine. Plans that it cannot carry are refused with the sums.

use std::os::unix::process::CommandExt;
use std::process::Command;

use serde_json::Value;

use crate::samples::small;
use crate::support::{Assay, Said, processors};

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
fn a_calibration_that_is_too_short_is_refused() {
    Assay::new().run(&["run", "demo", "--calibrate", "--rehearse", "5s"]).exits(2).complains("at least 15s");
    Assay::new().run(&["run", "demo", "--calibrate", "--xact-log"]).exits(2).complains("--xact-log");
}
