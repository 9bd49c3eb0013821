//! Assay knows when it, or the machine, shaped a number, and says so; and it never takes a slow target for that.
//!
//! Each test spoils a run in one way. No number that was spoiled may be called known, and its interval holds what it was
//! without that; numbers that nothing happened to stay known; and the reason is found under its own name. A busy machine
//! may add doubts of its own, so no test requires that there be no others, except where the target is slow: there, only the
//! machine may be blamed.

use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use assay_measurement::doubt::{Doubt, Reason};
use assay_record::run::RunInfo;
use assay_testbed::skip;
use rustix::process::{Pid, Signal, kill_process};
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
use serde_json::{Value, json};

use crate::faulty::{Fault, Faulty};
use crate::run_command::{Ran, at, own_address, run, run_clock_ms, start, workload};

/// Exit code of a run of which a headline number is not known.
const UNDECIDED: i32 = 96;

/// An origin that does not think, on this machine, takes less than this if nobody is late, in milliseconds.
const QUIET_MS: f64 = 5.0;

fn file(name: &str) -> String {
    workload(name).to_str().expect("UTF-8").to_owned()
}

fn binary() -> Command {
    Command::new(env!("CARGO_BIN_EXE_assay"))
}

/// What was found for a reason, of what is serious.
fn found(ran: &Ran, reason: Reason) -> Vec<Doubt> {
    let doubts = ran.info().verdict.doubts;
    doubts.into_iter().filter(|doubt| doubt.reason == reason && doubt.serious).collect()
}

/// All doubts, for a message.
fn all(ran: &Ran) -> String {
    ran.info()
        .verdict
        .doubts
        .iter()
        .map(|doubt| format!("{} {}\n", doubt.reason.name(), doubt.seen))
        .collect()
}

/// Names of the headline numbers that are not known.
fn unknown(ran: &Ran) -> Vec<&str> {
    let names = ran.json["headline"]["unknown"].as_array().expect("a list");
    names.iter().filter_map(Value::as_str).collect()
}

/// Nothing was required, so the exit code is that of the headline numbers.
fn leaves_unknown(ran: &Ran, names: &[&str]) {
    assert_eq!(unknown(ran), names, "{}{:#}", all(ran), ran.json["headline"]);
    assert_eq!(ran.code, if names.is_empty() { 0 } else { UNDECIDED }, "{}", all(ran));
}

/// A number of a phase, `response_time_ms.all.p99`, and how well it is known; none: there is nothing to measure.
fn number<'a>(phase: &'a Value, span: &str, class: &str, name: &str) -> Option<(Option<f64>, &'a Value)> {
    let times = &phase[span][class];
    let own = &times["own"][name];
    (!own.is_null()).then(|| (times[name].as_f64(), own))
}

const SPANS: [&str; 3] = ["response_time_ms", "service_time_ms", "ttfb_ms"];
const CLASSES: [&str; 5] = ["all", "completed", "hit", "miss", "other"];
const NAMES: [&str; 6] = ["mean", "p50", "p90", "p99", "p999", "max"];

/// No number of a phase that is longer than an undisturbed response can take is called known, and the interval of each
/// holds such a response. Gives how many were longer.
fn no_spoiled_number_is_known(phase: &Value) -> usize {
    let mut spoiled = 0;
    for (span, class) in SPANS.into_iter().flat_map(|span| CLASSES.map(|class| (span, class))) {
        for name in NAMES {
            let Some((Some(value), own)) = number(phase, span, class, name) else { continue };
            if value <= QUIET_MS {
                continue;
            }
            let what = format!("{} {span} {class} {name}: {value} ms, {own}", phase["name"]);
            assert_ne!(own["certainty"], "known", "{what}");
            assert!(own["low"].as_f64().is_none_or(|low| low <= QUIET_MS), "{what}");
            spoiled += 1;
        }
    }
    spoiled
}

/// What was counted stands: nothing of it was lost.
fn counts_are_known(ran: &Ran) {
    let known = ran.json["headline"]["known"].as_array().expect("a list");
    for name in ["dhr", "bhr", "errors"] {
        assert!(known.contains(&json!(name)), "{name}: {:#}", ran.json["headline"]);
    }
    assert_eq!(ran.errors_total(), 0, "{}", ran.json["total"]["errors"]);
}

/// Two processors to play with; none: there is only one.
fn two_processors() -> Option<(usize, usize)> {
    let set = sched_getaffinity(None).expect("the kernel knows");
    let mut cpus = (0..CpuSet::MAX_CPU).filter(|cpu| set.is_set(*cpu));
    let both = cpus.next().zip(cpus.next());
    if both.is_none() {
        skip("this needs two processors");
    }
    both
}

