//! `--find-peak` against a target that lets through so many requests a second and no more.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::time::Instant;

use assay_record::peak::{Peak, StepOutcome};

use crate::run_command::own_address;
use crate::samples::ONE_PHASE;
use crate::support::Assay;

/// What the target lets through.
const LIMIT_PER_S: f64 = 150.0;

/// And at once.
const DEPTH: f64 = 15.0;

/// Lets requests through while there are tokens.
struct Bucket {
    tokens: f64,
    filled: Instant,
}

impl Bucket {
    fn take(&mut self) -> bool {
        let now = Instant::now();
        self.tokens = (self.tokens + (now - self.filled).as_secs_f64() * LIMIT_PER_S).min(DEPTH);
        self.filled = now;
        let lets = self.tokens >= 1.0;
        if lets {
            self.tokens -= 1.0;
        }
        lets
    }
}

/// Passes requests on to an origin, and responds with 503 to those that are too many.
fn target(origin: SocketAddr) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("bound");
    let bucket = Arc::new(Mutex::new(Bucket { tokens: DEPTH, filled: Instant::now() }));
    std::thread::spawn(move || {
        for robot in listener.incoming().flatten() {
            let bucket = bucket.clone();
            std::thread::spawn(move || pass(robot, origin, &bucket));
        }
    });
    address
}

fn pass(mut robot: TcpStream, origin: SocketAddr, bucket: &Mutex<Bucket>) -> Option<()> {
    let mut behind = TcpStream::connect(origin).ok()?;
    let (mut back, mut to_robot) = (behind.try_clone().ok()?, robot.try_clone().ok()?);
    std::thread::spawn(move || {
        let _ = std::io::copy(&mut back, &mut to_robot);
        let _ = to_robot.shutdown(std::net::Shutdown::Both);
    });
    let (mut buffer, mut head) = ([0; 4096], Vec::new());
    loop {
        let length = robot.read(&mut buffer).ok().filter(|length| *length > 0)?;
        head.extend_from_slice(&buffer[..length]);
        // Robots wait for a response before they send again, so a head is all there is.
        if !head.ends_with(b"\r\n\r\n") {
            continue;
        }
        let is_health = head.starts_with(b"GET /assay/health");
        if is_health || bucket.lock().ok()?.take() {
            behind.write_all(&head).ok()?;
        } else {
            robot.write_all(b"HTTP/1.1 503 Service Unavailable\r\nContent-Length: 0\r\n\r\n").ok()?;
        }
        head.clear();
    }
}

#[test]
fn the_limit_of_a_target_is_found_kept_and_never_put_above_what_it_lets_through() {
    let assay = Assay::new();
    let name = assay.file("limited.pg", ONE_PHASE);
    let origin = own_address(9000);
    let (proxy, listen) = (target(origin).to_string(), origin.to_string());
    let said = assay.run(&[
        "run",
        name,
        "--proxy",
        &proxy,
        "--origin-listen",
        &listen,
        "--run-dir",
        "r",
        "--json",
        "--find-peak",
        "errors < 1%",
        "--peak-from",
        "120",
        "--peak-warm",
        "1s",
        "--peak-step",
        "2s",
        "--rehearse",
        "30s",
    ]);
    // A machine that is busy with other tests may be the limit itself.
    assert!(matches!(said.code, Some(0 | 96 | 99)), "{said:?}");
    let peak: Peak = serde_json::from_str(&said.stdout).expect("one JSON document");
    assert!(peak.schema == Peak::SCHEMA && !peak.steps.is_empty() && !peak.ended.is_empty(), "{peak:#?}");
    let far_above = peak.steps.iter().filter(|step| step.offered_per_s > LIMIT_PER_S * 1.2);
    assert!(
        far_above.clone().all(|step| step.outcome == StepOutcome::Broken),
        "errors of the target are its own: {peak:#?}"
    );
    if let (Some(low), Some(high), Some(found)) = (peak.low_per_s, peak.high_per_s, peak.peak_per_s) {
        assert!(low <= found && found <= high, "{peak:#?}");
    }
    if let Some(found) = peak.peak_per_s {
        assert!(found <= LIMIT_PER_S * 1.15, "{peak:#?}");
    }
    for file in ["peak.json", "peak.html", "report.html", "run.json"] {
        assert!(assay.path("r").join(file).is_file(), "{file}");
    }
    let kept: Peak =
        serde_json::from_slice(&std::fs::read(assay.path("r/peak.json")).expect("kept")).expect("whole");
    assert_eq!(kept, peak);
}
