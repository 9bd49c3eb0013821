//! With a cache larger than the working set, the built-in proxy hits what an ideal cache would, and the ideal cache what the
//! stream offers.
//!
//! For every kind of interest, with a working set that is frozen and one that is not, with one and thirty origins, one and a
//! thousand robots. Most of it happens without waiting: the stream is walked, and its requests are put to an ideal cache,
//! and one after the other, on a clock of their own, to the proxy. `tests/real` runs a few cells through the binary.

use std::cell::Cell as Shared;
use std::collections::HashMap;
use std::rc::Rc;
use std::sync::Arc;

use assay_cache::ideal::{FOREVER, IdealCache, Lookup, RequestClass};
use assay_http::head::{RequestHead, ResponseHead};
use assay_pgl::{SearchPath, compile};
use assay_proxy::spec::{OriginRoute, ProxySpec};
use assay_proxy::{Clock, Proxy, ProxyLimits};
use assay_workload::model::OriginIndex;
use assay_workload::{Launch, Slice, Stream, Timeline, Universe, UniverseOptions};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::{Builder, LocalOptions};
use tokio::task::spawn_local;

use crate::cells::{Cell, MIXED, PRIVATE, PUBLIC, tolerance};

/// When the proxy's clock starts, in Unix milliseconds.
const START_MS: i64 = 1_700_000_000_000;

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

/// What a cell's workload is of, and all its requests.
fn universe(cell: &Cell, seconds: u32) -> (Arc<Universe>, Vec<Launch>) {
    let text = cell.workload(seconds);
    let resolver = SearchPath::from_fn(vec![], |name| (name == "cell.pg").then(|| text.as_str().into()));
    let compiled = compile("cell.pg", &resolver).unwrap_or_else(|failure| panic!("{cell:?}: {failure}"));
    let workload = Arc::new(compiled.workload);
    let timeline = Arc::new(Timeline::new(&workload).expect("a schedule"));
    let universe = Universe::new(workload, 1, 1, UniverseOptions::default()).expect("a universe");
    let universe = Arc::new(universe);
    let launches = Stream::new(Arc::clone(&universe), timeline, Slice::ALL).collect();
    (universe, launches)
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

/// Which requests of a stream an ideal cache hits.
fn ideal(universe: &Universe, launches: &[Launch]) -> Vec<bool> {
    let mut cache = IdealCache::new(assay_proxy::spec::BEHAVIOUR);
    let lookup = |launch: &Launch| {
        let object = universe.object(launch.object);
        let at_us = launch.due.as_micros() as u64;
        let cachable = object.cachable;
        cache.lookup(Lookup {
            key: object.key,
            object: object.key,
            request: RequestClass::Get,
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
        let (universe, launches) = universe(&cell, 40);
        let offered = Ratio::of(&offered(&universe, &launches));
        let ideal = Ratio::of(&ideal(&universe, &launches));
        eprintln!("{cell:?}: offered {:.4}, ideal {:.4} of {}", offered.value(), ideal.value(), ideal.all);
        assert!(offered.all > 10_000 && offered.value() > 0.2, "{cell:?} requests too little: {offered:?}");
        ideal.is_near(offered.value(), &format!("{cell:?}: ideal and offered"));
    }
}

#[test]
fn the_proxy_hits_exactly_what_an_ideal_cache_hits_when_nothing_happens_at_once() {
    // What robots and origins are to a proxy, one of each and many of both show.
    for cell in cells().into_iter().filter(|cell| (cell.origins == 1) == (cell.robots == 1)) {
        let (universe, mut launches) = universe(&cell, 10);
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
            storing: assay_proxy::spec::Storing::default(),
            origins: routes,
            cooperation: None,
        };
        let clock = Clock::Manual(Rc::clone(&now_ms));
        let proxy = Rc::new(Proxy::bind(&spec, clock, ProxyLimits::default()).expect("a proxy"));
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
