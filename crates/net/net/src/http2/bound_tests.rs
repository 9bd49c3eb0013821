//! What a peer of HTTP/2 can hold up, and how much it can have kept, however it goes about it.

use std::collections::BTreeMap;
use std::rc::Rc;
use std::time::Duration;

use assay_http2::{Config, Connection as Wire, RequestHead};
use assay_testbed::run;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::spawn_local;
use tokio::time::timeout;

use super::share::{MAX_CONNECTION_BYTES, MAX_STREAM_BYTES, MIN_STREAM_BYTES};
use super::tests::{LIMITS, TestClient, echo, talk_within};
use super::*;

const MINUTE: Duration = Duration::from_secs(60);
const SLOW: ClientLimits =
    ClientLimits { idle: MINUTE, write: Duration::from_millis(300), least_rate: 500, ..LIMITS };
/// A client that does not go on is told by these: what is not ended by them waits for longer than the test does.
const STEP: Duration = Duration::from_millis(300);
const STALLED: ClientLimits =
    ClientLimits { idle: Duration::from_secs(3600), head: STEP, read: STEP, write: STEP, ..SLOW };
/// How often a frame comes of those that open no window.
const OFTEN: Duration = Duration::from_millis(20);
/// As many as a client may open before it knows the server's settings.
pub(super) const STREAMS: usize = 100;
/// What so many streams keep of their responses, at most.
pub(super) const MOST_KEPT: usize = MAX_CONNECTION_BYTES + MAX_STREAM_BYTES + STREAMS * MIN_STREAM_BYTES;
const LONG: RequestHead<'_> =
    RequestHead { method: b"GET", scheme: b"http", authority: b"www.test", path: b"/long" };
const RST_STREAM: u8 = 3;
const DATA: u8 = 0;
const GOAWAY: u8 = 7;
const NO_SETTINGS: [u8; 9] = [0, 0, 0, 4, 0, 0, 0, 0, 0];

/// A frame that opens a window by one byte.
fn a_byte_more(stream: u32) -> [u8; 13] {
    let [.., a, b, c, d] = u64::from(stream).to_be_bytes();
    [0, 0, 4, 8, 0, a, b, c, d, 0, 0, 0, 1]
}

/// What a client that acts on nothing has read: payload of DATA by stream, and streams that were reset.
#[derive(Default)]
pub(super) struct Seen {
    unparsed: Vec<u8>,
    pub(super) bodies: BTreeMap<u32, usize>,
    pub(super) resets: Vec<u32>,
    pub(super) goaways: usize,
}

impl Seen {
    pub(super) fn take(&mut self, bytes: &[u8]) {
        self.unparsed.extend_from_slice(bytes);
        while let Some(&[a, b, c, kind, _, d, e, f, g]) = self.unparsed.first_chunk::<9>() {
            let (length, stream) =
                (u32::from_be_bytes([0, a, b, c]) as usize, u32::from_be_bytes([d, e, f, g]));
            if self.unparsed.len() < 9 + length {
                return;
            }
            match kind {
                DATA => *self.bodies.entry(stream).or_default() += length,
                RST_STREAM => self.resets.push(stream),
                GOAWAY => self.goaways += 1,
                _ => {}
            }
            self.unparsed.drain(..9 + length);
        }
    }

    /// Reads until a stream was reset, and sends a frame now and then meanwhile.
    async fn until_reset(&mut self, client: &mut TestClient, frame: &[u8]) {
        let mut room = vec![0; 1 << 16];
        while self.resets.is_empty() {
            match timeout(OFTEN, client.socket.read(&mut room)).await {
                Ok(read) => match read.expect("goes on") {
                    0 => panic!("the whole connection has ended"),
                    read => self.take(&room[..read]),
                },
                Err(_) => client.socket.write_all(frame).await.expect("goes on"),
            }
        }
    }
}

