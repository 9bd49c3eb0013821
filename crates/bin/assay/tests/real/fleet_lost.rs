//! Runs on several machines when somebody is killed: what the run says, what is left behind, and how the run is taken up.

use std::path::Path;
use std::process::{Child, Command, Stdio};

use assay_record::dir::RunDir;
use assay_record::experiment::ExperimentInfo;

use crate::fleet::{ON, Up, due, info, wait_until};
use crate::helpers::processes_of;
use crate::samples::SPECIAL;
use crate::support::{Assay, Said};

/// The process of an agent of `assay fleet up`.
fn agent_of(up: &Up, name: &str) -> u32 {
    let children =
        std::fs::read_to_string(format!("/proc/{0}/task/{0}/children", up.child.id())).expect("Linux");
    let named = |pid: &u32| {
        let command = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        String::from_utf8_lossy(&command).contains(&format!("--name\0{name}\0"))
    };
    children.split_whitespace().filter_map(|pid| pid.parse().ok()).find(named).expect("the agent runs")
}

/// A run on agents whose schedule has begun, and goes on for longer than any test.
fn run_that_goes_on(assay: &Assay, up: &Up, directory: &str) -> Child {
    run_that_has_begun(assay, up, directory, &["--duration", "60s"])
}

/// A run on agents whose schedule has begun.
fn run_that_has_begun(assay: &Assay, up: &Up, directory: &str, more: &[&str]) -> Child {
    let workload = assay.file("special.pg", SPECIAL);
    let flags = ["--run-dir", directory, "--no-report", "--no-live"];
    let mut command =
        assay.command(&[&["run", workload, "--fleet", &up.url][..], &flags, more, &ON].concat());
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("the binary starts");
    wait_until("the schedule has begun", || begun(&assay.path(directory)));
    child
}

#[test]
fn an_agent_that_is_killed_ends_the_run_which_names_it() {
    let assay = Assay::new();
    let Some(up) = Up::start(&assay, "3") else { return };
    let child = run_that_goes_on(&assay, &up, "lost");
    let killed = Command::new("kill").args(["-s", "KILL", &agent_of(&up, "m3").to_string()]).status();
    assert!(killed.expect("kill").success());
    let said: Said = child.wait_with_output().expect("ends").into();
    assert_eq!(said.code, Some(1), "{said:?}");
    assert!(
        said.stderr.contains("the machine m3 was lost") && said.stderr.contains("it ran origins"),
        "{said:?}"
    );
    let fleet = info(&assay.path("lost")).fleet.expect("it ran on machines");
    let lost: Vec<_> = fleet.machines.iter().filter(|machine| machine.lost_at_ms.is_some()).collect();
    assert!(lost.len() == 1 && lost[0].name == "m3", "{fleet:?}");
    assert!(due(&assay.path("lost")).0 > 0, "what was measured until then is kept");
}

#[test]
fn a_server_that_is_lost_is_named_and_not_the_machines_alone() {
    let assay = Assay::new();
    let Some(up) = Up::start(&assay, "2") else { return };
    let child = run_that_goes_on(&assay, &up, "lost");
    wait_until("something was measured", || due(&assay.path("lost")).0 > 0);
    up.end(libc::SIGKILL);
    let said: Said = child.wait_with_output().expect("ends").into();
    assert_eq!(said.code, Some(1), "{said:?}");
    assert!(said.stderr.contains("SILENT: nothing was reported for"), "{said:?}");
    for machine in ["m1", "m2"] {
        assert!(said.stderr.contains(&format!("the machine {machine} was lost")), "{said:?}");
    }
    assert!(said.stderr.contains("there is no connection to the NATS server"), "{said:?}");
    assert!(due(&assay.path("lost")).0 > 0, "what was measured until then is kept");
}

/// The schedule of a run has begun, and something was reported of it.
fn begun(directory: &Path) -> bool {
    let info = RunDir::open(directory).and_then(|dir| dir.read_info());
    info.is_ok_and(|info| info.phases.iter().any(|phase| phase.start_ms.is_some()))
}

#[test]
fn a_coordinator_that_is_killed_leaves_no_role_behind() {
    let assay = Assay::new();
    let Some(up) = Up::start(&assay, "3") else { return };
    let mut child = run_that_goes_on(&assay, &up, "cut");
    let roles = || processes_of(assay.directory.path()).iter().filter(|line| line.contains(" role ")).count();
    assert_eq!(roles(), 3);
    child.kill().and_then(|()| child.wait()).expect("a child can be killed");
    wait_until("agents have ended their roles", || roles() == 0);
    wait_until("all agents are idle", || {
        let list = assay.run(&["fleet", "--nats", &up.url]).stdout;
        list.matches("idle").count() == 3
    });
}

