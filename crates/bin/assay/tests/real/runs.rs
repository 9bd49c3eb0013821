//! Whole runs through the real binary, and what they leave behind.

use std::io::{BufRead, BufReader};
use std::process::{Child, Stdio};

use assay_measurement::counts::{OriginCounts, RobotCounts};
use assay_measurement::xact::XactRow;
use assay_record::dir::RunDir;
use assay_record::xact_log::XactLog;
use serde_json::Value;

use crate::helpers::{assert_nothing_left, processes_of, wait_for_second};
use crate::samples::{SPECIAL, UNSCHEDULED};
use crate::support::{Assay, Said, send, wait_for};

/// Starts a run of the demo, squeezed into `length`; its run directory is `r`.
fn demo(assay: &Assay, length: &str, more: &[&str]) -> Child {
    let mut arguments =
        vec!["run", "demo", "--rehearse", length, "--memory", "64MB", "--run-dir", "r", "--json"];
    arguments.extend(more);
    let mut command = assay.command(&arguments);
    command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("the binary starts")
}

/// The JSON document of a run that went well, of three at most: on a machine that is busy with other tests Assay may stand still for so
/// long that the run says of itself that it was disturbed, with exit code 96.
fn undisturbed(mut run: impl FnMut() -> Said) -> Value {
    let mut said = run();
    for _ in 1..3 {
        if said.code == Some(96) {
            said = run();
        }
    }
    document(&said)
}

/// The JSON document of a demo that was not disturbed, of three at most, and where it ran.
fn whole_demo(length: &str, more: &[&str]) -> (Assay, Value) {
    let mut last = None;
    let document = undisturbed(|| {
        let assay = Assay::new();
        let said: Said = demo(&assay, length, more).wait_with_output().expect("ends").into();
        last = Some(assay);
        said
    });
    (last.expect("it ran"), document)
}

/// The JSON document of a run that went well. A busy machine changes what is known of its times, and no exit code.
fn document(said: &Said) -> Value {
    assert_eq!(said.code, Some(0), "{said:?}");
    let document: Value = serde_json::from_str(&said.stdout).expect("one JSON document");
    assert_eq!(document["headline"]["unknown"], serde_json::json!([]), "exit code 0 of what is not known");
    document
}

#[test]
fn the_demo_runs_through_the_builtin_proxy_and_says_everything() {
    let (assay, document) = whole_demo("6s", &[]);
    for field in
        ["schema", "run", "workload", "proxy", "seed", "stream_digest", "headline", "partial", "warnings"]
    {
        assert!(!document[field].is_null(), "no `{field}` in {document:#}");
    }
    assert_eq!(document["partial"], false);
    assert_complete(&document["total"]);
    let phases = document["phases"].as_array().expect("phases");
    let names: Vec<_> = phases.iter().map(|phase| phase["name"].as_str().expect("a name")).collect();
    assert_eq!(names, ["warm", "fill", "link", "top1", "dec", "idle", "inc", "top2", "cool"]);
    phases.iter().for_each(assert_complete);
    assert_eq!(document["total"]["errors"]["total"], 0, "{:#}", document["total"]["errors"]);
    assert!(document["total"]["requests"].as_u64() > Some(500), "{:#}", document["total"]);
    for file in ["run.json", "workload.json", "report.html"] {
        assert!(assay.path("r").join(file).is_file(), "no {file} in the run directory");
    }
    let again = assay.run(&["report", "r", "--json"]).exits(0).stdout;
    let again: Value = serde_json::from_str(&again).expect("one JSON document");
    assert_eq!(again["total"], document["total"], "a report made again says something else");
    let words = assay.run(&["report", "r", "--no-report"]).exits(0).stdout;
    assert!(!words.contains("report.html"), "a report that was not made is pointed to: {words}");
}

#[test]
fn the_builtin_proxy_is_a_forward_proxy_too() {
    let (_, document) = whole_demo("3s", &["--forward"]);
    assert_eq!(document["target"]["mode"], "forward");
    assert_eq!(document["total"]["errors"]["total"], 0, "{:#}", document["total"]["errors"]);
    assert!(document["total"]["outcomes"]["hit"].as_u64() > Some(0), "{:#}", document["total"]);
}

