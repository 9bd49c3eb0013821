//! Requests of HTTP/2 over a stream in memory, served by a handler of HTTP/1.1.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::rc::Rc;
use std::time::Duration;

use assay_http::framing::BodyFraming;
use assay_http::head::MAX_HEAD_BYTES;
use assay_http2::{Config, Connection as Wire, ErrorCode, Event, RequestHead, Stream as StreamId};
use assay_testbed::run;
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream};
use tokio::sync::Notify;
use tokio::task::spawn_local;

use super::*;
use crate::connection::Resources;
use crate::exchange::{self, AfterResponse, Exchange, Handler, Refusal, Request};
use crate::fields::ReceivedProtocol;

/// Responds with method, target, host and body of a request; some targets have responses of their own.
struct Echo {
    exchange: Exchange<Pipe>,
    seen: Seen,
}

/// What is known of the handlers of a server.
#[derive(Default, Clone)]
pub(super) struct Seen {
    /// Requests that were handled.
    pub(super) handled: Rc<Cell<u32>>,
    /// Bytes of bodies that handlers of `/long` have written.
    pub(super) written: Rc<Cell<usize>>,
    /// Lets the response of `/late` begin.
    pub(super) late: Rc<Notify>,
    /// Handlers that were begun, and those that are gone.
    pub(super) begun: Rc<Cell<u32>>,
    pub(super) gone: Rc<Cell<u32>>,
}

impl Drop for Echo {
    fn drop(&mut self) {
        self.seen.gone.set(self.seen.gone.get() + 1);
    }
}

impl Handler for Echo {
    type Transport = Pipe;

    fn exchange(&mut self) -> &mut Exchange<Pipe> {
        &mut self.exchange
    }

    async fn respond(&mut self, Request { head, received, .. }: &Request<'_>) -> io::Result<AfterResponse> {
        assert_eq!(*received, ReceivedProtocol::Http2, "whatever its head looks like");
        self.seen.handled.set(self.seen.handled.get() + 1);
        match head.target {
            // As those do who tell a client that its body has not come.
            "/408" => {
                while let Ok(Some(_)) = self.exchange.next_part().await {}
                self.exchange.close_after_response();
                self.exchange.send_text(408, b"", "too slow", false).await?;
                return Ok(AfterResponse::Request);
            }
            "/unread" => {
                self.exchange.close_after_response();
                self.exchange.send_text(413, b"", "too long", false).await?;
                return Ok(AfterResponse::Request);
            }
            "/breaks" => {
                let mut response = b"HTTP/1.1 200 OK\r\n".to_vec();
                self.exchange.append_framing(&mut response, BodyFraming::Length(10));
                self.exchange.write(&[&response, b"half"]).await?;
                return Err(self.exchange.abort(BodyFraming::Length(10)));
            }
            "/long" => {
                let mut response = b"HTTP/1.1 200 OK\r\n".to_vec();
                self.exchange.append_framing(&mut response, BodyFraming::Length(LONG as u64));
                self.exchange.write(&[&response]).await?;
                for _ in 0..LONG / PART {
                    self.exchange.write(&[&[b'x'; PART]]).await?;
                    self.seen.written.set(self.seen.written.get() + PART);
                }
                return Ok(AfterResponse::Request);
            }
            // The handler is done with it before the client is.
            "/page" => {
                let mut response = b"HTTP/1.1 200 OK\r\n".to_vec();
                self.exchange.append_framing(&mut response, BodyFraming::Length(PAGE as u64));
                self.exchange.write(&[&response, &[b'x'; PAGE]]).await?;
                return Ok(AfterResponse::Request);
            }
            // A response that does not wait for the body, and whose own body comes later.
            "/early" => {
                tokio::select! {
                    biased;
                    () = self.seen.late.notified() => {}
                    _ = self.exchange.next_part() => {}
                }
                self.exchange.close_after_response();
                let mut response = b"HTTP/1.1 401 Unauthorized\r\n".to_vec();
                self.exchange.append_framing(&mut response, BodyFraming::Length(4));
                self.exchange.write(&[&response]).await?;
                self.seen.late.notified().await;
                self.exchange.write(&[b"late"]).await?;
                return Ok(AfterResponse::Request);
            }
            "/never" => std::future::pending().await,
            // Not before the client has ended its side.
            "/late" => self.seen.late.notified().await,
            _ => {}
        }
        let expects = head.expect_continue;
        if expects {
            self.exchange.send_continue().await?;
        }
        let host = head.header("host").unwrap_or(b"").escape_ascii();
        let mut text = format!("{} {} {host} ", head.method, head.target).into_bytes();
        while let Some(part) = self.exchange.next_part().await.map_err(io::Error::other)? {
            text.extend_from_slice(&part);
        }
        let framing = if head.target == "/chunks" {
            BodyFraming::Chunked
        } else {
            BodyFraming::Length(text.len() as u64)
        };
        let mut response = b"HTTP/1.1 200 OK\r\nX-Own: yes\r\nConnection: close\r\n".to_vec();
        self.exchange.append_framing(&mut response, framing);
        let is_head = head.method == "HEAD";
        let body = [text.into()];
        self.exchange.write_body(&[&response], if is_head { &[] } else { &body }, framing, !is_head).await?;
        Ok(AfterResponse::Request)
    }