/// How many streams the server of a fleet has.
fn streams(assay: &Assay) -> usize {
    let left = std::fs::read_dir(assay.directory.path()).expect("a directory").flatten();
    let fleet = left.map(|entry| entry.path()).find(|path| path.join("m1").exists()).expect("a fleet's own");
    std::fs::read_dir(fleet.join("jetstream/jetstream/$G/streams")).map_or(0, Iterator::count)
}

fn all_idle(assay: &Assay, up: &Up, agents: usize) -> bool {
    assay.run(&["fleet", "--nats", &up.url]).stdout.matches("idle").count() == agents
}

#[test]
fn a_run_whose_coordinator_is_killed_is_taken_up_and_has_the_same_requests() {
    let assay = Assay::new();
    let Some(up) = Up::start(&assay, "4") else { return };
    let length = ["--duration", "12s"];
    let whole = assay.file("special.pg", SPECIAL);
    let whole =
        assay.run(&[&["run", whole, "--run-dir", "whole", "--no-report", "--no-live"][..], &length].concat());
    assert!(whole.went_well(), "{whole:?}");
    let waiting = [&length[..], &["--agents-wait", "2m"]].concat();
    let mut child = run_that_has_begun(&assay, &up, "cut", &waiting);
    let resume = || assay.run(&["fleet", "resume", "cut", "--no-report", "--no-live"]);
    resume().exits(2).complains("still runs");
    wait_until("the first coordinator has written requests down", || due(&assay.path("cut")).0 > 0);
    child.kill().and_then(|()| child.wait()).expect("a child can be killed");
    assert!(!info(&assay.path("cut")).finished);
    let said = resume();
    assert!(said.went_well(), "{said:?}");
    assert_eq!(due(&assay.path("cut")), due(&assay.path("whole")), "requests, digest, offered hits, errors");
    let info = info(&assay.path("cut"));
    let fleet = info.fleet.clone().expect("it ran on machines");
    assert!(info.finished && !info.verdict.partial && fleet.away_ms.len() == 1, "{info:#?}");
    assert!(
        info.verdict.warnings.iter().any(|words| words.contains("the run had no coordinator")),
        "{:?}",
        info.verdict.warnings
    );
    assert_eq!(fleet.machines[0].robots.zip(fleet.machines[3].robots), Some(((0, 19), (20, 39))));
    for machine in &fleet.machines {
        // One host has one clock: whatever is stated, the truth (0) is inside.
        let error_us = machine.start_error_us.expect("measured");
        assert!(machine.offset_ns.unsigned_abs().div_ceil(1000) <= error_us, "{machine:?}");
        assert!(machine.clock_error_us.is_some() && machine.lost_at_ms.is_none(), "{machine:?}");
    }
    assert!(assay.path("cut/machines/m1/roles/robots.log").exists(), "logs of machines are brought");
    assert!(!assay.path("cut/coordinator.json").exists());
    assert!(all_idle(&assay, &up, 4) && streams(&assay) == 0, "nothing of it stays");
    resume().exits(2).complains("has ended");
}

#[test]
fn an_experiment_goes_on_behind_a_cell_that_was_taken_up() {
    let assay = Assay::new();
    let Some(up) = Up::start(&assay, "3") else { return };
    assay.file("special.pg", SPECIAL);
    let text = "workloads = [\"special.pg\"]\nrepetitions = 1\nretries = 0\nrehearse = \"8s\"\n\
                [[proxy]]\nname = \"builtin\"\nmemory = [\"8MB\", \"16MB\"]\n";
    assay.file("memory.toml", text);
    let flags = ["lab", "memory.toml", "--no-live", "--fleet", &up.url, "--agents-wait", "2m"];
    let on = [&flags[..], &ON].concat();
    let experiment = || -> Option<ExperimentInfo> {
        serde_json::from_slice(&std::fs::read(assay.path("e/experiment.json")).ok()?).ok()
    };
    let mut command = assay.command(&[&on[..], &["--dir", "e"]].concat());
    let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("the binary starts");
    let mut first: Option<String> = None;
    wait_until("the first cell has requests", || {
        let run = experiment().and_then(|it| it.cells[0].run.clone()).map(|run| format!("e/{run}"));
        first = run.filter(|run| begun(&assay.path(run)));
        first.as_ref().is_some_and(|run| due(&assay.path(run)).0 > 0)
    });
    let first = first.expect("it runs");
    child.kill().and_then(|()| child.wait()).expect("a child can be killed");
    let said = assay.run(&["fleet", "resume", &first, "--no-report", "--no-live"]);
    assert!(said.went_well(), "{said:?}");
    let said = assay.run(&[&on[..], &["--resume", "e"]].concat());
    assert!(
        said.went_well() && said.stderr.contains("ended after the experiment had been interrupted"),
        "{said:?}"
    );
    let experiment = experiment().expect("its head");
    let tries: Vec<u32> = experiment.cells.iter().map(|cell| cell.tries).collect();
    assert!(experiment.finished && tries == [1, 1], "{experiment:#?}");
    let runs =
        experiment.cells.iter().map(|cell| due(&assay.path("e").join(cell.run.as_ref().expect("ran"))));
    let runs: Vec<_> = runs.collect();
    assert_eq!((runs[0].1, runs[0].3), (runs[1].1, 0), "both proxies got the same requests: {runs:?}");
}

