//! Requests and responses over a stream in memory.

use std::cell::RefCell;
use std::pin::Pin;
use std::task::{Context, Waker};

use assay_testbed::run;
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream, ReadBuf};

use super::*;
use crate::buffers::NEW_BYTES;
use crate::deadlines::TICK_NS;

impl Transport for DuplexStream {
    fn reset_on_close(&self) {}
}

/// Responds with the request's method and target, and sends the body back.
struct Echo {
    exchange: Exchange<DuplexStream>,
    ended: Vec<bool>,
}

impl Handler for Echo {
    type Transport = DuplexStream;

    fn exchange(&mut self) -> &mut Exchange<DuplexStream> {
        &mut self.exchange
    }

    async fn respond(&mut self, Request { head, bytes, .. }: &Request<'_>) -> io::Result<AfterResponse> {
        assert!(bytes.ends_with(b"\r\n\r\n"), "the head and nothing else");
        match head.target {
            "/detach" => return Ok(AfterResponse::Detached),
            "/forgotten" => {
                self.exchange.send_text(200, b"", "forgotten", false).await?;
                return Ok(AfterResponse::Request);
            }
            "/unread" => {
                self.exchange.close_after_response();
                self.exchange.send_text(200, b"", "unread", false).await?;
                return Ok(AfterResponse::Request);
            }
            _ => {}
        }
        let mut body = Vec::new();
        while let Some(part) = self.exchange.next_part().await.map_err(io::Error::other)? {
            body.push(part);
        }
        let framing = self.exchange.framing(200, None);
        let mut response = format!("HTTP/1.1 200 OK\r\nX-Target: {}\r\n", head.target).into_bytes();
        self.exchange.append_framing(&mut response, framing);
        self.exchange.write_body(&[&response], &body, framing, true).await?;
        Ok(AfterResponse::Request)
    }

    async fn refuse(&mut self, refusal: Refusal, is_head: bool) -> io::Result<()> {
        self.exchange.send_text(refusal.status(), b"", &refusal.to_string(), is_head).await
    }

    fn on_request_end(&mut self, complete: bool) {
        self.ended.push(complete);
    }
}

const MINUTE: Duration = Duration::from_secs(60);

const LIMITS: ClientLimits = ClientLimits {
    idle: MINUTE,
    head: MINUTE,
    read: MINUTE,
    write: MINUTE,
    head_bytes: 2000,
    target_bytes: 1000,
    least_rate: 0,
};

/// What comes back when all of this is sent in pieces of so many bytes, what `serve` gave, and how the requests ended. The client
/// says nothing more after it, unless it `waits`.
fn responses(sent: &[u8], piece: usize, waits: bool) -> (String, io::Result<AfterResponse>, Vec<bool>) {
    responses_within(LIMITS, sent, piece, waits)
}

fn responses_within(
    limits: ClientLimits,
    sent: &[u8],
    piece: usize,
    waits: bool,
) -> (String, io::Result<AfterResponse>, Vec<bool>) {
    run(async {
        let (mut client, server) = tokio::io::duplex(1 << 20);
        let resources = Resources::new();
        resources.run_deadlines();
        let exchange = Exchange::new(server, &resources, limits);
        let sent = sent.to_vec();
        let requesting = tokio::task::spawn_local(async move {
            for piece in sent.chunks(piece) {
                client.write_all(piece).await.expect("has room");
                tokio::task::yield_now().await;
            }
            if !waits {
                client.shutdown().await.expect("ends");
            }
            let mut all = Vec::new();
            client.read_to_end(&mut all).await.expect("comes");
            String::from_utf8(all).expect("text")
        });
        let mut echo = Echo { exchange, ended: Vec::new() };
        let next = serve(&mut echo).await;
        let ended = std::mem::take(&mut echo.ended);
        drop(echo);
        (requesting.await.expect("no panic"), next, ended)
    })
}