/// A thread that keeps a processor busy until it is dropped.
struct Burner {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Burner {
    fn on(cpu: usize) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = stop.clone();
        let thread = thread::spawn(move || {
            let mut set = CpuSet::new();
            set.set(cpu);
            sched_setaffinity(None, &set).expect("the processor is there");
            while !stopped.load(Ordering::Relaxed) {
                std::hint::spin_loop();
            }
        });
        Self { stop, thread: Some(thread) }
    }
}

impl Drop for Burner {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.take().map(JoinHandle::join);
    }
}

/// Busy loops beside a role: beside one alone, a role that sleeps often waits for some microseconds only, which changes little.
const LOOPS: usize = 3;

/// One of these reasons is found in a role. On a busy machine another role can be worse, and this one no serious doubt.
fn is_named(ran: &Ran, role: &str, reasons: &[Reason]) {
    let doubts = ran.info().verdict.doubts;
    assert!(doubts.iter().any(|doubt| doubt.role == role && reasons.contains(&doubt.reason)), "{}", all(ran));
}

/// Robots on one processor and origins on the other, with busy loops beside one of them.
fn beside_a_busy_loop(burn_robots: bool) -> Option<Ran> {
    let (robots, origins) = two_processors()?;
    let _burners = [(); LOOPS].map(|()| Burner::on(if burn_robots { robots } else { origins }));
    let [robots, origins] = [robots, origins].map(|cpu| cpu.to_string());
    Some(run(&[&file("busy.pg"), "--direct", "--robot-cpus", &robots, "--origin-cpus", &origins]))
}

#[test]
fn robots_beside_a_busy_loop_are_starved_or_late_and_call_no_time_known_that_holds_it() {
    let Some(ran) = beside_a_busy_loop(true) else { return };
    leaves_unknown(&ran, &[]);
    assert!(no_spoiled_number_is_known(&ran.phases()[0]) > 0, "{:#}", ran.phases()[0]["response_time_ms"]);
    is_named(&ran, "robots", &[Reason::Starved, Reason::Late, Reason::Stalled]);
}

#[test]
fn origins_beside_a_busy_loop_are_starved_and_no_time_is_called_known_that_holds_it() {
    let Some(ran) = beside_a_busy_loop(false) else { return };
    leaves_unknown(&ran, &[]);
    assert!(no_spoiled_number_is_known(&ran.phases()[0]) > 0, "{:#}", ran.phases()[0]["response_time_ms"]);
    is_named(&ran, "origins", &[Reason::Starved, Reason::Stalled]);
}

fn pid_of(info: &RunInfo, role: &str) -> Pid {
    let placed = info.placement.iter().find(|placed| placed.role == role).expect("the role was placed");
    Pid::from_raw(placed.pid.try_into().expect("a process")).expect("a process")
}

/// Stops a role for 300 ms in the middle of the second phase, of four seconds: one request in thirteen meets that, which is
/// what the 99th percentile is made of, and not the median.
fn stopped(role: &str, workload_file: &str) {
    let mut going = start(binary(), &[&file(workload_file), "--direct"]);
    let info = going.wait_for(1, 1_500);
    let pid = pid_of(&info, role);
    let stopped_ms = run_clock_ms(&info);
    kill_process(pid, Signal::STOP).expect("it runs");
    thread::sleep(Duration::from_millis(300));
    kill_process(pid, Signal::CONT).expect("it is there");
    let ran = going.wait();
    leaves_unknown(&ran, &[]);
    counts_are_known(&ran);
    let phase = &ran.phases()[1];
    no_spoiled_number_is_known(phase);
    for (class, name) in ["all", "completed", "miss"]
        .into_iter()
        .flat_map(|class| ["p99", "p999", "max"].map(|name| (class, name)))
    {
        let (value, own) = number(phase, "response_time_ms", class, name).expect("requests were answered");
        let what = format!("{class} {name}: {value:?} ms, {own}");
        assert!(value > Some(100.0), "it holds the stall: {what}");
        assert_eq!(own["certainty"], "roughly", "{what}");
        assert!(own["low"].as_f64().is_some_and(|low| low <= QUIET_MS), "{what}");
        assert!(own["high"].as_f64() >= value, "{what}");
    }
    let stalls = found(&ran, Reason::Stalled);
    let stall = stalls.iter().find(|doubt| doubt.role == role).unwrap_or_else(|| panic!("{}", all(&ran)));
    // On a busy machine it need not be the longest, which the doubt begins with.
    let then = |at_ms: u64| at_ms.abs_diff(stopped_ms) < 1_000;
    let series = ran.series();
    let mine = series.stalls.iter().filter(|stall| stall.role == role && then(stall.at_ms));
    let longest = mine
        .max_by_key(|stall| stall.length_us)
        .unwrap_or_else(|| panic!("at {stopped_ms} ms: {}", stall.seen));
    assert!(longest.length_us > 200_000, "{longest:?}");
    assert!(longest.cpu_us + longest.run_delay_us < longest.length_us / 2, "it was stopped: {longest:?}");
    assert!(stall.phases.contains(&1) && ran.info().phases[1].disturbed, "{stall:?}");
}

