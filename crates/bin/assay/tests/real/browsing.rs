//! A real browser and curl see through an evaluation what they see directly, and the origin gets as many requests as it would
//! from them alone.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use assay_record::spe::{ResponseRow, SpeInfo, Verdict};
use assay_testbed::Browser;

use crate::evaluation::Going;
use crate::helpers::has;
use crate::site::Site;

/// The way to the site.
#[derive(Debug, Clone)]
pub enum Way {
    Directly,
    /// An address that stands for the site.
    Reverse(SocketAddr),
    /// A proxy.
    Forward(SocketAddr),
    /// Over TLS.
    Secured(Secured),
}

/// A way over TLS.
#[derive(Debug, Clone)]
pub struct Secured {
    /// What stands before the site: `host:port`.
    pub front: String,
    /// The authority that is trusted (PEM).
    pub trusted: PathBuf,
    /// The proxy in whose tunnels the front is requested; none: it is requested directly.
    pub proxy: Option<SocketAddr>,
}

impl Way {
    /// What URLs begin with.
    fn prefix(&self, site: &Site) -> String {
        match self {
            Way::Reverse(address) => format!("http://{address}"),
            Way::Directly | Way::Forward(_) => format!("http://{}", site.address),
            Way::Secured(secured) => format!("https://{}", secured.front),
        }
    }
}

impl Secured {
    /// The digest of the authority's key, by which a browser is told to accept what it has signed, for this start of it alone.
    fn digest(&self) -> String {
        let pem = self.trusted.display();
        let script = format!(
            "openssl x509 -in '{pem}' -noout -pubkey | openssl pkey -pubin -outform der | openssl dgst -sha256 -binary | base64"
        );
        let output = Command::new("sh").args(["-c", &script]).output().expect("it starts");
        String::from_utf8_lossy(&output.stdout).trim().to_owned()
    }
}

/// The page as a browser had it at last.
fn browse(site: &Site, way: &Way) -> String {
    let browser = Browser::new();
    let mut command = browser.set_up(Command::new("chromium"));
    command
        .args(["--disable-background-networking", "--disable-component-update", "--disable-sync"])
        .args(["--disable-default-apps", "--disable-extensions"])
        // Browsers call home by themselves; from here they do not get there, neither directly nor through a proxy.
        .arg("--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.*, EXCLUDE localhost");
    let bypass = if matches!(way, Way::Secured(_)) { "<-loopback>;*.*" } else { "<-loopback>" };
    command.arg(format!("--proxy-bypass-list={bypass}"));
    if let Way::Secured(secured) = way {
        command.arg(format!("--ignore-certificate-errors-spki-list={}", secured.digest()));
    }
    match way {
        Way::Forward(proxy) => command.arg(format!("--proxy-server=http={proxy}")),
        Way::Secured(Secured { proxy: Some(proxy), .. }) => {
            command.arg(format!("--proxy-server=https={proxy}"))
        }
        Way::Directly | Way::Reverse(_) | Way::Secured(_) => command.arg("--no-proxy-server"),
    };
    command.arg(format!("{}/", way.prefix(site)));
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let mut running = command.spawn().expect("it starts");
    let report = site.report();
    running.kill().and_then(|()| running.wait()).expect("it can be ended");
    report
}