#[test]
fn all_that_is_special_about_requests_and_responses_is_right() {
    let assay = Assay::new();
    let workload = assay.file("special.pg", SPECIAL);
    let over_http2 = &["--direct", "--robot-http", "2", "--origin-http", "2"][..];
    let encrypted = &[over_http2, &["--robot-tls", "--origin-tls"]].concat()[..];
    let through_proxy = &["--robot-http", "2", "--robot-tls"][..];
    let to_origins = &["--origin-http", "2", "--origin-tls"][..];
    for target in [&["--direct"][..], &[], &["--forward"], over_http2, encrypted, through_proxy, to_origins] {
        let dir = format!("r{}", target.concat());
        let arguments = [&["run", workload, "--run-dir", &dir, "--no-report", "--json"], target].concat();
        let document = undisturbed(|| {
            let _ = std::fs::remove_dir_all(assay.path(&dir));
            assay.run(&arguments)
        });
        let total = &document["total"];
        assert_eq!(total["errors"]["total"], 0, "{target:?}: {:#}", total["errors"]);
        for status in ["200", "206", "401", "416", "500"] {
            assert!(total["by_status"][status].as_u64() > Some(5), "no {status} in {:#}", total["by_status"]);
        }
        let series = RunDir::open(&assay.path(&dir)).expect("a run directory").read_series();
        let (mut robots, mut origins) = (RobotCounts::default(), OriginCounts::default());
        let series = series.expect("measurements");
        series.robots.iter().for_each(|interval| robots.merge(&interval.counts));
        series.origins.iter().for_each(|interval| origins.merge(&interval.counts));
        // HTTP/2 has no need to wait for 100, and robots do not.
        let expected = if target.contains(&"2") { 0..=0 } else { 3..=u64::MAX };
        for (what, seen) in [
            ("continued", origins.continued),
            ("expectations_refused", origins.expectations_refused),
            ("invited", robots.invited),
            ("uninvited", robots.uninvited),
        ] {
            assert!(expected.contains(&seen), "{target:?}: {what} {seen}");
        }
        for (what, seen) in [
            ("authenticated", origins.authenticated),
            ("wrong_credentials", origins.wrong_credentials),
            ("cookies_set", origins.cookies_set),
            ("logged_in", robots.logged_in),
            ("refused", robots.refused),
            ("cookies_sent", robots.cookies_sent),
        ] {
            assert!(seen > 2, "{target:?}: {what} {seen}");
        }
        assert_eq!(origins.wrong_uploads, 0, "{target:?}");
    }
}

#[test]
fn the_stream_is_the_same_over_http_2_and_nothing_of_it_is_lost() {
    let assay = Assay::new();
    let documents = ["1.1", "2"].map(|version| {
        let arguments = ["run", "demo", "--direct", "--rehearse", "3s", "--run-dir", version, "--json"];
        let versions = ["--no-report", "--robot-http", version, "--origin-http", version];
        undisturbed(|| {
            let _ = std::fs::remove_dir_all(assay.path(version));
            assay.run(&[&arguments[..], &versions].concat())
        })
    });
    let [before, after] = &documents;
    assert_eq!(before["stream_digest"], after["stream_digest"]);
    assert_eq!(after["total"]["errors"]["total"], 0, "{:#}", after["total"]["errors"]);
    assert_eq!(before["total"]["streams_opened"], 0);
    // The demo's origins retire connections, and what they have not acted on takes another stream.
    let number = |field: &str| after["total"][field].as_u64().expect("a number");
    assert_eq!(number("streams_opened"), number("requests") + number("retries"));
    assert!(number("goaways") > 0 && number("requests") > 200, "{:#}", after["total"]);
    let run: Value =
        serde_json::from_slice(&std::fs::read(assay.path("2/run.json")).expect("is there")).expect("is JSON");
    assert_eq!(run["workload"]["overrides"]["robot_http"], "2");
}

