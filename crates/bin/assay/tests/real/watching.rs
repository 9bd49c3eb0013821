//! A run that is watched by a real Prometheus and a real browser.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use assay_testbed::Browser;
use serde_json::Value;

use crate::support::{Assay, Said, program, send};

/// Nothing here takes longer, unless it hangs.
const PATIENCE: Duration = Duration::from_secs(300);

/// A run that is served, and goes on being served when it has ended.
struct Served {
    assay: Assay,
    /// None: it was ended.
    child: Option<Child>,
    /// `127.0.0.1:PORT`.
    address: String,
    stderr: Option<std::thread::JoinHandle<String>>,
}

impl Served {
    fn start(length: &str) -> Self {
        let assay = Assay::new();
        let mut command = assay.command(&["run", "demo", "--rehearse", length, "--memory", "64MB"]);
        command.args(["--run-dir", "r", "--json", "--serve", "0", "--keep-serving"]);
        let mut child =
            command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("the binary starts");
        let mut lines = BufReader::new(child.stderr.take().expect("a pipe")).lines();
        let found = lines.find_map(|line| {
            let line = line.expect("text");
            Some(line.strip_prefix("watch at http://")?.trim_end_matches('/').to_owned())
        });
        let address = found.expect("a line that says where");
        assert!(address.starts_with("127.0.0.1:"), "a port alone is on loopback: {address}");
        // The output has to be read, or the run would wait.
        let stderr = std::thread::spawn(move || lines.map_while(Result::ok).collect::<Vec<_>>().join("\n"));
        Self { assay, child: Some(child), address, stderr: Some(stderr) }
    }

    fn get(&self, path: &str) -> String {
        get(&self.address, path)
    }

    fn wait_for_metric(&self, line: &str) {
        wait(|| self.get("/metrics").contains(line), line);
    }

    fn wait_for_the_end(&self) {
        self.wait_for_metric("assay_run_stage{stage=\"finished\"} 1.0");
        // The report is written a moment later, and says so at the end of its page.
        wait(|| self.assay.path("r").join("summary.json").is_file(), "summary.json");
    }

    /// Ends it as a user does.
    fn end(mut self) -> Said {
        let child = self.child.take().expect("it was not ended before");
        send(&child, libc::SIGINT);
        let mut said: Said = child.wait_with_output().expect("ends").into();
        said.stderr = self.stderr.take().expect("it was not read before").join().expect("read");
        said
    }
}

