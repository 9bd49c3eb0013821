//! Several proxies at once on the requests of clients, through the real binary: clients see what they see directly, and
//! the origin gets one request for each need.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use assay_record::spe::{
    ExchangeRow, How, ResponseRow, SpeDir, SpeInfo, Verdict, read_exchanges, read_responses,
};

use crate::helpers::has;
use crate::run_command::{one_date, own_address};

/// How often each line was requested.
pub type Requested = Arc<Mutex<BTreeMap<String, u32>>>;

/// An origin in threads of its own: some pages may be cached, others not.
pub fn origin() -> (SocketAddr, Requested) {
    // Traffic Server sends what is at 127.0.0.1 to no parent.
    let listener = TcpListener::bind("127.0.0.2:0").expect("there is a port");
    let address = listener.local_addr().expect("it has an address");
    let requested = Requested::default();
    let counted = Arc::clone(&requested);
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let counted = Arc::clone(&counted);
            thread::spawn(move || serve(stream, &counted));
        }
    });
    (address, requested)
}

fn serve(stream: TcpStream, requested: &Requested) -> Option<()> {
    let mut reader = BufReader::new(stream);
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).ok().filter(|read| *read > 0)?;
        let (mut length, mut close) = (0, false);
        loop {
            let mut field = String::new();
            reader.read_line(&mut field).ok().filter(|read| *read > 0)?;
            let field = field.trim_end().to_ascii_lowercase();
            match field.split_once(": ") {
                Some(("content-length", value)) => length = value.parse().ok()?,
                Some(("connection", value)) => close = value == "close",
                Some(_) => {}
                None => break,
            }
        }
        let mut body = vec![0; length];
        reader.read_exact(&mut body).ok()?;
        let words: Vec<&str> = line.split_whitespace().collect();
        let path = words.get(1)?.to_string();
        *requested.lock().expect("nobody panics").entry(format!("{} {path}", words[0])).or_default() += 1;
        let mut response = response(words[0], &path, &body);
        if path == "/cut" {
            response.truncate(response.len() / 2);
            close = true;
        }
        reader.get_mut().write_all(&response).ok()?;
        if close {
            return None;
        }
    }
}

fn response(method: &str, path: &str, body: &[u8]) -> Vec<u8> {
    let (status, cache, body) = match path {
        "/missing" => ("404 Not Found", "no-store", b"there is none".to_vec()),
        "/now" => ("200 OK", "no-store", b"made anew each time".to_vec()),
        "/post" => ("200 OK", "no-store", [b"got ", body].concat()),
        _ => ("200 OK", "public, max-age=600", path.repeat(3000).into_bytes()),
    };
    let date = one_date();
    let head = format!(
        "HTTP/1.1 {status}\r\nDate: {date}\r\nContent-Type: text/plain\r\nCache-Control: {cache}\r\n\
         X-Of: {path}\r\nContent-Length: {}\r\n\r\n",
        body.len()
    );
    let body = if method == "HEAD" { Vec::new() } else { body };
    [head.into_bytes(), body].concat()
}

/// An evaluation that goes on.
pub struct Going {
    child: Child,
    pub listen: SocketAddr,
    directory: tempfile::TempDir,
}

impl Going {
    pub fn start(more: &[&str]) -> Self {
        let directory = tempfile::tempdir().expect("the temp directory is writable");
        let listen = own_address(8090);
        let dir = directory.path().join("spe");
        let mut command = Command::new(env!("CARGO_BIN_EXE_assay"));
        command.args(["spe", "--listen", &listen.to_string(), "--dir", dir.to_str().expect("UTF-8")]);
        command.args(["--memory", "32MB", "--disk", "64MB"]).args(more);
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it starts");
        let stderr = child.stderr.take().expect("it has one");
        let (tell, ready) = std::sync::mpsc::channel();
        thread::spawn(move || {
            for line in BufReader::new(stderr).lines().map_while(Result::ok) {
                eprintln!("spe: {line}");
                if line.starts_with("ready: ") {
                    let _ = tell.send(());
                }
            }
        });
        ready.recv_timeout(Duration::from_secs(60)).expect("clients may come");
        Self { child, listen, directory }
    }

    /// Ends it as a user does: what was written down, and its exit code.
    pub fn end(self) -> (SpeInfo, Vec<ResponseRow>, Option<i32>) {
        let (info, rows, code, ..) = self.end_with_log();
        (info, rows, code)
    }

