//! Several machines as one, through a real NATS server: what is refused, and what a run on agents has in common with one on a single
//! machine.

use std::io::{BufRead, BufReader};
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use assay_record::dir::RunDir;
use assay_record::experiment::ExperimentInfo;
use assay_record::peak::Peak;
use assay_record::run::RunInfo;
use assay_testbed::skip;

use crate::helpers::processes_of;
use crate::samples::{SPECIAL, small};
use crate::support::{Assay, Said, program, send};

/// Nothing here takes longer, unless it hangs.
const PATIENCE: Duration = Duration::from_secs(180);

/// A server and agents on this host.
pub struct Up {
    pub child: Child,
    pub url: String,
}

impl Up {
    /// None where there is no server to start.
    pub fn start(assay: &Assay, agents: &str) -> Option<Self> {
        program(&["nats-server"], "nats-server")?;
        let mut command = assay.command(&["fleet", "up", "--port", "0", "--agents", agents]);
        // What it leaves behind would be in the test's own directory.
        command.env("TMPDIR", assay.directory.path()).stderr(Stdio::piped());
        let mut child = command.spawn().expect("the binary starts");
        let mut lines = BufReader::new(child.stderr.take().expect("a pipe")).lines().map_while(Result::ok);
        let line = lines.find(|line| line.contains("are connected to")).expect("a fleet");
        // It goes on writing where nobody reads.
        std::thread::spawn(move || lines.for_each(drop));
        let url = line.split_whitespace().find(|word| word.starts_with("nats://")).expect("a URL");
        let url = url.trim_end_matches(';').to_owned();
        Some(Self { child, url })
    }

    pub fn end(mut self, signal: i32) {
        send(&self.child, signal);
        self.child.wait().expect("a child can be waited for");
    }
}