fn statuses(text: &str) -> Vec<&str> {
    text.split("HTTP/1.1 ").skip(1).map(|response| &response[..3]).collect()
}

#[test]
fn requests_that_come_together_or_in_pieces_get_responses_in_order() {
    let sent =
        b"POST /a HTTP/1.1\r\nHost: h\r\nContent-Length: 3\r\n\r\nabcGET /b HTTP/1.1\r\nHost: h\r\n\r\n\
                 POST /c HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nde\r\n0\r\n\r\n\
                 GET /d HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n";
    for piece in [1, 7, 40, 1000] {
        let (text, next, ended) = responses(sent, piece, false);
        let targets: Vec<&str> = text.split("X-Target: ").skip(1).map(|response| &response[..2]).collect();
        assert_eq!(targets, ["/a", "/b", "/c", "/d"], "{piece}: {text}");
        assert!(text.contains("\r\n\r\n3\r\nabc\r\n0\r\n\r\n") || piece < 40, "{piece}: {text}");
        assert!(text.ends_with("Connection: close\r\n\r\n0\r\n\r\n"), "{piece}: {text}");
        assert_eq!((next.expect("in order"), ended), (AfterResponse::Request, vec![true; 4]));
    }
}

#[test]
fn clients_of_version_1_0_get_bodies_that_end_with_the_connection() {
    let (text, ..) = responses(b"GET /a HTTP/1.0\r\nConnection: keep-alive\r\n\r\n", 1000, false);
    assert_eq!(text, "HTTP/1.1 200 OK\r\nX-Target: /a\r\nConnection: close\r\n\r\n");
}

#[test]
fn heads_that_are_too_long_broken_or_slow_are_refused_and_the_connection_ends() {
    let long = |path: usize, field: usize| {
        format!("GET /{} HTTP/1.1\r\nHost: h\r\nX: {}\r\n\r\n", "p".repeat(path), "f".repeat(field))
    };
    for (sent, status) in [
        (long(1000, 0), "414"),
        (long(500, 2000), "431"),
        (format!("GET /{}", "p".repeat(1100)), "414"),
        (format!("GET / HTTP/1.1\r\nX: {}", "f".repeat(2000)), "431"),
        ("GET / HTTP/1.1\r\nno colon\r\n\r\n".into(), "400"),
        ("GET / HTTP/3.0\r\nHost: h\r\n\r\n".into(), "505"),
        ("GET / HTTP/1.1\r\nHost: ".into(), "408"),
    ] {
        let head = if status == "408" { Duration::from_millis(100) } else { MINUTE };
        let limits = ClientLimits { head, ..LIMITS };
        let (text, next, ended) = responses_within(limits, sent.as_bytes(), 1 << 20, true);
        assert_eq!(statuses(&text), [status], "{sent}");
        assert!(text.contains("Connection: close\r\n"), "{text}");
        assert_eq!((next.expect("told"), ended), (AfterResponse::Request, vec![true]));
    }
    let (text, ..) = responses(b"HEAD / HTTP/1.1\r\nno colon\r\n\r\n", 1 << 20, true);
    assert!(text.ends_with("\r\n\r\n"), "no body: {text}");
}

#[test]
fn an_end_between_requests_is_in_order_and_one_within_a_body_is_not() {
    let (text, next, ended) = responses(b"", 1, false);
    assert_eq!((text.as_str(), next.expect("in order"), ended), ("", AfterResponse::Request, vec![]));
    let (_, next, ended) =
        responses(b"POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 9\r\n\r\nabc", 100, false);
    assert!(next.is_err());
    assert_eq!(ended, [false]);
}

