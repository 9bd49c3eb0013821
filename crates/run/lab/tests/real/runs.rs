//! Whole runs, with roles that only speak: what is recorded, and how everything ends.

use std::path::{Path, PathBuf};
use std::time::Duration;

use assay_lab::description::Description;
use assay_lab::{LabError, Mode, RunOutcome, RunPlan, TargetChoice};
use assay_measurement::doubt::Reason;
use assay_measurement::measured::Measured;
use assay_protocol::message::PhaseEvent;
use assay_record::dir::RunDir;
use assay_record::event::{RunEvent, Stage};
use assay_record::run::RunInfo;
use tokio::sync::{mpsc, watch};

use crate::examples::example;
use crate::origin::Origin;
use crate::proxies::installed;
use crate::testing;

/// A proxy that says something and ends.
const ENDS_AT_ONCE: &str = r#"
name = "short"
title = "Short Proxy"
modes = ["reverse"]
[version]
command = ["/bin/sh", "-c", "echo short/1.0"]
after = "short/"
[start]
command = ["/bin/sh", "-c", "echo the licence has run out >&2; exit 7"]
"#;

fn plan(behaviour: &str, target: TargetChoice) -> RunPlan {
    let mut plan = testing::plan();
    plan.workload.name = behaviour.into();
    plan.target = target;
    plan.exe = example("fake_role");
    plan
}

fn described(name: &str) -> Option<TargetChoice> {
    Some(TargetChoice::Described(Box::new(installed(name)?), Mode::Reverse))
}

struct Ran {
    result: Result<RunOutcome, LabError>,
    events: Vec<RunEvent>,
    run_dir: PathBuf,
}

impl Ran {
    fn info(&self) -> RunInfo {
        RunDir::open(&self.run_dir).unwrap().read_info().unwrap()
    }

    fn message(&self) -> String {
        self.result.as_ref().unwrap_err().to_string()
    }
}

impl Drop for Ran {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.run_dir);
    }
}

/// Runs a plan; `at` is called with each event and returns whether the run is to be stopped.
async fn run(plan: RunPlan, mut at: impl FnMut(&RunEvent) -> bool) -> Ran {
    let run_dir = plan.run_dir.clone();
    let (send, mut receive) = mpsc::unbounded_channel();
    let (stop, stopped) = watch::channel(false);
    let mut events: Vec<RunEvent> = Vec::new();
    let running = assay_lab::run(plan, send, stopped);
    tokio::pin!(running);
    let result = loop {
        tokio::select! {
            result = &mut running => break result,
            Some(event) = receive.recv() => {
                if at(&event) {
                    stop.send(true).unwrap();
                }
                events.push(event);
            }
        }
    };
    while let Ok(event) = receive.try_recv() {
        events.push(event);
    }
    Ran { result, events, run_dir }
}

/// Every process that was placed is gone.
fn assert_nothing_left(info: &RunInfo) {
    for placed in &info.placement {
        let there = Path::new(&format!("/proc/{}", placed.pid)).exists();
        assert!(!there, "{} ({}) is left behind", placed.role, placed.pid);
    }
}

#[tokio::test]
async fn a_run_leaves_a_complete_record() {
    let ran = run(plan("plain", TargetChoice::Builtin(Mode::Reverse)), |_| false).await;
    let outcome = ran.result.as_ref().unwrap();
    assert!(!outcome.verdict.is_disturbed() && !outcome.verdict.partial, "{:?}", outcome.verdict);
    let info = ran.info();
    assert!(info.finished && info.started_unix_ms % 1000 == 0);
    assert_eq!((info.phases[0].start_ms, info.phases[0].end_ms), (Some(0), Some(1000)));
    assert_eq!(info.boundaries, [vec![10]]);
    let roles: Vec<&str> = info.placement.iter().map(|placed| placed.role.as_str()).collect();
    assert_eq!(roles, ["origins", "proxy", "robots"]);
    let series = RunDir::open(&ran.run_dir).unwrap().read_series().unwrap();
    assert_eq!((series.robots.len(), series.origins.len(), series.proxy.len()), (1, 1, 1));
    assert_eq!(series.proxy[0].counters["hits"], 3.0);
    for kept in ["workload.json", "sources/01-small.pg", "roles/robots.json", "roles/origins.json"] {
        assert!(ran.run_dir.join(kept).is_file(), "{kept}");
    }
    assert!(matches!(ran.events.first(), Some(RunEvent::Stage(Stage::Planned { .. }))));
    assert!(matches!(ran.events.last(), Some(RunEvent::Finished)));
    assert_nothing_left(&info);
}