/// What curl is told, after the options that say where, and the paths that it requests.
const CURLS: [(&[&str], &[&str]); 22] = [
    (&[], &["/", "/style.css", "/now", "/a.bmp", "/now"]),
    (&["--compressed"], &["/", "/style.css", "/none", "/d.bmp"]),
    (&["-H", "Accept-Encoding: gzip"], &["/script.js"]),
    (&["-I"], &["/", "/b.bmp", "/missing", "/large"]),
    (&["-H", "If-None-Match: \"a.bmp-plain\""], &["/a.bmp"]),
    (&["-H", "If-None-Match: \"another\""], &["/a.bmp"]),
    (&["-z", "Tue, 03 Nov 2026 10:00:00 GMT"], &["/b.bmp"]),
    (&["-L"], &["/moved.bmp"]),
    (&[], &["/moved.bmp", "/fails", "/missing"]),
    (&["-r", "100-4099"], &["/large", "/d.bmp"]),
    (&["-r", "-100"], &["/large"]),
    (&["-H", "Cache-Control: no-cache"], &["/d.bmp"]),
    (&["-d", "a=1&b=2"], &["/submit", "/submit"]),
    (&["-T", "UPLOAD"], &["/echo"]),
    (&["-T", "UPLOAD", "-H", "Transfer-Encoding: chunked"], &["/echo?chunked"]),
    (&["-F", "file=@UPLOAD"], &["/echo?form"]),
    (&["-X", "DELETE"], &["/echo?gone"]),
    (&["-b", "who=a; also=b"], &["/private", "/login"]),
    (&["--http1.0"], &["/b.bmp"]),
    (&["--limit-rate", "20M"], &["/large"]),
    (&[], &["/parts", "/now"]),
    (&[], &["/until-close"]),
];

/// What curl got: heads, bodies, what it says itself.
#[derive(PartialEq, Eq)]
struct Got {
    heads: Vec<String>,
    body: Vec<u8>,
    said: String,
}

impl fmt::Debug for Got {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let start = String::from_utf8_lossy(&self.body[..self.body.len().min(200)]);
        write!(f, "{:#?}, then {} bytes: {start:?}; {:?}", self.heads, self.body.len(), self.said)
    }
}

/// A line that is of one connection only, or that caches add or may change.
fn is_of_the_way(line: &str) -> bool {
    let name = line.split(':').next().unwrap_or_default().to_ascii_lowercase();
    ["connection", "keep-alive", "proxy-connection", "transfer-encoding", "via", "date", "age"]
        .contains(&&*name)
}

fn curl(site: &Site, way: &Way, upload: &Path, (options, paths): (&[&str], &[&str])) -> Got {
    let place = tempfile::tempdir().expect("the temp directory is writable");
    let heads = place.path().join("heads");
    let upload = upload.to_str().expect("UTF-8");
    let mut command = Command::new("curl");
    command.args(["-q", "-sS", "--max-time", "120", "-A", "curl", "-D"]).arg(&heads);
    match way {
        Way::Forward(proxy) => command.args(["--noproxy", "", "-x", &format!("http://{proxy}")]),
        Way::Directly | Way::Reverse(_) => command.args(["--noproxy", "*"]),
        // The front speaks HTTP/1.1 alone, and what is seen directly is compared with what is seen through the evaluation.
        Way::Secured(Secured { trusted, proxy, .. }) => {
            command.args(["--http1.1", "--suppress-connect-headers", "--cacert"]).arg(trusted);
            match proxy {
                Some(proxy) => command.args(["--noproxy", "", "-x", &format!("http://{proxy}")]),
                None => command.args(["--noproxy", "*"]),
            }
        }
    };
    // The front does not take clients that name HTTP/1.0 (ALPN).
    let is_taken = |option: &&&str| **option != "--http1.0" || !matches!(way, Way::Secured(_));
    command.args(options.iter().filter(is_taken).map(|option| option.replace("UPLOAD", upload)));
    command.args([
        "-w",
        "%{stderr}%{http_code} %{size_download} %{num_connects} %{num_redirects} %{exitcode}\n",
    ]);
    command.args(paths.iter().map(|path| format!("{}{path}", way.prefix(site))));
    let output = command.stdin(Stdio::null()).output().expect("it starts");
    let heads = std::fs::read_to_string(&heads).unwrap_or_default();
    let heads = heads.lines().filter(|line| !is_of_the_way(line)).map(str::to_owned).collect();
    Got { heads, body: output.stdout, said: String::from_utf8_lossy(&output.stderr).into_owned() }
}

