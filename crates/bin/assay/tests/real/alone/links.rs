//! Links do what they were told, with and without a proxy, and nothing of them is left behind. All of it needs root.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use assay_record::run::RunInfo;
use assay_testbed::skip;

use crate::run_command::{Ran, run, start, workload};

/// On a busy machine a link or a cache may be late, which leaves times unknown; what they did is right all the same.
pub const FINE_OR_UNDECIDED: [i32; 2] = [0, 96];

pub fn may_have_namespaces() -> bool {
    let may = rustix::process::geteuid().is_root() && Path::new("/dev/net/tun").exists();
    if !may {
        skip("links need root and /dev/net/tun");
    }
    may
}

fn short(run: impl Fn(&[&str]) -> Ran, args: &[&str]) -> Ran {
    let file = workload("plain.pg");
    let mut all = vec![file.to_str().expect("UTF-8")];
    all.extend(args);
    run(&all)
}

/// What was lost is what the plan loses, on every link and in both directions.
fn losses_are_planned(ran: &Ran) {
    let bed = ran.info().bed.expect("there are links");
    for way in bed.links.iter().flat_map(|link| &link.directions) {
        assert!(way.packets > 0 && way.lost == way.planned_lost && way.failed == 0, "{way:?}");
    }
}

#[test]
fn a_link_delays_every_response_and_loses_what_is_planned() {
    if !may_have_namespaces() {
        return;
    }
    let ran = short(run, &["--robot-link", "delay=20ms,loss=1%", "--congestion", "reno"]);
    assert!(FINE_OR_UNDECIDED.contains(&ran.code), "{}", ran.json["doubts"]);
    losses_are_planned(&ran);
    assert!(ran.number("total.completed").is_some_and(|completed| completed > 0.0));
    for robots in ran.series().robots {
        for (low_us, _) in robots.times.hit.ttfb.buckets.iter().chain(&robots.times.miss.ttfb.buckets) {
            assert!(*low_us >= 39_900, "a response came after {low_us} us");
        }
    }
    let bed = ran.info().bed.expect("there is a link");
    let spaces: Vec<String> = bed.namespaces.iter().map(|space| space.roles.join("+")).collect();
    assert_eq!(spaces, ["robots", "target+origins"]);
    let test = bed.links[0].test.as_ref().expect("it was measured");
    assert!((39_900..46_000).contains(&test.round_trip_p50_us), "{test:?}");
    assert_eq!(test.congestion_control, ["reno", "reno"]);
}

#[test]
fn links_that_a_workload_has_are_emulated_unless_the_command_line_says_otherwise() {
    if !may_have_namespaces() {
        return;
    }
    let file = workload("piped.pg");
    let file = file.to_str().expect("UTF-8");
    let ran = run(&[file, "--origin-link", "off"]);
    assert!(FINE_OR_UNDECIDED.contains(&ran.code), "{}", ran.json["doubts"]);
    let bed = ran.info().bed.expect("there is a link");
    let links: Vec<_> = bed.links.iter().map(|link| (link.name.as_str(), link.settings.as_str())).collect();
    assert_eq!(links, [("robots-target", "delay=20ms,jitter=2ms")]);
    for robots in ran.series().robots {
        let responses = robots.times.hit.ttfb.buckets.iter().chain(&robots.times.miss.ttfb.buckets);
        assert!(responses.clone().all(|(low_us, _)| *low_us >= 35_900), "{responses:?}");
    }
}

#[test]
fn two_links_without_a_proxy_lie_one_behind_the_other() {
    if !may_have_namespaces() {
        return;
    }
    let ran =
        short(run, &["--direct", "--robot-link", "delay=5ms", "--origin-link", "delay=7ms,rate=50Mbit/s"]);
    assert!(FINE_OR_UNDECIDED.contains(&ran.code), "{}", ran.json["doubts"]);
    losses_are_planned(&ran);
    for robots in ran.series().robots {
        assert!(robots.times.miss.ttfb.buckets.iter().all(|(low_us, _)| *low_us >= 23_900));
    }
}

#[test]
fn a_real_proxy_lives_behind_links_and_its_counters_are_read() {
    let nginx = ["/usr/sbin/nginx", "/usr/bin/nginx"].into_iter().any(|path| Path::new(path).exists());
    if !may_have_namespaces() || !nginx {
        return;
    }
    let ran = short(run, &["--proxy", "nginx", "--robot-link", "delay=2ms", "--origin-link", "delay=1ms"]);
    assert!(FINE_OR_UNDECIDED.contains(&ran.code), "{}", ran.json["doubts"]);
    losses_are_planned(&ran);
    assert!(!ran.series().proxy.is_empty());
}

/// Network namespaces that processes of this machine live in.
fn inhabited() -> BTreeSet<PathBuf> {
    let processes = std::fs::read_dir("/proc").expect("/proc").flatten();
    processes.filter_map(|process| std::fs::read_link(process.path().join("ns/net")).ok()).collect()
}

fn namespaces_of(info: &RunInfo) -> BTreeSet<PathBuf> {
    let all = info.placement.iter().map(|placed| format!("/proc/{}/ns/net", placed.pid));
    all.filter_map(|path| std::fs::read_link(path).ok()).collect()
}

#[test]
fn nothing_is_left_of_a_run_that_is_killed() {
    if !may_have_namespaces() {
        return;
    }
    let file = workload("steady.pg");
    let args = [file.to_str().expect("UTF-8"), "--robot-link", "delay=1ms", "--origin-link", "delay=1ms"];
    let devices = std::fs::read_to_string("/proc/net/dev").expect("/proc").lines().count();
    let mut going = start(std::process::Command::new(env!("CARGO_BIN_EXE_assay")), &args);
    let info = going.wait_for(0, 0);
    let own = std::fs::read_link("/proc/self/ns/net").expect("/proc");
    let mut made = namespaces_of(&info);
    // The process that carries packets lives outside.
    made.remove(&own);
    assert_eq!(made.len(), 3, "{info:?}");
    going.kill();
    let patience = Instant::now() + Duration::from_secs(30);
    while info.placement.iter().any(|placed| Path::new(&format!("/proc/{}", placed.pid)).exists())
        || inhabited().intersection(&made).next().is_some()
    {
        assert!(Instant::now() < patience, "something lives on: {:?}", info.placement);
        std::thread::sleep(Duration::from_millis(20));
    }
    assert_eq!(std::fs::read_to_string("/proc/net/dev").expect("/proc").lines().count(), devices);
}
