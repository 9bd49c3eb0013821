//! With a cache larger than the working set, the built-in proxy hits what an ideal cache would, and the ideal cache what the
//! stream offers.
//!
//! For every kind of interest, with a working set that is frozen and one that is not, with one and thirty origins, one and a
//! thousand robots. Most of it happens without waiting: the stream is walked, and its requests are put to an ideal cache,
//! and one after the other, on a clock of their own, to the proxy. A few cells are run through the binary.

use std::cell::Cell as Shared;
use std::collections::HashMap;
use std::rc::Rc;
use std::sync::Arc;

use assay_cache::ideal::{Behaviour, FOREVER, IdealCache, Lookup, Request};
use assay_http::head::{RequestHead, ResponseHead};
use assay_pgl::{SearchPath, compile};
use assay_proxy::{Clock, Limits, Proxy};
use assay_role::proxy::{OriginRoute, ProxySpec};
use assay_workload::model::OriginIndex;
use assay_workload::{Launch, Slice, Stream, Timeline, Universe, UniverseOptions};
use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::{Builder, LocalOptions};
use tokio::task::spawn_local;

use crate::support::{Assay, all_sent};

/// The stated tolerance: half a point, or three standard errors, whichever is larger.
const POINTS: f64 = 0.005;
const STANDARD_ERRORS: f64 = 3.0;
/// Requests of all robots in a second of the schedule.
const PER_SECOND: u32 = 400;
/// When the proxy's clock starts, in Unix milliseconds.
const START_MS: i64 = 1_700_000_000_000;

/// One cell of the matrix.
#[derive(Debug, Clone, Copy)]
struct Cell {
    interests: &'static str,
    /// The working set is frozen before half of the time is over.
    limited: bool,
    origins: u32,
    robots: u32,
}

const PUBLIC: &str = r#"[ "public" ]"#;
const PRIVATE: &str = r#"[ "private" ]"#;
const MIXED: &str = r#"[ "public": 60%, "private" ]"#;

fn cells() -> Vec<Cell> {
    let mut cells = Vec::new();
    for interests in [PUBLIC, PRIVATE, MIXED] {
        for limited in [true, false] {
            for origins in [1, 30] {
                for robots in [1, 1000] {
                    cells.push(Cell { interests, limited, origins, robots });
                }
            }
        }
    }
    cells
}

impl Cell {
    /// Plain GETs of objects that never change, so many seconds long.
    fn workload(&self, seconds: u32) -> String {
        let Cell { interests, origins, robots, .. } = self;
        let rate = f64::from(PER_SECOND) / f64::from(*robots);
        let limit =
            if self.limited { format!("working_set_length({}sec);", seconds * 2 / 5) } else { String::new() };
        format!(
            r#"
            Content cntAny = {{ kind = "any"; size = exp(2KB); cachable = 85%; }};
            Server S = {{
                kind = "s"; contents = [ cntAny ]; direct_access = contents; pconn_use_lmt = const(1000);
                addresses = '10.1.0.1-{origins}:80';
            }};
            Robot R = {{
                kind = "r"; req_rate = {rate}/sec; recurrence = 60%; interests = {interests};
                pop_model = {{ pop_distr = popZipf(0.6); }}; pconn_use_lmt = const(1000); open_conn_lmt = {connections};
                origins = S.addresses; addresses = [ '10.2.0.1' ** {robots} ];
            }};
            Phase phFill = {{ name = "fill"; goal.duration = {fill}sec; recur_factor_beg = 0.3; recur_factor_end = 1; }};
            Phase phTop = {{ name = "top"; goal.duration = {top}sec; }};
            schedule(phFill, phTop);
            {limit}
            use(S, R);
            "#,
            connections = if *robots == 1 { 40 } else { 4 },
            fill = seconds / 2,
            top = seconds - seconds / 2,
        )
    }

