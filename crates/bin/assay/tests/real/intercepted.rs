//! Evaluations that open tunnels, through the real binary: a browser and curl see over TLS what they see directly, the origin gets one
//! request for each need, every proxy is compared, and a proxy that changes a body is found.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;

use assay_record::spe::{ResponseRow, Verdict};

use crate::browsing::{Secured, Way, see_alike, words};
use crate::evaluation::Going;
use crate::helpers::has;
use crate::run_command::own_address;
use crate::site::Site;
use crate::site::front::Front;

/// A site with TLS in front of it, and an authority with which an evaluation opens tunnels.
struct Bed {
    site: Site,
    front: Front,
    directory: tempfile::TempDir,
}

impl Bed {
    fn start() -> Self {
        Self::at("localhost")
    }

    fn at(host: &str) -> Self {
        let directory = tempfile::tempdir().expect("the temp directory is writable");
        let site = Site::start();
        let front = Front::start(host, site.address, directory.path());
        let mut made = Command::new(env!("CARGO_BIN_EXE_assay"));
        let made = made.args(["spe", "authority"]).arg(directory.path().join("own")).output();
        assert!(made.expect("it starts").status.success());
        Self { site, front, directory }
    }

    /// The certificate that clients of the evaluation trust.
    fn own(&self) -> PathBuf {
        self.directory.path().join("own/authority.pem")
    }

    /// What opens tunnels, and trusts the front.
    fn options(&self) -> Vec<String> {
        let own = self.directory.path().join("own");
        let [own, trusted] = [&own, &self.front.trusted].map(|path| path.to_str().expect("UTF-8"));
        words(&["--intercept", own, "--origin-ca", trusted])
    }

    fn going(&self, more: &[&str]) -> Going {
        let options = self.options();
        Going::start(&options.iter().map(String::as_str).chain(more.iter().copied()).collect::<Vec<_>>())
    }

    fn url(&self, path: &str) -> String {
        format!("https://{}{path}", self.front.name)
    }

    /// Bodies and versions of HTTP that curl gets through a proxy with whose authority it trusts.
    fn curl(&self, proxy: SocketAddr, trusted: &Path, version: &str, paths: &[&str]) -> Vec<u8> {
        let mut command = Command::new("curl");
        command.args(["-q", "-sS", "--max-time", "120", "--noproxy", "", version, "--cacert"]).arg(trusted);
        command.args(["-x", &format!("http://{proxy}"), "-w", "\nHTTP/%{http_version} %{http_code}\n"]);
        let output = command.args(paths.iter().map(|path| self.url(path))).stdin(Stdio::null()).output();
        let output = output.expect("it starts");
        eprintln!("curl: {}", String::from_utf8_lossy(&output.stderr));
        output.stdout
    }
}

fn verdicts(rows: &[ResponseRow], target: u16) -> Vec<Verdict> {
    rows.iter().filter(|row| row.target == target).map(|row| row.verdict).collect()
}

#[test]
fn a_browser_and_curl_see_a_site_through_opened_tunnels_as_they_see_it_directly() {
    if !has("curl", "curl") || !has("openssl", "openssl") {
        return;
    }
    let bed = Bed::start();
    let way = |trusted: &Path, proxy| {
        Way::Secured(Secured { front: bed.front.name.clone(), trusted: trusted.to_owned(), proxy })
    };
    let options = [bed.options(), words(&["--proxy", "builtin", "--proxy", "second=builtin"])].concat();
    let directly = way(&bed.front.trusted, None);
    let info = see_alike(&bed.site, &directly, &options, |proxy| way(&bed.own(), Some(proxy)), 2);
    assert!(info.intercept && info.totals.tunnels_opened > 0, "{info:?}");
    // A browser begins more connections than it uses.
    let known = info.totals.tunnels_opened + info.totals.tunnels_failed;
    assert_eq!(info.totals.connects, known, "{info:?}");
}

#[test]
fn requests_over_http_2_in_an_opened_tunnel_reach_the_origin_once_and_every_proxy() {
    if !has("curl", "curl") {
        return;
    }
    let bed = Bed::start();
    let paths = ["/", "/style.css", "/now", "/a.bmp", "/large", "/a.bmp", "/parts"];
    let going = bed.going(&["--proxy", "builtin", "--proxy", "second=builtin", "--at-once"]);
    let through = bed.curl(going.listen, &bed.own(), "--http2", &paths);
    let again = bed.curl(going.listen, &bed.own(), "--http1.1", &["/a.bmp", "/style.css"]);
    let old = bed.curl(going.listen, &bed.own(), "--http1.0", &["/a.bmp"]);
    let (info, rows, code) = going.end();
    let requested = bed.site.requested();
    assert!(old.ends_with(b" 200\n"), "a client that names HTTP/1.0 (ALPN) is served");
    let text = String::from_utf8_lossy(&through);
    assert_eq!(text.matches("\nHTTP/2 200\n").count(), paths.len(), "{}", text.len());
    assert_eq!(String::from_utf8_lossy(&again).matches("\nHTTP/1.1 200\n").count(), 2);
    assert!(through.len() > 6 << 20, "the large body is whole: {}", through.len());
    assert_eq!(code, Some(0));
    assert!(requested.values().all(|times| *times == 1), "{requested:#?}");
    assert_eq!(requested.len(), 6, "{requested:#?}");
    for target in [1, 2] {
        assert_eq!(verdicts(&rows, target), [Verdict::Ok; 10], "{rows:#?}");
    }
    assert!(rows.iter().all(|row| row.url.starts_with(&bed.url("/"))), "{rows:#?}");
    assert_eq!((info.totals.connects, info.totals.tunnels_opened, info.totals.requests), (3, 3, 13));
}