#[test]
fn what_follows_a_request_that_was_not_read_is_never_taken_for_another() {
    // Whether the handler says that it gives up, or just does not read.
    for target in ["/unread", "/forgotten"] {
        let sent = format!(
            "POST {target} HTTP/1.1\r\nHost: h\r\nContent-Length: 40\r\n\r\n\
             GET /smuggled HTTP/1.1\r\nHost: h\r\n\r\n"
        );
        let (text, ..) = responses(sent.as_bytes(), 1000, false);
        assert_eq!(statuses(&text), ["200"], "{text}");
        assert!(text.contains("Connection: close\r\n"), "{text}");
    }
}

#[test]
fn a_connection_that_waits_holds_no_memory_of_what_it_has_used() {
    run(async {
        let (mut client, server) = tokio::io::duplex(1000);
        let resources = Resources::new();
        let mut echo = Echo { exchange: Exchange::new(server, &resources, LIMITS), ended: Vec::new() };
        let requesting = tokio::task::spawn_local(async move {
            let spare = || resources.memory.spare_bytes() / NEW_BYTES;
            let head = b"POST /a HTTP/1.1\r\nHost: h\r\nContent-Length: 6\r\n\r\nabc";
            client.write_all(head).await.expect("has room");
            tokio::task::yield_now().await;
            // The head is still needed.
            let for_body = spare();
            client.write_all(b"def").await.expect("has room");
            let mut response = Vec::new();
            while !response.ends_with(b"\r\n0\r\n\r\n") {
                client.read_buf(&mut response).await.expect("comes");
            }
            (for_body, spare())
        });
        assert_eq!(serve(&mut echo).await.expect("in order"), AfterResponse::Request);
        assert_eq!(requesting.await.expect("no panic"), (1, 2));
    });
}

#[test]
fn a_detached_connection_has_what_came_behind_the_head() {
    run(async {
        let (mut client, server) = tokio::io::duplex(1000);
        let exchange = Exchange::new(server, &Resources::new(), LIMITS);
        let mut echo = Echo { exchange, ended: Vec::new() };
        client.write_all(b"GET /detach HTTP/1.1\r\nHost: h\r\n\r\nearly").await.expect("has room");
        assert_eq!(serve(&mut echo).await.expect("in order"), AfterResponse::Detached);
        assert_eq!(echo.exchange.connection.input.unread(), b"early");
    });
}

/// A stream on which nothing comes, and what it was told of its client.
#[derive(Default)]
struct Silent(RefCell<Vec<bool>>);

impl Transport for Silent {
    fn reset_on_close(&self) {}

    fn set_slow(&self, is_slow: bool) {
        self.0.borrow_mut().push(is_slow);
    }
}

impl AsyncRead for Silent {
    fn poll_read(self: Pin<&mut Self>, _: &mut Context<'_>, _: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        Poll::Pending
    }
}

impl AsyncWrite for Silent {
    fn poll_write(self: Pin<&mut Self>, _: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Poll::Ready(Ok(bytes.len()))
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}

#[test]
fn a_client_is_slow_when_a_head_has_taken_a_second_and_not_when_it_has_no_request() {
    for (awaits, expected) in [(WaitReason::Head, vec![true]), (WaitReason::Request, vec![])] {
        let resources = Resources::new();
        let begun_ns = assay_base::clock::monotonic_ns();
        // The connection begins then, however long ago the watch did.
        resources.deadlines.tick(begun_ns);
        let mut connection = Connection::new(Silent::default(), &resources);
        connection.deadline.set(Duration::from_secs(30));
        let mut input = InputBuffer::default();
        let mut cx = Context::from_waker(Waker::noop());
        for tick in [0, 19, 21] {
            for step in 1..=tick {
                resources.deadlines.tick(begun_ns + step * TICK_NS);
            }
            assert!(connection.stream.0.borrow().is_empty(), "before {tick} ticks");
            let mut waiting = std::pin::pin!(read_request_bytes(&mut connection, &mut input, awaits));
            assert!(waiting.as_mut().poll(&mut cx).is_pending());
        }
        assert_eq!(*connection.stream.0.borrow(), expected, "{awaits:?}");
    }
}
