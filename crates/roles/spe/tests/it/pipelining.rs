//! What a client pipelines is pipelined to the Collector, and nothing else; proxies get one request at a time.

use std::cell::{Cell, RefCell};
use std::net::SocketAddr;
use std::rc::Rc;

use assay_record::spe::{ResponseError, Verdict};
use assay_spe::multiplier::MultiplierLimits;
use assay_spe::spec::{Turns, When};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::task::spawn_local;

use crate::collector_harness::{self, UNCACHEABLE};
use crate::honest_proxy::proxy;
use crate::multiplier_bed::{Bed, Client, Part, Server, ok, run, until};

/// A Collector that reads whatever comes, and sends only what it is told to.
#[derive(Clone)]
struct Silent {
    address: SocketAddr,
    connections: Rc<RefCell<Vec<Rc<Connection>>>>,
}

struct Connection {
    got: RefCell<String>,
    ended: Cell<bool>,
    writer: RefCell<Option<tokio::net::tcp::OwnedWriteHalf>>,
}

impl Silent {
    async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let silent = Self { address: listener.local_addr().unwrap(), connections: Rc::default() };
        let connections = Rc::clone(&silent.connections);
        spawn_local(async move {
            loop {
                let (stream, _) = listener.accept().await.unwrap();
                connections.borrow_mut().push(read_all(stream));
            }
        });
        silent
    }

    /// The paths that were requested on a connection.
    fn paths(&self, connection: usize) -> Vec<String> {
        let connections = self.connections.borrow();
        let Some(connection) = connections.get(connection) else { return Vec::new() };
        let got = connection.got.borrow();
        let lines = got.lines().filter(|line| line.ends_with(" HTTP/1.1"));
        lines.map(|line| line.split(' ').nth(1).unwrap().to_owned()).collect()
    }

    async fn has(&self, connection: usize, paths: &[&str]) {
        until(|| self.paths(connection) == paths).await;
    }

    async fn send(&self, connection: usize, bytes: impl AsRef<[u8]>) {
        let connection = Rc::clone(&self.connections.borrow()[connection]);
        let mut writer = connection.writer.borrow_mut().take().expect("it is open");
        writer.write_all(bytes.as_ref()).await.unwrap();
        *connection.writer.borrow_mut() = Some(writer);
    }

    fn close(&self, connection: usize) {
        self.connections.borrow()[connection].writer.borrow_mut().take();
    }

    fn ended(&self, connection: usize) -> bool {
        self.connections.borrow()[connection].ended.get()
    }
}

fn read_all(stream: TcpStream) -> Rc<Connection> {
    let (mut reader, writer) = stream.into_split();
    let connection = Rc::new(Connection {
        got: RefCell::default(),
        ended: Cell::new(false),
        writer: RefCell::new(Some(writer)),
    });
    let own = Rc::clone(&connection);
    spawn_local(async move {
        let mut room = [0; 4096];
        while let Ok(count @ 1..) = reader.read(&mut room).await {
            own.got.borrow_mut().push_str(std::str::from_utf8(&room[..count]).unwrap());
        }
        own.ended.set(true);
    });
    connection
}

fn get(path: &str) -> String {
    format!("GET {path} HTTP/1.1\r\nHost: a\r\n\r\n")
}

fn response(body: &str) -> String {
    format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{body}", body.len())
}

/// A Multiplier before a Collector that is told what to send, and a proxy.
async fn bed(when: When) -> (Silent, Server, Bed) {
    let silent = Silent::start().await;
    let proxy = Server::start(|seen, _| ok("", seen.line())).await;
    let bed = Bed::with(&proxy, &[proxy.address], |spec| {
        (spec.collector, spec.when) = (silent.address, when);
    });
    (silent, proxy, bed)
}

async fn body(client: &mut Client) -> String {
    client.response("GET").await.body.expect("it is whole")
}