#[test]
fn robots_that_are_stopped_for_a_moment_stalled_then_and_no_time_is_called_known_that_holds_it() {
    stopped("robots", "steady.pg");
}

#[test]
fn origins_that_are_stopped_for_a_moment_stalled_then_and_no_time_is_called_known_that_holds_it() {
    stopped("origins", "steady.pg");
}

/// With one connection each, robots keep most requests of that time waiting for the first of them: they are sent when all is
/// over, and nothing delays them any more.
#[test]
fn what_waited_for_a_connection_while_robots_were_stopped_is_not_called_known() {
    stopped("robots", "narrow.pg");
}

#[test]
fn what_waited_for_a_connection_while_origins_were_stopped_is_not_called_known() {
    stopped("origins", "narrow.pg");
}

/// A plan that is refused says so before anything starts, with its sum.
fn is_refused(output: &std::process::Output, what: &str) {
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{stderr}");
    assert!(stderr.contains("cannot carry the plan") && stderr.contains(what), "{stderr}");
}

#[test]
fn sixty_four_descriptors_are_too_few_for_a_plan() {
    let tmp = tempfile::tempdir().expect("the temp directory is writable");
    let script = "ulimit -n 64 && exec \"$0\" run \"$1\" --direct --run-dir \"$2\"";
    let output = Command::new("sh")
        .args(["-c", script, env!("CARGO_BIN_EXE_assay"), &file("plain.pg")])
        .arg(tmp.path().join("run"))
        .output()
        .expect("there is a shell");
    is_refused(&output, "descriptors of robots");
    assert!(!tmp.path().join("run").exists(), "nothing was started");
}

/// Most requests of the second phase never reached the target: no time of it is known, nor its rate, nor its hit ratio; the
/// first phase stays as it is. Where more were lost in both together than were answered, their median can be anything.
fn lost_leave_unknown(ran: &Ran, kind: &str) {
    let [before, after] = ran.phases() else { panic!("two phases") };
    let lost = at(after, "errors.by_kind")[kind].as_u64().expect("they are counted");
    let completed = ran.number("total.completed").expect("a count");
    assert!(lost > 1_000, "{lost} were lost");
    for (span, name) in SPANS.into_iter().flat_map(|span| NAMES.map(|name| (span, name))) {
        let (_, own) = number(after, span, "all", name).expect("some requests were answered");
        assert_ne!(own["certainty"], "known", "{span} {name}: {own}");
    }
    for name in ["rate.measured", "dhr.measured", "bhr.measured"] {
        let own = &after["own"][name];
        assert_eq!(own["certainty"], "roughly", "{name}: {own}");
        assert!(before["own"][name].is_null(), "nothing happened to it: {name}: {}", before["own"][name]);
    }
    let high = at(after, "own")["rate.measured"]["high"]
        .as_f64()
        .expect("all that came due could have been answered");
    let due = at(after, "rate.offered").as_f64().expect("requests came due");
    assert!((high / due - 1.0).abs() < 0.05, "{high} of {due} per second");
    leaves_unknown(ran, if lost as f64 > completed { &["p50(miss)"] } else { &[] });
}

#[test]
fn descriptors_that_run_out_on_the_way_are_told_and_nothing_is_known_that_the_lost_requests_could_change() {
    let mut going = start(binary(), &[&file("short.pg"), "--direct"]);
    let info = going.wait_for(1, 0);
    let pid = pid_of(&info, "robots");
    let limit = libc::rlimit { rlim_cur: 12, rlim_max: 4096 };
    // SAFETY: the limit is read, and nothing is written.
    let set = unsafe {
        libc::prlimit(pid.as_raw_nonzero().get(), libc::RLIMIT_NOFILE, &limit, std::ptr::null_mut())
    };
    assert_eq!(set, 0, "{}", std::io::Error::last_os_error());
    let ran = going.wait();
    lost_leave_unknown(&ran, "descriptors_exhausted");
    let doubts = found(&ran, Reason::Descriptors);
    assert!(doubts.iter().any(|doubt| doubt.phases == [1]), "{}", all(&ran));
}

/// A command that runs in a network of its own, with nothing but loopback; none where that is not allowed.
fn own_network() -> Option<Command> {
    let mut unshare = Command::new("unshare");
    let up = unshare.args(["--net", "ip", "link", "set", "lo", "up"]).output();
    if !up.is_ok_and(|output| output.status.success()) {
        skip("a network of its own needs root, `unshare` and `ip`");
        return None;
    }
    let mut command = Command::new("unshare");
    command.args(["--net", "sh", "-c"]);
    Some(command)
}

