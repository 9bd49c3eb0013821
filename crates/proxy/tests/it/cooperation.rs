//! Caches that query each other: siblings, parents, hits that are none, peers that do not respond.

use std::net::SocketAddr;
use std::time::Duration;

use assay_http::icp::{Message, Opcode};
use assay_proxy::Limits;
use assay_role::proxy::{Cooperation, OriginRoute, Peer, ProxySpec, Relation};
use tokio::net::UdpSocket;
use tokio::task::spawn_local;

use crate::harness::{Bed, Origin, ok, run, send, until};

const FRESH: &str = "Cache-Control: public, max-age=60\r\n";

/// The first of these addresses' ports that nobody has, for HTTP and ICP alike.
fn address() -> SocketAddr {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    listener.local_addr().unwrap()
}

fn peer(name: &str, relation: Relation, http: SocketAddr, icp: Option<SocketAddr>) -> Peer {
    Peer { name: name.into(), relation, http, icp }
}

fn cache(name: &str, origin: SocketAddr, at: (SocketAddr, SocketAddr), peers: Vec<Peer>) -> Bed {
    let cooperation = Cooperation {
        icp: Some(at.1),
        clients: vec![at.1.ip()],
        peers,
        timeout_ms: 50,
        ..Cooperation::default()
    };
    told(name, origin, at.0, cooperation)
}

fn told(name: &str, origin: SocketAddr, listen: SocketAddr, cooperation: Cooperation) -> Bed {
    let spec = ProxySpec {
        tls: None,
        origin_tls: None,
        origin_http2: false,
        name: name.into(),
        listen,
        threads: 1,
        cpus: Vec::new(),
        memory_bytes: 10_000_000,
        stale_if_error_s: 0,
        access_log: None,
        origins: vec![OriginRoute { authority: "a".into(), address: origin }],
        cooperation: Some(cooperation),
        prefetch: None,
        storing: assay_role::proxy::Storing::default(),
    };
    Bed::of(&spec, Limits { origin_response: Duration::from_millis(300), ..Limits::default() })
}

/// Two caches, each the other's sibling.
fn siblings(origin: SocketAddr) -> (Bed, Bed) {
    let (one, other) = ((address(), address()), (address(), address()));
    let sibling = |name, at: (SocketAddr, SocketAddr)| vec![peer(name, Relation::Sibling, at.0, Some(at.1))];
    (cache("one", origin, one, sibling("other", other)), cache("other", origin, other, sibling("one", one)))
}

#[test]
fn what_a_sibling_has_comes_from_it_and_is_kept() {
    run(async {
        let origin = Origin::start(|_, _| ok(FRESH, "hello")).await;
        let (one, other) = siblings(origin.address);
        assert_eq!(one.get("/x", "").await.cache_status(), "one; fwd=miss; stored");
        let from_sibling = other.get("/x", "").await;
        assert_eq!(from_sibling.body(), "hello");
        let statuses: Vec<&str> =
            from_sibling.head.lines().filter(|line| line.starts_with("Cache-Status")).collect();
        assert_eq!(
            statuses,
            ["Cache-Status: one; hit; ttl=60", "Cache-Status: other; fwd=miss; stored; detail=sibling"]
        );
        assert!(other.get("/x", "").await.head.contains("other; hit"));
        assert_eq!(origin.count(), 1);
        let (one, other) = (one.counters(), other.counters());
        assert_eq!((one.hits, one.peers.peer_requests, one.peers.peer_hits), (1, 1, 1));
        assert_eq!((one.peers.icp_sent, one.peers.icp_hits, one.peers.icp_answered_hits), (1, 0, 1));
        assert_eq!((other.peers.sibling_hits, other.peers.sibling_bytes), (1, 5));
        assert_eq!((other.hits, other.misses, other.origin_requests), (1, 1, 0));
    });
}

#[test]
fn a_hit_that_is_none_any_more_is_fetched_from_the_origin() {
    run(async {
        let origin = Origin::start(|_, _| ok(FRESH, "hello")).await;
        let liar =
            Origin::start(|_, _| vec![send("HTTP/1.1 504 Gateway Timeout\r\nContent-Length: 0\r\n\r\n")])
                .await;
        let (at, icp) = ((address(), address()), address());
        always(icp, Opcode::Hit).await;
        let cache =
            cache("one", origin.address, at, vec![peer("liar", Relation::Sibling, liar.address, Some(icp))]);
        assert_eq!(cache.get("/x", "").await.cache_status(), "one; fwd=miss; stored");
        assert!(liar.seen()[0].has("Cache-Control: only-if-cached"));
        assert_eq!(liar.seen()[0].line(), "GET http://a/x HTTP/1.1");
        assert_eq!((cache.counters().peers.false_hits, cache.counters().peers.sibling_hits), (1, 0));
    });
}