    async fn refuse(&mut self, refusal: Refusal, is_head: bool) -> io::Result<()> {
        self.exchange.send_text(refusal.status(), b"", &refusal.to_string(), is_head).await
    }
}

pub(super) const LONG: usize = 400_000;
const PART: usize = 1000;
/// Longer than the least window, and no longer than with what a pipe keeps.
const PAGE: usize = 80_000;

const MINUTE: Duration = Duration::from_secs(60);

pub(super) const LIMITS: ClientLimits = ClientLimits {
    idle: MINUTE,
    head: MINUTE,
    read: MINUTE,
    write: MINUTE,
    head_bytes: MAX_HEAD_BYTES,
    target_bytes: 1000,
    least_rate: 0,
};

/// What a stream brought.
#[derive(Debug, Default, PartialEq)]
struct Got {
    interim: Vec<u16>,
    status: u16,
    fields: String,
    body: Vec<u8>,
    is_complete: bool,
    reset: Option<ErrorCode>,
}

impl Got {
    fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }
}

pub(super) struct TestClient {
    pub(super) socket: DuplexStream,
    /// It has ended its side: what it would still say is lost.
    has_ended: bool,
    pub(super) server: Seen,
    pub(super) wire: Wire,
    got: BTreeMap<u32, Got>,
}

impl TestClient {
    pub(super) fn get(&mut self, method: &str, path: &str, ends: bool) -> StreamId {
        self.request(method, path, &[], ends)
    }

    fn request(&mut self, method: &str, path: &str, fields: &[(&str, &str)], ends: bool) -> StreamId {
        let (method, path) = (method.as_bytes(), path.as_bytes());
        let head = RequestHead { method, scheme: b"http", authority: b"www.test", path };
        let fields = fields.iter().map(|(name, value)| (name.as_bytes(), value.as_bytes()));
        let stream = self.wire.request(&head, fields, ends).expect("may be opened");
        self.got.insert(stream.id, Got::default());
        stream
    }

    pub(super) async fn flush(&mut self) {
        let out = self.wire.output().to_vec();
        if !self.has_ended {
            self.socket.write_all(&out).await.expect("is read");
        }
        self.wire.wrote(out.len());
    }

    async fn end(&mut self) {
        self.flush().await;
        self.socket.shutdown().await.expect("is open");
        self.has_ended = true;
    }

