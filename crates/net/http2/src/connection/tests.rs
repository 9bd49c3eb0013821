//! Each rule of the RFC by itself; `tests/it` has both sides against each other, and against another implementation.

mod ending;

use proptest::prelude::*;

use super::*;
use crate::error::{ConnectionError, Ended, StreamError};
use crate::flood::{
    Flood, MAX_CONTROL_FRAMES, MAX_EMPTY_FRAMES, MAX_MALFORMED, MAX_PENDING, MAX_RESETS, MAX_WINDOW_UPDATES,
};
use crate::frame::{self, flag, kind};
use crate::hpack::HpackError;
use crate::message::Malformed;

const GET: RequestHead<'_> =
    RequestHead { method: b"GET", scheme: b"http", authority: b"origin.test", path: b"/a" };
const POST: RequestHead<'_> = RequestHead { method: b"POST", ..GET };
const NONE: std::iter::Empty<(&[u8], &[u8])> = std::iter::empty();

/// A header block of `GET /`, without any table.
const GET_BLOCK: &[u8] = b"\x82\x86\x84\x01\x01h";
/// `POST /`.
const POST_BLOCK: &[u8] = b"\x83\x86\x84\x01\x01h";
/// `:status: 200`.
const OK_BLOCK: &[u8] = b"\x88";
const END: u8 = flag::END_STREAM;
const WHOLE: u8 = flag::END_HEADERS;

fn raw(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let head = FrameHead { length: payload.len() as u32, kind, flags, stream };
    [&head.bytes()[..], payload].concat()
}

fn settings() -> Vec<u8> {
    raw(kind::SETTINGS, 0, 0, &[])
}

/// Events, with consecutive data joined.
fn transcript(connection: &mut Connection, input: &[u8], step: usize) -> Vec<String> {
    let mut lines = Vec::new();
    for piece in input.chunks(step.max(1)) {
        let mut rest = piece;
        loop {
            let (used, event) = match connection.next(rest) {
                Ok(found) => found,
                Err(error) => {
                    lines.push(format!("error {}", error.code()));
                    return lines;
                }
            };
            rest = &rest[used..];
            if matches!(event, Event::NeedMore) {
                break;
            }
            tell(&mut lines, &event);
        }
    }
    lines
}

fn tell(lines: &mut Vec<String>, event: &Event<'_>) {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let line = match event {
        Event::Data { stream, data, ends } => {
            let start = format!("data {} ", stream.id);
            if !lines.last().is_some_and(|line| line.starts_with(&start)) {
                lines.push(start);
            }
            let end = if *ends { "." } else { "" };
            return lines.last_mut().expect("is there").push_str(&(text(data) + end));
        }
        Event::Head { stream, head, ends } => {
            let (method, path, status) = (head.method(), head.path(), head.status());
            format!("head {} {method}{path} {status} {} {ends}", stream.id, text(head.lines()))
        }
        Event::Interim { stream, head } => format!("interim {} {}", stream.id, head.status()),
        Event::Trailers { stream, head } => format!("trailers {} {}", stream.id, text(head.lines())),
        Event::Failed { stream, error } => format!("failed {} {}", stream.id, error.code()),
        Event::Reset { stream, code } => format!("reset {} {code}", stream.id),
        Event::Unprocessed { stream } => format!("unprocessed {}", stream.id),
        Event::Priority { id, value } => format!("priority {id} {}", text(value)),
        other => format!("{other:?}"),
    };
    lines.push(line);
}

/// A server that has seen the preface, an empty SETTINGS frame, and then these frames.
fn serve(frames: &[Vec<u8>]) -> (Connection, Vec<String>) {
    let mut server = Connection::server(Config::default());
    let input = [PREFACE, &settings(), &frames.concat()].concat();
    let mut lines = transcript(&mut server, &input, usize::MAX);
    lines.remove(0);
    (server, lines)
}

/// A client that has sent three requests, of which the first goes on, and has then seen these frames.
fn request(frames: &[Vec<u8>]) -> (Connection, Vec<String>) {
    let mut client = Connection::client(Config::default());
    client.request(&POST, NONE, false).expect("is allowed");
    client.request(&GET, NONE, true).expect("is allowed");
    client.request(&RequestHead { method: b"HEAD", ..GET }, NONE, true).expect("is allowed");
    let mut lines = transcript(&mut client, &[settings(), frames.concat()].concat(), usize::MAX);
    lines.remove(0);
    (client, lines)
}