#[test]
fn what_a_client_pipelines_reaches_the_collector_before_the_first_response() {
    run(async {
        for when in [When::After, When::AtOnce] {
            let (silent, proxy, bed) = bed(when).await;
            let mut client = bed.client().await;
            client.send([get("/1"), get("/2")].concat()).await;
            silent.has(0, &["/1", "/2"]).await;
            // What comes later, but before the response, goes on too.
            client.send(get("/3")).await;
            silent.has(0, &["/1", "/2", "/3"]).await;
            let before = if when == When::AtOnce { 1 } else { 0 };
            until(|| proxy.count() == before).await;
            for path in ["/1", "/2", "/3"] {
                silent.send(0, response(&format!("GET {path} HTTP/1.1"))).await;
                assert_eq!(body(&mut client).await, format!("GET {path} HTTP/1.1"));
            }
            bed.responses(3).await;
            until(|| bed.counters().targets[1].matching == 3).await;
            let paths: Vec<_> = proxy.seen().iter().map(|seen| seen.line().to_owned()).collect();
            assert_eq!(paths, ["/1", "/2", "/3"].map(|path| format!("GET {path} HTTP/1.1")));
            assert_eq!(silent.connections.borrow().len(), 1);
            // The connection is used again by whoever comes next.
            let mut other = bed.client().await;
            other.send(get("/4")).await;
            silent.has(0, &["/1", "/2", "/3", "/4"]).await;
            silent.send(0, response("GET /4 HTTP/1.1")).await;
            assert_eq!(body(&mut other).await, "GET /4 HTTP/1.1");
            assert_eq!(bed.counters().requests, 4);
            let rows = bed.finish().await;
            let direct: Vec<_> = rows.iter().filter(|row| row.target == 0).collect();
            assert_eq!(direct.iter().map(|row| row.request).collect::<Vec<_>>(), [0, 1, 2, 3]);
            for pair in direct[..3].windows(2) {
                // A request's time begins where the response before it ends.
                let times = [Some(pair[0].at_us), pair[0].first_byte_us, pair[0].transfer_us];
                let end: i64 = times.map(|time| time.expect("is known")).iter().sum();
                assert!(pair[1].at_us + 1 >= end && pair[1].response_us().is_some(), "{pair:?}");
            }
        }
    });
}

#[test]
fn what_may_not_be_sent_twice_and_what_is_behind_it_wait_for_their_turn() {
    run(async {
        let post = "POST /2 HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\nhi";
        let delete = "DELETE /2 HTTP/1.1\r\nHost: a\r\n\r\n";
        let loaded = "GET /2 HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\nhi";
        let old = "GET /2 HTTP/1.0\r\nConnection: keep-alive\r\n\r\n";
        for second in [post, delete, loaded, old] {
            let (silent, _proxy, bed) = bed(When::After).await;
            let mut client = bed.client().await;
            client.send([&get("/0"), &get("/1"), second, &get("/3")].concat()).await;
            silent.has(0, &["/0", "/1"]).await;
            silent.send(0, response("0")).await;
            assert_eq!(body(&mut client).await, "0");
            assert_eq!(silent.paths(0), ["/0", "/1"], "{second}");
            silent.send(0, response("1")).await;
            assert_eq!(body(&mut client).await, "1");
            let has_body = second.ends_with("hi");
            let connection = if has_body { 1 } else { 0 };
            until(|| {
                let connections = silent.connections.borrow();
                connections.get(connection).is_some_and(|it| it.got.borrow().contains(" /2 HTTP/1."))
            })
            .await;
            silent.send(connection, response("2")).await;
            assert_eq!(body(&mut client).await, "2");
        }
    });
}

#[test]
fn a_connection_that_fails_loses_no_request_and_none_gets_two_responses() {
    run(async {
        let (silent, _proxy, bed) = bed(When::After).await;
        let mut client = bed.client().await;
        client.send(["/1", "/2", "/3"].map(get).concat()).await;
        silent.has(0, &["/1", "/2", "/3"]).await;
        silent.send(0, response("1")).await;
        silent.close(0);
        assert_eq!(body(&mut client).await, "1");
        silent.has(1, &["/2", "/3"]).await;
        // One that says that it closes is not used for what was sent on it.
        silent.send(1, "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 1\r\n\r\n2").await;
        assert_eq!(body(&mut client).await, "2");
        silent.has(2, &["/3"]).await;
        silent.send(2, response("3")).await;
        assert_eq!(body(&mut client).await, "3");
        let rows = bed.finish().await;
        let direct: Vec<_> = rows.iter().filter(|row| row.target == 0).map(|row| row.status).collect();
        assert_eq!(direct, [Some(200); 3]);
    });
}