    /// Sends what is to be sent and reads until so many streams have ended; false: the connection has.
    async fn until_ended(&mut self, count: usize) -> bool {
        loop {
            self.flush().await;
            if self.got.values().filter(|got| got.is_complete || got.reset.is_some()).count() >= count {
                return true;
            }
            let mut room = vec![0; 1 << 16];
            let read = self.socket.read(&mut room).await.unwrap_or(0);
            if read == 0 {
                return false;
            }
            let mut rest = &room[..read];
            loop {
                let (used, event) = self.wire.next(rest).expect("is HTTP/2");
                rest = &rest[used..];
                match event {
                    Event::NeedMore => break,
                    Event::Interim { stream, head } => of(&mut self.got, stream).interim.push(head.status()),
                    Event::Head { stream, head, ends } => {
                        let got = of(&mut self.got, stream);
                        got.status = head.status();
                        got.fields = String::from_utf8_lossy(head.lines()).into_owned();
                        got.is_complete = ends;
                    }
                    Event::Data { stream, data, ends } => {
                        of(&mut self.got, stream).body.extend_from_slice(data);
                        of(&mut self.got, stream).is_complete |= ends;
                    }
                    Event::Reset { stream, code } => of(&mut self.got, stream).reset = Some(code),
                    _ => {}
                }
            }
        }
    }
}

fn of(got: &mut BTreeMap<u32, Got>, stream: StreamId) -> &mut Got {
    got.get_mut(&stream.id).expect("was requested")
}

/// Serves a connection with [`Echo`]s, and counts the requests.
pub(super) async fn echo<S: Transport>(server: S, limits: ClientLimits, seen: Seen) {
    let resources = Resources::new();
    resources.run_deadlines();
    echo_with(&resources, server, limits, seen).await;
}

/// The same, with deadlines that somebody else keeps.
async fn echo_with<S: Transport>(resources: &Rc<Resources>, server: S, limits: ClientLimits, seen: Seen) {
    let mut connection = Connection::new(server, resources);
    if !has_preface(&mut connection, &limits).await.expect("is open") {
        return;
    }
    let start = |pipe| {
        let exchange = Exchange::new(pipe, resources, limits);
        seen.begun.set(seen.begun.get() + 1);
        let mut echo = Echo { exchange, seen: seen.clone() };
        spawn_local(async move { drop(exchange::serve(&mut echo).await) });
    };
    // The client may end in the middle of anything.
    let _ = serve(connection, limits, start).await;
}

/// Runs a client against a server of [`Echo`]s; how many requests were handled.
fn talk<T>(config: Config, script: impl AsyncFnOnce(&mut TestClient) -> T) -> (T, u32) {
    let (told, seen) = talk_within(LIMITS, config, script);
    (told, seen.handled.get())
}

pub(super) fn talk_within<T>(
    limits: ClientLimits,
    config: Config,
    script: impl AsyncFnOnce(&mut TestClient) -> T,
) -> (T, Seen) {
    talk_with(limits, config, async |client: &mut TestClient, resources: &Rc<Resources>| {
        resources.run_deadlines();
        script(client).await
    })
}

/// The same, with deadlines that the client keeps.
pub(super) fn talk_with<T>(
    limits: ClientLimits,
    config: Config,
    script: impl AsyncFnOnce(&mut TestClient, &Rc<Resources>) -> T,
) -> (T, Seen) {
    run(async {
        let (socket, server) = tokio::io::duplex(1 << 14);
        let (seen, resources) = (Seen::default(), Resources::new());
        let serving = spawn_local({
            let (resources, seen) = (Rc::clone(&resources), seen.clone());
            async move { echo_with(&resources, server, limits, seen).await }
        });
        let mut client = TestClient {
            socket,
            has_ended: false,
            server: seen.clone(),
            wire: Wire::client(config),
            got: BTreeMap::new(),
        };
        let told = script(&mut client, &resources).await;
        drop(client);
        serving.await.expect("no panic");
        (told, seen)
    })
}