    /// The same, with the Collector's own log: its rows, and its text, which is empty unless it was requested.
    fn end_with_log(mut self) -> (SpeInfo, Vec<ResponseRow>, Option<i32>, Vec<ExchangeRow>, String) {
        let pid = rustix::process::Pid::from_child(&self.child);
        rustix::process::kill_process(pid, rustix::process::Signal::INT).expect("it runs");
        let code = self.child.wait().expect("it ends").code();
        let dir = SpeDir::open(&self.directory.path().join("spe")).expect("it has left something");
        let rows = read_responses(&dir.responses_path()).expect("responses were written down");
        let log = read_exchanges(&dir.exchanges_path()).expect("the Collector has a log");
        let text = std::fs::read_to_string(dir.path().join("collector.log")).unwrap_or_default();
        (dir.read_info().expect("there is a head"), rows, code, log, text)
    }
}

/// All that comes back for one request on a connection of its own, without what is said of the connection, and without
/// `Age`: a cached response says how old it is.
pub fn exchange(address: SocketAddr, host: SocketAddr, method: &str, target: &str, body: &str) -> String {
    let mut stream = TcpStream::connect(address).expect("somebody listens");
    let length = if body.is_empty() { String::new() } else { format!("Content-Length: {}\r\n", body.len()) };
    let request =
        format!("{method} {target} HTTP/1.1\r\nHost: {host}\r\n{length}Connection: close\r\n\r\n{body}");
    stream.write_all(request.as_bytes()).expect("it is read");
    let mut response = String::new();
    stream.read_to_string(&mut response).expect("it is text");
    let (head, body) = response.split_once("\r\n\r\n").expect("there is a head");
    let of_this_hop = |line: &&str| *line == "Connection: close" || line.starts_with("Age: ");
    let lines: Vec<&str> = head.split("\r\n").filter(|line| !of_this_hop(line)).collect();
    format!("{}\r\n\r\n{body}", lines.join("\r\n"))
}

/// What clients request; each line is one need, but for the second of those that may be cached.
const REQUESTS: [(&str, &str, &str); 8] = [
    ("GET", "/page", ""),
    ("GET", "/page", ""),
    ("GET", "/now", ""),
    ("GET", "/now", ""),
    ("GET", "/missing", ""),
    ("POST", "/post", "a=1"),
    ("GET", "/other?x=%7E", ""),
    ("GET", "/page", ""),
];

/// Requests everything, directly and through the Multiplier, and holds one against the other.
fn see_the_same(going: &Going, origin: SocketAddr, is_forward: bool) {
    for (method, path, body) in REQUESTS {
        let target = if is_forward { format!("http://{origin}{path}") } else { path.to_owned() };
        let directly = exchange(origin, origin, method, path, body);
        let through = exchange(going.listen, origin, method, &target, body);
        let heads = [&through, &directly].map(|response| response.split_once("\r\n\r\n").expect("a head").0);
        assert_eq!(heads[0], heads[1], "{method} {path}");
        assert!(through == directly, "the bodies of {method} {path} differ");
    }
}

fn hold(origin_requested: &Requested, rows: &[ResponseRow], proxies: u16) {
    let requested = origin_requested.lock().expect("nobody panics");
    let directly = |line: &str| {
        REQUESTS.iter().filter(|(method, path, _)| format!("{method} {path}") == line).count() as u32
    };
    for (line, times) in requested.iter() {
        let needs = if line == "GET /page" { 1 } else { directly(line) };
        assert_eq!(times - directly(line), needs, "{line}");
    }
    for target in 1..=proxies {
        let of: Vec<_> = rows.iter().filter(|row| row.target == target).collect();
        assert_eq!(of.len(), REQUESTS.len());
        let wrong: Vec<_> = of.iter().filter(|row| row.verdict != Verdict::Ok).collect();
        assert!(wrong.is_empty(), "{wrong:#?}");
    }
}

