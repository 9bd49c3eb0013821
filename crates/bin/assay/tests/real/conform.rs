//! `assay conform` through the binary, on targets: results in all their forms, and exit codes.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::process::Stdio;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::helpers::{assert_nothing_left, process_of};
use crate::support::{Assay, Said};

#[test]
fn the_built_in_proxy_is_tried_and_leaves_nothing() {
    let assay = Assay::new();
    let typed = [
        "conform",
        "builtin",
        "--case",
        "no-store-response",
        "--json",
        "--junit",
        "j.xml",
        "--markdown",
        "m.md",
        "--dir",
        "kept",
    ];
    let said = assay.run(&typed).exits(0);
    let document: Value = serde_json::from_str(&said.stdout).expect("JSON");
    assert_eq!(document["schema"], "assay-conform/1");
    let results = document["results"].as_array().expect("results");
    assert!(results.len() >= 10);
    for result in results {
        assert_eq!((&result["level"], &result["verdict"]), (&"MUST".into(), &"pass".into()), "{result}");
    }
    assert!(std::fs::read_to_string(assay.path("j.xml")).unwrap().contains("failures=\"0\""));
    assert!(std::fs::read_to_string(assay.path("m.md")).unwrap().contains("`no-store-response/plain`"));
    assert!(assay.path("kept/builtin/roles/proxy.json").is_file());
    assert_nothing_left(assay.directory.path());
}

#[test]
fn a_must_of_ones_own_that_is_not_met_ends_with_99_unless_it_is_excused() {
    let assay = Assay::new();
    std::fs::create_dir(assay.path("cases")).unwrap();
    let case = "topic = \"own\"\n[[case]]\nname = \"one-page\"\nlevel = \"MUST\"\nsection = \"policy\"\nrule = \"The query does not matter.\"\n\
        steps = [{}, { path = \"?a\", expect = { served = \"store\" } }]\n";
    assay.file("cases/own.toml", case);
    let run = |more: &[&str]| assay.run(&[&["conform", "builtin", "--cases", "cases"], more].concat());
    let said = run(&[]).exits(99);
    assert!(said.stdout.contains("MUST not met: 1\n  builtin: one-page"), "{}", said.stdout);
    run(&["--report-only", "--json", "-o", "before.json"]).exits(0);
    run(&["--baseline", "before.json"]).exits(0);
    assay.file("known.toml", "[[known]]\ncase = \"one-page\"\nreason = \"not yet\"\n");
    let said = run(&["--known-failures", "known.toml"]).exits(0);
    assert!(said.stdout.contains("(known: not yet)"), "{}", said.stdout);
    // What was not tried was not looked for; what no case is called is told.
    let known = |case: &str| format!("[[known]]\ncase = \"{case}\"\nreason = \"why\"\n");
    assay.file("others.toml", &(known("age-sent") + &known("stores") + &known("storse")));
    let typed = ["conform", "builtin", "--case", "stores", "--known-failures", "others.toml"];
    let said = assay.run(&typed).exits(0).complains("the known failure of `stores` was not seen");
    assert!(!said.stderr.contains("age-sent"), "{}", said.stderr);
    said.complains("no case is called `storse`");
}

#[test]
fn cases_beside_load_are_a_requirement_of_the_run_and_change_no_figure_of_it() {
    let assay = Assay::new();
    let run = |name: &str, more: &[&str]| {
        let typed = [
            "run",
            "demo",
            "--duration",
            "8s",
            "--rate",
            "20",
            "--robots",
            "5",
            "--memory",
            "16MB",
            "--json",
            "--no-report",
        ];
        let said = assay.run(&[&typed[..], &["--run-dir", name], more].concat());
        serde_json::from_str::<Value>(&said.stdout).unwrap_or_else(|_| panic!("{}", said.stderr))
    };
    let alone = run("alone", &[]);
    let tried = run("tried", &["--with-conform", "no-store-response"]);
    for place in ["/stream_digest", "/total/due", "/total/errors/total"] {
        assert_eq!(alone.pointer(place), tried.pointer(place), "{place}");
    }
    assert!(alone.get("conform").is_none());
    let requirement = &tried["requirements"][0];
    assert_eq!(requirement["decision"], "held", "{requirement}");
    assert!(tried["conform"]["tries"].as_u64().unwrap() > 0, "{}", tried["conform"]);
    assert_nothing_left(assay.directory.path());
    // The record decides, also later.
    let path = assay.path("tried/conform.json");
    let failed =
        std::fs::read_to_string(&path).unwrap().replace("\"verdict\": \"pass\"", "\"verdict\": \"fail\"");
    std::fs::write(&path, failed).unwrap();
    let again = assay.run(&["report", "tried", "--json"]).exits(0).stdout;
    let again: Value = serde_json::from_str(&again).unwrap();
    assert_eq!(again["requirements"][0]["decision"], "failed", "{}", again["requirements"]);
    assert_eq!(again["conform"]["failures"][0]["level"], "MUST");
}

