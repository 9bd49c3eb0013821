//! Assay knows when it, or the machine, shaped a result, and says so; and it never takes a slow target for that.
//!
//! Each test spoils a run in one way and looks for the reason under its own name. A busy machine may add doubts of its
//! own, so no test requires that there be no others, except where the target is slow: there, only the machine may be blamed.

use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use assay_measurement::doubt::{Doubt, Reason};
use assay_record::run::RunInfo;
use rustix::process::{Pid, Signal, kill_process};
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

use crate::faulty::{Fault, Faulty};
use crate::support::{Ran, own_address, run_alone, run_clock_ms, start, workload};

/// Exit code of a run whose numbers cannot be trusted.
const INVALID: i32 = 96;

fn file(name: &str) -> String {
    workload(name).to_str().expect("UTF-8").to_owned()
}

fn binary() -> Command {
    Command::new(env!("CARGO_BIN_EXE_assay"))
}

/// What was found for a reason, of those that make the run invalid.
fn found(ran: &Ran, reason: Reason) -> Vec<Doubt> {
    let doubts = ran.info().verdict.doubts;
    doubts.into_iter().filter(|doubt| doubt.reason == reason && doubt.invalidates).collect()
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

/// Says that a test was left out; fails where nothing may be left out.
fn skip(why: &str) {
    assert!(std::env::var_os("ASSAY_REQUIRE_REAL").is_none(), "left out: {why}");
    eprintln!("skipped: {why}");
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

/// Robots on one processor and origins on the other, with busy loops beside one of them.
fn beside_a_busy_loop(burn_robots: bool) -> Option<Ran> {
    let (robots, origins) = two_processors()?;
    let _burners = [(); LOOPS].map(|()| Burner::on(if burn_robots { robots } else { origins }));
    let [robots, origins] = [robots, origins].map(|cpu| cpu.to_string());
    Some(run_alone(&[&file("busy.pg"), "--direct", "--robot-cpus", &robots, "--origin-cpus", &origins]))
}

#[test]
fn robots_beside_a_busy_loop_are_starved_or_late() {
    let Some(ran) = beside_a_busy_loop(true) else { return };
    assert_eq!(ran.code, INVALID, "{}", all(&ran));
    let reasons = [Reason::Starved, Reason::Late, Reason::Stalled].map(|reason| found(&ran, reason));
    assert!(reasons.iter().flatten().any(|doubt| doubt.role == "robots"), "{}", all(&ran));
}

#[test]
fn origins_beside_a_busy_loop_are_starved() {
    let Some(ran) = beside_a_busy_loop(false) else { return };
    assert_eq!(ran.code, INVALID, "{}", all(&ran));
    let reasons = [Reason::Starved, Reason::Stalled].map(|reason| found(&ran, reason));
    assert!(reasons.iter().flatten().any(|doubt| doubt.role == "origins"), "{}", all(&ran));
}

fn pid_of(info: &RunInfo, role: &str) -> Pid {
    let placed = info.placement.iter().find(|placed| placed.role == role).expect("the role was placed");
    Pid::from_raw(placed.pid.try_into().expect("a process")).expect("a process")
}

/// Stops a role for 300 ms in the middle of the second phase.
fn stopped(role: &str) {
    let mut going = start(binary(), &[&file("steady.pg"), "--direct"]);
    let info = going.wait_for(1, 1_500);
    let pid = pid_of(&info, role);
    let stopped_ms = run_clock_ms(&info);
    kill_process(pid, Signal::STOP).expect("it runs");
    thread::sleep(Duration::from_millis(300));
    kill_process(pid, Signal::CONT).expect("it is there");
    let ran = going.wait();
    assert_eq!(ran.code, INVALID, "{}", all(&ran));
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
    assert!(stall.phases.contains(&1) && ran.info().phases[1].invalid, "{stall:?}");
}

#[test]
fn robots_that_are_stopped_for_a_moment_stalled_then() {
    stopped("robots");
}

#[test]
fn origins_that_are_stopped_for_a_moment_stalled_then() {
    stopped("origins");
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

#[test]
fn descriptors_that_run_out_on_the_way_are_told() {
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
    assert_eq!(ran.code, INVALID, "{}", all(&ran));
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
fn ports_that_run_out_on_the_way_are_told() {
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
    assert_eq!(ran.code, INVALID, "{}", all(&ran));
    let doubts = found(&ran, Reason::Ports);
    assert!(doubts.iter().any(|doubt| doubt.phases.contains(&1)), "{}", all(&ran));
}

#[test]
fn a_slow_target_is_its_own_fault() {
    let origin = own_address(9000);
    let forwarder = Faulty::start(&own_address(8080).to_string(), origin, Fault::Slow);
    let proxy = forwarder.address.to_string();
    let ran = run_alone(&[&file("waiting.pg"), "--proxy", &proxy, "--origin-listen", &origin.to_string()]);
    let waited = ran.series().robots.iter().map(|interval| interval.levels.waiting).max();
    assert!(waited > Some(2_000), "{waited:?} waited at most");
    let unsent = ran.phases()[0]["unsent"].as_u64().expect("a count");
    assert!(unsent > 2_000, "{unsent} were not sent");
    // What other work on this machine does to a run may be found here, too; the target's slowness may not.
    let of_the_machine = [Reason::Stolen, Reason::Stalled, Reason::Starved, Reason::Retransmissions];
    let doubts = ran.info().verdict.doubts;
    let unexplained = |doubt: &Doubt| doubt.invalidates && !of_the_machine.contains(&doubt.reason);
    assert!(!doubts.iter().any(unexplained), "{}", all(&ran));
    assert!(matches!(ran.code, 0 | INVALID), "exit code {}", ran.code);
}

#[test]
fn a_sound_run_is_sound_or_says_what_the_machine_did() {
    let ran = run_alone(&[&file("steady.pg"), "--direct"]);
    let info = ran.info();
    if info.verdict.valid {
        assert_eq!(ran.code, 0);
        assert!(info.phases.iter().all(|phase| !phase.invalid));
    } else {
        assert_eq!(ran.code, INVALID, "{}", all(&ran));
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