#[test]
fn the_builtin_proxy_speaks_http_2_to_origins_and_nothing_is_lost() {
    let run = |flags: &[&str]| {
        undisturbed(|| demo(&Assay::new(), "3s", flags).wait_with_output().expect("ends").into())
    };
    let digest = |document: &Value| document["stream_digest"].clone();
    let plain = run(&[]);
    for flags in [&[][..], &["--origin-tls"], &["--robot-http", "2", "--robot-tls", "--origin-tls"]] {
        let flags = [&["--origin-http", "2"][..], flags].concat();
        let document = run(&flags);
        let total = &document["total"];
        assert_eq!(total["errors"]["total"], 0, "{flags:?}: {:#}", total["errors"]);
        assert_eq!(digest(&document), digest(&plain), "{flags:?}");
        let number = |field: &str| total["origins"][field].as_u64().expect("a number");
        // Streams that an origin has not acted on, as it retires its connection, are no requests.
        assert!(number("requests") > 50, "{flags:?}: {:#}", total["origins"]);
        assert!(number("streams_opened") >= number("requests"), "{flags:?}: {:#}", total["origins"]);
    }
}

/// Every figure that a part of a run must have; one without samples is null, but there.
fn assert_complete(part: &Value) {
    let fields = [
        "/requests",
        "/rate/offered",
        "/rate/measured",
        "/unsent",
        "/dhr/offered",
        "/dhr/ideal",
        "/dhr/measured",
        "/bhr/offered",
        "/bhr/ideal",
        "/bhr/measured",
        "/offload/requests",
        "/offload/bytes",
        "/lateness_us/p50",
        "/lateness_us/p99",
        "/lateness_us/max",
        "/errors/total",
        "/errors/by_kind",
    ];
    for field in fields {
        assert!(part.pointer(field).is_some(), "no {field} in {part:#}");
    }
    for times in ["response_time_ms", "service_time_ms", "ttfb_ms"] {
        for class in ["all", "hit", "miss"] {
            for figure in ["mean", "p50", "p90", "p99", "p999", "max"] {
                let field = format!("/{times}/{class}/{figure}");
                assert!(part.pointer(&field).is_some(), "no {field} in {part:#}");
            }
        }
    }
}

#[test]
fn the_log_of_xacts_has_a_row_for_each_but_what_no_page_led_to() {
    let (assay, document) = whole_demo("3s", &["--xact-log"]);
    let rows = XactLog::read(&assay.path("r/xacts.parquet")).expect("a log that can be read");
    let count = |is: &dyn Fn(&XactRow) -> bool| rows.iter().filter(|row| is(row)).count() as u64;
    let total = |field: &str| document["total"][field].as_u64().expect("a count");
    assert_eq!(rows.len() as u64, total("due") - total("not_reached"));
    assert_eq!(count(&|row| row.outcome.is_some()), total("completed"));
    assert_eq!(count(&|row| row.sent_us.is_none()), total("unsent"));
    for phase in 0..9_u16 {
        let completed = &document["phases"][usize::from(phase)]["completed"];
        let logged = count(&|row| row.phase == phase && row.outcome.is_some());
        assert_eq!(Some(logged), completed.as_u64(), "phase {phase}");
    }
}

#[test]
fn without_a_proxy_there_are_no_hits() {
    let (_, document) = whole_demo("3s", &["--direct"]);
    assert_eq!(document["total"]["dhr"]["measured"], 0.0);
    assert_eq!(document["total"]["errors"]["total"], 0, "{:#}", document["total"]["errors"]);
}

#[test]
fn a_summary_goes_to_standard_output_and_progress_to_standard_error() {
    let assay = Assay::new();
    let said = assay.run(&["run", "demo", "--rehearse", "3s", "--no-report"]);
    assert!(said.went_well(), "{said:?}");
    assert!(said.stderr.contains("DHR"), "no progress: {}", said.stderr);
    assert!(!said.stdout.contains("\x1b"), "colours in a pipe: {}", said.stdout);
    let runs: Vec<_> = std::fs::read_dir(assay.path("runs")).expect("a run directory").flatten().collect();
    let name = runs[0].file_name().to_string_lossy().into_owned();
    assert!(name.starts_with("demo-builtin-20"), "{name}");
    assert!(
        said.stdout.contains(&name),
        "the summary does not say where the run directory is: {}",
        said.stdout
    );
}