/// The case waits for longer than the load lasts. What it relies on is tried, and is no MUST.
#[test]
fn a_load_that_is_too_short_for_a_case_leaves_its_must_undecided() {
    let assay = Assay::new();
    let load = ["--duration", "2s", "--rate", "20", "--robots", "5", "--memory", "16MB", "--no-report"];
    let typed = [&["run", "demo", "--with-conform", "age-sent", "--run-dir", "short"][..], &load].concat();
    assay.run(&typed).exits(96);
    let said = assay.run(&["report", "short", "--json"]).exits(0).stdout;
    let said: Value = serde_json::from_str(&said).unwrap();
    assert_eq!(said["requirements"][0]["decision"], "undecided", "{}", said["requirements"]);
    assert_eq!((&said["conform"]["musts"], &said["conform"]["musts_decided"]), (&1.into(), &0.into()));
}

#[test]
fn over_tls_and_over_http2_there_the_built_in_proxy_meets_what_it_meets_in_clear() {
    let assay = Assay::new();
    let chosen = ["no-store-response", "http2-responds", "http2-content-length", "http2-streams-at-once"];
    let chosen: Vec<&str> = chosen.iter().flat_map(|case| ["--case", case]).collect();
    let typed = [&["conform", "builtin", "--tls", "--json", "--dir", "kept"][..], &chosen].concat();
    let said = assay.run(&typed).exits(0);
    let document: Value = serde_json::from_str(&said.stdout).expect("JSON");
    let results = document["results"].as_array().expect("results");
    assert!(results.len() >= 20, "{results:#?}");
    for one in results {
        let expected = if one["level"] == "MUST" { "pass" } else { "yes" };
        assert_eq!(one["verdict"], expected, "{one:#?}");
    }
    // The certificate stays as evidence, the key does not.
    let tls = assay.path("kept/builtin/http2/tls");
    assert!(tls.join("target.pem").is_file() && !tls.join("target.key").exists());
    assert_nothing_left(assay.directory.path());
}

/// A target that responds with 200, and with 404 to every third request, the first among them.
fn fickle() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").expect("there is a port");
    let address = listener.local_addr().expect("bound");
    std::thread::spawn(move || {
        for (number, stream) in listener.incoming().enumerate() {
            let Ok(mut stream) = stream else { break };
            let mut head = [0; 4096];
            // Whoever looks whether somebody listens sends nothing.
            if !matches!(stream.read(&mut head), Ok(1..)) {
                continue;
            }
            let status = if number % 3 == 0 { "404 Not Found" } else { "200 OK" };
            let response = format!("HTTP/1.1 {status}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
            let _ = stream.write_all(response.as_bytes());
        }
    });
    address
}

#[test]
fn a_must_that_is_met_sometimes_ends_with_99_and_is_never_taken_for_a_pass() {
    let assay = Assay::new();
    std::fs::create_dir(assay.path("cases")).unwrap();
    let case = "topic = \"own\"\n[[case]]\nname = \"ok\"\nlevel = \"MUST\"\nsection = \"policy\"\nrule = \"It is there.\"\n\
        steps = [{ expect = { status = 200 } }]\n";
    assay.file("cases/own.toml", case);
    let target = fickle().to_string();
    let run = |more: &[&str]| {
        let typed =
            ["conform", &target, "--origin-listen", "127.0.0.1:0", "--cases", "cases", "--tries", "12"];
        assay.run(&[&typed[..], more].concat())
    };
    let said = run(&[]).exits(99);
    assert!(
        said.stdout.contains("MUST not met: 1\n") && said.stdout.contains("ok (sometimes ("),
        "{}",
        said.stdout
    );
    let said = run(&["--json", "-o", "before.json", "--report-only"]).exits(0);
    assert!(said.stdout.is_empty(), "{}", said.stdout);
    let document: Value =
        serde_json::from_str(&std::fs::read_to_string(assay.path("before.json")).unwrap()).unwrap();
    let result = &document["results"][0];
    assert_eq!(result["verdict"], "sometimes", "{result:#}");
    let (held, unheld) =
        (result["times"]["held"].as_u64().unwrap(), result["times"]["unheld"].as_u64().unwrap());
    assert!(held > 0 && unheld > 0 && held + unheld >= 12, "{result:#}");
    assert!(result["exchanges"][0]["received"].as_str().unwrap_or_default().contains("404"), "{result:#}");
    run(&["--baseline", "before.json"]).exits(0);
}

