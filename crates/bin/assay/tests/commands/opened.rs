//! What listens elsewhere than on loopback says so, whichever command was told to.

use std::io::{BufRead, BufReader};
use std::net::TcpListener;
use std::process::Stdio;

use crate::samples::SPECIAL;
use crate::support::{Assay, send, wait_for};

/// An address of all of this machine's that is taken: whoever is told to listen there ends at once.
fn taken() -> (TcpListener, String) {
    let listener = TcpListener::bind("0.0.0.0:0").expect("a port");
    let address = listener.local_addr().expect("is bound").to_string();
    (listener, address)
}

/// Runs it, and checks its note; on loopback there is none.
#[track_caller]
fn is_told(assay: &Assay, flag: &str, can: &str, arguments: impl Fn(&str) -> Vec<String>) {
    let (_listener, address) = taken();
    let port = address.rsplit(':').next().expect("a port").to_owned();
    let run = |address: &str| {
        let arguments = arguments(address);
        let said = assay.run(&arguments.iter().map(String::as_str).collect::<Vec<_>>());
        assert!(matches!(said.code, Some(1 | 2)), "{said:?}");
        said
    };
    run(&address)
        .complains(&format!(
            "note: port {port} is open on all addresses of this machine: whoever reaches it can {can}"
        ))
        .complains(&format!("alone: {flag} 127.0.0.1:{port}\n"));
    let said = run(&format!("127.0.0.1:{port}"));
    assert!(!said.stderr.contains("is open "), "{}", said.stderr);
}

fn words(all: &[&str]) -> Vec<String> {
    all.iter().map(|&word| word.to_owned()).collect()
}

#[test]
fn origins_that_are_open_to_others_are_told_by_every_command_that_has_some() {
    let assay = Assay::new();
    let workload = assay.file("special.pg", SPECIAL);
    let log = assay.file(
        "access.log",
        "1000000000.000 5 127.0.0.1 TCP_MISS/200 100 GET http://a/b - DIRECT/a text/html\n",
    );
    let can = "request its objects from its origins";
    is_told(&assay, "--origin-listen", can, |address| {
        words(&[
            "run",
            workload,
            "--origin-listen",
            address,
            "--origin-listen",
            "127.0.0.1:1",
            "--run-dir",
            "r",
        ])
    });
    is_told(&assay, "--listen", can, |address| {
        words(&["origins", workload, "--start-at", "+60s", "--origins", "0-0", "--listen", address])
    });
    is_told(&assay, "--origins", "request the objects of the log from its origins", |address| {
        words(&["replay", log, "--to", "127.0.0.1:9", "--origins", address])
    });
    // Nothing is sent to it: the origin behind it cannot listen.
    let target = TcpListener::bind("127.0.0.1:0").expect("a port");
    let target = (target.local_addr().expect("is bound").to_string(), target);
    is_told(&assay, "--origin-listen", "request the responses of its cases", |address| {
        words(&["conform", &target.0, "--origin-listen", address, "--case", "bad-field-name"])
    });
}

#[test]
fn nodes_that_are_open_to_others_are_told() {
    let assay = Assay::new();
    let file = assay.file(
        "small.toml",
        "title = \"Small\"\npolicies = [\"rand\"]\nclients = [2]\nclasses = [\"static\"]\n[[cluster]]\nlabel = \"one\"\nnodes = 1\n\
         [[service]]\nname = \"file5k\"\nprocessor = \"1ms\"\nbytes = 5125\n[[mix]]\nlabel = \"m\"\nweights = { file5k = 1 }\n",
    );
    for more in [&[][..], &["--switch"], &["--run"], &["--calibrate"]] {
        let can = if more.iter().any(|flag| ["--switch", "--run"].contains(flag)) {
            "load its nodes and its switch, on this port and the next;"
        } else {
            "load its nodes, on this port and the next;"
        };
        is_told(&assay, "--listen", can, |address| {
            words(&[&["cluster", file, "--listen", address][..], more].concat())
        });
    }
}

#[test]
fn a_switch_tells_what_it_opens_to_others_when_it_starts_and_when_it_reloads() {
    let assay = Assay::new();
    let text = |listen: &str, metrics: &str| {
        format!("listen = \"{listen}:0\"\nmetrics = \"{metrics}:0\"\n[[server]]\naddress = \"127.0.0.1:9\"\n")
    };
    assay.file("front.toml", &text("0.0.0.0", "127.0.0.1"));
    let mut command = assay.command(&["switch", "front.toml", "--quiet"]);
    let mut child = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().expect("starts");
    let mut lines = BufReader::new(child.stderr.take().expect("is piped")).lines();
    wait_for(
        &mut lines,
        "can send requests to its servers; for programs on this machine alone: listen = \"127.0.0.1:",
    );
    assay.file("front.toml", &text("0.0.0.0", "0.0.0.0"));
    send(&child, libc::SIGHUP);
    wait_for(&mut lines, "can read its counters; for programs on this machine alone: metrics = \"127.0.0.1:");
    send(&child, libc::SIGTERM);
    assert_eq!(child.wait().expect("ends").code(), Some(0));
    let rest: Vec<String> = lines.map(|line| line.expect("text")).collect();
    assert!(!rest.iter().any(|line| line.contains("is open ")), "{rest:?}");
}
