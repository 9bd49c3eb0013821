//! Where requests go: by Host, by absolute URL.

use assay_proxy::ProxyLimits;
use assay_proxy::spec::{Cooperation, OriginRoute, Peer, Prefetch, ProxySpec, Relation};
use assay_testbed::{elsewhere, response_to};

use tokio::io::copy_bidirectional;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::spawn_local;

use crate::harness::{Bed, Client, Origin, Part, ok, run, until};

const FRESH: &str = "Cache-Control: max-age=60\r\n";

#[test]
fn reverse_requests_go_by_host_and_unknown_ones_to_the_first() {
    run(async {
        let one = Origin::start(|_, _| ok(FRESH, "one")).await;
        let two = Origin::start(|_, _| ok(FRESH, "two")).await;
        let bed = Bed::start(&[("one:8080", one.address), ("two", two.address)]);
        let mut client = bed.client().await;
        for (host, body) in [("one:8080", "one"), ("TWO:80", "two"), ("else", "one"), ("two", "two")] {
            client.send(format!("GET / HTTP/1.1\r\nHost: {host}\r\n\r\n")).await;
            assert_eq!(client.response("GET").await.body(), body, "{host}");
        }
        // An unknown host is a name of its own: the origin may tell them apart.
        assert_eq!((one.count(), two.count()), (2, 1));
        assert!(one.seen()[1].has("Host: else"));
    });
}

#[test]
fn forward_requests_go_where_they_say_and_share_the_store() {
    run(async {
        let named = Origin::start(|_, _| ok(FRESH, "named")).await;
        let other = Origin::start(|_, _| ok(FRESH, "other")).await;
        let bed = Bed::start(&[]);
        let mut client = bed.client().await;
        let host = named.address;
        client.send(format!("GET http://{host}/x?y HTTP/1.1\r\nHost: {}\r\n\r\n", other.address)).await;
        assert_eq!(client.response("GET").await.body(), "named");
        assert_eq!(named.seen()[0].line(), "GET /x?y HTTP/1.1");
        assert!(named.seen()[0].has(&format!("Host: {host}")));
        client.send(format!("GET /x?y HTTP/1.1\r\nHost: {host}\r\n\r\n")).await;
        assert_eq!(client.response("GET").await.cache_status(), "assay; hit; ttl=60");
        assert_eq!(other.count(), 0);
        client.send(format!("GET http://{}/ HTTP/1.1\r\nHost: x\r\n\r\n", other.address)).await;
        assert_eq!(client.response("GET").await.body(), "other");
    });
}

#[test]
fn a_request_that_leads_back_to_the_proxy_is_refused() {
    run(async {
        let bed = Bed::start(&[]);
        let mut client = bed.client().await;
        client.send(format!("GET http://{}/ HTTP/1.1\r\nHost: x\r\n\r\n", bed.proxy.address())).await;
        assert_eq!(client.response("GET").await.status, 508);
        client.send("GET / HTTP/1.1\r\nHost: x\r\n\r\n").await;
        assert_eq!(client.response("GET").await.status, 502);
    });
}

#[test]
fn a_request_that_leads_back_by_another_spelling_is_refused() {
    run(async {
        for (listen, ways) in [
            ("127.0.0.1:0", &["[::ffff:127.0.0.1]", "0.0.0.0"][..]),
            ("0.0.0.0:0", &["127.0.0.1", "127.9.9.9", "0.0.0.0", "[::ffff:127.0.0.1]"][..]),
        ] {
            let spec = ProxySpec { listen: listen.parse().unwrap(), ..spec(Vec::new()) };
            let bed = Bed::of(&spec, ProxyLimits::default());
            let port = bed.proxy.address().port();
            let mut client = Client::connect(([127, 0, 0, 1], port).into()).await;
            for host in ways {
                client.send(format!("GET http://{host}:{port}/ HTTP/1.1\r\nHost: x\r\n\r\n")).await;
                assert_eq!(client.response("GET").await.status, 508, "{host} of {listen}");
            }
        }
    });
}

#[test]
fn a_request_that_comes_back_another_way_does_not_wait_for_itself() {
    run(async {
        let bed = Bed::start(&[]);
        let (listener, own) = (TcpListener::bind("127.0.0.1:0").await.unwrap(), bed.proxy.address());
        let way = listener.local_addr().unwrap();
        spawn_local(async move {
            loop {
                let (mut one, _) = listener.accept().await.unwrap();
                let mut other = TcpStream::connect(own).await.unwrap();
                spawn_local(async move { drop(copy_bidirectional(&mut one, &mut other).await) });
            }
        });
        let mut client = bed.client().await;
        client.send(format!("GET http://{way}/ HTTP/1.1\r\nHost: x\r\n\r\n")).await;
        // In a form in which it names no server.
        assert_eq!(client.response("GET").await.status, 502);
    });
}