/// A target that sends these bytes to everybody, and ends the connection.
fn sending(bytes: &'static [u8]) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").expect("there is a port");
    let address = listener.local_addr().expect("bound");
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let Ok(mut stream) = stream else { break };
            if matches!(stream.read(&mut [0; 65536]), Ok(1..)) {
                let _ = stream.write_all(bytes);
            }
        }
    });
    address
}

#[test]
fn a_target_without_a_response_has_refused_nothing_and_that_is_said_first() {
    let assay = Assay::new();
    for bytes in [&b""[..], b"\x00\x01garbage\xff\xfe"] {
        let target = sending(bytes).to_string();
        let typed = ["conform", &target, "--origin-listen", "127.0.0.1:0", "--case", "bad-field-name"];
        let said = assay.run(&[&typed[..], &["--case", "no-store-response"]].concat()).exits(96);
        let first = said.stdout.lines().next().unwrap_or_default();
        assert!(
            first.contains("cases say nothing; most often: the target gave no response to any request"),
            "{first}"
        );
        assert!(!said.stdout.contains("MUST not met"), "{}", said.stdout);
        let line = said.stdout.lines().find(|line| line.contains(" of ") && line.contains(" dep, "));
        assert!(line.is_some_and(|line| line.contains("0 of 0 ")), "{}", said.stdout);
    }
}

#[test]
fn the_switch_meets_all_that_binds_any_intermediary() {
    let assay = Assay::new();
    let said = assay.run(&["conform", "switch", "--json"]).exits(0);
    let document: Value = serde_json::from_str(&said.stdout).expect("JSON");
    let results = document["results"].as_array().expect("results");
    let of = |verdict: &str| results.iter().filter(|result| result["verdict"] == verdict).count();
    assert!(of("pass") > 140, "{} pass", of("pass"));
    let failed: Vec<_> = results.iter().filter(|result| result["verdict"] == "fail").collect();
    assert!(failed.is_empty(), "{failed:#?}");
    assert!(of("not-applicable") > 300, "cases for caches do not apply");
}

#[test]
fn caches_that_work_together_are_one_target_from_the_first_of_them_to_the_origin() {
    let assay = Assay::new();
    std::fs::create_dir(assay.path("cases")).unwrap();
    let chain = "[[cache]]\nname = \"edge\"\nparents = [\"top\"]\nprotocol = \"hash\"\nnever-direct = true\n[[cache]]\nname = \"top\"\n";
    assay.file("two.toml", chain);
    let case = "topic = \"own\"\n[[case]]\nname = \"through-both\"\nlevel = \"MUST\"\nsection = \"policy\"\nrule = \"Both pass it on.\"\n\
        steps = [{ expect = { status = 200, forwarded = [\"Via ~ edge\", \"Via ~ top\"] } }, { expect = { served = \"store\", from = 1 } }]\n";
    assay.file("cases/own.toml", case);
    let typed = ["conform", "builtin", "--topology", "chain=two.toml", "--cases", "cases"];
    let said = assay.run(&typed).exits(99);
    assert!(said.stdout.contains("MUST not met: 1\n  builtin: through-both"), "{}", said.stdout);
    let typed =
        ["conform", "--topology", "two.toml", "--case", "no-store-response", "--case", "http2-responds"];
    let said = assay.run(&[&typed[..], &["--json", "--dir", "kept"]].concat()).exits(0);
    let document: Value = serde_json::from_str(&said.stdout).expect("JSON");
    assert_eq!(document["targets"][0]["label"], "two");
    let software = document["targets"][0]["software"].as_str().unwrap_or_default();
    assert!(software.contains("edge: Assay") && software.contains("top: Assay"), "{software}");
    let results = document["results"].as_array().expect("results");
    assert!(results.len() > 10, "{results:#?}");
    for one in results {
        let is_behaviour = one["case"] == "http2-responds";
        assert_eq!(one["verdict"], if is_behaviour { "yes" } else { "pass" }, "{one:#?}");
    }
    for cache in ["edge", "top", "http2/edge"] {
        assert!(assay.path(&format!("kept/two/{cache}/roles/proxy.json")).is_file(), "{cache}");
    }
    assert_nothing_left(assay.directory.path());
}