#[test]
fn a_client_that_leaves_leaves_a_row_for_each_request_that_the_collector_got() {
    run(async {
        let (silent, proxy, bed) = bed(When::After).await;
        let mut client = bed.client().await;
        client.send(["/1", "/2", "/3"].map(get).concat()).await;
        silent.has(0, &["/1", "/2", "/3"]).await;
        client.stream.set_zero_linger().unwrap();
        drop(client);
        // Whether it has left is seen when it is written to.
        silent.send(0, format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n", 1 << 20)).await;
        silent.send(0, vec![b'x'; 1 << 20]).await;
        until(|| silent.ended(0)).await;
        until(|| bed.counters().requests == 3).await;
        let rows = bed.finish().await;
        let direct: Vec<_> = rows.iter().filter(|row| row.target == 0).collect();
        assert_eq!(direct.len(), 3);
        assert!(direct.iter().all(|row| row.error == Some(ResponseError::ClientGone)), "{direct:?}");
        assert!(proxy.count() <= 1, "the proxies get only what was responded to");
    });
}

#[test]
fn the_time_of_a_response_that_waited_for_a_slow_client_is_not_known() {
    run(async {
        // More than all buffers on its way to a client that does not read yet.
        const LARGE: usize = 24 << 20;
        let large = format!("HTTP/1.1 200 OK\r\nContent-Length: {LARGE}\r\n\r\n{}", "x".repeat(LARGE));
        // The next response may be there when this one has been passed on, or come later.
        for (first, second) in [(large.clone() + &response("2"), String::new()), (large, response("2"))] {
            let (silent, _proxy, bed) = bed(When::After).await;
            let mut client = bed.client().await;
            client.send(["/1", "/2", "/3"].map(get).concat()).await;
            silent.has(0, &["/1", "/2", "/3"]).await;
            let own = silent.clone();
            let sending = spawn_local(async move { own.send(0, first).await });
            // In so many turns it has taken all that it can.
            for _ in 0..2000 {
                tokio::task::yield_now().await;
            }
            assert!(!sending.is_finished(), "it waits for the client");
            assert_eq!(body(&mut client).await.len(), LARGE);
            sending.await.unwrap();
            silent.send(0, second).await;
            assert_eq!(body(&mut client).await, "2");
            silent.send(0, response("3")).await;
            assert_eq!(body(&mut client).await, "3");
            let rows = bed.finish().await;
            let direct: Vec<_> = rows.iter().filter(|row| row.target == 0).collect();
            let known: Vec<_> = direct.iter().map(|row| row.response_us().is_some()).collect();
            assert_eq!(known, [true, false, true]);
            assert!(direct.iter().all(|row| row.error.is_none() && row.status == Some(200)));
        }
    });
}

#[test]
fn no_more_is_read_of_a_client_than_is_sent_on() {
    run(async {
        let (silent, _proxy, bed) = bed(When::After).await;
        let client = bed.client().await;
        let (_reading, mut writing) = client.stream.into_split();
        let flood = spawn_local(async move {
            let requests = get("/x").repeat(1000);
            while writing.write_all(requests.as_bytes()).await.is_ok() {}
        });
        until(|| silent.paths(0).len() == 33).await;
        for _ in 0..1000 {
            tokio::task::yield_now().await;
        }
        assert_eq!(silent.paths(0).len(), 33, "one under way, and 32 behind it");
        assert!(!flood.is_finished(), "it cannot get rid of more");
        flood.abort();
    });
}

#[test]
fn behind_a_real_collector_each_request_is_fetched_once_and_every_proxy_agrees() {
    run(async {
        let gate = Rc::new(Semaphore::new(0));
        let wait = Rc::clone(&gate);
        let origin = Server::start(move |seen, _| {
            [vec![Part::Wait(Rc::clone(&wait))], ok(UNCACHEABLE, seen.line())].concat()
        })
        .await;
        let told = collector_harness::spec(origin.address, 2);
        let collector = collector_harness::Bed::of(&told);
        let listeners = collector.collector.addresses().to_vec();
        let proxies: Vec<_> = listeners[1..].iter().map(|&listener| proxy(listener)).collect();
        let bed = Bed::with_limits(&origin, &proxies, MultiplierLimits::default(), |spec| {
            (spec.collector, spec.turns) = (listeners[0], Turns::Permuted);
        });
        let mut client = bed.client().await;
        let paths = ["/1", "/2", "/2", "/3"];
        client.send(paths.map(get).concat()).await;
        until(|| origin.count() == 1).await;
        for (served, path) in (1..).zip(paths) {
            assert_eq!(origin.count(), served, "the Collector serves one after the other");
            gate.add_permits(1);
            assert_eq!(body(&mut client).await, format!("GET {path} HTTP/1.1"));
            until(|| origin.count() == paths.len().min(served + 1)).await;
        }
        bed.responses(4).await;
        until(|| bed.counters().targets[1..].iter().all(|target| target.matching == 4)).await;
        assert_eq!(origin.count(), 4, "no proxy has caused a fetch");
        let rows = bed.finish().await;
        assert!(rows.iter().filter(|row| row.target > 0).all(|row| row.verdict == Verdict::Ok), "{rows:?}");
    });
}
