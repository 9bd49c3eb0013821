//! What waits for a stream of HTTP/2 waits longer by Assay's own delays of the stream before it.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::time::Duration;

use assay_http::head::ResponseHead;
use assay_http2::{Config, Connection, Event};
use assay_load::spec::Target;
use assay_measurement::interval::Disturbance;
use assay_protocol::clock::RunClock;
use assay_workload::model::{HttpVersion, Weighted};
use assay_workload::{Universe, UniverseOptions};

use crate::expected::Right;
use crate::harness::{SEED, Setting, check_sums, perform, phase, simple, start_soon, xacts};

/// Time for which the server has each request.
const SERVICE: Duration = Duration::from_millis(20);
/// Part of it that the server says was its own delay.
const ORIGIN_DELAY_US: u32 = 5_000;
const REQUESTS: u64 = 40;
const STREAMS: u32 = 3;

#[test]
fn what_waits_for_a_stream_is_recorded_without_the_delay_of_the_one_before() {
    let mut workload = simple();
    workload.robots[0].addresses[0].count = 1;
    workload.robots[0].http_versions = Weighted::one(HttpVersion::Http2);
    workload.robots[0].connection_use_limit = None;
    workload.robots[0].streams = STREAMS;
    workload.schedule.phases = vec![phase("only", xacts(REQUESTS))];
    let universe = Universe::new(Arc::new(workload.clone()), SEED, 1, UniverseOptions::default());
    let (universe, clock) = (universe.expect("is valid"), start_soon());
    let listener = TcpListener::bind("127.0.0.1:0").expect("loopback has ports");
    let proxy = listener.local_addr().expect("it is bound");
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            serve_one_by_one(stream, &universe, &clock);
        }
    });
    let setting = Setting { threads: 1, ..Setting::to(Target::Reverse { proxy }) };
    let run = perform(&workload, clock, setting);
    let counts = run.total();
    check_sums(&counts);
    assert_eq!((counts.error_total(), counts.connections_opened), (0, 1), "{counts:?}");
    let excess_us = |times: &Disturbance| times.seen.sum_us - times.least.sum_us;
    let (mut waits_us, mut own_us) = (0, 0);
    for class in run.intervals().flat_map(|interval| interval.times.completed()) {
        waits_us += excess_us(&class.disturbed.response) - excess_us(&class.disturbed.service);
        own_us += excess_us(&class.disturbed.service);
    }
    let delay_us = u64::from(ORIGIN_DELAY_US);
    assert!(own_us >= counts.completed * delay_us, "each has the delay of its own: {own_us} µs");
    // All but the first have waited for a stream, since the response before the one that they follow.
    assert!(waits_us >= (counts.completed - 1) * delay_us, "{waits_us} µs of {counts:?}");
}

/// Serves a connection on which one stream may be open.
fn serve_one_by_one(mut socket: TcpStream, universe: &Universe, clock: &RunClock) {
    socket.set_nodelay(true).expect("a socket can be");
    let mut wire = Connection::server(Config { max_streams: 1, ..Config::default() });
    let mut input = vec![0; 64 * 1024];
    loop {
        if socket.write_all(wire.output()).is_err() {
            return;
        }
        wire.wrote(wire.output().len());
        let Ok(length @ 1..) = socket.read(&mut input) else { return };
        let mut rest = &input[..length];
        loop {
            let (used, event) = wire.next(rest).expect("robots keep the rules");
            rest = &rest[used..];
            let (stream, response, body) = match event {
                Event::NeedMore => break,
                Event::Head { stream, head, .. } => {
                    let request = head.as_request();
                    std::thread::sleep(SERVICE);
                    let mut right = Right::to(&request, universe, clock);
                    right.mark.delay_us = ORIGIN_DELAY_US;
                    (stream, [&right.start(true, clock)[..], b"\r\n"].concat(), right.body(universe))
                }
                _ => continue,
            };
            let (head, _) = ResponseHead::parse(&response).expect("is HTTP").expect("is complete");
            let fields = head.headers().map(|field| (field.name, field.value));
            wire.respond(stream, head.status, fields, false).expect("the stream is open");
            wire.data(stream, &body, true).expect("the stream is open");
        }
    }
}