#[test]
fn errors_of_the_connection_have_the_code_of_the_rfc() {
    let get = raw(kind::HEADERS, WHOLE | END, 1, GET_BLOCK);
    let update = |stream, bytes: u32| raw(kind::WINDOW_UPDATE, 0, stream, &bytes.to_be_bytes());
    for (frames, code) in [
        (vec![raw(kind::DATA, 0, 0, b"x")], "PROTOCOL_ERROR"),
        (vec![raw(kind::DATA, 0, 1, b"x")], "PROTOCOL_ERROR"),
        (vec![raw(kind::DATA, flag::PADDED, 1, b"")], "FRAME_SIZE_ERROR"),
        (vec![raw(kind::HEADERS, WHOLE, 0, GET_BLOCK)], "PROTOCOL_ERROR"),
        (vec![raw(kind::HEADERS, WHOLE, 2, GET_BLOCK)], "PROTOCOL_ERROR"),
        (vec![raw(kind::HEADERS, WHOLE | flag::PADDED, 1, b"\x09x")], "PROTOCOL_ERROR"),
        (vec![raw(kind::HEADERS, WHOLE, 1, b"\xff\xff")], "COMPRESSION_ERROR"),
        (vec![raw(kind::HEADERS, 0, 1, GET_BLOCK), raw(kind::PING, 0, 0, &[0; 8])], "PROTOCOL_ERROR"),
        (vec![raw(kind::HEADERS, 0, 1, GET_BLOCK), raw(kind::CONTINUATION, 0, 3, b"")], "PROTOCOL_ERROR"),
        (vec![raw(kind::CONTINUATION, WHOLE, 1, b"")], "PROTOCOL_ERROR"),
        (vec![raw(kind::PRIORITY, 0, 1, &[0; 4])], "FRAME_SIZE_ERROR"),
        (vec![raw(kind::PRIORITY, 0, 0, &[0; 5])], "PROTOCOL_ERROR"),
        (vec![raw(kind::RST_STREAM, 0, 1, &[0; 4])], "PROTOCOL_ERROR"),
        (vec![get.clone(), raw(kind::RST_STREAM, 0, 1, &[0; 3])], "FRAME_SIZE_ERROR"),
        (vec![raw(kind::SETTINGS, flag::ACK, 0, &[0; 6])], "FRAME_SIZE_ERROR"),
        (vec![raw(kind::SETTINGS, 0, 1, &[])], "PROTOCOL_ERROR"),
        (vec![raw(kind::PUSH_PROMISE, WHOLE, 1, &[0; 4])], "PROTOCOL_ERROR"),
        (vec![raw(kind::PING, 0, 0, &[0; 7])], "FRAME_SIZE_ERROR"),
        (vec![raw(kind::PING, 0, 1, &[0; 8])], "PROTOCOL_ERROR"),
        (vec![raw(kind::GOAWAY, 0, 0, &[0; 7])], "FRAME_SIZE_ERROR"),
        (vec![update(0, 0)], "PROTOCOL_ERROR"),
        (vec![update(0, MAX_31)], "FLOW_CONTROL_ERROR"),
        (vec![update(1, 1)], "PROTOCOL_ERROR"),
        (vec![raw(kind::WINDOW_UPDATE, 0, 0, &[0; 3])], "FRAME_SIZE_ERROR"),
        (vec![raw(0x77, 0, 0, &[0; 16_385])], "FRAME_SIZE_ERROR"),
        (vec![raw(kind::PRIORITY_UPDATE, 0, 0, &[0; 3])], "FRAME_SIZE_ERROR"),
    ] {
        let (server, lines) = serve(&frames);
        assert_eq!(lines.last(), Some(&format!("error {code}")), "{frames:?}");
        let name = server.out[server.out.len() - 4..].try_into().map(u32::from_be_bytes).map(ErrorCode);
        assert_eq!(name.ok().and_then(ErrorCode::name), Some(code), "the GOAWAY says the same");
    }
}

#[test]
fn a_connection_begins_with_the_preface_and_settings() {
    let mut server = Connection::server(Config::default());
    assert_eq!(server.next(b"GET / HTTP/1.1\r\n").err(), Some(ConnectionError::Preface));
    let mut server = Connection::server(Config::default());
    let ping = [PREFACE, &raw(kind::PING, 0, 0, &[0; 8])].concat();
    assert_eq!(server.next(&ping).err(), Some(ConnectionError::NoSettings));
    let mut client = Connection::client(Config::default());
    let ack = raw(kind::SETTINGS, flag::ACK, 0, &[]);
    assert_eq!(client.next(&ack).err(), Some(ConnectionError::NoSettings));
}

