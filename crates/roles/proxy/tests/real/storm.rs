//! Everything at once: many clients, few objects, little memory, impatient clients; and every byte is right.

use std::rc::Rc;
use std::sync::LazyLock;

use tokio::task::JoinSet;

use crate::harness::{Bed, Origin, Part, Seen, run, send};

const OBJECTS: u64 = 40;
const CLIENTS: u64 = 30;
const REQUESTS: u64 = 60;

/// Small steps of a known generator: the same storm each time.
struct Dice(u64);

impl Dice {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % bound
    }
}

/// The bodies of all objects: no two places of any two look alike.
static BODIES: LazyLock<Vec<String>> = LazyLock::new(|| (0..OBJECTS).map(make_body).collect());

fn make_body(object: u64) -> String {
    let size = Dice(object * 7 + 1).below(120_000) as usize;
    let mut text = String::with_capacity(size + 16);
    while text.len() < size {
        text.push_str(&format!("{object}:{};", text.len()));
    }
    text.truncate(size);
    text
}

fn body(object: u64) -> &'static str {
    &BODIES[object as usize]
}

fn object_of(seen: &Seen) -> u64 {
    seen.line().split(['/', ' ']).nth(2).unwrap().parse().unwrap()
}

/// Every kind of framing, cachable and not, confirmed and not.
fn response(seen: &Seen, n: usize) -> Vec<Part> {
    let object = object_of(seen);
    let body = body(object);
    let tag = format!("ETag: \"{object}\"\r\n");
    let cache = if object.is_multiple_of(5) { "private" } else { "max-age=5" };
    let fields = format!("Cache-Control: {cache}\r\n{tag}");
    if seen.has(&format!("If-None-Match: \"{object}\"")) && n.is_multiple_of(2) {
        return vec![send(format!("HTTP/1.1 304 Not Modified\r\n{fields}\r\n"))];
    }
    let (first, second) = body.split_at(body.len() / 3);
    match object % 3 {
        0 => {
            let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n{fields}\r\n", body.len());
            vec![send(head), send(first), send(second)]
        }
        1 => {
            let mut parts =
                vec![send(format!("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n{fields}\r\n"))];
            let chunks = [first, second].into_iter().filter(|part| !part.is_empty());
            parts.extend(chunks.map(|part| send(format!("{:x}\r\n{part}\r\n", part.len()))));
            parts.push(send("0\r\n\r\n"));
            parts
        }
        _ => vec![send(format!("HTTP/1.1 200 OK\r\n{fields}\r\n")), send(first), send(second), Part::Close],
    }
}

async fn robot(bed: Rc<Bed>, seed: u64) {
    let mut dice = Dice(seed);
    let mut client = bed.client().await;
    for _ in 0..REQUESTS {
        let object = dice.below(OBJECTS);
        let path = format!("/{object}");
        match dice.below(20) {
            0 => {
                // Goes away in the middle.
                client.send(format!("GET {path} HTTP/1.1\r\nHost: a\r\n\r\n")).await;
                client.head("GET").await;
                client = bed.client().await;
                continue;
            }
            1 => bed.pass_seconds(1),
            2 => {
                let fields = "Cache-Control: no-cache\r\n";
                assert_eq!(client.get(&path, fields).await.body(), body(object));
                continue;
            }
            3 => {
                let response = client.get(&path, &format!("If-None-Match: \"{object}\"\r\n")).await;
                // All of it is right, too, where it is not stored: the origin does not always look at the condition.
                let expected = if response.status == 304 { (304, "") } else { (200, body(object)) };
                assert_eq!((response.status, response.body()), expected);
                continue;
            }
            4 => {
                let response = client.request("POST", &path, "").await;
                assert_eq!(response.body(), body(object));
                continue;
            }
            _ => {}
        }
        let response = client.get(&path, "").await;
        assert_eq!(response.status, 200);
        assert!(response.body() == body(object), "object {object} is not what was sent: {}", response.head);
    }
}

#[test]
fn every_byte_is_right_whatever_happens_around_it() {
    run(async {
        let origin = Origin::start(response).await;
        let bed = Rc::new(Bed::with_memory(&[("a", origin.address)], 1_000_000));
        let mut robots = JoinSet::new();
        for seed in 0..CLIENTS {
            robots.spawn_local(robot(Rc::clone(&bed), seed));
        }
        robots.join_all().await;
        let counters = bed.counters();
        assert!(counters.stored_bytes <= 1_000_000);
        for seen in [
            counters.hits,
            counters.collapsed,
            counters.revalidated,
            counters.misses,
            counters.passed,
            counters.evictions,
        ] {
            assert!(seen > 0, "the storm was too mild: {counters:?}");
        }
    });
}