/// The responses to five requests that are sent at once, in one stretch.
fn pipeline(site: &Site, way: &Way) -> Vec<String> {
    let (to, prefix) = match way {
        Way::Directly => (site.address, String::new()),
        Way::Reverse(address) => (*address, String::new()),
        Way::Forward(proxy) => (*proxy, way.prefix(site)),
        // That is tested in the clear.
        Way::Secured(_) => return Vec::new(),
    };
    let host = way.prefix(site).replace("http://", "");
    let mut requests = String::new();
    for path in ["/style.css", "/now", "/missing", "/private"] {
        requests += &format!("GET {prefix}{path} HTTP/1.1\r\nHost: {host}\r\n\r\n");
    }
    requests += &format!("POST {prefix}/echo HTTP/1.1\r\nHost: {host}\r\nContent-Length: 3\r\n\r\nabc");
    requests += &format!("GET {prefix}/login HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n");
    let mut stream = TcpStream::connect(to).expect("somebody listens");
    stream.write_all(requests.as_bytes()).expect("it is read");
    let mut responses = String::new();
    stream.read_to_string(&mut responses).expect("it is text");
    responses.lines().filter(|line| !is_of_the_way(line)).map(str::to_owned).collect()
}

/// All that is seen on one way.
#[derive(Debug)]
struct Sight {
    page: Option<String>,
    curls: Vec<Got>,
    pipelined: Vec<String>,
    /// What was requested from the origin meanwhile.
    requested: BTreeMap<String, u32>,
}

fn look(site: &Site, way: &Way, upload: &Path, has_browser: bool) -> Sight {
    let page = has_browser.then(|| browse(site, way));
    let curls = CURLS.iter().map(|told| curl(site, way, upload, *told)).collect();
    let pipelined = pipeline(site, way);
    Sight { page, curls, pipelined, requested: site.requested() }
}

fn hold(directly: &Sight, through: &Sight) {
    if let (Some(directly), Some(through)) = (&directly.page, &through.page) {
        assert!(directly.contains("sound of 240 s, at 220 s"), "{directly}");
        assert!(directly.contains("d: 320 x 200, "), "{directly}");
        assert_eq!(directly, through);
    }
    let all = CURLS.iter().zip(directly.curls.iter().zip(&through.curls));
    let differ: Vec<_> = all.filter(|(_, (directly, through))| directly != through).collect();
    assert!(differ.is_empty(), "{differ:#?}");
    assert_eq!(directly.pipelined, through.pipelined);
}

/// What may be kept is requested once, whatever else is; what may not, as often as by clients alone.
fn once_for_each_need(directly: &Sight, through: &Sight) {
    let of = |sight: &Sight, path: &str| -> u32 {
        let is_it = |need: &str| need.split(' ').nth(1).is_some_and(|requested| requested == path);
        sight.requested.iter().filter(|(need, _)| is_it(need)).map(|(_, times)| times).sum()
    };
    let anew = ["/now", "/c.bmp", "/moved.bmp", "/fails", "/login", "/private", "/parts", "/submit", "/echo"];
    for path in anew.into_iter().chain(["/none", "/missing", "/echo?chunked", "/echo?form", "/echo?gone"]) {
        assert_eq!(of(through, path), of(directly, path), "{path}: {:#?}", through.requested);
    }
    let whole = |path: &str| {
        let needs = [format!("GET {path} gzip - -"), format!("GET {path} - - -")];
        needs.iter().filter_map(|need| through.requested.get(need)).sum::<u32>()
    };
    // Parts of the large one are requested with `no-cache` too, and a proxy may want all of it for that.
    assert_eq!(
        (whole("/a.bmp") <= 1, whole("/b.bmp") <= 1, whole("/large") <= 2),
        (true, true, true),
        "{:#?}",
        through.requested
    );
}