#[test]
fn pushing_is_allowed_by_clients_alone() {
    let (allow, refuse) = ([0, 2, 0, 0, 0, 1], [0, 2, 0, 0, 0, 0]);
    for payload in [&allow[..], &[allow, refuse].concat()] {
        let frame = raw(kind::SETTINGS, 0, 0, payload);
        let mut client = Connection::client(Config::default());
        assert_eq!(transcript(&mut client, &frame, usize::MAX), ["error PROTOCOL_ERROR"], "{payload:?}");
        assert_eq!(request(std::slice::from_ref(&frame)).1, ["error PROTOCOL_ERROR"], "nor later");
        assert_eq!(serve(&[frame]).1.len(), 1);
    }
    assert_eq!(request(&[raw(kind::SETTINGS, 0, 0, &refuse)]).1.len(), 1);
}

#[test]
fn errors_of_a_stream_leave_the_connection_open() {
    let get = |stream| raw(kind::HEADERS, WHOLE | END, stream, GET_BLOCK);
    let post = |more: &[u8]| raw(kind::HEADERS, WHOLE, 1, &[POST_BLOCK, more].concat());
    // content-length: 2
    let length = b"\x0f\x0d\x012";
    let update = |bytes: u32| raw(kind::WINDOW_UPDATE, 0, 1, &bytes.to_be_bytes());
    let data = |flags, data: &[u8]| raw(kind::DATA, flags, 1, data);
    for (frames, code) in [
        (vec![raw(kind::HEADERS, WHOLE | END, 1, b"\x82")], "PROTOCOL_ERROR"),
        (vec![post(b"\x00\x01X\x01y")], "PROTOCOL_ERROR"),
        (vec![post(length), data(0, b"abc")], "PROTOCOL_ERROR"),
        (vec![post(length), data(END, b"a")], "PROTOCOL_ERROR"),
        (vec![post(b""), raw(kind::HEADERS, WHOLE, 1, b"\x00\x01x\x01y")], "PROTOCOL_ERROR"),
        (vec![raw(kind::HEADERS, WHOLE | END, 1, &[POST_BLOCK, length].concat())], "PROTOCOL_ERROR"),
        (vec![post(b""), update(0)], "PROTOCOL_ERROR"),
        (vec![post(b""), update(MAX_31)], "FLOW_CONTROL_ERROR"),
        (vec![get(1), data(0, b"x")], "STREAM_CLOSED"),
        (vec![get(1), get(1)], "STREAM_CLOSED"),
    ] {
        let (_, lines) = serve(&[frames.clone(), vec![get(3)]].concat());
        assert!(lines.contains(&format!("failed 1 {code}")), "{frames:?}: {lines:?}");
        assert!(lines.last().is_some_and(|line| line.starts_with("head 3")), "{frames:?}: {lines:?}");
    }
}

#[test]
fn malformed_responses_fail_and_bodies_without_length_do_not() {
    let head = |stream, block: &[u8]| raw(kind::HEADERS, WHOLE, stream, block);
    let data = |stream, flags| raw(kind::DATA, flags, stream, b"ab");
    for (frames, expected) in [
        (vec![data(3, END)], "failed 3 PROTOCOL_ERROR"),
        (vec![raw(kind::HEADERS, WHOLE | END, 3, b"\x08\x03100")], "failed 3 PROTOCOL_ERROR"),
        (vec![head(3, b"\x08\x03101")], "failed 3 PROTOCOL_ERROR"),
        (vec![head(3, b"\x8b"), data(3, END)], "failed 3 PROTOCOL_ERROR"),
        (vec![head(5, OK_BLOCK), data(5, END)], "failed 5 PROTOCOL_ERROR"),
        (vec![head(3, OK_BLOCK), data(3, 0), data(3, END)], "data 3 abab."),
        (vec![head(3, b"\x08\x03103"), head(3, OK_BLOCK)], "head 3  200  false"),
        (
            vec![head(3, OK_BLOCK), raw(kind::HEADERS, WHOLE | END, 3, b"\x00\x01x\x01y")],
            "trailers 3 x: y\r\n",
        ),
        (vec![raw(kind::DATA, 0, 7, b"x")], "error PROTOCOL_ERROR"),
    ] {
        assert_eq!(request(&frames).1.last().map(String::as_str), Some(expected), "{frames:?}");
    }
}

