//! Caches that query each other: siblings, parents, hits that are none, peers that do not respond.

use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4};

use assay_http::icp::{Message, Opcode};
use assay_proxy::ProxyLimits;
use assay_proxy::spec::{Cooperation, Peer, ProxySpec, Relation};
use tokio::io::copy_bidirectional;
use tokio::net::{TcpListener, TcpSocket, TcpStream, UdpSocket};
use tokio::task::spawn_local;

use crate::harness::{Bed, Origin, ok, run, send, spec, until};

const FRESH: &str = "Cache-Control: public, max-age=60\r\n";

/// Any port of this machine.
const ANY: SocketAddr = SocketAddr::V4(SocketAddrV4::new(Ipv4Addr::LOCALHOST, 0));

fn peer(name: &str, relation: Relation, http: SocketAddr, icp: Option<SocketAddr>) -> Peer {
    Peer { name: name.into(), relation, http, icp }
}

/// This cache, as others know it.
fn known(name: &str, relation: Relation, cache: &Bed) -> Peer {
    peer(name, relation, cache.proxy.address(), cache.proxy.icp_address())
}

/// One that speaks ICP, and waits for its peers as long as a test may take.
fn cache(name: &str, origin: SocketAddr, peers: Vec<Peer>) -> Bed {
    let cooperation = Cooperation {
        icp: Some(ANY),
        clients: vec![ANY.ip()],
        peers,
        timeout_ms: 60_000,
        ..Cooperation::default()
    };
    told(name, origin, cooperation)
}

fn told(name: &str, origin: SocketAddr, cooperation: Cooperation) -> Bed {
    let origins = [("a", origin)];
    let spec =
        ProxySpec { name: name.into(), cooperation: Some(cooperation), ..spec(&origins, 10_000_000, 0) };
    Bed::of(&spec, ProxyLimits::default())
}

#[test]
fn what_a_sibling_has_comes_from_it_and_is_kept() {
    run(async {
        let origin = Origin::start(|_, _| ok(FRESH, "hello")).await;
        // Its own sibling has nothing.
        let empty = peer("empty", Relation::Sibling, origin.address, Some(always(Opcode::Miss).await));
        let one = cache("one", origin.address, vec![empty]);
        let other = cache("other", origin.address, vec![known("one", Relation::Sibling, &one)]);
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
        assert_eq!((one.peers.icp_sent, one.peers.icp_hits, one.peers.icp_hits_sent), (1, 0, 1));
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
        let icp = always(Opcode::Hit).await;
        let cache =
            cache("one", origin.address, vec![peer("liar", Relation::Sibling, liar.address, Some(icp))]);
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
        let parent = cache("top", origin.address, Vec::new());
        let above = known("top", Relation::Parent, &parent);
        let right = cache("right", origin.address, vec![Peer { icp: None, ..above.clone() }]);
        let left = cache("left", origin.address, vec![above]);
        assert!(left.get("/x", "").await.head.contains("left; fwd=miss; stored; detail=parent"));
        assert!(right.get("/x", "").await.head.contains("right; fwd=miss; stored; detail=parent"));
        assert_eq!(origin.count(), 1);
        assert!(origin.seen()[0].has("Via: 1.1 left, 1.1 top") || origin.seen()[0].has("Via: 1.1 left"));
        let (left, right, parent) = (left.counters().peers, right.counters().peers, parent.counters());
        assert_eq!((left.parent_fetches, left.parent_hits), (1, 0));
        assert_eq!((right.parent_fetches, right.parent_hits, right.icp_sent), (1, 1, 0));
        assert_eq!(
            (parent.peers.peer_requests, parent.peers.peer_hits, parent.peers.icp_responses_sent),
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
            icp: Some(ANY),
            peers: vec![peer("silent", Relation::Sibling, origin.address, Some(icp))],
            timeout_ms: 2,
            ..Cooperation::default()
        };
        let cache = told("one", origin.address, known);
        for n in 0..25 {
            assert_eq!(cache.get(&format!("/{n}"), "").await.status, 200);
        }
        let peers = cache.counters().peers;
        assert_eq!((peers.icp_sent, peers.icp_timeouts), (25, 20));
        // After one response it is waited for again.
        let mut datagram = Vec::new();
        assert!(Message::query(1, "http://a/x").response(Opcode::Miss).write(&mut datagram));
        silent.send_to(&datagram, cache.proxy.icp_address().unwrap()).await.unwrap();
        until(|| cache.counters().peers.icp_responses == 1).await;
        assert_eq!(cache.get("/again", "").await.status, 200);
        assert_eq!(cache.counters().peers.icp_timeouts, 21);
    });
}

