//! Each shipped proxy is started, asked, counted and stopped.

use std::io::Write;
use std::net::{SocketAddr, TcpListener};
use std::path::Path;

use assay_lab::description::{Description, Origin as NamedOrigin};
use assay_lab::plan::Mode;
use assay_lab::process::find_program;
use assay_lab::real::{Choice, RealProxy};

use crate::origin::{Origin, ask};

/// The authority that requests name; not where the origin is.
pub const AUTHORITY: &str = "192.168.0.2:9000";

/// The description of a proxy that is installed. None, with a visible word, when it is not; a failure when the
/// environment says that it must be.
pub fn installed(name: &str) -> Option<Description> {
    let description = assay_lab::find(name, &[]).unwrap();
    let program = &description.start.command[0];
    if find_program(program).is_some() {
        return Some(description);
    }
    let package = description.package.as_deref().unwrap_or(name);
    let why = format!("skipped: {program} not found (apt-get install {package})");
    assert!(std::env::var_os("ASSAY_REQUIRE_REAL").is_none(), "{why}");
    // Not through `eprintln!`, which the test harness keeps to itself when a test passes.
    let _ = writeln!(std::io::stderr(), "{why}");
    None
}

/// An address that nobody else listens on.
pub fn free_address() -> SocketAddr {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap()
}

pub fn choice(description: Description, mode: Mode, origin: &Origin, keep: &Path) -> Choice {
    Choice {
        description,
        mode,
        listen: free_address(),
        origins: vec![NamedOrigin::new(0, AUTHORITY, origin.address)],
        memory_bytes: 64 << 20,
        disk_bytes: 64 << 20,
        cpus: Vec::new(),
        cpu_count: 1,
        helper_cpus: Vec::new(),
        descriptors: 4096,
        connections: 10,
        keep: keep.to_owned(),
        temp: None,
    }
}

/// Target and host of a request for a path of the origin.
pub fn target(mode: Mode, origin: &Origin, path: &str) -> (String, String) {
    match mode {
        Mode::Reverse => (path.to_owned(), AUTHORITY.to_owned()),
        Mode::Forward => (format!("http://{}{path}", origin.address), origin.address.to_string()),
    }
}

fn left_behind(pids: &[u32]) -> Vec<u32> {
    pids.iter().copied().filter(|pid| Path::new(&format!("/proc/{pid}")).exists()).collect()
}

async fn starts_answers_counts_and_stops(name: &str, mode: Mode) {
    let Some(description) = installed(name) else { return };
    let (keep, origin) = (tempfile::tempdir().unwrap(), Origin::start().await);
    let choice = choice(description, mode, &origin, keep.path());
    let (listen, files) = (choice.listen, choice.description.files[0].path.clone());
    let mut proxy = RealProxy::start(choice).await.unwrap();
    proxy.wait_ready().await.unwrap();
    for _ in 0..3 {
        let (target, host) = target(mode, &origin, "/counted");
        assert_eq!(ask(listen, "GET", &target, &host, "").await.0, 200);
    }
    assert_eq!(origin.asked("/counted"), ["GET"]);
    let mut reader = proxy.counter_reader();
    reader.read().await.unwrap();
    let pids = proxy.pids();
    assert_eq!(proxy.died(), None);
    let mut counters = reader.read().await.unwrap();
    let (stopped, last) = proxy.stop(Some(&mut reader)).await;
    assert!(!stopped.killed);
    counters = last.unwrap_or(counters);
    assert!(counters.requests >= 4 && counters.hits >= 2 && counters.misses >= 1, "{counters:?}");
    assert_eq!(left_behind(&pids), Vec::<u32>::new());
    for kept in [files.as_str(), "description.toml", "output.log", "access.log"] {
        assert!(keep.path().join(kept).is_file(), "{kept} is not kept");
    }
}

#[tokio::test]
async fn varnish_starts_answers_counts_and_stops() {
    starts_answers_counts_and_stops("varnish", Mode::Reverse).await;
}

#[tokio::test]
async fn nginx_starts_answers_counts_and_stops() {
    starts_answers_counts_and_stops("nginx", Mode::Reverse).await;
}

#[tokio::test]
async fn squid_starts_answers_counts_and_stops_as_reverse_proxy() {
    starts_answers_counts_and_stops("squid", Mode::Reverse).await;
}

#[tokio::test]
async fn squid_starts_answers_counts_and_stops_as_forward_proxy() {
    starts_answers_counts_and_stops("squid", Mode::Forward).await;
}