    fn universe(&self, seconds: u32) -> (Arc<Universe>, Vec<Launch>) {
        let text = self.workload(seconds);
        let resolver = SearchPath::new(vec![], |name| Ok((name == "cell.pg").then(|| text.as_str().into())));
        let compiled = compile("cell.pg", &resolver).unwrap_or_else(|failure| panic!("{self:?}: {failure}"));
        let workload = Arc::new(compiled.workload);
        let timeline = Arc::new(Timeline::new(&workload).expect("a schedule"));
        let universe = Universe::new(workload, 1, 1, UniverseOptions::default()).expect("a universe");
        let universe = Arc::new(universe);
        let launches = Stream::new(Arc::clone(&universe), timeline, Slice::ALL).collect();
        (universe, launches)
    }
}

/// Hits over all, of basic requests.
#[derive(Debug, Clone, Copy)]
struct Ratio {
    hits: u64,
    all: u64,
}

impl Ratio {
    fn of(hits: &[bool]) -> Self {
        Self { hits: hits.iter().filter(|hit| **hit).count() as u64, all: hits.len() as u64 }
    }

    fn value(self) -> f64 {
        self.hits as f64 / self.all as f64
    }

    #[track_caller]
    fn is_near(self, other: f64, what: &str) {
        let here = self.value();
        let tolerance = tolerance(here, self.all);
        assert!(
            (here - other).abs() <= tolerance,
            "{what}: {here:.4} and {other:.4} differ by more than {tolerance:.4} ({} requests)",
            self.all
        );
    }
}

fn tolerance(ratio: f64, all: u64) -> f64 {
    POINTS.max(STANDARD_ERRORS * (ratio * (1.0 - ratio) / all as f64).sqrt())
}

/// What the built-in proxy declares, as far as plain GETs go.
const BUILTIN: Behaviour = Behaviour {
    caches: true,
    head_fills: false,
    conditional_fills: true,
    reload_fills: true,
    range_fills: true,
    post_invalidates: true,
    collapses: true,
};

/// Which requests of a stream an ideal cache hits.
fn ideal(universe: &Universe, launches: &[Launch]) -> Vec<bool> {
    let mut cache = IdealCache::new(BUILTIN);
    let lookup = |launch: &Launch| {
        let object = universe.object(launch.object);
        let at_us = launch.due.as_micros() as u64;
        let cachable = object.cachable;
        cache.lookup(Lookup {
            key: object.key,
            request: Request::Get,
            cachable,
            at_us,
            fresh_until_ms: FOREVER,
        })
    };
    launches.iter().map(lookup).collect()
}

fn offered(universe: &Universe, launches: &[Launch]) -> Vec<bool> {
    launches.iter().map(|launch| universe.offered(launch, &universe.object(launch.object)).hit()).collect()
}

#[test]
fn an_ideal_cache_hits_what_the_stream_offers_whichever_robot_requests_it() {
    for cell in cells() {
        let (universe, launches) = cell.universe(40);
        let offered = Ratio::of(&offered(&universe, &launches));
        let ideal = Ratio::of(&ideal(&universe, &launches));
        eprintln!("{cell:?}: offered {:.4}, ideal {:.4} of {}", offered.value(), ideal.value(), ideal.all);
        assert!(offered.all > 10_000 && offered.value() > 0.2, "{cell:?} requests too little: {offered:?}");
        ideal.is_near(offered.value(), &format!("{cell:?}: ideal and offered"));
    }
}

#[test]
fn the_proxy_hits_exactly_what_an_ideal_cache_hits_when_nothing_happens_at_once() {
    for cell in cells() {
        let (universe, mut launches) = cell.universe(10);
        // Those of the plateau, where there is most to revisit, and enough of what comes before.
        launches.truncate(2_500);
        let ideal = ideal(&universe, &launches);
        let measured = through_the_proxy(&universe, &launches);
        let differ = ideal.iter().zip(&measured).position(|(ideal, measured)| ideal != measured);
        let (ideal, measured) = (Ratio::of(&ideal), Ratio::of(&measured));
        eprintln!("{cell:?}: ideal {:.4}, measured {:.4} of {}", ideal.value(), measured.value(), ideal.all);
        assert_eq!(differ, None, "{cell:?}: the first request that differs");
    }
}