#[test]
fn two_caches_that_are_each_others_parents_do_not_send_a_request_round() {
    run(async {
        let origin = Origin::start(|_, _| ok(FRESH, "hello")).await;
        // The second one is known to the first by a way to it, which is there before it.
        let way = TcpListener::bind(ANY).await.unwrap();
        let above = |name, at| vec![peer(name, Relation::Parent, at, None)];
        let first = cache("one", origin.address, above("other", way.local_addr().unwrap()));
        let second = cache("other", origin.address, above("one", first.proxy.address()));
        let end = second.proxy.address();
        spawn_local(async move {
            loop {
                let (mut from, _) = way.accept().await.unwrap();
                let mut to = TcpStream::connect(end).await.unwrap();
                spawn_local(async move { drop(copy_bidirectional(&mut from, &mut to).await) });
            }
        });
        assert_eq!(first.get("/x", "").await.body(), "hello");
        assert_eq!(origin.count(), 1);
        assert_eq!(first.counters().peers.loops + second.counters().peers.loops, 1);
    });
}

#[test]
fn without_a_responding_parent_the_origin_gets_the_request_unless_that_is_forbidden() {
    run(async {
        let origin = Origin::start(|_, _| ok(FRESH, "hello")).await;
        // There is no listener, and no other program gets the port as long as this has it.
        let nobody = TcpSocket::new_v4().unwrap();
        nobody.bind(ANY).unwrap();
        let gone = vec![peer("gone", Relation::Parent, nobody.local_addr().unwrap(), None)];
        let free = Cooperation { peers: gone, ..Cooperation::default() };
        let bound = Cooperation { never_direct: true, ..free.clone() };
        let free = told("free", origin.address, free);
        assert_eq!(free.get("/x", "").await.status, 200);
        assert_eq!(free.counters().peers.peer_errors, 1);
        let bound = told("bound", origin.address, bound);
        assert_eq!(bound.get("/x", "").await.status, 502);
        assert_eq!(origin.count(), 1);
    });
}

#[test]
fn what_is_not_looked_for_among_caches_goes_through_a_parent_where_origins_are_forbidden() {
    run(async {
        let origin = Origin::start(|_, _| ok(FRESH, "hello")).await;
        let top = cache("top", origin.address, Vec::new());
        let known = Cooperation {
            peers: vec![peer("top", Relation::Parent, top.proxy.address(), None)],
            never_direct: true,
            ..Cooperation::default()
        };
        let child = told("child", origin.address, known);
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
        let first = cache("one", origin.address, Vec::new());
        let far = Cooperation {
            icp: Some(ANY),
            peers: vec![known("one", Relation::Sibling, &first)],
            timeout_ms: 5,
            delay_ms: 5,
            ..Cooperation::default()
        };
        assert_eq!(first.get("/x", "").await.status, 200);
        let second = told("other", origin.address, far);
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
        let first = cache("one", origin.address, Vec::new());
        let known = Cooperation {
            icp: Some(ANY),
            peers: vec![known("one", Relation::Sibling, &first)],
            timeout_ms: 60_000,
            proxy_only: true,
            ..Cooperation::default()
        };
        let second = told("other", origin.address, known);
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
        let known = Cooperation { icp: Some(ANY), ..Cooperation::default() };
        let closed = told("one", origin.address, known.clone());
        let open = told("two", origin.address, Cooperation { clients: vec![ANY.ip()], ..known });
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

/// Where every query gets the same response.
async fn always(opcode: Opcode) -> SocketAddr {
    let socket = UdpSocket::bind(ANY).await.unwrap();
    let icp = socket.local_addr().unwrap();
    spawn_local(async move {
        let (mut room, mut out) = ([0; 2000], Vec::new());
        loop {
            let (length, from) = socket.recv_from(&mut room).await.unwrap();
            assert!(Message::parse(&room[..length]).unwrap().response(opcode).write(&mut out));
            socket.send_to(&out, from).await.unwrap();
        }
    });
    icp
}