#[test]
fn late_frames_of_a_stream_that_was_reset_are_passed_over() {
    let (mut client, _) = request(&[]);
    let stream = client.streams.find(3).expect("is open");
    client.reset(stream, ErrorCode::CANCEL);
    assert!(!client.is_open(stream));
    let late = [raw(kind::HEADERS, WHOLE, 3, OK_BLOCK), raw(kind::DATA, END, 3, &[0; 9000])].concat();
    assert!(transcript(&mut client, &late, 100).is_empty());
    assert_eq!(client.consumed, 9000, "and count for the connection's window");
    let (_, lines) = request(&[raw(kind::HEADERS, WHOLE | END, 3, OK_BLOCK), raw(kind::DATA, 0, 3, b"x")]);
    assert_eq!(lines.last().map(String::as_str), Some("error STREAM_CLOSED"), "of one that ended regularly");
}

#[test]
fn no_more_streams_are_opened_than_the_peer_allows() {
    let limit = raw(kind::SETTINGS, 0, 0, &[0, 3, 0, 0, 0, 4]);
    let (mut client, _) = request(&[limit]);
    assert_eq!(client.openable(), 1);
    client.request(&GET, NONE, true).expect("is allowed");
    assert_eq!(client.request(&GET, NONE, true), Err(NotOpened::Limit));
    transcript(&mut client, &raw(kind::HEADERS, WHOLE | END, 3, OK_BLOCK), 9);
    assert_eq!(client.openable(), 1);
    let mut server = Connection::server(Config { max_streams: 1, ..Config::default() });
    let posts = [1, 3].map(|stream| raw(kind::HEADERS, WHOLE, stream, POST_BLOCK)).concat();
    let lines = transcript(&mut server, &[PREFACE, &settings(), &posts].concat(), 1000);
    assert_eq!(lines.len(), 2, "{lines:?}");
    let mut refusal = Vec::new();
    frame::write_reset(&mut refusal, 3, ErrorCode::REFUSED_STREAM);
    assert!(server.output().ends_with(&refusal));
}

#[test]
fn windows_follow_the_settings_and_may_fall_below_zero() {
    let (mut client, _) = request(&[]);
    let stream = client.streams.find(1).expect("is open");
    assert_eq!(client.data(stream, &[0; 70_000], true), Ok(65_535));
    let setting = |bytes: u32| raw(kind::SETTINGS, 0, 0, &[&[0, 4][..], &bytes.to_be_bytes()].concat());
    transcript(&mut client, &setting(1000), 100);
    assert_eq!(client.sendable(stream), 0);
    let update = |stream, bytes: u32| raw(kind::WINDOW_UPDATE, 0, stream, &bytes.to_be_bytes());
    transcript(&mut client, &[update(0, 10_000), update(1, 64_535)].concat(), 100);
    assert_eq!(client.sendable(stream), 0, "the debt is paid");
    transcript(&mut client, &update(1, 4465), 100);
    assert_eq!(client.data(stream, &[0; 4465], true), Ok(4465));
    assert_eq!(client.data(stream, b"x", true), Err(Ended(1)));
    let (_, lines) = request(&[update(1, MAX_31 - 70_000), setting(MAX_31)]);
    assert_eq!(lines.last().map(String::as_str), Some("error FLOW_CONTROL_ERROR"));
}

#[test]
fn a_peer_that_ignores_windows_is_stopped() {
    let config = Config { stream_window: 65_535, connection_window: 65_535, ..Config::default() };
    let mut server = Connection::server(config);
    let post = raw(kind::HEADERS, WHOLE, 1, POST_BLOCK);
    let mut lines = transcript(&mut server, &[PREFACE, &settings(), &post].concat(), 1000);
    // Announced, not sent: nothing was consumed that could have been given back.
    server.receive_window = 10_000;
    lines.extend(transcript(&mut server, &raw(kind::DATA, 0, 1, &[0; 16_000]), usize::MAX));
    assert_eq!(lines.last().map(String::as_str), Some("error FLOW_CONTROL_ERROR"));
    let mut server = Connection::server(config);
    transcript(&mut server, &[PREFACE, &settings(), &post].concat(), 1000);
    let stream = server.streams.find(1).expect("is open");
    server.streams.get_mut(stream).expect("is open").receive_window = 10_000;
    let lines = transcript(&mut server, &raw(kind::DATA, 0, 1, &[0; 16_000]), usize::MAX);
    assert_eq!(lines, ["failed 1 FLOW_CONTROL_ERROR"]);
}

