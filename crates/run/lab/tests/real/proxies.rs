//! Each shipped proxy is started, does what its description declares, is counted and stopped.

use std::net::{SocketAddr, TcpListener};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use assay_lab::description::{Description, TemplateOrigin as NamedOrigin};
use assay_lab::mode::Mode;
use assay_lab::process::find_program;
use assay_lab::real_proxy::{RealProxy, RealProxyPlan};

use crate::behaviour::Bench;
use crate::origin::{Origin, exchange};

/// The authority that requests name; not where the origin is.
pub const AUTHORITY: &str = "192.168.0.2:9000";

/// The description of a proxy that is installed. None: the test is skipped.
pub fn installed(name: &str) -> Option<Description> {
    let description = assay_lab::find(name, &[]).unwrap();
    // Not the one that is started, which may be a shell that starts it.
    let program = &description.version.command[0];
    if find_program(program).is_some() {
        return Some(description);
    }
    let package = description.package.as_deref().unwrap_or(name);
    assay_testbed::skip(&format!("{program} not found (apt-get install {package})"));
    None
}

/// An address without another listener.
pub fn free_address() -> SocketAddr {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap()
}

/// The authority of a second origin, with the default port, which proxies may drop.
const SECOND_AUTHORITY: &str = "10.1.0.2:80";

fn choice(description: Description, mode: Mode, origins: [&Origin; 2], keep: &Path) -> RealProxyPlan {
    let origins = vec![
        NamedOrigin::new(0, AUTHORITY, origins[0].address),
        NamedOrigin::new(1, SECOND_AUTHORITY, origins[1].address),
    ];
    choice_before(description, mode, origins, keep)
}

/// How a proxy is started in front of these origins.
pub fn choice_before(
    description: Description,
    mode: Mode,
    origins: Vec<NamedOrigin>,
    keep: &Path,
) -> RealProxyPlan {
    RealProxyPlan {
        description,
        mode,
        http2: false,
        origin_http2: false,
        listen: free_address(),
        origins,
        memory_bytes: 64 << 20,
        disk_bytes: 64 << 20,
        cpus: Vec::new(),
        cpu_count: 1,
        procs_files: Vec::new(),
        helper_cpus: Vec::new(),
        descriptors: 4096,
        connections: 10,
        peering: None,
        tls: None,
        keep: keep.to_owned(),
        namespace: None,
        requested_from: None,
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

/// Sockets of these processes to which other machines can send: local addresses that are not on loopback, as the system tells them, of
/// UDP sockets without a peer and of TCP sockets that listen.
fn open_to_others(pids: &[u32]) -> Vec<String> {
    let mut open = Vec::new();
    for pid in pids {
        let own: Vec<String> = std::fs::read_dir(format!("/proc/{pid}/fd"))
            .into_iter()
            .flatten()
            .filter_map(|entry| std::fs::read_link(entry.ok()?.path()).ok())
            .filter_map(|link| {
                Some(link.to_str()?.strip_prefix("socket:[")?.trim_end_matches(']').to_owned())
            })
            .collect();
        for table in ["udp", "udp6", "tcp", "tcp6"] {
            let text = std::fs::read_to_string(format!("/proc/{pid}/net/{table}")).unwrap_or_default();
            for line in text.lines().skip(1) {
                let words: Vec<&str> = line.split_whitespace().collect();
                let [_, local, peer, state, _, _, _, _, _, inode, ..] = words[..] else { continue };
                let (ip, _) = local.split_once(':').expect("an address");
                // Addresses are in words of 32 bits, the lowest byte first.
                let is_loopback = ip.ends_with("7F") || ip == "00000000000000000000000001000000";
                let takes = if table.starts_with("tcp") { state == "0A" } else { peer.ends_with(":0000") };
                if takes && !is_loopback && own.iter().any(|own| own == inode) {
                    open.push(format!("{table} {local}"));
                }
            }
        }
    }
    open
}

/// Everything that a description promises, on one instance.
async fn keeps_its_promises(name: &str, mode: Mode) {
    let Some(description) = installed(name) else { return };
    let (origin, second) = (Origin::start().await, Origin::start().await);
    let keep = tempfile::tempdir().unwrap();
    // A run directory may be where the proxy's user cannot look.
    std::fs::set_permissions(keep.path(), std::fs::Permissions::from_mode(0o700)).unwrap();
    let declared = description.behaviour;
    let choice = choice(description, mode, [&origin, &second], keep.path());
    let (listen, files) = (choice.listen, choice.description.files[0].path.clone());
    let mut proxy = RealProxy::start(choice).await.unwrap();
    proxy.wait_ready().await.unwrap();
    let mut reader = proxy.counter_reader();
    let bench = Bench { listen, mode, origin };
    bench.does_what_is_declared(declared).await;
    if mode == Mode::Reverse {
        assert_eq!(exchange(listen, "GET", "/second", SECOND_AUTHORITY, "").await.0, 200);
        assert_eq!((second.requested("/second").len(), bench.origin.requested("/second").len()), (1, 0));
    }
    proxy.settle().await;
    let mut counters = reader.read().await.unwrap();
    assert!(!bench.get_reaches_origin("/plain").await, "{name}: still stored");
    if proxy.empty().await.unwrap() {
        assert!(bench.get_reaches_origin("/plain").await, "{name}: its cache was emptied");
    }
    let pids = proxy.pids();
    assert_eq!(open_to_others(&pids), Vec::<String>::new(), "{name} listens elsewhere than on loopback");
    assert_eq!(proxy.exit_message(), None);
    let (stopped, last) = proxy.stop(Some(&mut reader)).await;
    assert!(!stopped.killed);
    counters = last.unwrap_or(counters);
    assert!(counters.requests >= 10 && counters.hits >= 3 && counters.misses >= 5, "{counters:?}");
    assert_eq!(left_behind(&pids), Vec::<u32>::new());
    for kept in [files.as_str(), "description.toml", "output.log", "access.log"] {
        assert!(keep.path().join(kept).is_file(), "{kept} is not kept");
    }
}

#[tokio::test]
async fn traffic_server_keeps_its_promises_as_reverse_proxy() {
    keeps_its_promises("trafficserver", Mode::Reverse).await;
}

#[tokio::test]
async fn traffic_server_keeps_its_promises_as_forward_proxy() {
    keeps_its_promises("trafficserver", Mode::Forward).await;
}

#[tokio::test]
async fn haproxy_keeps_its_promises_as_reverse_proxy() {
    keeps_its_promises("haproxy", Mode::Reverse).await;
}

#[tokio::test]
async fn haproxy_keeps_its_promises_as_forward_proxy() {
    keeps_its_promises("haproxy", Mode::Forward).await;
}

#[tokio::test]
async fn httpd_keeps_its_promises_as_reverse_proxy() {
    keeps_its_promises("httpd", Mode::Reverse).await;
}

#[tokio::test]
async fn httpd_keeps_its_promises_as_forward_proxy() {
    keeps_its_promises("httpd", Mode::Forward).await;
}

#[tokio::test]
async fn varnish_keeps_its_promises() {
    keeps_its_promises("varnish", Mode::Reverse).await;
}

#[tokio::test]
async fn nginx_keeps_its_promises() {
    keeps_its_promises("nginx", Mode::Reverse).await;
}

#[tokio::test]
async fn squid_keeps_its_promises_as_reverse_proxy() {
    keeps_its_promises("squid", Mode::Reverse).await;
}

#[tokio::test]
async fn squid_keeps_its_promises_as_forward_proxy() {
    keeps_its_promises("squid", Mode::Forward).await;
}
