//! What a proxy gets to see of the fields of an origin, and the origin of those of a proxy.

use assay_spe::spec::CollectorSpec;

use crate::collector_harness::*;

/// The members of `Connection`, sorted and in lower case.
fn options(response: &Response) -> Vec<String> {
    let lines = response.head.lines().filter_map(|line| line.split_once(':'));
    let values = lines.filter(|(name, _)| name.eq_ignore_ascii_case("connection")).map(|(_, value)| value);
    let members = values.flat_map(|value| value.split(','));
    let mut members: Vec<_> = members.map(|member| member.trim().to_ascii_lowercase()).collect();
    members.sort();
    members
}

#[test]
fn fields_for_caches_that_an_origin_names_in_connection_reach_every_proxy_named_there() {
    run(async {
        let origin = Origin::start(|_, before| {
            let fields = "Cache-Control: max-age=1000\r\nVary: Accept\r\nSet-Cookie: a=1\r\nX-Own: 1\r\nKeep-Alive: timeout=5\r\n\
                          Connection: Vary, keep-alive, X-Own, Keep-Alive, X-Assay-Lost\r\nconnection: set-cookie, vary, Age, close\r\n";
            ok(fields, &format!("answer {before}"))
        })
        .await;
        let bed = Bed::start(&origin, 2);
        for listener in [0, 1, 2] {
            let response = bed.get(listener, "/x", "").await;
            assert_eq!(response.body(), "answer 0", "one recording for all");
            let seen = ["cache-control", "vary", "set-cookie", "x-own", "keep-alive"];
            let values = seen.map(|name| response.field(name));
            let given = [Some("max-age=1000"), Some("Accept"), Some("a=1"), None, None];
            assert_eq!((values, options(&response)), (given, vec!["set-cookie".into(), "vary".into()]));
        }
        let mut client = bed.client(1).await;
        client.send("GET /x HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n").await;
        assert_eq!(options(&client.response("GET").await), ["close", "set-cookie", "vary"]);
    });
}

#[test]
fn a_confirmation_renews_what_is_named_in_connection_with_the_fields() {
    run(async {
        let origin = Origin::start(|seen, _| match seen.has("if-none-match: \"v\"") {
            true => vec![send(
                "HTTP/1.1 304 Not Modified\r\nETag: \"v\"\r\nCache-Control: max-age=7\r\n\
                 Connection: cache-control\r\n\r\n",
            )],
            false => ok(
                "ETag: \"v\"\r\nExpires: 0\r\nVary: Accept\r\nCache-Control: max-age=0\r\n\
                 Connection: expires, vary\r\n",
                "text",
            ),
        })
        .await;
        let bed = Bed::of(&CollectorSpec { minimum_freshness_ms: 0, ..spec(origin.address, 1) });
        assert_eq!(options(&bed.get(0, "/x", "").await), ["expires", "vary"]);
        let renewed = bed.get(0, "/x", "").await;
        let values = ["cache-control", "vary"].map(|name| renewed.field(name));
        assert_eq!((renewed.status, values), (200, [Some("max-age=7"), Some("Accept")]));
        assert_eq!(options(&renewed), ["cache-control", "expires", "vary"]);
        let confirmed = bed.get(1, "/x", "If-None-Match: \"v\"\r\n").await;
        assert_eq!((confirmed.status, options(&confirmed).len()), (304, 3));
    });
}

#[test]
fn a_request_that_may_not_be_passed_on_is_answered_by_the_collector() {
    run(async {
        let origin = Origin::start(|_, before| ok(UNCACHEABLE, &format!("answer {before}"))).await;
        let bed = Bed::start(&origin, 1);
        for listener in [0, 1] {
            let last = bed.request(listener, "OPTIONS", "*", "Max-Forwards: 0\r\n", "").await;
            assert_eq!((last.status, last.field("allow").is_some()), (200, true));
            let trace = bed.request(listener, "TRACE", "/", "Max-Forwards: 0\r\n", "").await;
            assert_eq!(trace.status, 501);
        }
        assert_eq!(origin.count(), 0);
        // What the client's request has got is there for the proxy, which has one hop less.
        assert_eq!(bed.request(0, "OPTIONS", "/x", "Max-Forwards: 1\r\n", "").await.body(), "answer 0");
        assert!(origin.seen()[0].has("Max-Forwards: 0"));
        assert_eq!(bed.request(1, "OPTIONS", "/x", "Max-Forwards: 0\r\n", "").await.body(), "answer 0");
        // To other methods it says nothing.
        bed.request(0, "GET", "/x", "Max-Forwards: 0\r\n", "").await;
        assert_eq!((origin.count(), origin.seen()[1].has("Max-Forwards: 0")), (2, true));
    });
}