#[test]
fn windows_get_back_what_was_taken_of_them_once() {
    let window = 65_535;
    let config = Config { stream_window: window, connection_window: window, ..Config::default() };
    let mut server = Connection::server(config);
    let post = raw(kind::HEADERS, WHOLE, 1, POST_BLOCK);
    let data = raw(kind::DATA, 0, 1, &[0; 10_000]).repeat(20);
    transcript(&mut server, &[PREFACE, &settings(), &post, &data].concat(), usize::MAX);
    let mut given = [0, 0];
    let mut output = server.output();
    while let Some((head, rest)) = output.split_first_chunk::<{ frame::HEAD_BYTES }>() {
        let head = FrameHead::parse(head);
        let (payload, rest) = rest.split_at(head.length as usize);
        if head.kind == kind::WINDOW_UPDATE {
            let bytes = u32::from_be_bytes(payload.try_into().expect("four bytes"));
            given[head.stream as usize] += i64::from(bytes);
        }
        output = rest;
    }
    let state = server.streams.get(server.streams.find(1).expect("is open")).expect("is open");
    let sides = [(server.receive_window, server.consumed), (state.receive_window, state.consumed)];
    for ((left, kept), given) in sides.into_iter().zip(given) {
        assert_eq!((given + i64::from(kept), left), (200_000, i64::from(window) - 200_000 + given));
    }
}