#[test]
fn the_result_can_go_to_a_file() {
    let assay = Assay::new();
    let said: Said = demo(&assay, "3s", &["-o", "result.json"]).wait_with_output().expect("ends").into();
    assert!(said.went_well(), "{said:?}");
    assert_eq!(said.stdout, "");
    let text = std::fs::read_to_string(assay.path("result.json")).expect("the result");
    serde_json::from_str::<Value>(&text).expect("one JSON document");
}

/// A demo that would run for minutes, with an absolute run directory so that its processes can be told.
fn long_demo(assay: &Assay) -> Child {
    let run_dir = assay.path("long");
    let run_dir = run_dir.to_str().expect("a temporary directory with a plain name");
    let arguments = ["run", "demo", "--rehearse", "10m", "--run-dir", run_dir, "--json"];
    let mut command = assay.command(&arguments);
    command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("the binary starts")
}

#[test]
fn an_interrupt_leaves_a_partial_report() {
    for signal in [libc::SIGINT, libc::SIGTERM] {
        let assay = Assay::new();
        let mut child = long_demo(&assay);
        let stderr = child.stderr.take().expect("piped");
        let mut lines = BufReader::new(stderr).lines();
        wait_for_second(&mut lines, 2);
        send(&child, signal);
        // Both at once: the document is longer than what a pipe holds.
        let rest = std::thread::spawn(|| lines.map_while(Result::ok).collect::<Vec<_>>());
        let said = Said::from(child.wait_with_output().expect("ends"));
        let rest = rest.join().expect("lines can be read");
        assert_eq!(said.code, Some(105), "{said:?} {rest:#?}");
        let document: Value = serde_json::from_str(&said.stdout).expect("one JSON document");
        assert_eq!(document["partial"], true);
        assert!(document["total"]["requests"].as_u64() > Some(0), "{:#}", document["total"]);
        assert!(assay.path("long/report.html").is_file(), "no report");
        assay.run(&["report", "long"]).exits(0);
        assert_nothing_left(&assay.path("long"));
    }
}

#[test]
fn a_workload_without_a_schedule_runs_at_full_load_until_it_is_stopped_and_is_whole_then() {
    let assay = Assay::new();
    let name = assay.file("plain.pg", UNSCHEDULED);
    let said = assay.run(&["check", name]).exits(0).stdout;
    assert!(said.contains("until the run is stopped, 40 requests a second"), "{said}");
    assert!(said.lines().any(|line| line.starts_with("dflt ") && line.contains("40/s")), "{said}");
    let mut command = assay.command(&["run", name, "--json", "--run-dir", "r"]);
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("the binary starts");
    let mut lines = BufReader::new(child.stderr.take().expect("piped")).lines();
    wait_for(&mut lines, "until Ctrl-C");
    wait_for_second(&mut lines, 2);
    send(&child, libc::SIGINT);
    let rest = std::thread::spawn(|| lines.for_each(drop));
    let said = Said::from(child.wait_with_output().expect("ends"));
    rest.join().expect("lines can be read");
    let document = document(&said);
    assert_eq!(document["partial"], false);
    assert_eq!(document["phases"][0]["name"], "dflt");
    assert!(document["total"]["requests"].as_u64() > Some(0), "{:#}", document["total"]);
}

#[test]
fn a_second_interrupt_quits_and_what_was_recorded_can_still_be_read() {
    let assay = Assay::new();
    let mut child = long_demo(&assay);
    let stderr = child.stderr.take().expect("piped");
    let mut lines = BufReader::new(stderr).lines();
    wait_for_second(&mut lines, 2);
    send(&child, libc::SIGINT);
    wait_for(&mut lines, "stopping");
    send(&child, libc::SIGINT);
    lines.for_each(drop);
    assert_eq!(child.wait().expect("ends").code(), Some(105));
    assert_nothing_left(&assay.path("long"));
    assay.run(&["report", "long"]).exits(0);
}

#[test]
fn a_command_that_is_killed_leaves_no_process_behind() {
    let assay = Assay::new();
    let mut child = long_demo(&assay);
    let stderr = child.stderr.take().expect("piped");
    wait_for_second(&mut BufReader::new(stderr).lines(), 1);
    assert!(processes_of(&assay.path("long")).len() >= 3, "the roles are not told by their command lines");
    send(&child, libc::SIGKILL);
    child.wait().expect("ends");
    assert_nothing_left(&assay.path("long"));
}