#[test]
fn frames_that_open_no_window_or_a_byte_of_it_do_not_keep_a_stream_and_no_other_ends() {
    for (what, frame) in [
        ("no settings", &NO_SETTINGS[..]),
        ("a byte for the connection", &a_byte_more(0)),
        ("a byte for the stream", &a_byte_more(1)),
    ] {
        let small = Config { stream_window: 65_535, ..Config::default() };
        talk_within(SLOW, small, async |client: &mut TestClient| {
            let page = client.get("GET", "/page", true);
            let late = client.get("GET", "/late", true);
            client.flush().await;
            let mut seen = Seen::default();
            timeout(MINUTE, seen.until_reset(client, frame)).await.expect(what);
            assert_eq!(seen.resets, [page.id], "{what}");
            // The other is served after that: its window is its own.
            client.server.late.notify_one();
            let mut room = [0; 4096];
            while !seen.bodies.contains_key(&late.id) {
                let read = client.socket.read(&mut room).await.expect("goes on");
                assert!(read > 0, "{what}: the connection ends");
                seen.take(&room[..read]);
            }
        });
    }
}

/// Reads until the connection ends; what came.
async fn until_over(client: &mut TestClient) -> Seen {
    let (mut seen, mut room) = (Seen::default(), vec![0; 1 << 16]);
    loop {
        match client.socket.read(&mut room).await {
            Ok(0) | Err(_) => return seen,
            Ok(read) => seen.take(&room[..read]),
        }
    }
}

/// SETTINGS: streams that have no window at first.
pub(super) const NO_WINDOW: [u8; 15] = [0, 0, 6, 4, 0, 0, 0, 0, 0, 0, 4, 0, 0, 0, 0];
/// The start of a header block, which goes on in other frames.
const OPEN_BLOCK: [u8; 10] = [0, 0, 1, 1, 1, 0, 0, 0, 1, 0x82];

#[test]
fn what_begins_and_does_not_go_on_ends_its_connection() {
    let preface = assay_http2::PREFACE;
    let begun = |rest: &[u8]| [preface, &NO_SETTINGS, rest].concat();
    for (what, bytes) in [
        ("no settings behind the preface", preface.to_vec()),
        ("half the settings", [preface, &NO_WINDOW[..12]].concat()),
        ("half the head of a frame", begun(&OPEN_BLOCK[..4])),
        ("a frame without its payload", begun(&OPEN_BLOCK[..9])),
        ("half a header block", begun(&OPEN_BLOCK)),
    ] {
        talk_within(STALLED, Config::default(), async |client: &mut TestClient| {
            client.socket.write_all(&bytes).await.expect("is read");
            let seen = timeout(MINUTE, until_over(client)).await.expect(what);
            assert_eq!(seen.goaways, 1, "{what}");
        });
    }
}

#[test]
fn a_client_that_reads_nothing_loses_its_connection_and_what_was_sent() {
    reads_nothing(STALLED, &[]);
}

#[test]
fn so_does_one_that_begins_a_frame_meanwhile_and_does_not_go_on_with_it() {
    reads_nothing(ClientLimits { write: Duration::from_secs(3600), ..STALLED }, &NO_SETTINGS[..4]);
}

/// A client sends requests and these bytes, and reads nothing until its connection has ended.
fn reads_nothing(limits: ClientLimits, begun: &[u8]) {
    run(async {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let mut client = TcpStream::connect(listener.local_addr().expect("listens")).await.expect("listens");
        let (server, _) = listener.accept().await.expect("is connected");
        let serving = spawn_local(echo(server, limits, Default::default()));
        let mut wire = Wire::client(Config::default());
        for _ in 0..STREAMS {
            wire.request(&LONG, std::iter::empty(), true).expect("may be opened");
        }
        client.write_all(&[wire.output(), begun].concat()).await.expect("is read");
        timeout(MINUTE, serving).await.expect("it ends").expect("no panic");
        let mut all = Vec::new();
        let read = client.read_to_end(&mut all).await;
        assert!(read.is_err_and(|error| error.kind() == io::ErrorKind::ConnectionReset));
    });
}