const LOOPBACK_UP: &str = "ip link set lo up && ";
const PORTS: &str = "/proc/sys/net/ipv4/ip_local_port_range";

#[test]
fn a_hundred_ports_are_too_few_for_a_plan() {
    let Some(mut command) = own_network() else { return };
    let tmp = tempfile::tempdir().expect("the temp directory is writable");
    let script = format!("{LOOPBACK_UP} echo 20000 20099 >{PORTS} && exec \"$0\" \"$@\"");
    let output = command
        .args([&script, env!("CARGO_BIN_EXE_assay"), "run", &file("short.pg"), "--direct", "--run-dir"])
        .arg(tmp.path().join("run"))
        .output()
        .expect("there is a shell");
    is_refused(&output, "ports");
}

#[test]
fn ports_that_run_out_on_the_way_are_told_and_nothing_is_known_that_the_lost_requests_could_change() {
    let Some(mut command) = own_network() else { return };
    // When the second phase begins, only ten ports are left.
    let script = format!(
        "{{ until [ -e \"$LESS\" ]; do kill -0 $$ || exit; sleep 0.05; done; echo 20000 20009 >{PORTS}; }} & \
         {LOOPBACK_UP} exec \"$0\" \"$@\""
    );
    let tmp = tempfile::tempdir().expect("the temp directory is writable");
    let less = tmp.path().join("less");
    command.env("LESS", &less).args([&script, env!("CARGO_BIN_EXE_assay")]);
    let mut going = start(command, &[&file("short.pg"), "--direct"]);
    going.wait_for(1, 0);
    std::fs::write(&less, "").expect("the temp directory is writable");
    let ran = going.wait();
    lost_leave_unknown(&ran, "ports_exhausted");
    let doubts = found(&ran, Reason::Ports);
    assert!(doubts.iter().any(|doubt| doubt.phases.contains(&1)), "{}", all(&ran));
}

#[test]
fn a_slow_target_is_its_own_fault() {
    let origin = own_address(9000);
    let forwarder = Faulty::start(&own_address(8080).to_string(), origin, Fault::Slow);
    let proxy = forwarder.address.to_string();
    let ran = run(&[&file("waiting.pg"), "--proxy", &proxy, "--origin-listen", &origin.to_string()]);
    let waited = ran.series().robots.iter().map(|interval| interval.levels.waiting).max();
    assert!(waited > Some(2_000), "{waited:?} waited at most");
    let unsent = ran.phases()[0]["unsent"].as_u64().expect("a count");
    assert!(unsent > 2_000, "{unsent} were not sent");
    // What other work on this machine does to a run may be found here, too; the target's slowness may not.
    let of_the_machine = [Reason::Stolen, Reason::Stalled, Reason::Starved, Reason::Retransmissions];
    let doubts = ran.info().verdict.doubts;
    let unexplained = |doubt: &Doubt| doubt.serious && !of_the_machine.contains(&doubt.reason);
    assert!(!doubts.iter().any(unexplained), "{}", all(&ran));
    assert_eq!(unknown(&ran), [] as [&str; 0], "{}{:#}", all(&ran), ran.json["headline"]);
    // What the machine did to it can explain that requests waited.
    let code = if doubts.iter().any(|doubt| doubt.serious) { UNDECIDED } else { 99 };
    assert_eq!(ran.code, code, "{}", all(&ran));
    counts_are_known(&ran);
}

#[test]
fn a_sound_run_is_known_or_says_what_the_machine_did() {
    let ran = run(&[&file("steady.pg"), "--direct"]);
    leaves_unknown(&ran, &[]);
    counts_are_known(&ran);
    let info = ran.info();
    assert_eq!(info.verdict.is_disturbed(), info.phases.iter().any(|phase| phase.disturbed), "{}", all(&ran));
    if !info.verdict.is_disturbed() {
        // Robots request directly from origins: most of so short a time is Assay's own.
        let median = &ran.json["headline"]["figures"]["response_time_ms"]["miss"]["own"]["p50"];
        let end = |name: &str| median[name].as_f64().expect("is bounded");
        assert!(end("high") - end("low") < 1.0, "{median}");
    }
    for phase in ran.phases() {
        no_spoiled_number_is_known(phase);
    }
    let series = ran.series();
    for role in ["robots", "origins"] {
        assert!(series.baselines.iter().any(|baseline| baseline.role == role), "no baseline of {role}");
        assert!(
            series.threads.iter().any(|interval| interval.role == role),
            "{role} did not watch themselves"
        );
    }
    assert!(series.network.iter().any(|interval| interval.segments_out > 0));
    assert!(!series.processors.is_empty());
}
