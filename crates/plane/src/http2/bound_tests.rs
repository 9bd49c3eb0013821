//! What a peer of HTTP/2 can hold up, and how much it can have kept, however it goes about it.

use std::collections::BTreeMap;
use std::rc::Rc;
use std::time::Duration;

use assay_http2::Config;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::time::timeout;

use super::share::{LEAST, MOST, MOST_TOGETHER};
use super::tests::{Client, LIMITS, talk_within};
use super::*;

const MINUTE: Duration = Duration::from_secs(60);
const SLOW: ClientLimits =
    ClientLimits { idle: MINUTE, write: Duration::from_millis(300), least_rate: 500, ..LIMITS };
/// How often a frame comes of those that open no window.
const OFTEN: Duration = Duration::from_millis(20);
/// As many as a client may open before it knows the server's settings.
const STREAMS: usize = 100;
const RST_STREAM: u8 = 3;
const DATA: u8 = 0;
const NO_SETTINGS: [u8; 9] = [0, 0, 0, 4, 0, 0, 0, 0, 0];

/// A frame that opens a window by one byte.
fn a_byte_more(stream: u32) -> [u8; 13] {
    let [.., a, b, c, d] = u64::from(stream).to_be_bytes();
    [0, 0, 4, 8, 0, a, b, c, d, 0, 0, 0, 1]
}

/// What a client that acts on nothing has read: payload of DATA by stream, and streams that were reset.
#[derive(Default)]
struct Seen {
    unparsed: Vec<u8>,
    bodies: BTreeMap<u32, usize>,
    resets: Vec<u32>,
}

impl Seen {
    fn take(&mut self, bytes: &[u8]) {
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
                _ => {}
            }
            self.unparsed.drain(..9 + length);
        }
    }

    /// Reads until a stream was reset, and sends a frame now and then meanwhile.
    async fn until_reset(&mut self, client: &mut Client, frame: &[u8]) {
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
        talk_within(SLOW, small, async |client: &mut Client| {
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

#[test]
fn a_client_that_opens_its_window_slowly_and_steadily_gets_all() {
    let small = Config { stream_window: 65_535, ..Config::default() };
    talk_within(SLOW, small, async |client: &mut Client| {
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
    let (written, _) = talk_within(limits, Config::default(), async |client: &mut Client| {
        client.flush().await;
        // SETTINGS: streams have no window at first.
        client.socket.write_all(&[0, 0, 6, 4, 0, 0, 0, 0, 0, 0, 4, 0, 0, 0, 0]).await.expect("is read");
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
    let most = MOST_TOGETHER + MOST + STREAMS * LEAST;
    assert!((MOST_TOGETHER..most).contains(&written), "{written}");
}