#[tokio::test]
async fn the_record_knows_of_a_phase_from_its_beginning() {
    let plan = plan("endless", TargetChoice::Direct);
    let run_dir = plan.run_dir.clone();
    let mut begun = None;
    let ran = run(plan, |event| {
        if matches!(event, RunEvent::Phase(PhaseEvent::Began { .. })) {
            begun = RunDir::open(&run_dir).unwrap().read_info().unwrap().phases[0].start_ms;
        }
        begun.is_some()
    })
    .await;
    assert_eq!(begun, Some(0), "a run that were killed now would not know of its phase");
    assert_nothing_left(&ran.info());
}

#[tokio::test]
async fn robots_may_speak_to_origins_directly() {
    let ran = run(plan("plain", TargetChoice::Direct), |_| false).await;
    assert!(!ran.result.as_ref().unwrap().verdict.is_disturbed());
    assert_eq!(ran.info().target.mode, "direct");
}

#[tokio::test]
async fn a_proxy_that_runs_already_is_checked_first_and_left_running() {
    let origin = Origin::start().await;
    let target = TargetChoice::Running { address: origin.address, mode: Mode::Reverse };
    let ran = run(plan("plain", target), |_| false).await;
    assert!(!ran.result.as_ref().unwrap().verdict.is_disturbed(), "{:?}", ran.result);
    assert_eq!(origin.requested("/assay/health"), ["GET"]);
    assert_eq!(ran.info().target.name, origin.address.to_string());
}

#[tokio::test]
async fn a_stop_drains_the_run_and_marks_it_partial() {
    let is_measured = |event: &RunEvent| matches!(event, RunEvent::Measured(Measured::Robots(_)));
    let ran = run(plan("endless", TargetChoice::Builtin(Mode::Reverse)), is_measured).await;
    let outcome = ran.result.as_ref().unwrap();
    assert!(outcome.verdict.partial && !outcome.verdict.is_disturbed(), "{:?}", outcome.verdict);
    let info = ran.info();
    assert!(info.finished && info.verdict.partial);
    assert!(ran.events.iter().any(|event| matches!(event, RunEvent::Stage(Stage::Draining))));
    assert_nothing_left(&info);
}

#[tokio::test]
async fn a_stop_before_the_first_request_is_an_interruption() {
    let is_starting = |event: &RunEvent| matches!(event, RunEvent::Stage(Stage::StartingOrigins));
    let ran = run(plan("plain", TargetChoice::Builtin(Mode::Reverse)), is_starting).await;
    assert!(matches!(ran.result, Err(LabError::Interrupted)), "{:?}", ran.result);
    assert_nothing_left(&ran.info());
}

#[tokio::test]
async fn robots_that_die_fail_the_run_and_what_was_measured_is_kept() {
    let ran = run(plan("robots-die", TargetChoice::Builtin(Mode::Reverse)), |_| false).await;
    assert!(ran.message().contains("robots ended (exit status: 3)"), "{}", ran.message());
    assert!(ran.message().contains("robots have had enough"));
    let info = ran.info();
    assert!(info.finished && info.verdict.is_disturbed() && info.verdict.partial);
    let series = RunDir::open(&ran.run_dir).unwrap().read_series().unwrap();
    assert_eq!(series.robots.len(), 1);
    assert_nothing_left(&info);
}