#[test]
fn clients_see_what_they_see_directly_and_the_origin_gets_one_request_for_each_need() {
    let (origin, requested) = origin();
    let name = origin.to_string();
    let going =
        Going::start(&["--origin", &name, "--proxy", "builtin", "--proxy", "second=builtin", "--text-log"]);
    see_the_same(&going, origin, false);
    let (info, rows, code, log, text) = going.end_with_log();
    assert_eq!(code, Some(0));
    hold(&requested, &rows, 2);
    let of = |listener: u16, source: &str| {
        log.iter()
            .filter(|row| row.listener == listener && (source.is_empty() || row.source == source))
            .count()
    };
    assert_eq!(of(0, ""), REQUESTS.len(), "{log:#?}");
    assert_eq!(of(0, "fetched") as u64, info.totals.origin_requests, "{log:#?}");
    assert_eq!((of(1, "fetched"), of(2, "own")), (0, 0), "proxies got what was recorded: {log:#?}");
    assert_eq!(text.lines().count(), log.len());
    assert!(text.lines().all(|line| line.contains(" TCP_") && line.contains(" http://")), "{text}");
    let labels: Vec<_> = info.targets.iter().map(|target| target.label.as_str()).collect();
    assert_eq!(labels, ["direct", "builtin", "second"]);
    assert_eq!(info.ended.expect("it has ended").how, How::Finished, "nobody said how long");
    assert_eq!(info.totals.requests, REQUESTS.len() as u64);
    assert!(info.totals.origin_requests > 0 && info.totals.peak_memory_bytes > 0);
}

#[test]
fn an_evaluation_that_is_killed_keeps_what_was_written_a_moment_before() {
    let (origin, _requested) = origin();
    let mut going = Going::start(&["--origin", &origin.to_string(), "--proxy", "builtin", "--text-log"]);
    see_the_same(&going, origin, false);
    let dir = SpeDir::open(&going.directory.path().join("spe")).expect("it has begun");
    // The proxy is requested after its client has its response. Meanwhile, what has been written can be read.
    let written = || {
        let rows = read_responses(&dir.responses_path()).expect("responses can be read while it goes on");
        let log = read_exchanges(&dir.exchanges_path()).expect("the Collector's log, too");
        (rows, log.iter().filter(|row| row.listener == 0).count())
    };
    let is_all = |(rows, direct): &(Vec<ResponseRow>, usize)| {
        rows.len() == 2 * REQUESTS.len() && *direct == REQUESTS.len()
    };
    while !is_all(&written()) {
        assert!(going.child.try_wait().expect("it is a child").is_none(), "it goes on");
        thread::sleep(Duration::from_millis(20));
    }
    going.child.kill().expect("it runs");
    going.child.wait().expect("it ends");
    let found = written();
    assert!(is_all(&found), "{found:#?}");
    assert!(found.0.iter().all(|row| row.target == 0 || row.verdict == Verdict::Ok), "{:#?}", found.0);
    let text = |name: &str| std::fs::read_to_string(dir.path().join(name)).expect("it was requested");
    assert_eq!(text("responses.log").lines().count(), found.0.len());
    let report = Command::new(env!("CARGO_BIN_EXE_assay")).args(["spe", "report"]).arg(dir.path()).output();
    let report = report.expect("it starts");
    let said = String::from_utf8_lossy(&report.stdout);
    assert!(said.contains("Its end was never written"), "{said} {report:?}");
}

#[test]
fn a_forward_proxy_that_is_started_here_requests_everything_through_its_listener() {
    let (origin, requested) = origin();
    let going = Going::start(&["--proxy", "builtin", "--at-once"]);
    see_the_same(&going, origin, true);
    let (info, rows, _) = going.end();
    hold(&requested, &rows, 1);
    assert!(info.forward && info.when == "at_once");
}

#[test]
fn a_server_whose_network_is_not_allowed_gets_no_request_and_the_client_is_told() {
    let (origin, requested) = origin();
    for (network, status) in [("10.0.0.0/8", "403 Forbidden"), ("127.0.0.0/8", "200 OK")] {
        let going = Going::start(&["--proxy", "builtin", "--may-request", network]);
        let mut stream = TcpStream::connect(going.listen).expect("it listens");
        write!(stream, "GET http://{origin}/a HTTP/1.1\r\nHost: {origin}\r\nConnection: close\r\n\r\n")
            .expect("is taken");
        let mut seen = String::new();
        stream.read_to_string(&mut seen).expect("a response");
        assert!(seen.starts_with(&format!("HTTP/1.1 {status}\r\n")), "{network}: {seen:.300}");
        assert_eq!(seen.contains("--may-request"), network == "10.0.0.0/8", "{seen:.300}");
        going.end();
    }
    let requested = requested.lock().expect("no panic");
    assert_eq!(requested.values().sum::<u32>(), 1, "{requested:?}");
}

