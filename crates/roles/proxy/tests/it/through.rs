//! Responses that no other request may get: from the second on they come in the client's own task, and look as the first did.

use crate::harness::{Bed, Origin, Part, Response, ok, run, send};

const OWN: &str = "Cache-Control: private\r\n";

/// Fetched, and then passed through, from an origin that responds with these parts, for a client of this version.
async fn twice(parts: Vec<Part>, version: &str) -> (Bed, [Response; 2]) {
    let origin = Origin::start(
        move |seen, _| {
            if seen.line().contains("/x") { parts.clone() } else { ok("", "other") }
        },
    )
    .await;
    let bed = Bed::start(&[("a", origin.address)]);
    let mut responses = Vec::new();
    for _ in 0..2 {
        let mut client = bed.client().await;
        client.send(format!("GET /x HTTP/{version}\r\nHost: a\r\n\r\n")).await;
        responses.push(client.response("GET").await);
    }
    (bed, [responses.remove(0), responses.remove(0)])
}

/// Both look the same.
async fn assert_alike(text: String, closes: bool) -> Response {
    for version in ["1.0", "1.1"] {
        let mut parts: Vec<Part> = text.as_bytes().chunks(40).map(send).collect();
        parts.extend(closes.then_some(Part::Close));
        let (bed, [fetched, through]) = twice(parts, version).await;
        assert_eq!((fetched.status, &fetched.head), (through.status, &through.head), "{version} {text}");
        assert_eq!(fetched.body, through.body, "{version} {text}");
        let counters = bed.counters();
        let seen = (counters.requests, counters.misses, counters.origin_requests, counters.objects);
        assert_eq!(seen, (2, 2, 2, 0), "{text}");
        if version == "1.1" {
            return through;
        }
    }
    unreachable!("the last version returns")
}

#[test]
fn whatever_the_framing_it_comes_as_if_it_had_been_fetched() {
    run(async {
        let long = "0123456789".repeat(20_000);
        let with_length = format!("HTTP/1.1 200 OK\r\n{OWN}Content-Length: {}\r\n\r\n{long}", long.len());
        assert_eq!(assert_alike(with_length, false).await.body(), long);
        let chunks =
            format!("HTTP/1.1 200 OK\r\n{OWN}Transfer-Encoding: chunked\r\n\r\n3;x=y\r\nabc\r\n2\r\nde\r\n");
        let chunked = assert_alike(format!("{chunks}0\r\nTrailer: no\r\n\r\n"), false).await;
        assert_eq!((chunked.body(), chunked.field("Trailer")), ("abcde", None));
        let until_close = assert_alike(format!("HTTP/1.0 200 OK\r\n{OWN}\r\nabc"), true).await;
        assert_eq!((until_close.body(), until_close.field("Via")), ("abc", Some("1.0 assay")));
        let told = assert_alike(format!("HTTP/1.1 204 No\r\n{OWN}Age: 7\r\n\r\n"), false).await;
        assert_eq!((told.status, told.field("Age")), (204, Some("7")));
        assert_eq!(told.cache_status(), "assay; fwd=miss");
        // What the sender names in `Connection` stays behind.
        let nominated = format!("Connection: X-Mine\r\nX-Mine: 1\r\n{OWN}Content-Length: 1\r\n\r\nx");
        assert_eq!(
            assert_alike(format!("HTTP/1.1 200 OK\r\n{nominated}"), false).await.field("X-Mine"),
            None
        );
    });
}

#[test]
fn what_breaks_off_breaks_off_for_the_client_and_is_counted() {
    run(async {
        for body in [
            "Content-Length: 5\r\n\r\nabc",
            "Transfer-Encoding: chunked\r\n\r\n5\r\nabc",
            "Transfer-Encoding: chunked\r\n\r\nz\r\n",
        ] {
            let parts = vec![send(format!("HTTP/1.1 200 OK\r\n{OWN}{body}")), Part::Close];
            let (bed, responses) = twice(parts, "1.1").await;
            assert!(
                responses.iter().all(|response| response.status == 200 && response.body.is_none()),
                "{responses:?}"
            );
            assert_eq!(bed.counters().origin_errors, 2, "{body}");
        }
    });
}

#[test]
fn an_origin_that_fails_is_a_gateway_error_and_the_client_stays() {
    run(async {
        let origin = Origin::start(|_, n| match n {
            0 => ok(OWN, "0"),
            1 => vec![send("nonsense\r\n\r\n"), Part::Close],
            2 => vec![send("HTTP/1.1 304 Not Modified\r\n\r\n")],
            3 => vec![send("HTTP/1.1 101 Switching\r\n\r\n")],
            _ => ok(OWN, "last"),
        })
        .await;
        let bed = Bed::start(&[("a", origin.address)]);
        let mut client = bed.client().await;
        client.get("/x", "").await;
        let mut statuses = Vec::new();
        for _ in 0..3 {
            let refused = client.get("/x", "").await;
            assert_eq!(refused.cache_status(), "assay; fwd=miss");
            statuses.push(refused.status);
        }
        assert_eq!(statuses, [502, 502, 502]);
        assert_eq!(client.get("/x", "").await.body(), "last");
        assert_eq!(bed.counters().origin_errors, 3);
    });
}

#[test]
fn a_kept_connection_that_was_closed_is_replaced_and_others_are_used_again() {
    run(async {
        // Connection 0 serves two requests and closes at the third.
        let origin = Origin::start(|seen, n| match (seen.connection, n) {
            (0, 0 | 1) => ok(OWN, "first"),
            (0, _) => vec![Part::Close],
            _ => ok(OWN, "second"),
        })
        .await;
        let bed = Bed::start(&[("a", origin.address)]);
        let mut client = bed.client().await;
        let mut bodies = Vec::new();
        for _ in 0..4 {
            bodies.push(client.get("/x", "").await.body().to_owned());
        }
        assert_eq!(bodies, ["first", "first", "second", "second"]);
        assert_eq!(origin.seen().last().map(|seen| seen.connection), Some(1));
    });
}

#[test]
fn a_response_that_may_be_stored_after_all_is() {
    run(async {
        let origin = Origin::start(|_, n| match n {
            0 => ok(OWN, "own"),
            _ => ok("Cache-Control: max-age=60\r\n", "everybody's"),
        })
        .await;
        let bed = Bed::start(&[("a", origin.address)]);
        let mut client = bed.client().await;
        client.get("/x", "").await;
        let stored = client.get("/x", "").await;
        assert_eq!((stored.body(), stored.cache_status()), ("everybody's", "assay; fwd=miss; stored"));
        assert_eq!(client.get("/x", "").await.cache_status(), "assay; hit; ttl=60");
        // Who forbids storing gets it through, and what is stored stays.
        let own = client.get("/y", "Cache-Control: no-store\r\n").await;
        assert_eq!((own.body(), own.cache_status()), ("everybody's", "assay; fwd=miss"));
        assert_eq!(bed.counters().objects, 1);
    });
}
