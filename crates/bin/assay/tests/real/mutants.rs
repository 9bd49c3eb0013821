//! Deliberately wrong caches in runs: the built-in proxy with one rule broken each, and what must be said of it.
//!
//! Rules that no run can see broken are those of `crates/roles/conform/tests/real/mutants.rs`; what is counted exactly is in `caught`.

use std::io::Write;
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc;
use std::thread;

use flate2::write::GzDecoder;
use tokio::runtime::Builder;
use tokio::sync::oneshot;
use tokio::task::LocalSet;

use crate::alone::links::FINE_OR_UNDECIDED;
use crate::helpers::has;
use crate::relay::{built_in, relay};
use crate::run_command::{Ran, own_address, run, workload};

/// A message on its way.
struct Message {
    /// With the empty line that ends it.
    head: String,
    body: Vec<u8>,
}

impl Message {
    fn field(&self, name: &str) -> Option<&str> {
        self.head.lines().skip(1).find_map(|line| {
            let (found, value) = line.split_once(':')?;
            found.eq_ignore_ascii_case(name).then_some(value.trim())
        })
    }

    fn set(&mut self, name: &str, value: &str) {
        self.remove(name);
        self.head = self.head.replacen("\r\n", &format!("\r\n{name}: {value}\r\n"), 1);
    }

    fn remove(&mut self, name: &str) {
        let is_kept =
            |line: &&str| !line.to_ascii_lowercase().starts_with(&format!("{}:", name.to_ascii_lowercase()));
        self.head = self.head.split("\r\n").filter(is_kept).collect::<Vec<_>>().join("\r\n");
    }

    fn has_status(&self, status: u16) -> bool {
        self.head.starts_with(&format!("HTTP/1.1 {status} "))
    }

    /// Replaces a status with its reason, such as `200 OK`, if it has that one.
    fn change_status(&mut self, from: &str, to: &str) {
        self.head = self.head.replacen(from, to, 1);
    }

    /// Lets caches keep it, whatever its origin says, for so many seconds.
    fn keep_for(&mut self, seconds: u32) {
        self.remove("Expires");
        self.set("Cache-Control", &format!("max-age={seconds}"));
    }
}

type Edit = fn(&mut Message);

/// A cache that is wrong on purpose.
struct Mutant {
    /// What it does.
    what: &'static str,
    /// Changes requests before they reach the proxy.
    to_proxy: Edit,
    /// Changes responses before they reach the proxy.
    from_origin: Edit,
    /// Changes responses that it sends to clients.
    to_client: Edit,
    /// The kind of wrong responses that a run must find; or the requirement that must fail.
    detection: Detection,
}