#[test]
fn requests_and_responses_mean_the_same_in_both_versions() {
    let (_, handled) = talk(Config::default(), async |client: &mut TestClient| {
        let get = client.get("GET", "/a?b=c", true);
        let head = client.get("HEAD", "/h", true);
        let chunks = client.get("GET", "/chunks", true);
        let post = client.request("POST", "/p", &[("expect", "100-continue")], false);
        client.wire.data(post, b"first ", false).expect("is open");
        client.wire.data(post, b"last", true).expect("is open");
        let told = client.request("PUT", "/t", &[("content-length", "4")], false);
        client.wire.data(told, b"told", true).expect("is open");
        assert!(client.until_ended(5).await);
        let got = |stream: StreamId| &client.got[&stream.id];
        assert_eq!(got(get).text(), "GET /a?b=c www.test ");
        assert_eq!(
            got(get).fields,
            "x-own: yes\r\ncontent-length: 20\r\n",
            "nothing of the connection of HTTP/1.1"
        );
        assert_eq!((got(head).status, got(head).text()), (200, String::new()));
        assert!(got(head).fields.contains("content-length: 17"));
        assert_eq!(got(chunks).text(), "GET /chunks www.test ");
        assert!(!got(chunks).fields.contains("transfer-encoding"));
        assert_eq!(
            (got(post).text(), &got(post).interim[..]),
            ("POST /p www.test first last".into(), &[100][..])
        );
        assert_eq!(got(told).text(), "PUT /t www.test told");
    });
    assert_eq!(handled, 5);
}

/// The handlers that were begun for the requests of a client, and the requests that they had.
fn begun_for(limits: ClientLimits, script: impl AsyncFnOnce(&mut TestClient)) -> (u32, u32) {
    let (_, seen) = talk_within(limits, Config::default(), script);
    (seen.begun.get(), seen.handled.get())
}

#[test]
fn a_handler_that_is_done_gets_the_next_request_of_any_stream() {
    let (begun, handled) = begun_for(LIMITS, async |client: &mut TestClient| {
        let mut got = Vec::new();
        for (number, (method, path)) in
            [("GET", "/a"), ("HEAD", "/b"), ("GET", "/chunks"), ("GET", "/c")].into_iter().enumerate()
        {
            let stream = client.get(method, path, true);
            assert!(client.until_ended(number + 1).await);
            got.push(client.got[&stream.id].text());
        }
        assert_eq!(got, ["GET /a www.test ", "", "GET /chunks www.test ", "GET /c www.test "]);
        let (first, second) = (client.get("GET", "/d", true), client.get("GET", "/e", true));
        assert!(client.until_ended(6).await);
        assert_eq!(client.got[&first.id].text(), "GET /d www.test ");
        assert_eq!(client.got[&second.id].text(), "GET /e www.test ");
        client.end().await;
        assert!(!client.until_ended(7).await);
        while client.server.gone.get() < 2 {
            tokio::task::yield_now().await;
        }
    });
    assert_eq!((begun, handled), (2, 6));
}

#[test]
fn a_handler_that_is_not_done_gets_no_other_request() {
    let (begun, handled) = begun_for(LIMITS, async |client: &mut TestClient| {
        client.get("GET", "/never", true);
        let unread = client.get("POST", "/unread", false);
        let broken = client.get("GET", "/breaks", true);
        assert!(client.until_ended(2).await);
        assert!(client.got[&unread.id].is_complete && client.got[&broken.id].reset.is_some());
        let reset = client.get("GET", "/never", true);
        client.wire.reset(reset, ErrorCode::CANCEL);
        let next = client.get("GET", "/next", true);
        assert!(client.until_ended(3).await);
        assert_eq!(client.got[&next.id].text(), "GET /next www.test ");
    });
    assert_eq!((begun, handled), (5, 4), "nothing is left of the one that was reset at once");
}

#[test]
fn a_handler_waits_for_another_request_for_a_short_time() {
    let limits = ClientLimits { idle: Duration::from_millis(50), ..LIMITS };
    let (begun, handled) = begun_for(limits, async |client: &mut TestClient| {
        client.get("GET", "/never", true);
        client.get("GET", "/first", true);
        assert!(client.until_ended(1).await);
        while client.server.gone.get() == 0 {
            tokio::task::yield_now().await;
        }
        client.get("GET", "/second", true);
        assert!(client.until_ended(2).await);
    });
    assert_eq!((begun, handled), (3, 3));
}