#[tokio::test]
async fn origins_that_die_fail_the_run() {
    let ran = run(plan("origins-die", TargetChoice::Builtin(Mode::Reverse)), |_| false).await;
    assert!(ran.message().contains("origins have had enough"), "{}", ran.message());
    assert!(ran.message().contains("What was measured until then is in"), "{}", ran.message());
    let fault = &ran.info().verdict.doubts[0];
    assert!(!fault.seen.contains("What was measured"), "the record points at itself: {fault:?}");
    assert_nothing_left(&ran.info());
}

#[tokio::test]
async fn a_role_that_does_not_start_says_why() {
    let ran = run(plan("robots-refuse", TargetChoice::Builtin(Mode::Reverse)), |_| false).await;
    let message = ran.message();
    assert!(message.contains("robots did not start"), "{message}");
    assert!(message.contains("robots do not like this workload"), "{message}");
    assert_nothing_left(&ran.info());
}

#[tokio::test]
async fn a_fault_of_a_role_leaves_the_numbers_unknown() {
    let ran = run(plan("fault", TargetChoice::Builtin(Mode::Reverse)), |_| false).await;
    let verdict = &ran.result.as_ref().unwrap().verdict;
    assert!(verdict.is_disturbed());
    let doubt = &verdict.doubts[0];
    assert_eq!((doubt.blame.name(), doubt.seen.as_str()), ("assay", "a timer broke"));
    assert_eq!(doubt.role, "robots");
}

#[tokio::test]
async fn a_thread_that_stood_still_disturbs_its_phase() {
    let ran = run(plan("stall", TargetChoice::Builtin(Mode::Reverse)), |_| false).await;
    let verdict = &ran.result.as_ref().unwrap().verdict;
    let doubt = &verdict.doubts[0];
    assert!(verdict.is_disturbed() && doubt.serious);
    assert_eq!((doubt.reason, doubt.role.as_str(), doubt.at_ms), (Reason::Stalled, "robots", Some(500)));
    assert_eq!(doubt.phases, [0]);
    assert!(ran.info().phases[0].disturbed);
    let told = |is: fn(&RunEvent) -> bool| ran.events.iter().any(is);
    assert!(told(|event| matches!(event, RunEvent::Measured(Measured::Stall(_)))));
    assert!(
        told(|event| matches!(event, RunEvent::Measured(Measured::Baseline(_)))),
        "also before everybody is ready"
    );
    assert!(told(|event| matches!(event, RunEvent::Measured(Measured::Thread(_)))));
    let series = RunDir::open(&ran.run_dir).unwrap().read_series().unwrap();
    assert_eq!((series.stalls.len(), series.baselines.len(), series.threads.len()), (1, 1, 1));
}

#[tokio::test]
async fn the_machine_and_its_network_are_watched_while_a_run_goes_on() {
    let is_measured = |event: &RunEvent| matches!(event, RunEvent::Measured(Measured::Network(_)));
    let ran = run(plan("endless", TargetChoice::Direct), is_measured).await;
    assert!(ran.result.is_ok(), "{:?}", ran.result);
    let series = RunDir::open(&ran.run_dir).unwrap().read_series().unwrap();
    assert!(!series.network.is_empty() && !series.processors.is_empty());
    assert!(series.host.iter().any(|interval| interval.role == "host"));
}

#[tokio::test]
async fn a_proxy_that_ends_at_once_shows_its_own_words() {
    let description = Description::read("short.toml", ENDS_AT_ONCE).unwrap();
    let target = TargetChoice::Described(Box::new(description), Mode::Reverse);
    let ran = run(plan("plain", target), |_| false).await;
    let message = ran.message();
    assert!(message.contains("Short Proxy did not start: it ended (exit status: 7)"), "{message}");
    assert!(message.contains("the licence has run out"), "{message}");
    assert!(!ran.result.as_ref().unwrap_err().before_start());
    assert!(ran.run_dir.join("proxy/output.log").is_file());
    assert_nothing_left(&ran.info());
}