#[test]
fn a_forward_proxy_gets_whole_urls_and_no_case_that_only_a_gateway_gets() {
    let assay = Assay::new();
    let typed =
        ["conform", "builtin", "--forward", "--case", "no-store-response", "--case", "framing", "--json"];
    let said = assay.run(&typed).exits(0);
    let document: Value = serde_json::from_str(&said.stdout).expect("JSON");
    let results = document["results"].as_array().expect("results");
    let verdicts = |topic: &str| -> Vec<&str> {
        let of_topic = results.iter().filter(|result| result["topic"] == topic);
        of_topic.filter_map(|result| result["verdict"].as_str()).collect()
    };
    let storing = verdicts("storing");
    assert!(storing.len() >= 10 && storing.iter().all(|verdict| *verdict == "pass"), "{storing:?}");
    assert!(verdicts("framing").iter().filter(|verdict| **verdict == "not-applicable").count() > 50);
}

/// What is said by a run of cases whose target is killed once it has accepted so many more connections.
fn killed_once_it_listens(more: usize) -> (Assay, Said) {
    let assay = Assay::new();
    let typed = ["conform", "builtin", "--case", "freshness", "--dir", "kept"];
    let mut command = assay.command(&typed);
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it starts");
    let proxy = process_of(&assay.path("kept"), "proxy.json");
    let spec = std::fs::read_to_string(assay.path("kept/builtin/roles/proxy.json")).unwrap();
    let spec: Value = serde_json::from_str(&spec).unwrap();
    let listen: SocketAddr = spec["listen"].as_str().unwrap().parse().unwrap();
    // It says that it is ready once it listens, so that cases are under way or about to be.
    let begin = Instant::now();
    while TcpStream::connect(listen).is_err() {
        assert!(begin.elapsed() < Duration::from_secs(60), "it does not listen");
        std::thread::yield_now();
    }
    (0..more).for_each(|_| drop(TcpStream::connect(listen)));
    // SAFETY: a plain system call; the process is one that our child has started and holds.
    assert_eq!(unsafe { libc::kill(proxy, libc::SIGKILL) }, 0);
    (assay, Said::from(child.wait_with_output().expect("ends")))
}

#[test]
fn a_target_that_dies_is_said_first_on_one_line_and_leaves_nothing_decided_that_was_not_seen() {
    // It listens before it says that it is ready. Killed in between, it has not started, which is another message: each time, it gets a
    // little longer.
    let mut tries = (0..10)
        .map(|number| killed_once_it_listens(number * number * 10))
        .filter(|(_, said)| !said.stderr.contains("did not start"));
    let (assay, said) = tries.next().expect("it is killed once it is ready");
    assert_eq!(said.code, Some(96), "{said:?}");
    let first = said.stdout.lines().next().unwrap_or_default();
    assert!(
        first.starts_with("builtin ended by itself while it was tried: ") && first.contains("SIGKILL"),
        "{first}"
    );
    assert!(first.ends_with("kept/builtin)"), "{first}");
    assert!(!said.stdout.contains("MUST not met"), "{}", said.stdout);
    assert_nothing_left(assay.directory.path());
}

#[test]
fn a_case_of_ones_own_over_http2_is_tried_and_shows_its_frames() {
    let assay = Assay::new();
    std::fs::create_dir(assay.path("cases")).unwrap();
    let case = "topic = \"own\"\n[[case]]\nname = \"upper\"\nlevel = \"MUST\"\nsection = \"policy\"\nrule = \"Upper case is welcome.\"\n\
        applies = \"proxy\"\nsteps = [{ frames = [{ type = \"HEADERS\", fields = [\":method: GET\", \":scheme: http\", \":authority: {host}\", \":path: {url}\", \"X-A: b\"] }], \
        expect = { status = 200, responds = true } }]\n";
    assay.file("cases/own.toml", case);
    let said = assay.run(&["conform", "switch", "--cases", "cases", "--json"]).exits(99);
    let document: Value = serde_json::from_str(&said.stdout).expect("JSON");
    let exchange = &document["results"][0]["exchanges"][0];
    let sent = exchange["sent"].as_str().unwrap_or_default();
    assert!(sent.contains("HEADERS stream 1 END_STREAM END_HEADERS\n  :method: GET"), "{exchange}");
    assert!(
        exchange["received"].as_str().unwrap_or_default().contains("RST_STREAM stream 1 PROTOCOL_ERROR"),
        "{exchange}"
    );
    let shown = assay.run(&["conform", "show", "upper", "--cases", "cases"]).exits(0).stdout;
    assert!(
        shown.contains("client sends  HEADERS END_STREAM END_HEADERS\n                :method: GET"),
        "{shown}"
    );
}