fn spec(origins: Vec<OriginRoute>) -> ProxySpec {
    ProxySpec {
        tls: None,
        origin_tls: None,
        origin_http2: false,
        name: "assay".into(),
        listen: "127.0.0.1:0".parse().unwrap(),
        threads: 1,
        cpus: Vec::new(),
        memory_bytes: 10_000_000,
        stale_if_error_s: 0,
        access_log: None,
        origins,
        cooperation: None,
        prefetch: None,
        storing: assay_proxy::spec::Storing::default(),
    }
}

/// Sends everything that could lead elsewhere; how many of the responses are the origin's.
async fn try_everything(bed: &Bed, named: &Origin, other: &Origin) -> usize {
    let mut served = 0;
    for request in elsewhere(named.address, other.address) {
        let (status, text) = response_to(bed.proxy.address(), &request).await;
        let is_served = status == 200 && (text.ends_with("named") || !request.starts_with("GET "));
        let is_refused = matches!(status, 400 | 501) && !text.contains("named");
        assert!(is_served || is_refused, "{request}{status} {text}");
        assert!(!request.starts_with("CONNECT ") || is_refused, "{request}{status} {text}");
        served += usize::from(is_served);
    }
    assert_eq!((other.count(), other.connections().await), (0, 0));
    served
}

#[test]
fn in_front_of_an_origin_no_other_gets_requests() {
    run(async {
        for cacheable in [FRESH, "Cache-Control: no-store\r\n"] {
            let named = Origin::of(ok(cacheable, "named")).await;
            let other = Origin::of(ok(cacheable, "other")).await;
            for authority in ["named", "*"] {
                let before = named.count();
                let route = OriginRoute { authority: authority.into(), address: named.address };
                let bed = Bed::of(&spec(vec![route]), ProxyLimits::default());
                let served = try_everything(&bed, &named, &other).await;
                let requested = named.count() - before;
                assert!(served >= requested && requested > 100, "{served} {requested}");
            }
        }
    });
}

#[test]
fn a_parent_gets_requests_in_place_of_the_origin() {
    run(async {
        let named = Origin::of(ok(FRESH, "named")).await;
        let other = Origin::of(ok(FRESH, "other")).await;
        let route = || vec![OriginRoute { authority: "named".into(), address: named.address }];
        let parent = Bed::of(&spec(route()), ProxyLimits::default());
        let peer = Peer {
            name: "parent".into(),
            relation: Relation::Parent,
            http: parent.proxy.address(),
            icp: None,
        };
        for never_direct in [false, true] {
            let cooperation = Cooperation {
                peers: vec![peer.clone()],
                timeout_ms: 50,
                never_direct,
                ..Cooperation::default()
            };
            let child = ProxySpec { name: "child".into(), cooperation: Some(cooperation), ..spec(route()) };
            let child = Bed::of(&child, ProxyLimits::default());
            assert!(try_everything(&child, &named, &other).await > 100);
        }
        assert!(parent.counters().requests > 100);
    });
}

#[test]
fn what_a_page_names_elsewhere_is_not_fetched_in_front_of_an_origin_though_it_was_requested_by_its_url() {
    run(async {
        let other = Origin::of(ok(FRESH, "other")).await;
        let page = format!("<img src=http://{}/x.png><img src=/own.png>", other.address);
        let html =
            move |body: &str| -> Vec<Part> { ok(&format!("Content-Type: text/html\r\n{FRESH}"), body) };
        let named = Origin::start(move |seen, _| match seen.line() {
            "GET /page HTTP/1.1" => html(&page),
            _ => ok(FRESH, "image"),
        })
        .await;
        let route = OriginRoute { authority: "named".into(), address: named.address };
        let prefetch = Prefetch::from_word("embedded").unwrap();
        let bed = Bed::of(&ProxySpec { prefetch, ..spec(vec![route]) }, ProxyLimits::default());
        let request = "GET http://named/page HTTP/1.1\r\nHost: named\r\nConnection: close\r\n\r\n";
        assert_eq!(response_to(bed.proxy.address(), request).await.0, 200);
        until(|| bed.counters().objects == 2).await;
        let lines: Vec<String> = named.seen().iter().map(|seen| seen.line().to_owned()).collect();
        assert_eq!(lines, ["GET /page HTTP/1.1", "GET /own.png HTTP/1.1"]);
        assert_eq!((other.count(), other.connections().await), (0, 0));
    });
}