/// Every proxy gave every response, and gave it as the Collector did.
fn all_alike(rows: &[ResponseRow], proxies: u16) {
    let requests = rows.iter().filter(|row| row.target == 0).count();
    for target in 1..=proxies {
        let of: Vec<_> = rows.iter().filter(|row| row.target == target).collect();
        let numbers: BTreeSet<_> = of.iter().map(|row| row.request).collect();
        let unrequested = |row: &&ResponseRow| row.target == 0 && !numbers.contains(&row.request);
        let missing: Vec<_> = rows.iter().filter(unrequested).map(|row| (&row.method, &row.url)).collect();
        assert_eq!(of.len(), requests, "proxy {target} did not get {missing:?}");
        let wrong: Vec<_> = of.iter().filter(|row| !matches!(row.verdict, Verdict::Ok)).collect();
        assert!(wrong.is_empty(), "{wrong:#?}");
    }
    let came = |status| rows.iter().any(|row| row.target == 0 && row.status == Some(status));
    for status in [200, 204, 206, 302, 304, 404, 503] {
        assert!(came(status), "{status} came");
    }
}

/// A file that is sent.
fn upload(place: &Path) -> std::path::PathBuf {
    let path = place.join("upload");
    let body: Vec<u8> = (0..300_000u32).map(|n| (n >> 3) as u8).collect();
    std::fs::write(&path, body).expect("there is room");
    path
}

fn see_the_same(options: impl Fn(&Site) -> Vec<String>, way: impl Fn(SocketAddr) -> Way, proxies: u16) {
    if !has("curl", "curl") {
        return;
    }
    let site = Site::start();
    let options = options(&site);
    see_alike(&site, &Way::Directly, &options, way, proxies);
}

/// Looks at a site directly and through an evaluation with these options, and holds one against the other.
pub fn see_alike(
    site: &Site,
    directly: &Way,
    options: &[String],
    way: impl Fn(SocketAddr) -> Way,
    proxies: u16,
) -> SpeInfo {
    let has_browser = has("chromium", "chromium");
    let place = tempfile::tempdir().expect("the temp directory is writable");
    let upload = upload(place.path());
    let directly = look(site, directly, &upload, has_browser);
    let going = Going::start(&options.iter().map(String::as_str).collect::<Vec<_>>());
    let through = look(site, &way(going.listen), &upload, has_browser);
    let (info, rows, code) = going.end();
    assert_eq!(code, Some(0));
    hold(&directly, &through);
    once_for_each_need(&directly, &through);
    all_alike(&rows, proxies);
    info
}

pub fn words(words: &[&str]) -> Vec<String> {
    words.iter().map(|word| (*word).to_owned()).collect()
}

#[test]
fn a_browser_and_curl_see_a_site_through_a_reverse_evaluation_as_they_see_it_directly() {
    let options = |site: &Site| {
        words(&["--origin", &site.address.to_string(), "--proxy", "builtin", "--proxy", "second=builtin"])
    };
    see_the_same(options, Way::Reverse, 2);
}

#[test]
fn a_browser_and_curl_see_a_site_through_a_forward_evaluation_as_they_see_it_directly() {
    let options = |_: &Site| words(&["--proxy", "builtin", "--proxy", "second=builtin", "--at-once"]);
    see_the_same(options, Way::Forward, 2);
}

#[test]
fn curl_goes_through_a_tunnel() {
    if !has("curl", "curl") {
        return;
    }
    let site = Site::start();
    let place = tempfile::tempdir().expect("the temp directory is writable");
    let upload = upload(place.path());
    let told: (&[&str], &[&str]) = (&["-p"], &["/large", "/a.bmp"]);
    let directly = curl(&site, &Way::Directly, &upload, (&[], told.1));
    let going = Going::start(&["--proxy", "builtin"]);
    let through = curl(&site, &Way::Forward(going.listen), &upload, told);
    assert!(directly.body == through.body, "{}", through.said);
    let (info, rows, _) = going.end();
    assert_eq!(info.totals.connects, 1);
    assert!(rows.iter().all(|row| row.verdict == Verdict::NotCompared), "{rows:#?}");
}