impl Drop for Up {
    fn drop(&mut self) {
        // It may have ended; then this does nothing.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Waits for a condition.
#[track_caller]
pub fn wait_until(what: &str, mut is_true: impl FnMut() -> bool) {
    let deadline = Instant::now() + PATIENCE;
    while !is_true() {
        assert!(Instant::now() < deadline, "not within {PATIENCE:?}: {what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// What robots of a run directory were due to request: requests, their digest, offered hits; and how many errors there were.
pub fn due(directory: &Path) -> (u64, u64, u64, u64) {
    let robots = RunDir::open(directory).and_then(|dir| dir.read_series()).expect("a run directory").robots;
    let counts = robots.iter().map(|interval| &interval.counts);
    counts.fold((0, 0, 0, 0), |(due, digest, offered, errors), counts| {
        let digest = digest.wrapping_add(counts.due_digest);
        (due + counts.due, digest, offered + counts.offered_hits, errors + counts.error_total())
    })
}

pub fn info(directory: &Path) -> RunInfo {
    RunDir::open(directory).and_then(|dir| dir.read_info()).expect("a run directory")
}

pub const ON: [&str; 6] = ["--robots-on", "robots", "--proxy-on", "proxy", "--origins-on", "origins"];

/// A run on agents, as long as `special.pg` has it.
fn run_on(assay: &Assay, up: &Up, more: &[&str]) -> Said {
    let workload = assay.file("special.pg", SPECIAL);
    assay.run(&[&["run", workload, "--fleet", &up.url, "--no-report", "--no-live"][..], &ON, more].concat())
}

#[test]
fn a_run_on_four_agents_requests_what_one_machine_does_and_states_its_clocks() {
    let assay = Assay::new();
    let Some(up) = Up::start(&assay, "4") else { return };
    let whole = assay.file("special.pg", SPECIAL);
    let whole = assay.run(&["run", whole, "--run-dir", "whole", "--no-report", "--no-live"]);
    assert!(whole.went_well(), "{whole:?}");
    let said = run_on(&assay, &up, &["--run-dir", "fleet"]);
    assert!(said.went_well(), "{said:?}");
    let (one, several) = (due(&assay.path("whole")), due(&assay.path("fleet")));
    let errors =
        |run: &str| std::fs::read_to_string(assay.path(run).join("examples.json")).unwrap_or_default();
    let errors = ["whole", "fleet"].map(errors);
    assert_eq!(several, one, "requests, digest, offered hits, errors: {errors:#?}");
    assert!(several.0 > 200 && several.3 == 0);
    let fleet = info(&assay.path("fleet")).fleet.expect("it ran on machines");
    let roles: Vec<_> =
        fleet.machines.iter().map(|machine| (machine.name.as_str(), machine.roles.join("+"))).collect();
    assert_eq!(
        roles,
        [("m1", "robots"), ("m2", "proxy"), ("m3", "origins"), ("m4", "robots")]
            .map(|(name, role)| (name, role.into()))
    );
    assert_eq!(fleet.machines[0].robots.zip(fleet.machines[3].robots), Some(((0, 19), (20, 39))));
    // One host has one clock: whatever is stated, the truth (0) is inside.
    for machine in &fleet.machines {
        let error_us = machine.start_error_us.expect("measured");
        assert!(machine.offset_ns.unsigned_abs().div_ceil(1000) <= error_us, "{machine:?}");
    }
    assert!(fleet.start_spread_us.is_some() && fleet.clock_error_us.is_some(), "{fleet:?}");
    assert!(assay.path("fleet/machines/m1/roles/robots.log").exists(), "logs of machines are brought");
    // Nothing of it stays: neither on the agents nor on the server.
    let list = assay.run(&["fleet", "--nats", &up.url]).exits(0).stdout;
    assert_eq!(list.matches("idle").count(), 4, "{list}");
    let left = std::fs::read_dir(assay.directory.path()).expect("a directory").flatten();
    let fleet =
        left.map(|entry| entry.path()).find(|path| path.join("m1").exists()).expect("the fleet's own");
    let of_agents = std::fs::read_dir(fleet.join("m1")).expect("the agent's directory");
    assert_eq!(of_agents.count(), 0, "the agent's directory is empty");
    let streams = fleet.join("jetstream/jetstream/$G/streams");
    assert_eq!(std::fs::read_dir(streams).map_or(0, Iterator::count), 0, "no stream is left");
    up.end(libc::SIGINT);
    wait_until("nothing of the fleet runs", || processes_of(assay.directory.path()).is_empty());
    assert!(!fleet.exists(), "the fleet's directory is gone");
}

/// An experiment of two cells, each as long as `special.pg` has it.
const EXPERIMENT: &str = "
title = \"Does memory matter?\"
workloads = [\"special.pg\"]
repetitions = 1
cool-down = \"1s\"
retries = 0

[[proxy]]
name = \"builtin\"
memory = [\"8MB\", \"16MB\"]
";

#[test]
fn an_experiment_runs_cell_after_cell_on_agents_and_is_not_mixed_with_this_machine() {
    let assay = Assay::new();
    let Some(up) = Up::start(&assay, "3") else { return };
    assay.file("special.pg", SPECIAL);
    assay.file("memory.toml", EXPERIMENT);
    let lab = |more: &[&str]| assay.run(&[&["lab", "memory.toml", "--no-live"][..], more].concat());
    let on = [&["--fleet", &up.url][..], &ON].concat();
    let said = lab(&[&on[..], &["--dir", "e"]].concat());
    assert!(said.went_well(), "{said:?}");
    let read = |name: &str| std::fs::read_to_string(assay.path("e").join(name)).expect("a file");
    let experiment: ExperimentInfo = serde_json::from_str(&read("experiment.json")).expect("its head");
    assert!(experiment.finished && experiment.cells.len() == 2, "{experiment:#?}");
    let runs: Vec<_> =
        experiment.cells.iter().map(|cell| assay.path("e").join(cell.run.as_ref().expect("ran"))).collect();
    assert_eq!(due(&runs[0]), due(&runs[1]), "both proxies got the same requests");
    for run in &runs {
        let info = info(run);
        let machines = info.fleet.expect("it ran on machines").machines;
        assert_eq!(
            machines.iter().map(|machine| machine.roles.join("+")).collect::<Vec<_>>(),
            ["robots", "proxy", "origins"]
        );
        assert!(
            info.verdict.warnings.iter().any(|words| words.contains("page caches")),
            "{:?}",
            info.verdict.warnings
        );
    }
    // A cell that waits again runs where the others did, or not at all.
    let waiting = read("experiment.json").replacen("\"done\"", "\"waiting\"", 1);
    assay.file("e/experiment.json", &waiting);
    lab(&["--resume", "e"])
        .exits(2)
        .complains("the first results are of m1, m2, m3")
        .complains("of this machine");
    lab(&[&on[..], &["--resume", "e", "--wait-quiet", "1s"]].concat()).exits(2).complains("--wait-quiet");
    let said = lab(&[&on[..], &["--resume", "e"]].concat());
    assert!(said.went_well(), "{said:?}");
}

#[test]
fn an_experiment_that_agents_cannot_carry_is_refused_before_anything_starts() {
    let assay = Assay::new();
    let Some(up) = Up::start(&assay, "1") else { return };
    assay.file("special.pg", SPECIAL);
    assay.file(
        "link.toml",
        &format!("{EXPERIMENT}\n[[condition]]\nlabel = \"slow\"\nrobot-link = \"delay=1ms\"\n"),
    );
    assay
        .run(&["lab", "link.toml", "--no-live", "--fleet", &up.url, "--dir", "e"])
        .exits(2)
        .complains("links and congestion control are made on one machine");
    assert!(!assay.path("e").exists(), "nothing is left of it");
}

#[test]
fn a_search_for_a_limit_runs_on_agents() {
    let assay = Assay::new();
    let Some(up) = Up::start(&assay, "4") else { return };
    let steps = ["--find-peak", "errors < 1%", "--peak-warm", "1s", "--peak-step", "1s", "--peak-from", "40"];
    let said = run_on(&assay, &up, &[&steps[..], &["--rehearse", "12s", "--run-dir", "peak"]].concat());
    assert!(said.code != Some(1) && said.code != Some(2), "{said:?}");
    let text = std::fs::read_to_string(assay.path("peak/peak.json")).expect("the result is kept");
    let peak: Peak = serde_json::from_str(&text).expect("a peak");
    assert!(peak.steps.len() >= 2, "{peak:?}");
    // A step in which the machine stood still is repeated at the same rate.
    let first_per_s = peak.steps[0].rate_per_s;
    assert!(peak.steps.iter().any(|step| step.rate_per_s > first_per_s), "orders reach all robots: {peak:?}");
    assert!(info(&assay.path("peak")).fleet.is_some_and(|fleet| fleet.machines.len() == 4));
}

#[test]
fn machines_are_calibrated_together_and_only_runs_on_them_find_it() {
    let assay = Assay::new();
    let Some(up) = Up::start(&assay, "4") else { return };
    let workload = assay.file("best.pg", &small(""));
    let run = |more: &[&str]| assay.run(&[&["run", workload, "--no-report", "--no-live"][..], more].concat());
    let on = [&["--fleet", &up.url][..], &ON].concat();
    // The report that a run makes is no part of a calibration.
    let said = assay
        .run(&[&["run", workload, "--calibrate", "--rehearse", "15s"][..], &on].concat())
        .exits(0)
        .complains("robots on m1, m4, origins on m3");
    assert_eq!(said.stderr.matches("best effort: ").count(), 3, "{}", said.stderr);
    assert!(said.stdout.contains("these machines can offer"), "{}", said.stdout);
    let kept: Vec<_> = std::fs::read_dir(assay.path("runs/calibrations")).expect("kept").collect();
    assert_eq!(kept.len(), 1, "{kept:?}");
    let found = |more: &[&str], name: &str| {
        let name = format!("runs/{name}");
        let said = run(&[more, &["--run-dir", &name]].concat());
        assert!(matches!(said.code, Some(0 | 96)), "{said:?}");
        info(&assay.path(&name)).calibration
    };
    let calibration = found(&on, "machines").expect("it is of these machines");
    assert!(
        calibration.requests_per_s > 0.0 && calibration.robots_cpu_us_per_request > 0.0,
        "{calibration:?}"
    );
    assert_eq!(found(&[], "here"), None, "it is not of this one");
    let fewer = [&["--fleet", &up.url, "--robots-on", "m1"][..], &ON[2..]].concat();
    assert_eq!(found(&fewer, "fewer"), None, "there are fewer machines");
}

#[test]
fn a_run_on_agents_speaks_tls_and_no_key_stays_anywhere() {
    let assay = Assay::new();
    let Some(up) = Up::start(&assay, "3") else { return };
    let clear = run_on(&assay, &up, &["--run-dir", "clear"]);
    assert!(clear.went_well(), "{clear:?}");
    let tls = ["--robot-tls", "--origin-tls"];
    let mut proxies = vec!["builtin"];
    proxies.extend(program(&["nginx", "/usr/sbin/nginx"], "nginx").map(|_| "nginx"));
    for proxy in proxies {
        let said = run_on(&assay, &up, &[&tls[..], &["--proxy", proxy, "--run-dir", proxy]].concat());
        assert!(said.went_well(), "{said:?}");
        let directory = assay.path(proxy);
        let (secured, clear) = (due(&directory), due(&assay.path("clear")));
        assert_eq!(secured, clear, "{proxy}: requests, digest, offered hits, errors");
        let info = info(&directory).tls.expect("it spoke TLS");
        assert!(info.robots && info.origins && info.verified, "{info:?}");
        let series = RunDir::open(&directory).and_then(|dir| dir.read_series()).expect("a run directory");
        let handshakes: u64 = series.robots.iter().map(|interval| interval.counts.tls_full).sum();
        assert!(handshakes > 0, "robots made sessions");
    }
    let keys = files_below(assay.directory.path());
    let keys: Vec<_> = keys.iter().filter(|path| path.extension().is_some_and(|it| it == "key")).collect();
    assert!(keys.is_empty(), "{keys:?}");
}

/// The address of an agent.
fn address_of(assay: &Assay, up: &Up, name: &str) -> String {
    let list = assay.run(&["fleet", "--nats", &up.url, "--json"]).exits(0).stdout;
    let list: serde_json::Value = serde_json::from_str(&list).expect("JSON");
    let agents = list["agents"].as_array().expect("a list");
    let agent = agents.iter().find(|agent| agent["name"] == name).expect("it is connected");
    agent["address"].as_str().expect("text").to_owned()
}

#[test]
fn a_proxy_that_runs_on_an_agents_machine_is_loaded_and_measured_there() {
    let assay = Assay::new();
    let Some(up) = Up::start(&assay, "3") else { return };
    let text = SPECIAL.replace("10.1.0.1-2:80", "10.1.0.1:80");
    let workload = assay.file("one.pg", &text);
    // The addresses of a fleet on one host are its own, and so are their ports.
    let proxy = format!("{}:8080", address_of(&assay, &up, "m2"));
    let origin = format!("{}:8000", address_of(&assay, &up, "m3"));
    let config = format!("listen = \"{proxy}\"\n[[server]]\nname = \"one\"\naddress = \"{origin}\"\n");
    let config = assay.file("front.toml", &config);
    let mut front = assay
        .command(&["switch", config])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("the binary starts");
    wait_until("the switch listens", || std::net::TcpStream::connect(&proxy).is_ok());
    let run = |more: &[&str]| {
        let flags = ["run", workload, "--fleet", &up.url, "--no-report", "--no-live"];
        assay.run(&[&flags[..], more].concat())
    };
    let running = ["--proxy", &proxy, "--origin-listen", &origin];
    let on = [&running[..], &ON].concat();
    run(&[&running[..], &ON[..2], &ON[4..], &["--watch", "listener"]].concat())
        .exits(2)
        .complains("name the agent there with --proxy-on");
    run(&[&on[..], &["--watch", "unit:no-such-service"]].concat())
        .exits(2)
        .complains("the agent m2 refused: --watch unit:no-such-service: cannot watch");
    run(&[&on[..], &["--watch", "listener", "--watch-store", "no-such-directory"]].concat())
        .exits(2)
        .complains("the agent m2 refused: --watch-store")
        .complains("no such directory here");
    run(&[&["--proxy", &proxy, "--origin-listen", &proxy][..], &ON].concat())
        .exits(2)
        .complains("run on the machine m3");
    let direct = run(&[&["--direct", "--run-dir", "direct"][..], &ON[..2], &ON[4..]].concat());
    assert!(direct.went_well(), "{direct:?}");
    let said =
        run(&[&on[..], &["--watch", "listener", "--watch-store", "/", "--run-dir", "running"]].concat());
    front.kill().and_then(|()| front.wait()).expect("a child can be killed");
    assert!(said.went_well(), "{said:?}");
    let (running, direct) = (due(&assay.path("running")), due(&assay.path("direct")));
    assert_eq!((running.0, running.1, running.3), (direct.0, direct.1, 0), "requests, digest, errors");
    let dir = RunDir::open(&assay.path("running")).expect("a run directory");
    let host = dir.read_series().expect("its series").host;
    let of_proxy: Vec<_> = host.iter().filter(|interval| interval.role == "proxy").collect();
    assert!(of_proxy.iter().any(|interval| interval.cpu_us > 0 && interval.rss_bytes > 0), "{host:?}");
    // In a container, the root may be on no disk that the kernel knows.
    let device = std::fs::metadata("/").expect("a root").dev();
    let disk = format!("/sys/dev/block/{}:{}", libc::major(device), libc::minor(device));
    let disks = dir.read_series().expect("its series").disks;
    assert_eq!(disks.iter().any(|disk| disk.holds == "store"), Path::new(&disk).exists(), "{disks:?}");
    let fleet = info(&assay.path("running")).fleet.expect("it ran on machines");
    let of_m2 = fleet.machines.iter().find(|machine| machine.name == "m2").expect("it took part");
    assert_eq!(of_m2.roles, ["proxy"]);
}

/// All files below a directory.
fn files_below(directory: &Path) -> Vec<std::path::PathBuf> {
    let entries = std::fs::read_dir(directory).into_iter().flatten().flatten().map(|entry| entry.path());
    entries.flat_map(|path| if path.is_dir() { files_below(&path) } else { vec![path] }).collect()
}

#[test]
fn what_cannot_be_is_refused_before_anything_starts() {
    let assay = Assay::new();
    let Some(up) = Up::start(&assay, "2") else { return };
    let refused = |on: &[&str], words: &str| {
        let said = assay.run(&[&["run", "demo", "--no-report", "--no-live"][..], on].concat());
        said.exits(2).complains(words);
    };
    refused(&["--fleet", "nats://127.0.0.1:1"], "no NATS server responds at nats://127.0.0.1:1");
    refused(&["--fleet", "::"], "no URL of a NATS server");
    refused(
        &["--fleet", &up.url, "--robots-on", "moon"],
        "--robots-on moon: no agent has that name or label; there are: m1",
    );
    refused(
        &["--fleet", &up.url, "--robot-link", "delay=1ms"],
        "links and congestion control are made on one machine",
    );
    refused(&["--fleet", &up.url, "--proxy", "127.0.0.1:1"], "name them with --origin-listen");
    refused(&["--robots-on", "m1"], "--fleet");
    // With the numbers of each machine.
    for words in [
        "these machines cannot carry the plan",
        "m1 (robots 0 to 1999999, origin 0, the proxy): too few descriptors of robots: ",
        "m2 (robots 2000000 to 3999999, origin 1): too few descriptors of robots: ",
    ] {
        refused(&["--fleet", &up.url, "--robots", "4000000"], words);
    }
    let agent = |more: &[&str]| assay.run(&[&["agent", "--nats", &up.url][..], more].concat());
    agent(&["--name", "m1"]).exits(2).complains("an agent named m1 is connected already");
    agent(&["--name", "a.b"]).exits(2).complains("is no name");
    agent(&["--may-load", "8.8.8.0/24"]).exits(2).complains("--may-load-public");
    assert!(
        !assay.path("runs").exists()
            || std::fs::read_dir(assay.path("runs")).expect("a directory").count() == 0
    );
}

#[test]
fn a_server_that_knows_its_users_refuses_others_and_one_that_does_not_is_used_on_loopback_only() {
    let assay = Assay::new();
    let Some(server) = program(&["nats-server"], "nats-server") else { return };
    let config = "listen: \"127.0.0.1:-1\"\nauthorization { user: ann, password: right }\n";
    assay.file("nats.conf", config);
    assay.file("right", "right\n");
    assay.file("wrong", "wrong\n");
    let directory = assay.directory.path();
    let mut child = Command::new(server)
        .args(["-c", "nats.conf", "--ports_file_dir", "."])
        .current_dir(directory)
        .stderr(Stdio::null())
        .spawn()
        .expect("the server starts");
    let mut url = None;
    wait_until("the server listens", || {
        url = port_of(directory);
        url.is_some()
    });
    let url = url.expect("it listens");
    let list = |more: &[&str]| assay.run(&[&["fleet", "--nats", &url][..], more].concat());
    list(&[])
        .exits(2)
        .complains("does not accept these credentials")
        .complains("--nats-user and --nats-password-file");
    list(&["--nats-user", "ann", "--nats-password-file", "wrong"]).exits(2).complains("does not accept");
    list(&["--nats-user", "ann", "--nats-password-file", "right"])
        .exits(0)
        .complains("no agent is connected");
    list(&["--nats-creds", "none.creds"]).exits(2).complains("cannot read credentials in none.creds");
    child.kill().and_then(|()| child.wait()).expect("a child can be killed");
}

/// The URL that a server has written into its file of ports.
fn port_of(directory: &Path) -> Option<String> {
    let entries = std::fs::read_dir(directory).ok()?.flatten().map(|entry| entry.path());
    let file =
        entries.into_iter().find(|path| path.extension().is_some_and(|extension| extension == "ports"))?;
    let ports: serde_json::Value = serde_json::from_slice(&std::fs::read(file).ok()?).ok()?;
    Some(ports["nats"][0].as_str()?.to_owned())
}

/// Whether this process may make namespaces of all the kinds that machines are made of.
fn may_have_machines() -> bool {
    let made =
        Command::new("unshare").args(["--net", "--time", "--fork", "true"]).stderr(Stdio::null()).status();
    let may = made.is_ok_and(|status| status.success());
    if !may {
        skip("no network and time namespaces (they need root)");
    }
    may
}

/// Four machines whose monotonic clocks are up to an hour apart.
#[test]
fn machines_with_clocks_an_hour_apart_make_one_run_and_the_stated_bounds_hold() {
    let assay = Assay::new();
    if program(&["nats-server"], "nats-server").is_none() || !may_have_machines() {
        return;
    }
    let workload = assay.file("special.pg", SPECIAL);
    let whole = assay.run(&["run", workload, "--run-dir", "whole", "--no-report", "--no-live"]);
    assert!(whole.went_well(), "{whole:?}");
    let directory = assay.directory.path().to_str().expect("UTF-8");
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../scripts/machines.sh");
    let assay_program = env!("CARGO_BIN_EXE_assay");
    let said: Said = Command::new("unshare")
        .args(["--net", "sh", script, assay_program, directory, assay_program, "run", workload])
        .args(["--fleet", "nats://10.9.0.254:4222", "--nats-user", "run", "--nats-password-file", "password"])
        .args(ON)
        .args(["--run-dir", "fleet", "--no-report", "--no-live"])
        .current_dir(directory)
        .output()
        .expect("unshare starts")
        .into();
    assert!(said.went_well(), "{said:?}");
    assert_eq!(
        due(&assay.path("fleet")),
        due(&assay.path("whole")),
        "requests, digest, offered hits, errors"
    );
    let fleet = info(&assay.path("fleet")).fleet.expect("it ran on machines");
    for (machine, ahead_s) in fleet.machines.iter().zip([60, 3600, 300, 0]) {
        let wrong_us = (machine.offset_ns - ahead_s * 1_000_000_000).unsigned_abs().div_ceil(1000);
        let error_us = machine.start_error_us.expect("measured");
        assert!(wrong_us <= error_us, "{wrong_us} µs off, ±{error_us} µs stated: {machine:?}");
        assert!(machine.clock_error_us.is_some_and(|error_us| error_us >= wrong_us), "{machine:?}");
    }
    wait_until("nothing of the machines runs", || processes_of(assay.directory.path()).is_empty());
}