/// Which requests of a stream the built-in proxy serves without its origin, one after the other, each at its time.
fn through_the_proxy(universe: &Arc<Universe>, launches: &[Launch]) -> Vec<bool> {
    let runtime = Builder::new_current_thread().enable_all().build_local(LocalOptions::default());
    runtime.expect("a runtime").block_on(async {
        let now_ms = Rc::new(Shared::new(START_MS));
        let origin = Origin::start(Arc::clone(universe)).await;
        let routes = universe.workload().origins.iter();
        let routes =
            routes.map(|o| OriginRoute { authority: o.authority.clone(), address: origin.address }).collect();
        let spec = ProxySpec {
            tls: None,
            origin_tls: None,
            origin_http2: false,
            name: "assay".into(),
            listen: "127.0.0.1:0".parse().expect("an address"),
            threads: 1,
            cpus: Vec::new(),
            memory_bytes: 1 << 30,
            stale_if_error_s: 0,
            access_log: None,
            prefetch: None,
            storing: assay_role::proxy::Storing::default(),
            origins: routes,
            cooperation: None,
        };
        let clock = Clock::Manual(Rc::clone(&now_ms));
        let proxy = Rc::new(Proxy::bind(&spec, clock, Limits::default()).expect("a proxy"));
        let address = proxy.address();
        spawn_local(async move { proxy.serve().await });
        let mut client = TcpStream::connect(address).await.expect("the proxy listens");
        let (mut buf, mut hits) = (Vec::new(), Vec::new());
        for launch in launches {
            now_ms.set(START_MS + i64::try_from(launch.due.as_millis()).expect("not for ever"));
            let (before, object) = (origin.requested.get(), universe.object(launch.object));
            let authority = &universe.workload().origins[usize::from(object.id.origin)].authority;
            let request = format!("GET {} HTTP/1.1\r\nHost: {authority}\r\n\r\n", universe.path(&object));
            client.write_all(request.as_bytes()).await.expect("sent");
            assert_eq!(response(&mut client, &mut buf).await, 200, "{request}");
            hits.push(origin.requested.get() == before);
        }
        hits
    })
}

/// The status of the next response; its body is read and forgotten.
async fn response(stream: &mut TcpStream, buf: &mut Vec<u8>) -> u16 {
    loop {
        if let Some((head, length)) = ResponseHead::parse(buf).expect("HTTP") {
            let (status, body) = (head.status, head.facts.content_length.unwrap_or(0) as usize);
            if buf.len() >= length + body {
                buf.drain(..length + body);
                return status;
            }
        }
        assert!(stream.read_buf(buf).await.expect("read") > 0, "the proxy closed");
    }
}

/// All origins of a universe behind one address; bodies are short.
struct Origin {
    address: std::net::SocketAddr,
    requested: Rc<Shared<u64>>,
}

impl Origin {
    async fn start(universe: Arc<Universe>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = listener.local_addr().expect("an address");
        let requested = Rc::new(Shared::new(0));
        let counted = Rc::clone(&requested);
        let names: HashMap<String, OriginIndex> =
            (0..).zip(&universe.workload().origins).map(|(index, o)| (o.authority.clone(), index)).collect();
        let names = Rc::new(names);
        spawn_local(async move {
            loop {
                let (stream, _) = listener.accept().await.expect("a connection");
                spawn_local(serve(stream, Arc::clone(&universe), Rc::clone(&names), Rc::clone(&counted)));
            }
        });
        Self { address, requested }
    }
}

async fn serve(
    mut stream: TcpStream,
    universe: Arc<Universe>,
    names: Rc<HashMap<String, OriginIndex>>,
    requested: Rc<Shared<u64>>,
) {
    let mut buf = Vec::new();
    loop {
        let Some((head, length)) = RequestHead::parse(&buf).expect("HTTP") else {
            match stream.read_buf(&mut buf).await {
                Ok(1..) => continue,
                _ => return,
            }
        };
        requested.set(requested.get() + 1);
        let host = head.host.map(String::from_utf8_lossy).unwrap_or_default();
        let id = universe.parse_path(names[&*host], head.target.as_bytes()).expect("one of ours");
        // As docs/architecture.md has it, of an object without a life cycle.
        let control = match universe.object(id).cachable {
            true => "public, max-age=31536000",
            false => "private, no-cache, no-store",
        };
        let response =
            format!("HTTP/1.1 200 OK\r\nCache-Control: {control}\r\nContent-Length: 4\r\n\r\nbody");
        buf.drain(..length);
        if stream.write_all(response.as_bytes()).await.is_err() {
            return;
        }
    }
}