#[test]
fn a_run_that_is_taken_up_too_late_has_what_was_stored_and_says_what_is_missing() {
    let assay = Assay::new();
    let Some(up) = Up::start(&assay, "3") else { return };
    let mut child = run_that_goes_on(&assay, &up, "cut");
    child.kill().and_then(|()| child.wait()).expect("a child can be killed");
    wait_until("all agents are idle", || all_idle(&assay, &up, 3));
    let before = due(&assay.path("cut"));
    let said = assay.run(&["fleet", "resume", "cut", "--no-report", "--no-live"]);
    assert_eq!(said.code, Some(1), "{said:?}");
    said.complains("the machine m1 was lost").complains("its agent waited 15s for a coordinator");
    let after = due(&assay.path("cut"));
    assert!(after.0 > before.0, "what was stored afterwards was collected: {after:?}, {before:?} before");
    let info = info(&assay.path("cut"));
    let fleet = info.fleet.clone().expect("it ran on machines");
    // Agents have waited for 15 s, and have reported meanwhile.
    assert!(fleet.machines.iter().all(|machine| machine.lost_at_ms.is_some_and(|at_ms| at_ms > 10_000)));
    assert!(info.finished && info.verdict.partial, "{info:#?}");
    assert_eq!(streams(&assay), 0, "nothing of it stays");
}

#[test]
fn a_run_that_had_not_begun_when_its_coordinator_was_killed_is_ended() {
    let assay = Assay::new();
    let Some(up) = Up::start(&assay, "3") else { return };
    let mut child = run_that_has_begun(&assay, &up, "cut", &["--duration", "60s", "--agents-wait", "1h"]);
    child.kill().and_then(|()| child.wait()).expect("a child can be killed");
    let path = assay.path("cut/coordinator.json");
    let mut saved: serde_json::Value =
        serde_json::from_slice(&std::fs::read(&path).expect("it is there")).expect("JSON");
    saved["start"] = serde_json::Value::Null;
    std::fs::write(&path, saved.to_string()).expect("can be written");
    let resume = || assay.run(&["fleet", "resume", "cut", "--no-report", "--no-live"]);
    resume().exits(1).complains("had not begun");
    assert!(all_idle(&assay, &up, 3) && streams(&assay) == 0, "its machines are free, long before an hour");
    resume().exits(2).complains("there is no run to take up");
}

#[test]
fn a_fleet_that_is_killed_takes_its_agents_and_their_roles_with_it() {
    let assay = Assay::new();
    let Some(up) = Up::start(&assay, "2") else { return };
    wait_until("everybody runs", || processes_of(assay.directory.path()).len() >= 3);
    up.end(libc::SIGKILL);
    wait_until("nothing of the fleet runs", || processes_of(assay.directory.path()).is_empty());
    // Its directory stays until the next one starts.
    let of_fleets = || {
        let entries = std::fs::read_dir(assay.directory.path()).expect("a directory").flatten();
        let names = entries.map(|entry| entry.file_name().to_string_lossy().into_owned());
        names.filter(|name| name.starts_with("assay-fleet-")).collect::<Vec<_>>()
    };
    let left = of_fleets();
    assert_eq!(left.len(), 1, "{left:?}");
    let next = Up::start(&assay, "1").expect("the server is there, as before");
    assert!(!of_fleets().contains(&left[0]), "what was left behind is removed");
    next.end(libc::SIGINT);
    wait_until("nothing of the next runs", || processes_of(assay.directory.path()).is_empty());
    assert!(of_fleets().is_empty());
}
