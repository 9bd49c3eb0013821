//! The same server over HTTP/2, correct or not.

use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;

use assay_http::head::ResponseHead;
use assay_http2::frame::{self, FrameHead, kind};
use assay_http2::{Config, Connection, ErrorCode, Event, Stream};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::server::{Seen, Shared, response};

/// How a server of HTTP/2 behaves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Http2Manner {
    /// Correctly, with so many streams at a time.
    Right(u32),
    /// Refuses every third stream.
    Refuses,
    RefusesAll,
    /// Sends interim responses without end.
    Interim,
    /// Says after the fifth stream of a connection that it has acted on no later one, and closes when those are done.
    GoesAway,
    /// Resets each stream within the body.
    ResetsWithin,
    /// Resets each stream before the response.
    ResetsBefore,
    /// Closes each connection after its fifth response, without a word.
    Hangs,
    Pushes,
    /// Sends a response without a status.
    NoStatus,
    /// Responds to none of the first so many requests of a connection before all of them have come.
    Gathers(usize),
}

/// A request that has come, and how much of its body.
struct Begun {
    stream: Stream,
    response: Vec<u8>,
    head: String,
    body: usize,
}

/// Streams that [`Http2Manner::GoesAway`] acts on, and responses of [`Http2Manner::Hangs`].
const FIVE: usize = 5;

pub async fn serve(mut socket: TcpStream, shared: Arc<Shared>, connection: usize, manner: Http2Manner) {
    let max_streams = if let Http2Manner::Right(streams) = manner { streams } else { 100 };
    let mut wire = Connection::server(Config { max_streams, ..Config::default() });
    let (mut begun, mut input) = (Vec::<Begun>::new(), vec![0; 64 * 1024]);
    let mut held = Vec::new();
    let (mut streams, mut responses) = (0, 0);
    loop {
        let bytes = wire.output().to_vec();
        wire.wrote(bytes.len());
        let is_over = manner == Http2Manner::Hangs && responses >= FIVE
            || manner == Http2Manner::GoesAway && streams > FIVE && begun.is_empty();
        if socket.write_all(&bytes).await.is_err() || is_over {
            return;
        }
        let Ok(length @ 1..) = socket.read(&mut input).await else { return };
        let mut rest = &input[..length];
        loop {
            let (used, event) = wire.next(rest).expect("robots keep the rules");
            rest = &rest[used..];
            let complete = match event {
                Event::NeedMore => break,
                Event::Head { stream, head, ends } => {
                    streams += 1;
                    let request = head.as_request();
                    let text = format!(
                        "{} {} {}",
                        head.method(),
                        head.path(),
                        String::from_utf8_lossy(head.lines())
                    );
                    let one = Begun { stream, response: response(&request, &shared), head: text, body: 0 };
                    if manner == Http2Manner::Interim {
                        let mut one = Vec::new();
                        let fields = [(&b"link"[..], &b"<a>"[..])].into_iter();
                        while wire.respond(stream, 103, fields.clone(), false).is_ok() {
                            one.extend_from_slice(wire.output());
                            wire.wrote(wire.output().len());
                            if one.len() > 64 * 1024 {
                                let Ok(()) = socket.write_all(&one).await else { return };
                                one.clear();
                            }
                        }
                        None
                    } else if manner == Http2Manner::RefusesAll
                        || manner == Http2Manner::Refuses && streams % 3 == 0
                    {
                        wire.reset(stream, ErrorCode::REFUSED_STREAM);
                        None
                    } else if manner == Http2Manner::GoesAway && streams > FIVE {
                        if streams == FIVE + 1 {
                            let mut out = Vec::new();
                            frame::write_go_away(&mut out, stream.id - 2, ErrorCode::NO_ERROR);
                            socket.write_all(&out).await.expect("robots read");
                        }
                        None
                    } else {
                        begun.push(one);
                        ends.then_some(stream)
                    }
                }
                Event::Data { stream, data, ends } => {
                    if let Some(one) = begun.iter_mut().find(|one| one.stream == stream) {
                        one.body += data.len();
                    }
                    ends.then_some(stream)
                }
                _ => None,
            };
            let Some(at) = begun.iter().position(|one| Some(one.stream) == complete) else { continue };
            let one = begun.remove(at);
            let peer = IpAddr::V4(Ipv4Addr::LOCALHOST);
            let seen = Seen { head: one.head.clone(), body: one.body, connection, peer };
            shared.seen.lock().expect("nobody panicked").push(seen);
            held.push(one);
            if let Http2Manner::Gathers(count) = manner
                && responses == 0
                && held.len() < count
            {
                continue;
            }
            let mut raw = Vec::new();
            for one in held.drain(..) {
                respond(&mut wire, &one, manner, &mut raw);
                responses += 1;
            }
            if !raw.is_empty() && socket.write_all(&raw).await.is_err() {
                return;
            }
        }
    }
}

fn respond(wire: &mut Connection, one: &Begun, manner: Http2Manner, raw: &mut Vec<u8>) {
    let (head, length) = ResponseHead::parse(&one.response).expect("is HTTP").expect("is complete");
    let body = &one.response[length..];
    match manner {
        Http2Manner::ResetsBefore => return wire.reset(one.stream, ErrorCode::INTERNAL_ERROR),
        Http2Manner::Pushes | Http2Manner::NoStatus => {
            let (kind, payload) = match manner {
                Http2Manner::Pushes => (kind::PUSH_PROMISE, [0; 4]),
                // A literal field, x: y.
                _ => (kind::HEADERS, [0x00, 1, b'x', 0]),
            };
            let length = payload.len() as u32;
            // It must come behind our settings.
            raw.extend_from_slice(wire.output());
            wire.wrote(wire.output().len());
            raw.extend_from_slice(&FrameHead { length, kind, flags: 4, stream: one.stream.id }.bytes());
            return raw.extend_from_slice(&payload);
        }
        _ => {}
    }
    let fields = head.headers().map(|field| (field.name, field.value));
    wire.respond(one.stream, head.status, fields, body.is_empty()).expect("the stream is open");
    let part = if manner == Http2Manner::ResetsWithin { &body[..body.len() / 2] } else { body };
    if !part.is_empty() {
        let sent = wire.data(one.stream, part, part.len() == body.len()).expect("the stream is open");
        assert_eq!(sent, part.len(), "robots have large windows");
    }
    if manner == Http2Manner::ResetsWithin {
        wire.reset(one.stream, ErrorCode::INTERNAL_ERROR);
    }
}