#[test]
fn floods_end_the_connection_and_a_busy_peer_does_not() {
    let open_and_reset = |n: u32| {
        let id = 2 * n + 1;
        let code = raw(kind::RST_STREAM, 0, id, &ErrorCode::CANCEL.0.to_be_bytes());
        [raw(kind::HEADERS, WHOLE, id, POST_BLOCK), code].concat()
    };
    let malformed = |n: u32| raw(kind::HEADERS, WHOLE | END, 2 * n + 1, b"\x82");
    let ping = |_| raw(kind::PING, 0, 0, &[0; 8]);
    let setting = |_| settings();
    let unknown = |_| raw(0x55, 0, 0, b"x");
    let post = raw(kind::HEADERS, WHOLE, 1, POST_BLOCK);
    let empty = |_| raw(kind::DATA, 0, 1, b"");
    type Frames<'f> = &'f dyn Fn(u32) -> Vec<u8>;
    let cases: [(Flood, u32, &[u8], Frames<'_>); 6] = [
        (Flood::Resets, MAX_RESETS, b"", &open_and_reset),
        (Flood::Malformed, MAX_MALFORMED, b"", &malformed),
        // The first SETTINGS frame counts.
        (Flood::Control, MAX_CONTROL_FRAMES - 1, b"", &ping),
        (Flood::Control, MAX_CONTROL_FRAMES - 1, b"", &setting),
        (Flood::Control, MAX_CONTROL_FRAMES - 1, b"", &unknown),
        (Flood::Empty, MAX_EMPTY_FRAMES, &post, &empty),
    ];
    for (flood, most, first, frame) in cases {
        let (mut server, _) = serve(&[first.to_vec()]);
        let allowed: Vec<u8> = (0..most).flat_map(frame).collect();
        let lines = transcript(&mut server, &allowed, usize::MAX);
        assert!(!lines.iter().any(|line| line.starts_with("error")), "{flood:?}");
        let mut one_second_later = frame(most);
        if flood == Flood::Empty {
            server.refill();
            assert!(transcript(&mut server, &one_second_later, usize::MAX).is_empty());
            one_second_later = (0..most).flat_map(frame).collect();
        }
        let lines = transcript(&mut server, &one_second_later, usize::MAX);
        assert_eq!(lines.last().map(String::as_str), Some("error ENHANCE_YOUR_CALM"), "{flood:?}");
    }
}

fn update(stream: u32) -> Vec<u8> {
    raw(kind::WINDOW_UPDATE, 0, stream, &1u32.to_be_bytes())
}

#[test]
fn windows_are_not_enlarged_in_small_steps_without_end() {
    let post = [1, 3].map(|stream| raw(kind::HEADERS, WHOLE, stream, POST_BLOCK)).concat();
    for side in [Side::Server, Side::Client] {
        // On the connection, on a stream, and on one that has ended.
        for stream in [0, 1, 3] {
            let mut connection = match side {
                Side::Server => serve(std::slice::from_ref(&post)).0,
                Side::Client => request(&[]).0,
            };
            connection.reset(connection.streams.find(3).expect("is open"), ErrorCode::CANCEL);
            // Those that streams may need when they are opened.
            let streams = connection.totals().streams as usize;
            transcript(&mut connection, &update(stream).repeat(2 * streams), usize::MAX);
            for _ in 0..2 {
                connection.refill();
                let allowed = update(stream).repeat(MAX_WINDOW_UPDATES as usize);
                let lines = transcript(&mut connection, &allowed, usize::MAX);
                assert!(!lines.iter().any(|line| line.starts_with("error")), "{side:?} {stream}");
            }
            let lines = transcript(&mut connection, &update(stream), usize::MAX);
            assert_eq!(lines, ["error ENHANCE_YOUR_CALM"], "{side:?} {stream}");
        }
    }
}

#[test]
fn a_peer_may_give_back_what_it_was_sent_in_small_pieces() {
    let window = [0, 4, 0x7f, 0xff, 0xff, 0xff];
    let (mut server, _) = serve(&[
        raw(kind::SETTINGS, 0, 0, &window),
        raw(kind::WINDOW_UPDATE, 0, 0, &(1u32 << 30).to_be_bytes()),
        raw(kind::HEADERS, WHOLE | END, 1, GET_BLOCK),
    ]);
    let stream = server.streams.find(1).expect("is open");
    server.respond(stream, 200, NONE, false).expect("is open");
    let send = |server: &mut Connection, bytes: usize| {
        assert_eq!(server.data(stream, &vec![0; bytes], false), Ok(bytes));
        server.wrote(server.output().len());
    };
    let fails = |server: &mut Connection, pieces: usize| {
        // It may take until another second.
        server.refill();
        let updates = [update(0), update(1)].concat().repeat(pieces);
        transcript(server, &updates, usize::MAX).iter().any(|line| line.starts_with("error"))
    };
    // A frame for each byte, as in a stream of events.
    for _ in 0..10 * MAX_WINDOW_UPDATES {
        send(&mut server, 1);
    }
    assert!(!fails(&mut server, 10 * MAX_WINDOW_UPDATES as usize));
    // Read 512 bytes at a time.
    (0..32).for_each(|_| send(&mut server, 1 << 20));
    assert!(!fails(&mut server, (32 << 20) / 512));
    // What was sent long ago does not allow for any number of them.
    (0..256).for_each(|_| send(&mut server, 1 << 20));
    assert!(fails(&mut server, (256 << 20) / 512));
}

#[test]
fn a_peer_may_enlarge_the_window_of_each_stream() {
    let (mut server, _) = serve(&[]);
    for n in 0..10 * MAX_WINDOW_UPDATES {
        let id = 2 * n + 1;
        let request = [raw(kind::HEADERS, WHOLE | END, id, GET_BLOCK), update(id), update(0)].concat();
        assert_eq!(transcript(&mut server, &request, usize::MAX).len(), 3);
        let stream = server.streams.find(id).expect("is open");
        server.respond(stream, 304, NONE, true).expect("is open");
    }
}

#[test]
fn frames_on_a_stream_that_has_ended_are_counted_beyond_those_that_were_on_their_way() {
    // An interim response, a response, trailers: sections of a peer that does not know yet.
    let message = |stream| {
        let sections = [b"\x08\x03103", OK_BLOCK, b"\x00\x01x\x01y"];
        sections.map(|block| raw(kind::HEADERS, WHOLE, stream, block)).concat()
    };
    let empty = |stream| raw(kind::DATA, END, stream, b"");
    let (mut client, _) = request(&[raw(kind::SETTINGS, 0, 0, &[0, 3, 0, 0, 0xff, 0xff])]);
    for _ in 0..10 {
        let ids: Vec<u32> = (0..200)
            .map(|_| {
                let stream = client.request(&GET, NONE, true).expect("is allowed");
                client.reset(stream, ErrorCode::CANCEL);
                stream.id
            })
            .collect();
        // What comes late may come in another second.
        client.refill();
        let late: Vec<u8> = ids.iter().flat_map(|&id| [message(id), empty(id)].concat()).collect();
        assert!(transcript(&mut client, &late, usize::MAX).is_empty());
    }
    let last = client.next_id - 2;
    let section = raw(kind::HEADERS, WHOLE, last, OK_BLOCK);
    let allowed = [section.clone(), empty(last)].concat().repeat(MAX_CONTROL_FRAMES as usize / 2);
    for _ in 0..2 {
        client.refill();
        assert!(transcript(&mut client, &allowed, usize::MAX).is_empty());
    }
    assert_eq!(transcript(&mut client, &section, usize::MAX), ["error ENHANCE_YOUR_CALM"]);
}

#[test]
fn requests_after_our_go_away_are_counted_beyond_those_that_were_on_their_way() {
    let get = |n: u32| raw(kind::HEADERS, WHOLE | END, 2 * n + 1, GET_BLOCK);
    let (mut server, _) = serve(&[]);
    server.go_away(ErrorCode::NO_ERROR);
    // The first SETTINGS frame counts.
    let allowed: Vec<u8> = (1..MAX_CONTROL_FRAMES).flat_map(get).collect();
    assert!(transcript(&mut server, &allowed, usize::MAX).is_empty());
    let lines = transcript(&mut server, &get(MAX_CONTROL_FRAMES), usize::MAX);
    assert_eq!(lines, ["error ENHANCE_YOUR_CALM"]);
}

#[test]
fn a_peer_that_requests_acknowledgements_and_reads_none_is_given_up_however_slowly_it_does() {
    let ping = raw(kind::PING, 0, 0, &[0; 8]);
    let (mut server, _) = serve(&[]);
    let take_all = |server: &mut Connection| {
        let bytes = server.output().len();
        server.wrote(bytes);
    };
    take_all(&mut server);
    // A peer that reads may go on like this.
    for _ in 0..2 * MAX_PENDING {
        server.refill();
        assert!(transcript(&mut server, &ping, usize::MAX).is_empty());
        take_all(&mut server);
    }
    for _ in 0..MAX_PENDING {
        server.refill();
        assert!(transcript(&mut server, &ping, usize::MAX).is_empty());
    }
    server.refill();
    assert_eq!(transcript(&mut server, &ping, usize::MAX), ["error ENHANCE_YOUR_CALM"]);
}

#[test]
fn header_blocks_are_bounded_in_frames_in_bytes_and_in_what_they_decode_to() {
    let begin = raw(kind::HEADERS, 0, 1, GET_BLOCK);
    let more = |payload: &[u8]| raw(kind::CONTINUATION, 0, 1, payload);
    let (_, lines) = serve(&[begin.clone(), more(b"").repeat(33)]);
    assert_eq!(lines, ["error ENHANCE_YOUR_CALM"]);
    let (_, lines) = serve(&[begin, more(&[0x82; 16_000]).repeat(5)]);
    assert_eq!(lines, ["error ENHANCE_YOUR_CALM"]);
    // One field of 4000 bytes in the table, referred to with a byte each: 4 MB.
    let field = [&b"\x40\x01x\x7f\xb1\x1e"[..], &[b'y'; 4016]].concat();
    let bomb = [GET_BLOCK, &field, &[0xbe; 1000]].concat();
    let (mut server, _) = serve(&[]);
    let input = raw(kind::HEADERS, WHOLE | END, 1, &bomb);
    assert!(matches!(server.next(&input), Ok((_, Event::Failed { .. }))));
    assert!(server.section.head().lines().len() <= 64 << 10);
}

#[test]
fn a_long_header_section_leaves_no_memory_behind() {
    let get = |field: &[u8]| {
        let block = [GET_BLOCK, field].concat();
        let mut parts = block.chunks(16_000);
        let mut frames = raw(kind::HEADERS, END, 1, parts.next().expect("is there"));
        parts.for_each(|part| frames.extend(raw(kind::CONTINUATION, 0, 1, part)));
        [frames, raw(kind::CONTINUATION, WHOLE, 1, b"")].concat()
    };
    // Of 61,000 bytes: a value, a cookie, and a value in the Huffman code.
    let (plain, mut coded) = ([b'y'; 61_000], Vec::new());
    crate::hpack::huffman::encode(&[b'0'; 97_600], &mut coded);
    for (start, value) in [
        (&b"\x00\x01x\x7f\xc9\xdb\x03"[..], &plain[..]),
        (b"\x0f\x11\x7f\xc9\xdb\x03", &plain),
        (b"\x00\x01x\xff\xc9\xdb\x03", &coded),
    ] {
        for step in [1000, usize::MAX] {
            let (mut server, _) = serve(&[]);
            let lines = transcript(&mut server, &get(&[start, value].concat()), step);
            assert!(["head 1 GET", "failed 1 P"].contains(&&lines[0][..10]), "{}", lines[0]);
            assert!(server.room() <= KEPT_BYTES, "{start:?} {step}: {}", server.room());
        }
    }
    let (mut server, _) = serve(&[]);
    transcript(&mut server, &raw(kind::PRIORITY_UPDATE, 0, 0, &[1; 16_000]), 1000);
    assert!(server.room() <= KEPT_BYTES, "{}", server.room());
    transcript(&mut server, &raw(kind::HEADERS, WHOLE | END, 1, GET_BLOCK), 1000);
    let room = server.room();
    transcript(&mut server, &raw(kind::HEADERS, WHOLE | END, 3, GET_BLOCK), 1000);
    assert!(room > 0 && server.room() == room, "that of usual ones is kept");
}

#[test]
fn a_long_header_section_is_sent_in_pieces() {
    let long = vec![b'\\'; 40_000];
    let mut client = Connection::client(Config::default());
    client.request(&GET, [(&b"x"[..], &long[..])].into_iter(), true).expect("is allowed");
    let mut server = Connection::server(Config::default());
    let lines = transcript(&mut server, client.output(), 777);
    assert_eq!(lines.len(), 3, "settings, a window update, and the request");
    assert!(lines[2].starts_with("head 1 GET/a 0 x: \\\\") && lines[2].len() > 40_000);
}

#[test]
fn a_priority_is_handed_on() {
    let (mut client, _) = request(&[]);
    let stream = client.streams.find(3).expect("is open");
    client.update_priority(stream, b"u=1, i");
    let mut server = Connection::server(Config::default());
    assert_eq!(
        transcript(&mut server, client.output(), 50).last().map(String::as_str),
        Some("priority 3 u=1, i")
    );
}

#[test]
fn an_error_of_the_decoder_says_what_it_was() {
    let mut server = Connection::server(Config::default());
    let input = [PREFACE, &settings(), &raw(kind::HEADERS, WHOLE, 1, b"\xbe")].concat();
    let (used, _) = server.next(&input).expect("SETTINGS are valid");
    assert_eq!(server.next(&input[used..]).err(), Some(ConnectionError::Hpack(HpackError::Index(62))));
    assert_eq!(StreamError::from(Malformed::Body).to_string(), "there is a body, and this response has none");
}

/// Frames that are likely to mean something.
fn some_frame() -> impl Strategy<Value = Vec<u8>> {
    let block =
        prop::sample::select(vec![GET_BLOCK, POST_BLOCK, OK_BLOCK, b"\x82", b"\x40\x01x\x01y", b"\xbe", b""]);
    let payload = prop_oneof![
        block.prop_map(<[u8]>::to_vec),
        proptest::collection::vec(any::<u8>(), 0..40),
        any::<[u8; 4]>().prop_map(|bytes| bytes.to_vec()),
        any::<[u8; 8]>().prop_map(|bytes| bytes.to_vec()),
        Just(vec![0, 4, 0, 0, 0xff, 0xff]),
    ];
    let kinds = prop::sample::select(vec![0u8, 0, 0, 1, 1, 1, 1, 2, 3, 4, 5, 6, 7, 8, 8, 9, 0x10, 0x42]);
    let flags = prop::sample::select(vec![0u8, 1, 4, 5, 5, 8, 0x2d, 0xff]);
    (kinds, flags, 0u32..8, payload)
        .prop_map(|(kind, flags, stream, payload)| raw(kind, flags, stream, &payload))
}

proptest! {
    #[test]
    fn events_do_not_depend_on_how_the_bytes_arrive(
        frames in proptest::collection::vec(some_frame(), 0..20), step in 1usize..40, is_server in any::<bool>(),
    ) {
        let make = || match is_server {
            true => (Connection::server(Config::default()), [PREFACE, &settings(), &frames.concat()].concat()),
            false => (request(&[]).0, frames.concat()),
        };
        let ((mut whole, input), (mut pieces, _)) = (make(), make());
        prop_assert_eq!(transcript(&mut whole, &input, usize::MAX), transcript(&mut pieces, &input, step));
        prop_assert!(whole.keeps_windows() && pieces.keeps_windows());
    }

    #[test]
    fn any_bytes_give_events_or_an_error(bytes in proptest::collection::vec(any::<u8>(), 0..400), is_server in any::<bool>()) {
        let mut connection = if is_server { serve(&[]).0 } else { request(&[]).0 };
        transcript(&mut connection, &bytes, 17);
        prop_assert!(connection.keeps_windows());
    }
}

#[test]
fn what_has_begun_and_is_not_complete_is_told_by_the_number_of_what_came_before() {
    let mut server = Connection::server(Config::default());
    let (settings, headers) = (settings(), raw(kind::HEADERS, 0, 1, &POST_BLOCK[..3]));
    let last = raw(kind::CONTINUATION, WHOLE, 1, &POST_BLOCK[3..]);
    let data = raw(kind::DATA, 0, 1, b"body");
    let pieces = [
        (&PREFACE[..10], Some(0)),
        (&PREFACE[10..], Some(0)),
        (&settings[..4], Some(0)),
        (&settings[4..], None),
        (&headers[..10], Some(1)),
        (&headers[10..], Some(1)),
        (&last[..3], Some(1)),
        (&last[3..], None),
        (&data[..10], None),
        // A body whose pieces all end within the head of the next frame goes on.
        (&[&data[10..], &data[..3]].concat(), Some(3)),
        (&[&data[3..], &data[..3]].concat(), Some(4)),
        (&[&data[3..], &data[..8]].concat(), Some(5)),
        (&data[8..], None),
    ];
    for (piece, number) in pieces {
        transcript(&mut server, piece, piece.len());
        assert_eq!(server.partial_frame(), number, "{}", piece.escape_ascii());
    }
}