#[test]
fn misses_go_through_the_parent_and_its_hits_are_told_from_its_misses() {
    run(async {
        let origin = Origin::start(|_, _| ok(FRESH, "hello")).await;
        let (top, left, right) = ((address(), address()), (address(), address()), (address(), address()));
        let parent = cache("top", origin.address, top, Vec::new());
        let above = |with_icp: bool| vec![peer("top", Relation::Parent, top.0, with_icp.then_some(top.1))];
        let left = cache("left", origin.address, left, above(true));
        let right = cache("right", origin.address, right, above(false));
        assert!(left.get("/x", "").await.head.contains("left; fwd=miss; stored; detail=parent"));
        assert!(right.get("/x", "").await.head.contains("right; fwd=miss; stored; detail=parent"));
        assert_eq!(origin.count(), 1);
        assert!(origin.seen()[0].has("Via: 1.1 left, 1.1 top") || origin.seen()[0].has("Via: 1.1 left"));
        let (left, right, parent) = (left.counters().peers, right.counters().peers, parent.counters());
        assert_eq!((left.parent_fetches, left.parent_hits), (1, 0));
        assert_eq!((right.parent_fetches, right.parent_hits, right.icp_sent), (1, 1, 0));
        assert_eq!(
            (parent.peers.peer_requests, parent.peers.peer_hits, parent.peers.icp_answered),
            (2, 1, 1)
        );
    });
}

#[test]
fn a_peer_that_says_nothing_delays_only_until_it_is_known_to() {
    run(async {
        let origin = Origin::start(|_, _| ok(FRESH, "hello")).await;
        let silent = UdpSocket::bind("127.0.0.1:0").await.unwrap();
        let icp = silent.local_addr().unwrap();
        let known = Cooperation {
            icp: Some(address()),
            peers: vec![peer("silent", Relation::Sibling, address(), Some(icp))],
            timeout_ms: 2,
            ..Cooperation::default()
        };
        let cache = told("one", origin.address, address(), known);
        for n in 0..25 {
            assert_eq!(cache.get(&format!("/{n}"), "").await.status, 200);
        }
        let peers = cache.counters().peers;
        assert_eq!((peers.icp_sent, peers.icp_timeouts), (25, 20));
        // After one response it is waited for again.
        let mut datagram = Vec::new();
        assert!(Message::query(1, "http://a/x").response(Opcode::Miss).write(&mut datagram));
        silent.send_to(&datagram, cache.proxy.icp_address().unwrap()).await.unwrap();
        until(|| cache.counters().peers.icp_replies == 1).await;
        assert_eq!(cache.get("/again", "").await.status, 200);
        assert_eq!(cache.counters().peers.icp_timeouts, 21);
    });
}

#[test]
fn two_caches_that_are_each_others_parents_do_not_send_a_request_round() {
    run(async {
        let origin = Origin::start(|_, _| ok(FRESH, "hello")).await;
        let (one, other) = ((address(), address()), (address(), address()));
        let above = |name, at: (SocketAddr, SocketAddr)| vec![peer(name, Relation::Parent, at.0, None)];
        let first = cache("one", origin.address, one, above("other", other));
        let second = cache("other", origin.address, other, above("one", one));
        assert_eq!(first.get("/x", "").await.body(), "hello");
        assert_eq!(origin.count(), 1);
        assert_eq!(first.counters().peers.loops + second.counters().peers.loops, 1);
    });
}

#[test]
fn without_a_responding_parent_the_origin_gets_the_request_unless_that_is_forbidden() {
    run(async {
        let origin = Origin::start(|_, _| ok(FRESH, "hello")).await;
        let gone = vec![peer("gone", Relation::Parent, address(), None)];
        let free = Cooperation { peers: gone, ..Cooperation::default() };
        let bound = Cooperation { never_direct: true, ..free.clone() };
        let free = told("free", origin.address, address(), free);
        assert_eq!(free.get("/x", "").await.status, 200);
        assert_eq!(free.counters().peers.peer_errors, 1);
        let bound = told("bound", origin.address, address(), bound);
        assert_eq!(bound.get("/x", "").await.status, 502);
        assert_eq!(origin.count(), 1);
    });
}

#[test]
fn what_is_not_looked_for_among_caches_goes_through_a_parent_where_origins_are_forbidden() {
    run(async {
        let origin = Origin::start(|_, _| ok(FRESH, "hello")).await;
        let above = (address(), address());
        let top = cache("top", origin.address, above, Vec::new());
        let known = Cooperation {
            peers: vec![peer("top", Relation::Parent, above.0, None)],
            never_direct: true,
            ..Cooperation::default()
        };
        let child = told("child", origin.address, address(), known);
        assert_eq!(child.get("/x", "").await.status, 200);
        // A reload, and what has expired and is to be confirmed.
        assert_eq!(child.get("/x", "Cache-Control: no-cache\r\n").await.status, 200);
        child.pass_seconds(61);
        assert_eq!(child.get("/x", "").await.status, 200);
        let (child, top) = (child.counters(), top.counters());
        assert_eq!((child.origin_requests, child.peers.parent_fetches), (0, 3));
        assert_eq!((top.requests, top.origin_requests), (3, origin.count() as u64));
    });
}