#[test]
fn a_response_before_the_end_of_the_request_ends_the_stream_without_an_error() {
    talk(Config::default(), async |client: &mut TestClient| {
        let early = client.get("POST", "/unread", false);
        client.wire.data(early, &[b'x'; 1000], false).expect("is open");
        assert!(client.until_ended(1).await);
        assert_eq!((client.got[&early.id].status, client.got[&early.id].text()), (413, "too long".into()));
        // The connection is of further use.
        client.get("GET", "/next", true);
        assert!(client.until_ended(2).await);
    });
}

#[test]
fn a_body_that_breaks_off_is_a_reset_and_nothing_else_ends() {
    talk(Config::default(), async |client: &mut TestClient| {
        let broken = client.get("GET", "/breaks", true);
        let other = client.get("GET", "/other", true);
        assert!(client.until_ended(2).await);
        let got = &client.got[&broken.id];
        assert_eq!((got.reset, got.is_complete), (Some(ErrorCode::INTERNAL_ERROR), false));
        assert!(client.got[&other.id].is_complete);
    });
}

#[test]
fn a_connection_outlives_a_body_that_breaks_off_alone_on_it() {
    let (_, handled) = talk(Config::default(), async |client: &mut TestClient| {
        let broken = client.get("GET", "/breaks", true);
        assert!(client.until_ended(1).await);
        assert_eq!(client.got[&broken.id].reset, Some(ErrorCode::INTERNAL_ERROR));
        let next = client.get("GET", "/next", true);
        assert!(client.until_ended(2).await);
        assert_eq!((client.got[&next.id].status, client.wire.is_closing()), (200, false));
    });
    assert_eq!(handled, 2);
}

#[test]
fn a_refused_request_has_its_status() {
    let (_, handled) = talk(Config::default(), async |client: &mut TestClient| {
        let long = client.get("GET", &format!("/{}", "x".repeat(2000)), true);
        assert!(client.until_ended(1).await);
        assert_eq!(client.got[&long.id].status, 414);
    });
    assert_eq!(handled, 0);
}

#[test]
fn no_tunnel_is_opened_and_no_other_scheme_is_served() {
    // `:method` CONNECT and `:authority` a:80, not indexed; GET of / at a by `ftp`.
    let tunnel = [&[2, 7][..], b"CONNECT", &[1, 4], b"a:80"].concat();
    let other = [&[0x82, 0x84, 6, 3][..], b"ftp", &[1, 1], b"a"].concat();
    for block in [tunnel, other] {
        let (seen, handled) = talk(Config::default(), async |client: &mut TestClient| {
            client.flush().await;
            // HEADERS of stream 1 that end it not.
            let frame = [&[0, 0, block.len() as u8, 1, 4, 0, 0, 0, 1][..], &block].concat();
            client.socket.write_all(&frame).await.expect("is read");
            let mut frames: Vec<(u8, u8)> = Vec::new();
            while frames.last().is_none_or(|(kind, _)| *kind != 3) {
                let mut head = [0; 9];
                client.socket.read_exact(&mut head).await.expect("goes on");
                let length = usize::from(head[1]) << 8 | usize::from(head[2]);
                client.socket.read_exact(&mut vec![0; length]).await.expect("goes on");
                frames.push((head[3], head[4]));
            }
            frames
        });
        // HEADERS that end the stream, and RST_STREAM for the rest of the request.
        assert!(seen.ends_with(&[(1, 5), (3, 0)]), "{seen:?}");
        assert_eq!(handled, 0);
    }
}

#[test]
fn long_bodies_share_the_connection_and_wait_for_windows() {
    let small = Config { stream_window: 65_535, connection_window: 65_535, ..Config::default() };
    talk(small, async |client: &mut TestClient| {
        let streams: Vec<StreamId> = (0..8).map(|_| client.get("GET", "/long", true)).collect();
        let never = client.get("GET", "/never", true);
        assert!(client.until_ended(8).await);
        assert!(streams.iter().all(|stream| client.got[&stream.id].body.len() == LONG));
        assert!(!client.got[&never.id].is_complete);
        client.wire.reset(never, ErrorCode::CANCEL);
        client.flush().await;
    });
}

