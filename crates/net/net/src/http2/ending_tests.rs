//! With which streams a connection of HTTP/2 ends, and with which it does not. Time passes as a test says.

use std::rc::Rc;
use std::time::Duration;

use assay_http2::Config;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::task::yield_now;

use super::bound_tests::{MOST_KEPT, NO_WINDOW, STREAMS, Seen};
use super::share::MAX_CONNECTION_BYTES;
use super::tests::{LIMITS, TestClient, talk_with};
use super::*;
use crate::connection::Resources;
use crate::deadlines::{LongestWaits, TICK_NS};
use crate::limits::EVICTION_GRACE;

const STEP: Duration = Duration::from_secs(15);
const LIMITS_OF_STEP: ClientLimits = ClientLimits { read: STEP, write: STEP, ..LIMITS };
/// In so many turns, everything that is ready is done, and what becomes ready by that.
const TURNS: usize = 64;

/// A client that reads all and acts on nothing of it, so that it opens no window; and the time.
struct World<'c> {
    client: &'c mut TestClient,
    resources: &'c Rc<Resources>,
    now_ns: u64,
    seen: Seen,
    is_over: bool,
}

impl World<'_> {
    /// Does all that can be done without more time.
    async fn settle(&mut self) {
        if !self.is_over {
            self.client.flush().await;
        }
        let mut room = vec![0; 1 << 14];
        loop {
            let quiet = async {
                for _ in 0..TURNS {
                    yield_now().await;
                }
            };
            let read = tokio::select! {
                biased;
                read = self.client.socket.read(&mut room), if !self.is_over => read,
                () = quiet => return,
            };
            match read {
                Ok(read @ 1..) => self.seen.take(&room[..read]),
                _ => self.is_over = true,
            }
        }
    }

    async fn pass(&mut self, seconds: u64) {
        self.settle().await;
        let end_ns = self.now_ns + Duration::from_secs(seconds).as_nanos() as u64;
        while self.now_ns < end_ns {
            self.now_ns += TICK_NS;
            // As soon as it is to be called again.
            while self.resources.deadlines.tick(self.now_ns) < TICK_NS {
                self.settle().await;
            }
            self.settle().await;
        }
    }

    async fn send(&mut self, frame: &[u8]) {
        self.settle().await;
        self.client.socket.write_all(frame).await.expect("goes on");
        self.settle().await;
    }

    /// Some of the body of a request.
    async fn upload(&mut self, stream: assay_http2::Stream, ends: bool) {
        self.client.wire.data(stream, b"more", ends).expect("is open");
        self.settle().await;
    }

    /// A handler of `/late` or `/early` goes on.
    async fn go_on(&mut self) {
        self.client.server.late.notify_one();
        self.settle().await;
    }

    /// Streams that were reset, whether the connection has been ended, and whether it is over.
    fn ended(&self) -> (&[u32], usize, bool) {
        (&self.seen.resets, self.seen.goaways, self.is_over)
    }
}