#[test]
fn the_time_of_the_preface_is_not_that_of_the_first_request() {
    talk_within(STALLED, Config::default(), async |client: &mut TestClient| {
        let mut wire = Wire::client(Config::default());
        for path in [&b"/late"[..], b"/page"] {
            let head = RequestHead { path, ..LONG };
            wire.request(&head, std::iter::empty(), true).expect("may be opened");
        }
        // All at once: nothing else is waited for before the requests.
        client.socket.write_all(&[wire.output(), &NO_WINDOW].concat()).await.expect("is read");
        let mut seen = Seen::default();
        // This stream's time began after that of the preface.
        timeout(MINUTE, seen.until_reset(client, &NO_SETTINGS)).await.expect("it ends");
        assert_eq!(seen.resets, [3]);
    });
}

#[test]
fn a_connection_goes_on_after_a_stream_that_ended_late_beside_another() {
    let small = Config { stream_window: 65_535, ..Config::default() };
    talk_within(STALLED, small, async |client: &mut TestClient| {
        let late = client.get("GET", "/late", true);
        let page = client.get("GET", "/page", true);
        client.flush().await;
        let mut seen = Seen::default();
        timeout(MINUTE, seen.until_reset(client, &NO_SETTINGS)).await.expect("it ends");
        client.server.late.notify_one();
        let next = client.get("GET", "/next", true);
        client.flush().await;
        let mut room = [0; 4096];
        while !(seen.bodies.contains_key(&late.id) && seen.bodies.contains_key(&next.id)) {
            let read = client.socket.read(&mut room).await.expect("goes on");
            assert!(read > 0, "the connection ends");
            seen.take(&room[..read]);
        }
        assert_eq!((seen.resets, seen.goaways), (vec![page.id], 0));
    });
}

#[test]
fn a_client_that_opens_its_window_slowly_and_steadily_gets_all() {
    let small = Config { stream_window: 65_535, ..Config::default() };
    talk_within(SLOW, small, async |client: &mut TestClient| {
        let page = client.get("GET", "/page", true);
        client.flush().await;
        let (mut seen, mut room, mut opened) = (Seen::default(), vec![0; 1 << 16], 0);
        // 14,465 bytes are missing: 500 of them every 20 ms.
        let more = [0, 0, 4, 8, 0, 0, 0, 0, 1, 0, 0, 1, 0xf4];
        while seen.bodies.get(&page.id) != Some(&80_000) {
            match timeout(OFTEN, client.socket.read(&mut room)).await {
                Ok(read) => seen.take(&room[..read.expect("goes on")]),
                Err(_) => {
                    client.socket.write_all(&more).await.expect("goes on");
                    opened += 1;
                }
            }
            assert!(seen.resets.is_empty(), "after {opened}");
        }
        assert!(opened >= 28, "longer than a client may stand still");
    });
}

#[test]
fn streams_whose_windows_are_closed_keep_no_more_than_a_connection_may() {
    let limits = ClientLimits { write: MINUTE, ..SLOW };
    let (written, _) = talk_within(limits, Config::default(), async |client: &mut TestClient| {
        client.flush().await;
        client.socket.write_all(&NO_WINDOW).await.expect("is read");
        for _ in 0..STREAMS {
            client.get("GET", "/long", true);
        }
        client.flush().await;
        let written = Rc::clone(&client.server.written);
        let mut room = vec![0; 1 << 16];
        // Until nothing is written any more.
        let mut before = usize::MAX;
        while written.get() != before || written.get() == 0 {
            before = written.get();
            while let Ok(read) = timeout(Duration::from_millis(100), client.socket.read(&mut room)).await {
                assert!(read.expect("goes on") > 0);
            }
        }
        written.get()
    });
    assert!((MAX_CONNECTION_BYTES..MOST_KEPT).contains(&written), "{written}");
}