/// A proxy that changes the last byte of every response, and has its listener as parent.
fn spoiler(parent: SocketAddr) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").expect("there is a port");
    let address = listener.local_addr().expect("it has an address");
    let spoil = move |mut client: TcpStream| -> std::io::Result<()> {
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            let mut byte = [0];
            client.read_exact(&mut byte)?;
            head.push(byte[0]);
        }
        head.truncate(head.len() - 2);
        let mut server = TcpStream::connect(parent)?;
        server.write_all(&[&head[..], b"Connection: close\r\n\r\n"].concat())?;
        let mut response = Vec::new();
        server.read_to_end(&mut response)?;
        if let Some(last) = response.last_mut() {
            *last ^= 1;
        }
        client.write_all(&response)
    };
    thread::spawn(move || {
        for client in listener.incoming().flatten() {
            thread::spawn(move || spoil(client));
        }
    });
    address
}

#[test]
fn a_proxy_that_changes_a_body_in_an_opened_tunnel_is_found() {
    if !has("curl", "curl") {
        return;
    }
    let bed = Bed::start();
    let listeners = own_address(3200);
    let spoiled = spoiler(SocketAddr::new(listeners.ip(), listeners.port() + 1)).to_string();
    let (listeners, spoiler) = (listeners.to_string(), format!("spoiler={spoiled}"));
    let going = bed.going(&["--collector-listen", &listeners, "--proxy", &spoiler, "--proxy", "builtin"]);
    bed.curl(going.listen, &bed.own(), "--http2", &["/a.bmp", "/style.css", "/now"]);
    let (_, rows, _) = going.end();
    assert_eq!(verdicts(&rows, 1), [Verdict::BodyMismatch; 3], "{rows:#?}");
    assert_eq!(verdicts(&rows, 2), [Verdict::Ok; 3], "{rows:#?}");
}

#[test]
fn tunnels_stay_closed_unless_an_authority_is_named() {
    if !has("curl", "curl") {
        return;
    }
    let bed = Bed::start();
    let going = Going::start(&["--proxy", "builtin"]);
    let seen = bed.curl(going.listen, &bed.front.trusted, "--http2", &["/a.bmp"]);
    assert!(seen.ends_with(b"\nHTTP/1.1 200\n"), "the origin's own certificate, and its own version");
    let (info, rows, _) = going.end();
    assert!(!info.intercept);
    assert_eq!((info.totals.connects, info.totals.tunnels_opened), (1, 0));
    assert!(rows.iter().all(|row| row.verdict == Verdict::NotCompared), "{rows:#?}");
}

#[test]
fn a_client_that_does_not_trust_the_authority_gets_nothing_and_is_counted() {
    if !has("curl", "curl") {
        return;
    }
    let bed = Bed::start();
    let going = bed.going(&["--proxy", "builtin"]);
    let seen = bed.curl(going.listen, &bed.front.trusted, "--http2", &["/a.bmp"]);
    assert!(seen.ends_with(b"\nHTTP/0 000\n"), "{seen:?}");
    bed.curl(going.listen, &bed.own(), "--http2", &["/b.bmp"]);
    let (info, rows, _) = going.end();
    assert_eq!((info.totals.tunnels_opened, info.totals.tunnels_certificate_refused), (1, 1), "{info:?}");
    let refused: Vec<_> = rows.iter().filter(|row| row.method == "CONNECT").collect();
    assert!(matches!(refused[..], [row] if row.url == bed.front.name), "{rows:#?}");
    assert!(!bed.site.requested().keys().any(|need| need.contains("/a.bmp")));
}

#[test]
fn an_origin_whose_certificate_is_not_valid_gets_no_request_and_the_client_is_told() {
    if !has("curl", "curl") {
        return;
    }
    let bed = Bed::start();
    // Its own authority is not that of the front.
    let own = bed.directory.path().join("own");
    let [dir, pem] = [own.clone(), bed.own()].map(|path| path.to_str().expect("UTF-8").to_owned());
    let going = Going::start(&["--intercept", &dir, "--origin-ca", &pem, "--proxy", "builtin"]);
    let seen = bed.curl(going.listen, &bed.own(), "--http2", &["/a.bmp"]);
    let seen = String::from_utf8_lossy(&seen);
    assert!(seen.contains("signed by no authority that is trusted"), "{seen}");
    assert!(seen.ends_with("\nHTTP/2 502\n"), "{seen}");
    going.end();
    assert!(bed.site.requested().is_empty());
}

#[test]
fn every_forward_proxy_is_compared_on_requests_from_opened_tunnels() {
    let programs = [
        ("squid", "squid"),
        ("apache2", "apache2"),
        ("traffic_server", "trafficserver"),
        ("haproxy", "haproxy"),
    ];
    if !has("curl", "curl") || !programs.into_iter().all(|(program, package)| has(program, package)) {
        return;
    }
    // Traffic Server sends what is at 127.0.0.1 to no parent.
    let bed = Bed::at("127.0.0.2");
    let proxies = ["squid", "httpd", "trafficserver", "haproxy", "builtin"];
    let going = bed.going(&proxies.iter().flat_map(|proxy| ["--proxy", proxy]).collect::<Vec<_>>());
    let paths = ["/a.bmp", "/style.css", "/now", "/a.bmp", "/missing", "/b.bmp"];
    bed.curl(going.listen, &bed.own(), "--http2", &paths);
    let (_, rows, code) = going.end();
    assert_eq!(code, Some(0));
    let requested = bed.site.requested();
    assert!(requested.values().all(|times| *times == 1), "{requested:#?}");
    for target in 1..=5 {
        assert_eq!(verdicts(&rows, target), [Verdict::Ok; 6], "{rows:#?}");
    }
}