fn in_time(limits: ClientLimits, script: impl AsyncFnOnce(&mut World<'_>)) -> super::tests::Seen {
    let small = Config { stream_window: 65_535, ..Config::default() };
    let talked = talk_with(limits, small, async |client: &mut TestClient, resources: &Rc<Resources>| {
        let now_ns = assay_base::clock::monotonic_ns();
        resources.deadlines.tick(now_ns);
        let mut world = World { client, resources, now_ns, seen: Seen::default(), is_over: false };
        world.settle().await;
        script(&mut world).await;
    });
    talked.1
}

#[test]
fn a_connection_ends_when_nothing_goes_on_with_any_stream() {
    for (method, path) in [("GET", "/page"), ("GET", "/long"), ("POST", "/body"), ("POST", "/408")] {
        in_time(LIMITS_OF_STEP, async |world| {
            for _ in 0..3 {
                world.client.get(method, path, method == "GET");
            }
            world.pass(14).await;
            assert_eq!(world.ended(), (&[][..], 0, false), "{path}");
            world.pass(2).await;
            assert_eq!((world.seen.goaways, world.is_over), (1, true), "{path}");
        });
    }
}

#[test]
fn room_that_a_late_stream_leaves_gives_no_other_more_time() {
    let server = in_time(LIMITS_OF_STEP, async |world| {
        world.send(&NO_WINDOW).await;
        for _ in 0..STREAMS {
            world.client.get("GET", "/long", true);
        }
        world.pass(16).await;
        assert!(world.is_over);
    });
    let written = server.written.get();
    assert!((MAX_CONNECTION_BYTES..MOST_KEPT).contains(&written), "{written}");
}

#[test]
fn an_early_response_is_not_its_clients_fault_however_long_nothing_came() {
    in_time(LIMITS_OF_STEP, async |world| {
        let early = world.client.get("POST", "/early", false);
        let upload = world.client.get("POST", "/body", false);
        world.pass(10).await;
        world.go_on().await;
        world.go_on().await;
        assert_eq!(world.seen.bodies.get(&early.id), Some(&4));
        world.upload(upload, true).await;
        assert!(world.seen.bodies.contains_key(&upload.id));
        assert_eq!(world.ended(), (&[early.id][..], 0, false), "what is left of its request is not needed");
    });
}

#[test]
fn a_response_that_has_begun_before_its_request_has_ended_is_waited_for() {
    in_time(LIMITS_OF_STEP, async |world| {
        let early = world.client.get("POST", "/early", false);
        world.settle().await;
        world.go_on().await;
        let silent = world.client.get("POST", "/body", false);
        world.pass(60).await;
        assert_eq!(world.ended(), (&[silent.id][..], 0, false));
        world.go_on().await;
        assert_eq!(world.seen.bodies.get(&early.id), Some(&4));
    });
}

#[test]
fn an_upload_that_goes_on_in_time_outlives_a_download_that_does_not() {
    in_time(LIMITS_OF_STEP, async |world| {
        let page = world.client.get("GET", "/page", true);
        let upload = world.client.get("POST", "/body", false);
        for _ in 0..5 {
            world.pass(8).await;
            world.upload(upload, false).await;
        }
        world.upload(upload, true).await;
        assert!(world.seen.bodies.contains_key(&upload.id));
        assert_eq!(world.ended(), (&[page.id][..], 0, false));
    });
}

#[test]
fn a_client_is_waited_for_since_its_origin_is_not() {
    in_time(LIMITS_OF_STEP, async |world| {
        let page = world.client.get("GET", "/page", true);
        // Its handler takes the body when the origin has gone on.
        let upload = world.client.get("POST", "/late", false);
        world.pass(14).await;
        world.go_on().await;
        world.pass(10).await;
        assert_eq!(world.ended(), (&[page.id][..], 0, false));
        world.upload(upload, true).await;
        assert!(world.seen.bodies.contains_key(&upload.id));
    });
}

#[test]
fn each_stream_has_its_own_limit_and_the_connection_ends_with_the_last() {
    let (long, short) = (Duration::from_secs(60), STEP);
    for (read, write) in [(long, short), (short, long)] {
        in_time(ClientLimits { read, write, ..LIMITS }, async |world| {
            let page = world.client.get("GET", "/page", true);
            let upload = world.client.get("POST", "/body", false);
            world.pass(58).await;
            let late = if read > write { page } else { upload };
            assert_eq!(world.ended(), (&[late.id][..], 0, false));
            world.pass(4).await;
            assert_eq!((world.seen.goaways, world.is_over), (1, true));
        });
    }
}

#[test]
fn a_response_that_takes_long_keeps_its_connection() {
    in_time(LIMITS_OF_STEP, async |world| {
        let poll = world.client.get("GET", "/late", true);
        world.pass(200).await;
        world.go_on().await;
        assert!(world.seen.bodies.contains_key(&poll.id));
        assert_eq!(world.ended(), (&[][..], 0, false));
    });
}

#[test]
fn half_a_frame_makes_room_for_others_only_where_no_request_is_under_way() {
    for is_busy in [true, false] {
        in_time(LIMITS_OF_STEP, async |world| {
            if is_busy {
                world.client.get("GET", "/late", true);
            }
            world.send(&NO_WINDOW[..4]).await;
            world.pass(2).await;
            let watch = &world.resources.deadlines;
            let is_found = LongestWaits::default()
                .dismiss(watch, EVICTION_GRACE, |wait| !wait.is_stream && wait.reason == WaitReason::Head);
            assert_eq!(is_found, !is_busy);
            world.go_on().await;
        });
    }
}