#[test]
fn what_is_uploaded_beyond_the_window_waits_until_it_is_read() {
    talk(Config::default(), async |client: &mut TestClient| {
        let never = client.get("POST", "/never", false);
        let body = vec![b'y'; 3 * STREAM_WINDOW_BYTES as usize];
        // The settings of the server have to come first.
        client.get("GET", "/first", true);
        assert!(client.until_ended(1).await);
        assert_eq!(client.wire.data(never, &body, true), Ok(STREAM_WINDOW_BYTES as usize));
        let read = client.get("POST", "/read", false);
        let mut sent = 0;
        for count in 2.. {
            sent += client.wire.data(read, &body[sent..], true).expect("is open");
            if sent == body.len() {
                break;
            }
            // Each response tells that the windows were given back meanwhile.
            client.get("GET", "/more", true);
            assert!(client.until_ended(count).await);
        }
        while !client.got[&read.id].is_complete {
            let ended = client.got.values().filter(|got| got.is_complete).count();
            assert!(client.until_ended(ended + 1).await);
        }
        assert!(client.got[&read.id].body.ends_with(&body));
        assert_eq!(client.wire.sendable(never), 0, "nobody has read it");
    });
}

#[test]
fn a_window_that_is_never_opened_ends_the_connection_in_time() {
    let small = Config { stream_window: 65_535, ..Config::default() };
    let limits =
        ClientLimits { write: Duration::from_millis(300), idle: Duration::from_millis(100), ..LIMITS };
    talk_within(limits, small, async |client: &mut TestClient| {
        let long = client.get("GET", "/page", true);
        client.flush().await;
        // What comes is read, and no window is opened: nothing of this side is sent any more.
        let mut room = vec![0; 1 << 16];
        let mut total = 0;
        while let Ok(read @ 1..) = client.socket.read(&mut room).await {
            total += read;
        }
        assert!((65_535..70_000).contains(&total), "{total}");
        assert!(!client.got[&long.id].is_complete);
    });
}

#[test]
fn what_was_requested_in_full_gets_its_response_after_the_client_has_ended_its_side() {
    let small = Config { stream_window: 65_535, ..Config::default() };
    talk(small, async |client: &mut TestClient| {
        let late = client.get("GET", "/late", true);
        let unfinished = client.get("POST", "/p", false);
        let too_long = client.get("GET", "/long", true);
        client.end().await;
        client.server.late.notify_one();
        assert!(client.until_ended(3).await);
        assert_eq!(client.got[&late.id].text(), "GET /late www.test ");
        for (stream, why) in [(unfinished, "its end cannot come"), (too_long, "no window can be opened")] {
            assert_eq!(client.got[&stream.id].reset, Some(ErrorCode::CANCEL), "{why}");
        }
        assert!(!client.until_ended(4).await, "the connection ends behind the last response");
    });
}

#[test]
fn a_client_that_has_gone_is_found_out_while_its_response_is_made() {
    // The server ends although the handler never does.
    let (_, handled) = talk(Config::default(), async |client: &mut TestClient| {
        client.get("GET", "/never", true);
        client.get("GET", "/first", true);
        assert!(client.until_ended(1).await);
    });
    assert_eq!(handled, 2);
}

#[test]
fn what_is_not_http_2_ends_the_connection_with_a_goaway() {
    talk(Config::default(), async |client: &mut TestClient| {
        client.get("GET", "/never", true);
        client.flush().await;
        // SETTINGS on a stream.
        client.socket.write_all(&[0, 0, 0, 4, 0, 0, 0, 0, 1]).await.expect("is read");
        assert!(!client.until_ended(1).await);
        assert!(client.wire.is_closing());
    });
}