/// The figures of the whole of a run that went well. A busy machine changes what is known of times, and no hit ratio, unless it
/// is so busy that requests are never sent: these are in what was offered, and not in what is ideal.
fn run(cell: &Cell, text: &str) -> Value {
    all_sent(0.99, || {
        let assay = Assay::new();
        let workload = assay.file("cell.pg", text);
        let said =
            assay.run(&["run", workload, "--memory", "256MB", "--run-dir", "r", "--no-report", "--json"]);
        assert!(said.went_well(), "{cell:?}: {said:?}");
        let document: Value = serde_json::from_str(&said.stdout).expect("one JSON document");
        document["total"].clone()
    })
}

fn dhr(total: &Value, which: &str) -> f64 {
    total["dhr"][which].as_f64().unwrap_or_else(|| panic!("no {which} in {total:#}"))
}

#[test]
fn runs_measure_what_an_ideal_cache_hits_and_the_stream_offers() {
    for cell in [
        Cell { interests: PUBLIC, limited: true, origins: 1, robots: 1000 },
        Cell { interests: PRIVATE, limited: false, origins: 1, robots: 1 },
        Cell { interests: MIXED, limited: true, origins: 30, robots: 1000 },
        Cell { interests: MIXED, limited: false, origins: 30, robots: 1 },
    ] {
        let total = run(&cell, &cell.workload(8));
        let all = total["completed"].as_u64().expect("a count");
        let (offered, ideal, measured) =
            (dhr(&total, "offered"), dhr(&total, "ideal"), dhr(&total, "measured"));
        eprintln!("{cell:?}: offered {offered:.4}, ideal {ideal:.4}, measured {measured:.4} of {all}");
        assert_eq!(total["errors"]["total"], 0, "{cell:?}: {:#}", total["errors"]);
        let tolerance = tolerance(ideal, all);
        assert!((measured - ideal).abs() <= tolerance, "{cell:?}: measured {measured}, ideal {ideal}");
        assert!((ideal - offered).abs() <= tolerance, "{cell:?}: ideal {ideal}, offered {offered}");
    }
}

#[test]
fn parts_heads_reloads_and_conditions_are_in_the_ideal_too() {
    let cell = Cell { interests: MIXED, limited: true, origins: 2, robots: 100 };
    let text = cell
        .workload(8)
        .replace("cachable = 85%;", "cachable = 85%; obj_life_cycle = olc;")
        .replace("recurrence = 60%;", "recurrence = 60%; req_types = [ \"Range\": 25%, \"Ims304\": 8%, \"Ims200\": 4%, \"Reload\": 4%, \"Basic\" ]; ranges = [ half, tail ]; req_methods = [ \"HEAD\": 5%, \"POST\": 2%, \"GET\" ]; post_contents = [ cntAny ];");
    let lives = r#"
        ObjLifeCycle olc = { length = const(1year); with_lmt = 100%; expires = [ now + const(1hour) ]; };
        SingleRange half = { first_byte_pos_relative = 0.5; };
        SingleRange tail = { suffix_length_absolute = 100Byte; };
    "#;
    let total = run(&cell, &format!("{lives}{text}"));
    let all = total["completed"].as_u64().expect("a count");
    let (ideal, measured) = (dhr(&total, "ideal"), dhr(&total, "measured"));
    eprintln!("everything: offered {:.4}, ideal {ideal:.4}, measured {measured:.4}", dhr(&total, "offered"));
    assert_eq!(total["errors"]["total"], 0, "{:#}", total["errors"]);
    assert!(total["by_status"]["206"].as_u64() > Some(100), "{:#}", total["by_status"]);
    let tolerance = tolerance(ideal, all);
    assert!((measured - ideal).abs() <= tolerance, "measured {measured}, ideal {ideal} ± {tolerance}");
}