#[tokio::test]
async fn a_proxy_that_never_responds_is_given_up() {
    let text = ENDS_AT_ONCE.replace("echo the licence has run out >&2; exit 7", "exec sleep 60");
    let text = format!("{text}\n[ready]\ntimeout-s = 0.2\n");
    let description = Description::read("short.toml", &text).unwrap();
    let target = TargetChoice::Described(Box::new(description), Mode::Reverse);
    let ran = run(plan("plain", target), |_| false).await;
    let message = ran.message();
    assert!(
        message.contains("got no response with status 200 within 200ms (last seen: Connection refused"),
        "{message}"
    );
}

#[tokio::test]
async fn a_real_proxy_runs_is_measured_and_is_gone() {
    let Some(target) = described("nginx") else { return };
    let is_measured = |event: &RunEvent| matches!(event, RunEvent::Measured(Measured::Host(interval)) if interval.role == "proxy");
    let ran = run(plan("endless", target), is_measured).await;
    assert!(!ran.result.as_ref().unwrap().verdict.is_disturbed(), "{:?}", ran.result);
    let info = ran.info();
    assert!(info.target.version.starts_with('1'), "{}", info.target.version);
    let series = RunDir::open(&ran.run_dir).unwrap().read_series().unwrap();
    assert!(series.host.iter().any(|interval| interval.role == "proxy" && interval.rss_bytes > 0));
    assert!(series.proxy.iter().any(|sample| sample.counters["requests"] >= 1.0));
    for kept in ["nginx.conf", "access.log", "description.toml"] {
        assert!(ran.run_dir.join("proxy").join(kept).is_file(), "{kept}");
    }
    assert_nothing_left(&info);
}

fn proxy_pid(run_dir: &Path) -> u32 {
    let info = RunDir::open(run_dir).unwrap().read_info().unwrap();
    info.placement.iter().find(|placed| placed.role == "proxy").unwrap().pid
}

#[tokio::test]
async fn a_real_proxy_that_dies_ends_the_run() {
    let Some(target) = described("nginx") else { return };
    let plan = plan("endless", target);
    let run_dir = plan.run_dir.clone();
    let ran = run(plan, |event| {
        if matches!(event, RunEvent::Started { .. }) {
            let pid = rustix::process::Pid::from_raw(proxy_pid(&run_dir).try_into().unwrap()).unwrap();
            rustix::process::kill_process(pid, rustix::process::Signal::TERM).unwrap();
        }
        false
    })
    .await;
    assert!(ran.message().contains("nginx ended by itself"), "{}", ran.message());
    // Its own last lines: the error log says what it was told.
    assert!(ran.message().contains("the last it said:\n"), "{}", ran.message());
    assert!(ran.message().contains("signal 15 (SIGTERM) received"), "{}", ran.message());
    let info = ran.info();
    assert!(info.finished && info.verdict.partial);
    assert_nothing_left(&info);
}

#[tokio::test]
async fn dropping_a_run_leaves_nothing_behind() {
    let Some(target) = described("nginx") else { return };
    let plan = plan("endless", target);
    let run_dir = plan.run_dir.clone();
    let (send, mut receive) = mpsc::unbounded_channel();
    let (_stop, stopped) = watch::channel(false);
    let mut running = Box::pin(assay_lab::run(plan, send, stopped));
    loop {
        tokio::select! {
            _ = &mut running => panic!("it ends only when dropped"),
            Some(event) = receive.recv() => if matches!(event, RunEvent::Measured(Measured::Robots(_))) { break },
        }
    }
    let info = RunDir::open(&run_dir).unwrap().read_info().unwrap();
    drop(running);
    // They are killed; the runtime waits for them in its own time.
    for placed in &info.placement {
        for _ in 0..1000 {
            let state = std::fs::read_to_string(format!("/proc/{}/stat", placed.pid)).unwrap_or_default();
            if state.is_empty() || state.contains(") Z ") {
                break;
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        let state = std::fs::read_to_string(format!("/proc/{}/stat", placed.pid)).unwrap_or_default();
        assert!(state.is_empty() || state.contains(") Z "), "{} is left behind: {state}", placed.role);
    }
    assert!(run_dir.join("proxy/nginx.conf").is_file());
    std::fs::remove_dir_all(&run_dir).unwrap();
}