impl Drop for Served {
    /// A test that fails ends it, too: it would keep serving.
    fn drop(&mut self) {
        if let Some(child) = &mut self.child {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

fn wait(good: impl Fn() -> bool, what: &str) {
    let deadline = Instant::now() + PATIENCE;
    while !good() {
        assert!(Instant::now() < deadline, "never came: {what}");
        std::thread::sleep(Duration::from_millis(100));
    }
}

/// The body of a response.
fn get(address: &str, path: &str) -> String {
    let mut stream = TcpStream::connect(address).expect("somebody listens");
    write!(stream, "GET {path} HTTP/1.0\r\nHost: {address}\r\n\r\n").expect("sent");
    let mut response = String::new();
    stream.read_to_string(&mut response).expect("a response");
    response.split_once("\r\n\r\n").expect("a head").1.to_owned()
}

/// A Prometheus that scrapes one address; it ends when this is dropped.
struct Prometheus {
    child: Child,
    address: String,
    _place: tempfile::TempDir,
}

impl Drop for Prometheus {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Prometheus {
    fn start(program: &Path, target: &str) -> Self {
        let place = tempfile::tempdir().expect("a temporary directory");
        let config = place.path().join("prometheus.yml");
        let text = format!(
            "global: {{scrape_interval: 500ms, scrape_timeout: 500ms}}\n\
             scrape_configs: [{{job_name: assay, static_configs: [{{targets: [\"{target}\"]}}]}}]\n"
        );
        std::fs::write(&config, text).expect("a writable directory");
        // It cannot be told to take any port that is free: one that was free a moment ago, of an address of our own.
        let own = format!("127.94.{}.{}:0", std::process::id() % 250, 1 + std::process::id() / 250 % 250);
        let free = std::net::TcpListener::bind(own).expect("loopback");
        let address = free.local_addr().expect("bound").to_string();
        drop(free);
        let mut command = Command::new(program);
        command
            .arg(format!("--config.file={}", config.display()))
            .arg(format!("--storage.tsdb.path={}", place.path().join("data").display()))
            .arg(format!("--web.listen-address={address}"))
            .args(["--log.level=error"])
            .current_dir(place.path())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        let child = command.spawn().expect("Prometheus starts");
        let prometheus = Self { child, address, _place: place };
        let ready = || {
            TcpStream::connect(&prometheus.address).is_ok()
                && get(&prometheus.address, "/-/ready").contains("Ready")
        };
        wait(ready, "Prometheus");
        prometheus
    }

    /// The value of a query that has one; none: nothing is known.
    fn query(&self, query: &str) -> Option<f64> {
        let encoded: String = query.bytes().map(|byte| format!("%{byte:02X}")).collect();
        let body = get(&self.address, &format!("/api/v1/query?query={encoded}"));
        let document: Value = serde_json::from_str(&body).unwrap_or_else(|error| panic!("{error}: {body}"));
        assert_eq!(document["status"], "success", "{query}: {body}");
        document["data"]["result"][0]["value"][1].as_str().map(|value| value.parse().expect("a number"))
    }
}

/// Quantiles of a Prometheus are those of the summary, for each that the summary tells: a figure of which a machine that was busy
/// leaves nothing known has no value there.
fn quantiles_agree(prometheus: &Prometheus, response_time_ms: &Value) {
    let mut compared = 0;
    for (quantile, name) in [(0.5, "p50"), (0.9, "p90"), (0.99, "p99")] {
        for class in ["hit", "miss"] {
            let query = format!(
                "histogram_quantile({quantile}, assay_response_time_seconds_bucket{{class=\"{class}\"}})"
            );
            let times = &response_time_ms[class];
            let ms = prometheus.query(&query).map(|s| s * 1e3);
            let Some(expected) = times[name].as_f64() else {
                assert_eq!(times["own"][name]["certainty"], "unknown", "{class} {name}: {times}");
                assert!(ms.is_some(), "{query} has no value");
                continue;
            };
            compared += 1;
            // Bounds of buckets are two thirds apart at most (ln(5/3) = 0.51).
            let close = ms.is_some_and(|ms| (ms / expected).ln().abs() < 0.52);
            assert!(close, "{query}: {ms:?} ms, in the summary {expected} ms");
        }
    }
    assert!(compared >= 3, "of six quantiles, {compared} are known: {response_time_ms}");
}

#[test]
fn a_real_prometheus_ends_with_the_very_counts_of_the_summary() {
    let Some(program) = program(&["prometheus"], "prometheus") else { return };
    let served = Served::start("6s");
    let prometheus = Prometheus::start(&program, &served.address);
    wait(|| prometheus.query("assay_run_stage{stage=\"finished\"}") == Some(1.0), "the end of the run");
    // What was scraped with that is the end of everything. The summary is written a moment later.
    served.wait_for_the_end();
    let summary: Value = serde_json::from_str(&served.get("/summary.json")).expect("a summary");
    let total = &summary["total"];
    for (query, pointer) in [
        ("assay_requests_sent_total", "/requests"),
        ("assay_requests_due_total", "/due"),
        ("assay_requests_completed_total", "/completed"),
        ("assay_requests_unsent_total", "/unsent"),
        ("sum(assay_basic_requests_total)", "/basic"),
        ("assay_basic_requests_total{outcome=\"miss\"}", "/outcomes/miss"),
        ("assay_basic_requests_total{outcome=\"collapsed\"}", "/outcomes/collapsed"),
        ("sum(assay_errors_total)", "/errors/total"),
        ("assay_responses_total{code=\"200\"}", "/by_status/200"),
        ("assay_origin_requests_total", "/origins/requests"),
        ("assay_origin_sent_body_bytes_total", "/origins/body_bytes"),
        ("assay_connections_opened_total{side=\"robots\"}", "/connections/client_opened"),
        ("assay_connections_opened_total{side=\"origins\"}", "/connections/origin_opened"),
        ("assay_response_time_seconds_count{class=\"hit\"}", "/response_time_ms/hit/count"),
        ("assay_response_time_seconds_count{class=\"miss\"}", "/response_time_ms/miss/count"),
        ("sum(assay_service_time_seconds_count)", "/service_time_ms/all/count"),
    ] {
        let expected = total.pointer(pointer).and_then(Value::as_f64).unwrap_or(0.0);
        assert_eq!(prometheus.query(query), Some(expected), "{query} is not {pointer}");
    }
    assert!(prometheus.query("assay_requests_sent_total") > Some(500.0));
    quantiles_agree(&prometheus, &total["response_time_ms"]);
    for (query, pointer) in
        [("measured", "/dhr/measured"), ("ideal", "/dhr/ideal"), ("offered", "/dhr/offered")]
    {
        let query = format!("assay_document_hit_ratio{{kind=\"{query}\",scope=\"run\"}}");
        let (found, expected) = (prometheus.query(&query), total.pointer(pointer).and_then(Value::as_f64));
        let close = found.zip(expected).is_some_and(|(found, expected)| (found - expected).abs() < 1e-6);
        assert!(close, "{query}: {found:?}, in the summary {expected:?}");
    }
    let stored = std::fs::read_to_string(served.assay.path("r").join("summary.json")).expect("it is written");
    let stored: Value = serde_json::from_str(&stored).expect("JSON");
    assert_eq!(stored["total"], *total, "what is served is what is kept");
    let said = served.end();
    assert!(said.went_well(), "{said:?}");
    assert!(said.stderr.contains("until Ctrl-C"), "{}", said.stderr);
}

/// The page as a browser has it a few seconds after it was opened.
fn dom(chromium: &Path, address: &str) -> String {
    let browser = Browser::new();
    let output = browser
        .set_up(Command::new(chromium))
        .args([
            "--window-size=1300,2000",
            "--virtual-time-budget=9000",
            "--dump-dom",
            "--enable-logging=stderr",
        ])
        .arg(format!("http://{address}/"))
        .stdin(Stdio::null())
        .output()
        .expect("the browser starts");
    let said = String::from_utf8_lossy(&output.stderr);
    let complaints: Vec<&str> = said.lines().filter(|line| line.contains(":CONSOLE")).collect();
    assert!(complaints.is_empty(), "{complaints:#?}");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

#[test]
fn a_real_browser_shows_the_live_report_and_its_end() {
    let Some(chromium) = program(&["chromium", "chromium-browser", "google-chrome"], "chromium") else {
        return;
    };
    let served = Served::start("12s");
    served.wait_for_metric("assay_run_stage{stage=\"running\"} 1.0");
    wait(|| served.get("/").contains("data-live"), "the live page");
    let live = dom(&chromium, &served.address);
    assert!(live.contains("data-live=\"./\"") && !live.contains("data-script-error"), "{live:.2000}");
    assert!(live.contains("data-updates=\""), "it takes over its next edition: {live:.2000}");
    served.wait_for_the_end();
    wait(|| served.get("/summary.json").contains("\"unfinished\": false"), "the last summary");
    let last = dom(&chromium, &served.address);
    assert!(!last.contains("data-script-error"), "{last:.2000}");
    let figures = last.matches("<figure class=\"chart").count();
    assert!(figures > 10 && last.matches("data-drawn=\"true\"").count() == figures, "{figures} charts");
    let said = served.end();
    assert!(said.went_well(), "{said:?}");
}