/// The document's figure 11.12: an evaluation is a proxy of another.
#[test]
fn an_evaluation_within_another_sends_the_origin_no_more_requests() {
    let (origin, requested) = origin();
    let listeners = own_address(3200);
    let of_inner = SocketAddr::new(listeners.ip(), listeners.port() + 1).to_string();
    let inner = Going::start(&["--origin", &of_inner, "--proxy", "builtin"]);
    let (name, listeners) = (origin.to_string(), listeners.to_string());
    let proxies =
        ["--proxy".to_owned(), format!("inner={}", inner.listen), "--proxy".to_owned(), "builtin".to_owned()];
    let mut flags = vec!["--origin", &name, "--collector-listen", &listeners];
    flags.extend(proxies.iter().map(String::as_str));
    let outer = Going::start(&flags);
    see_the_same(&outer, origin, false);
    let (info, rows, code, log, text) = outer.end_with_log();
    assert!(text.is_empty(), "nobody asked for it");
    assert_eq!(code, Some(0));
    hold(&requested, &rows, 2);
    let asked = log.iter().filter(|row| row.listener == 1).count();
    assert!(asked >= 6, "the inner one fetches through the outer one's Collector: {log:#?}");
    assert_eq!(info.totals.requests, REQUESTS.len() as u64);
    let (within, inner_rows, code) = inner.end();
    assert_eq!((code, within.totals.requests), (Some(0), REQUESTS.len() as u64));
    let wrong: Vec<_> =
        inner_rows.iter().filter(|row| row.target == 1 && row.verdict != Verdict::Ok).collect();
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn real_proxies_at_once_some_of_them_over_tls() {
    if !has("squid", "squid") || !has("varnishd", "varnish") || !has("hitch", "hitch") {
        return;
    }
    let (origin, requested) = origin();
    let name = origin.to_string();
    let proxies = ["squid", "varnish", "builtin", "secured=squid", "front=varnish", "own=builtin"];
    let named = proxies.iter().flat_map(|proxy| ["--proxy", proxy]);
    let secured = ["secured", "front", "own"].iter().flat_map(|label| ["--proxy-tls", label]);
    let going =
        Going::start(&["--origin", &name].into_iter().chain(named).chain(secured).collect::<Vec<_>>());
    see_the_same(&going, origin, false);
    let keys = going.directory.path().join("spe/proxies/own/tls");
    assert!(
        keys.join("ca.pem").exists() && !keys.join("target.key").exists(),
        "its key was read, and is gone"
    );
    let (info, rows, code) = going.end();
    assert_eq!(code, Some(0));
    hold(&requested, &rows, 6);
    assert_eq!(
        info.targets.iter().map(|target| target.tls).collect::<Vec<_>>(),
        [false, false, false, false, true, true, true]
    );
    assert!(info.targets[1].software.as_deref().is_some_and(|name| name.starts_with("Squid ")), "{info:?}");
}

#[test]
fn every_forward_proxy_has_its_listener_as_parent_and_is_set_by_its_label() {
    let programs = [
        ("squid", "squid"),
        ("apache2", "apache2"),
        ("traffic_server", "trafficserver"),
        ("haproxy", "haproxy"),
    ];
    if !programs.into_iter().all(|(program, package)| has(program, package)) {
        return;
    }
    let (origin, requested) = origin();
    let proxies = ["squid", "httpd", "trafficserver", "haproxy", "tuned=squid", "builtin"];
    let named = proxies.iter().flat_map(|proxy| ["--proxy", proxy]);
    let set = ["--set", "tuned:replacement=heap-lfuda", "--set", "httpd:disk=96MB"];
    let going = Going::start(&named.chain(set).collect::<Vec<_>>());
    see_the_same(&going, origin, true);
    let (info, rows, _) = going.end();
    hold(&requested, &rows, 6);
    let setting = |target: usize, name: &str| info.targets[target].settings.get(name).cloned();
    assert_eq!(setting(1, "replacement").as_deref(), Some("lru"));
    assert_eq!(setting(5, "replacement").as_deref(), Some("heap-lfuda"));
    assert_eq!((setting(2, "disk").as_deref(), setting(1, "disk").as_deref()), (Some("96MB"), Some("64MB")));
}