enum Detection {
    Wrong(&'static str),
    Unmet(&'static str),
}

use Detection::{Unmet, Wrong};

/// The cache that nothing is wrong with.
const RIGHT: Mutant = Mutant {
    what: "is right",
    to_proxy: |_| (),
    from_origin: |_| (),
    to_client: |_| (),
    detection: Wrong("nothing"),
};

const MUTANTS: &[Mutant] = &[
    Mutant {
        what: "takes objects of similar names for one",
        to_proxy: |request| {
            let (line, rest) = request.head.split_once("\r\n").unwrap_or_default();
            let (path, version) = line.rsplit_once(' ').unwrap_or_default();
            let digit = path.rfind(|c: char| c.is_ascii_digit());
            let path = digit.map_or(path.to_owned(), |at| format!("{}1{}", &path[..at], &path[at + 1..]));
            request.head = format!("{path} {version}\r\n{rest}");
        },
        detection: Wrong("wrong_object"),
        ..RIGHT
    },
    Mutant {
        what: "ignores Vary",
        from_origin: |response| response.remove("Vary"),
        detection: Wrong("unrequested_coding"),
        ..RIGHT
    },
    Mutant {
        what: "takes what varies by language for one",
        from_origin: |response| {
            if response.field("Vary") == Some("Accept-Language") {
                response.remove("Vary");
            }
        },
        detection: Wrong("wrong_variant"),
        ..RIGHT
    },
    Mutant {
        what: "keeps errors of its origin",
        from_origin: |response| {
            if response.has_status(404) {
                response.keep_for(3_600);
            }
        },
        detection: Wrong("hit_on_uncachable"),
        ..RIGHT
    },
    Mutant {
        what: "sends errors of its origin as if they were objects",
        to_client: |response| {
            response.change_status("404 Not Found", "200 OK");
        },
        detection: Wrong("wrong_status"),
        ..RIGHT
    },
    Mutant {
        what: "sends objects as errors",
        to_client: |response| {
            if response.has_status(200) && is_nth(3) {
                response.change_status("200 OK", "404 Not Found");
            }
        },
        detection: Wrong("wrong_status"),
        ..RIGHT
    },
    Mutant {
        what: "says another length in a 304",
        to_client: |response| {
            if response.has_status(304) {
                response.set("Content-Length", "0");
            }
        },
        detection: Wrong("wrong_length"),
        ..RIGHT
    },
    Mutant {
        what: "calls the whole a part",
        to_client: |response| {
            if response.has_status(200) && is_nth(3) {
                response.change_status("200 OK", "206 Partial Content");
            }
        },
        detection: Wrong("wrong_status"),
        ..RIGHT
    },
    Mutant {
        what: "keeps the length of a body that it has decoded",
        to_client: |response| {
            decode(response);
        },
        detection: Wrong("wrong_length"),
        ..RIGHT
    },
    Mutant {
        what: "cuts a body that it has decoded to the length of the coded one",
        to_client: |response| {
            let coded_bytes = response.body.len();
            if decode(response) {
                response.body.truncate(coded_bytes);
            }
        },
        detection: Wrong("wrong_length"),
        ..RIGHT
    },
    Mutant {
        what: "cuts parts out one byte later",
        to_client: |response| {
            if response.has_status(206) {
                response.body.rotate_left(1);
            }
        },
        detection: Wrong("wrong_bytes"),
        ..RIGHT
    },
    Mutant {
        what: "sends a part for the whole",
        to_client: |response| {
            response.change_status("206 Partial Content", "200 OK");
            response.remove("Content-Range");
        },
        detection: Wrong("wrong_length"),
        ..RIGHT
    },
    Mutant {
        what: "serves what has expired",
        from_origin: |response| {
            if response.field("Cache-Control") == Some("public") {
                response.keep_for(3_600);
            }
        },
        detection: Wrong("stale"),
        ..RIGHT
    },
    Mutant {
        what: "shares what may not be stored",
        from_origin: |response| {
            if response.field("Cache-Control") != Some("public") {
                response.keep_for(3_600);
            }
        },
        detection: Wrong("hit_on_uncachable"),
        ..RIGHT
    },
    Mutant {
        what: "serves reloads from its store",
        to_proxy: |request| {
            request.remove("Cache-Control");
            request.remove("Pragma");
        },
        detection: Unmet("errors(hit_on_reload) == 0"),
        ..RIGHT
    },
    Mutant {
        what: "takes every date for a newer one",
        to_proxy: |request| {
            if request.field("If-Modified-Since").is_some() {
                request.set("If-Modified-Since", "Fri, 01 Jan 2100 00:00:00 GMT");
            }
        },
        detection: Wrong("wrong_not_modified"),
        ..RIGHT
    },
    Mutant {
        what: "confirms what its client does not have",
        to_client: |response| {
            if response.has_status(200) && is_nth(3) {
                response.change_status("200 OK", "304 Not Modified");
                response.body.clear();
            }
        },
        detection: Wrong("wrong_not_modified"),
        ..RIGHT
    },
    Mutant {
        what: "takes half of a body for all of it",
        from_origin: |response| {
            response.body.truncate(response.body.len() / 2);
            let length = response.body.len().to_string();
            if !response.body.is_empty() {
                response.set("Content-Length", &length);
            }
        },
        detection: Wrong("wrong_length"),
        ..RIGHT
    },
    Mutant {
        what: "says another length to a HEAD",
        to_client: |response| {
            if response.has_status(200) && response.body.is_empty() {
                response.set("Content-Length", "7");
            }
        },
        detection: Wrong("wrong_length"),
        ..RIGHT
    },
    Mutant {
        what: "says the length of the object to a HEAD in gzip",
        to_client: |response| {
            if response.field("Content-Encoding") == Some("gzip") && response.body.is_empty() {
                response.set("Content-Length", "6144");
            }
        },
        detection: Wrong("wrong_length"),
        ..RIGHT
    },
    Mutant {
        what: "sends a page of its own",
        to_client: |response| {
            if is_nth(3) {
                *response = Message {
                    head: "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n".to_owned(),
                    body: b"ad".to_vec(),
                };
            }
        },
        detection: Wrong("foreign"),
        ..RIGHT
    },
    Mutant {
        what: "sends a length that is none",
        to_client: |response| {
            if is_nth(3) {
                response.set("Content-Length", "12x");
            }
        },
        detection: Wrong("malformed"),
        ..RIGHT
    },
    Mutant {
        what: "sends more than the length that it has said",
        to_client: |response| {
            if response.has_status(200) && is_nth(3) {
                response.body.extend(b"more");
            }
        },
        detection: Wrong("extra_bytes"),
        ..RIGHT
    },
    Mutant {
        what: "changes a byte",
        to_client: |response| {
            let middle = response.body.len() / 2;
            response.body.get_mut(middle).into_iter().for_each(|byte| *byte ^= 1);
        },
        detection: Wrong("wrong_bytes"),
        ..RIGHT
    },
    Mutant {
        what: "has a copy for every client",
        to_proxy: |request| request.set("X-Client", &(number() % 7).to_string()),
        from_origin: |response| response.set("Vary", "X-Client, Accept-Encoding"),
        detection: Unmet("dhr / ideal > 0.93"),
        ..RIGHT
    },
    Mutant {
        what: "does not freshen what a 304 has confirmed",
        from_origin: |response| {
            if response.has_status(304) {
                response.remove("Expires");
            }
        },
        detection: Unmet("dhr / ideal > 0.93"),
        ..RIGHT
    },
    Mutant {
        what: "does not store what comes in a coding",
        from_origin: |response| {
            if response.field("Content-Encoding").is_some() {
                response.set("Cache-Control", "no-store");
            }
        },
        detection: Unmet("dhr / ideal > 0.93"),
        ..RIGHT
    },
];

/// Decodes the body of a whole response in gzip; false: it is none.
fn decode(response: &mut Message) -> bool {
    let is_coded = response.field("Content-Encoding") == Some("gzip") && response.has_status(200);
    if !is_coded || response.body.is_empty() {
        return false;
    }
    let mut decoder = GzDecoder::new(Vec::new());
    decoder.write_all(&response.body).expect("origins code bodies right");
    response.body = decoder.finish().expect("the body is complete");
    response.remove("Content-Encoding");
    true
}

/// The next number, for all mutants.
static NEXT: AtomicU32 = AtomicU32::new(0);

fn number() -> u32 {
    NEXT.fetch_add(1, Ordering::Relaxed)
}

/// One in so many.
fn is_nth(nth: u32) -> bool {
    number().is_multiple_of(nth)
}

#[test]
fn every_wrong_cache_is_found_under_the_name_of_what_it_does() {
    let missed: Vec<String> = MUTANTS
        .chunks(AT_ONCE)
        .flat_map(|some| {
            let runs: Vec<_> = some.iter().map(|mutant| thread::spawn(|| mutant.missed())).collect();
            runs.into_iter().filter_map(|run| run.join().expect("a run ends")).collect::<Vec<_>>()
        })
        .collect();
    assert!(missed.is_empty(), "{missed:#?}");
}

#[test]
fn the_cache_that_nothing_is_wrong_with_is_not_accused() {
    let required = MUTANTS.iter().filter_map(|mutant| match mutant.detection {
        Unmet(requirement) => Some(["--require", requirement]),
        Wrong(_) => None,
    });
    let ran = RIGHT.run(&required.flatten().collect::<Vec<_>>());
    assert_eq!(ran.errors_total(), 0, "{}", ran.json["total"]["errors"]);
    assert!(FINE_OR_UNDECIDED.contains(&ran.code), "{}", ran.json["requirements"]);
}

#[test]
fn a_proxy_whose_log_calls_hits_misses_is_found() {
    if !has("nginx", "nginx") {
        return;
    }
    let shown = Command::new(env!("CARGO_BIN_EXE_assay")).args(["proxies", "show", "nginx"]).output();
    let right = String::from_utf8(shown.expect("the binary runs").stdout).expect("descriptions are UTF-8");
    let map = "map $upstream_cache_status $said { default $upstream_cache_status; HIT MISS; }";
    let wrong = right
        .replace("    log_format assay '", &format!("    {map}\n    log_format assay '"))
        .replace("$msec $upstream_cache_status", "$msec $said");
    let directory = tempfile::tempdir().expect("the temp directory is writable");
    let run = |name: &str, description: &str| {
        let path = directory.path().join(name);
        std::fs::write(&path, description).expect("the temp directory is writable");
        let path = path.to_str().expect("UTF-8");
        run(&["demo", "--proxy", path, "--require", "misreported == 0", "--rehearse", "4s"])
    };
    let (right, wrong) = (run("right.toml", &right), run("wrong.toml", &wrong));
    assert!(FINE_OR_UNDECIDED.contains(&right.code), "{}", right.json["requirements"]);
    assert_eq!(wrong.code, 99, "{}", wrong.json["requirements"]);
    assert!(wrong.json["requirements"][0]["value"].as_f64() > Some(20.0), "{}", wrong.json["requirements"]);
}

/// Runs that are made at the same time; each is idle most of the time.
const AT_ONCE: usize = 4;

impl Mutant {
    /// What a run says of it instead of what it does; none: it is found.
    fn missed(&self) -> Option<String> {
        let flags = match self.detection {
            Wrong(_) => vec![],
            Unmet(requirement) => vec!["--require", requirement],
        };
        let ran = self.run(&flags);
        let is_found = match self.detection {
            // Among them can be some that the same fault gives another name, such as a coded body cut short.
            Wrong(kind) => 3 * ran.errors(kind) > ran.errors_total(),
            Unmet(_) => ran.json["requirements"][0]["decision"] == "failed",
        };
        let said = || {
            format!(
                "a cache that {}: {} {}, {} of {}",
                self.what,
                ran.code,
                ran.json["total"]["errors"],
                ran.json["requirements"],
                ran.json["total"]["counts"]
            )
        };
        (!is_found || ran.code != 99).then(said)
    }

    /// A run through this cache.
    fn run(&self, flags: &[&str]) -> Ran {
        let origin = own_address(9000);
        let Self { to_proxy, from_origin, to_client, .. } = *self;
        let (address, listening) = mpsc::channel();
        let (ended, end) = oneshot::channel::<()>();
        let proxy = thread::spawn(move || {
            let runtime = Builder::new_current_thread().enable_all().build().expect("a runtime");
            runtime.block_on(LocalSet::new().run_until(async move {
                let behind = relay(origin, |request| request, move |bytes| edited(bytes, from_origin)).await;
                let to_proxy = move |bytes| edited(bytes, to_proxy);
                let to_client = move |bytes| edited(bytes, to_client);
                address
                    .send(relay(built_in(behind), to_proxy, to_client).await)
                    .expect("the test waits for it");
                let _ = end.await;
            }));
        });
        let (file, target) =
            (workload("mutants.pg"), listening.recv().expect("the proxy listens").to_string());
        let origin = origin.to_string();
        let plain = [file.to_str().expect("UTF-8"), "--proxy", &target, "--origin-listen", &origin];
        let ran = run(&[&plain, flags].concat());
        drop(ended);
        proxy.join().expect("the proxy ends");
        ran
    }
}

fn edited(bytes: Vec<u8>, edit: Edit) -> Vec<u8> {
    let end = bytes.windows(4).position(|four| four == b"\r\n\r\n").expect("messages have heads") + 4;
    let head = String::from_utf8(bytes[..end].to_vec()).expect("heads are ASCII");
    let mut message = Message { head, body: bytes[end..].to_vec() };
    // Not what tries whether the proxy is there.
    if message.field("X-Assay").is_some() {
        edit(&mut message);
    }
    [message.head.into_bytes(), message.body].concat()
}