#[test]
fn peers_further_away_than_the_time_out_are_queried_in_vain() {
    run(async {
        let origin = Origin::start(|_, _| ok(FRESH, "hello")).await;
        let (one, other) = ((address(), address()), (address(), address()));
        let first = cache("one", origin.address, one, Vec::new());
        let far = |delay_ms| Cooperation {
            icp: Some((address().ip(), 0).into()),
            peers: vec![peer("one", Relation::Sibling, one.0, Some(one.1))],
            timeout_ms: 5,
            delay_ms,
            ..Cooperation::default()
        };
        assert_eq!(first.get("/x", "").await.status, 200);
        let second = told("other", origin.address, other.0, far(5));
        assert_eq!(second.get("/x", "").await.body(), "hello");
        let peers = second.counters().peers;
        assert_eq!((peers.icp_sent, peers.icp_timeouts, peers.sibling_hits), (1, 1, 0));
        assert_eq!(origin.count(), 2);
        assert!(peers.icp_wait_us >= 5_000 && peers.icp_bytes > 20, "{peers:?}");
    });
}

#[test]
fn what_a_sibling_gave_is_not_kept_by_a_cache_that_only_passes_it_on() {
    run(async {
        let origin = Origin::start(|_, _| ok(FRESH, "hello")).await;
        let (one, other) = ((address(), address()), (address(), address()));
        let first = cache("one", origin.address, one, Vec::new());
        let known = Cooperation {
            icp: Some(other.1),
            peers: vec![peer("one", Relation::Sibling, one.0, Some(one.1))],
            timeout_ms: 1000,
            proxy_only: true,
            ..Cooperation::default()
        };
        let second = told("other", origin.address, other.0, known);
        assert_eq!(first.get("/x", "").await.status, 200);
        for _ in 0..2 {
            assert_eq!(second.get("/x", "").await.body(), "hello");
        }
        assert_eq!((second.counters().peers.sibling_hits, second.counters().objects), (2, 0));
        assert_eq!(origin.count(), 1);
    });
}

#[test]
fn strangers_are_denied_nonsense_is_counted_and_what_is_stale_is_no_hit() {
    run(async {
        let origin = Origin::start(|_, _| ok(FRESH, "hello")).await;
        let known = Cooperation { icp: Some(address()), ..Cooperation::default() };
        let closed = told("one", origin.address, address(), known.clone());
        let open = Cooperation { icp: Some(address()), clients: vec![[127, 0, 0, 1].into()], ..known };
        let open = told("two", origin.address, address(), open);
        let requester = UdpSocket::bind("127.0.0.1:0").await.unwrap();
        assert_eq!(question(&requester, &closed, "http://a/x").await, Opcode::Denied);
        assert_eq!(question(&requester, &open, "http://a/x").await, Opcode::Miss);
        assert_eq!(question(&requester, &open, "ftp://a/x").await, Opcode::Error);
        assert_eq!(open.get("/x", "").await.status, 200);
        assert_eq!(question(&requester, &open, "http://A:80/x").await, Opcode::Hit);
        open.pass_seconds(61);
        assert_eq!(question(&requester, &open, "http://a/x").await, Opcode::Miss);
        requester.send_to(b"nonsense", closed.proxy.icp_address().unwrap()).await.unwrap();
        until(|| closed.counters().peers.icp_refused == 2).await;
    });
}

async fn question(requester: &UdpSocket, of: &Bed, url: &str) -> Opcode {
    let mut datagram = Vec::new();
    assert!(Message::query(9, url).write(&mut datagram));
    requester.send_to(&datagram, of.proxy.icp_address().unwrap()).await.unwrap();
    let mut room = [0; 2000];
    let (length, _) = requester.recv_from(&mut room).await.unwrap();
    let response = Message::parse(&room[..length]).unwrap();
    assert_eq!((response.number, response.url), (9, url));
    response.opcode
}

/// Responds to every query in the same way.
async fn always(icp: SocketAddr, opcode: Opcode) {
    let socket = UdpSocket::bind(icp).await.unwrap();
    spawn_local(async move {
        let (mut room, mut out) = ([0; 2000], Vec::new());
        loop {
            let (length, from) = socket.recv_from(&mut room).await.unwrap();
            assert!(Message::parse(&room[..length]).unwrap().response(opcode).write(&mut out));
            socket.send_to(&out, from).await.unwrap();
        }
    });
}
