//! A gateway from HTTP/2 to HTTP/1.1 that checks nothing: the cases on HTTP/2 must each find it.
//!
//! It takes every frame for what it seems to be, writes fields into a request as they came, and passes on whatever the origin sends.

use std::cell::Cell;
use std::collections::HashMap;
use std::net::SocketAddr;
use std::rc::Rc;

use assay_conform::http2::frame::{Field, block, write};
use assay_conform::message::Message;
use assay_conform::origin::Origin;
use assay_conform::run::{Http2, Outcome, Target, run};
use assay_conform::suite::Suite;
use assay_conform::verdict::Verdict;
use assay_http2::frame::{FrameHead, HEAD_BYTES, PREFACE, flag, kind};
use assay_http2::hpack::Decoder;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::spawn_local;

use crate::targets::{cache_at, on_one_thread};

/// What even such a gateway does not get wrong: it forwards what it is sent, and never pushes, stores or floods.
const MET: [&str; 19] = [
    "http2-body-reaches-origin",
    "http2-chunked-response",
    "http2-continuation",
    "http2-head-has-length",
    "http2-host-from-authority",
    "http2-no-content",
    "http2-no-push",
    "http2-no-store",
    "http2-rejected-request-is-not-stored",
    "http2-serves-others-after-flood",
    "http2-serves-others-during-flood",
    "http2-te-trailers",
    "http2-two-equal-fields",
    "http2-unknown-is-ignored",
    // It reads messages of the origin with a parser that takes white space off, and a line without a colon for a name.
    "http2-malformed-response-not-passed-on/no-colon",
    "http2-response-well-formed/empty-value",
    "http2-response-well-formed/space-at-the-end",
    "http2-response-well-formed/space-in-front",
    // Its origin does not take such a name for Transfer-Encoding.
    "http2-smuggled-by-coding/space-behind-name",
];

#[test]
fn a_gateway_that_checks_nothing_is_found_by_every_case_that_requires_a_check() {
    let missed = on_one_thread(async {
        let suite = Suite::bundled().unwrap();
        let cases = suite.chosen(&["http2".to_owned(), "http2-frames".to_owned()]).unwrap();
        let origin = Rc::new(Origin::start("127.0.0.1:0".parse().unwrap()).unwrap());
        let address = careless(origin.address).await;
        let target = Target { stores: false, http2: Http2::Beside, ..cache_at(address) };
        let outcomes = run(&cases, &target, &origin, |_, _| ()).await;
        let binds = outcomes.iter().filter(|outcome| {
            outcome.case.uses_http2()
                && outcome.case.level.binds()
                && outcome.judgement.verdict != Verdict::NotApplicable
        });
        let missed = binds.filter(|outcome| {
            let name = outcome.case.name.as_str();
            let is_met = MET.contains(&name) || MET.contains(&name.split('/').next().unwrap());
            (outcome.judgement.verdict == Verdict::Fail) == is_met
        });
        missed.map(|outcome| format!("{}: {:?}", outcome.case.name, outcome.judgement)).collect::<Vec<_>>()
    });
    assert!(missed.is_empty(), "{missed:#?}");
}

#[test]
fn a_gateway_that_goes_down_under_a_flood_serves_no_others() {
    let mut served = Vec::new();
    // A machine that is held up for long leaves it undecided.
    for _ in 0..3 {
        served = on_one_thread(verdicts_of_one_that_goes_down());
        if served.iter().all(|(_, verdict)| *verdict != Verdict::Inconclusive) {
            break;
        }
    }
    let floods = |name: &str| name.starts_with("http2-serves-others-during-flood");
    assert_eq!(served.iter().filter(|(name, _)| floods(name)).count(), 4);
    let is_right = |(name, verdict): &&(String, Verdict)| (*verdict == Verdict::Fail) == floods(name);
    assert!(served.iter().all(|one| is_right(&one)), "{served:?}");
}

/// What is found out about a gateway that goes down under a flood.
async fn verdicts_of_one_that_goes_down() -> Vec<(String, Verdict)> {
    let cases = Suite::bundled().unwrap().chosen(&["http2-serves-others-during-flood".to_owned()]).unwrap();
    let origin = Rc::new(Origin::start("127.0.0.1:0".parse().unwrap()).unwrap());
    let address = going_down(careless(origin.address).await).await;
    let target = Target { stores: false, http2: Http2::Beside, ..cache_at(address) };
    let outcomes = run(&cases, &target, &origin, |_, _| ()).await;
    let of = |outcome: &Outcome| (outcome.case.name.clone(), outcome.judgement.verdict);
    outcomes.iter().map(of).collect()
}

/// Passes on what it gets until one connection has sent more than any request has; then it does nothing for anybody any more.
async fn going_down(gateway: SocketAddr) -> SocketAddr {
    const TOO_MUCH: usize = 50_000;
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let is_down = Rc::new(Cell::new(false));
    spawn_local(async move {
        let mut held = Vec::new();
        while let Ok((mut client, _)) = listener.accept().await {
            if is_down.get() {
                held.push(client);
                continue;
            }
            let is_down = Rc::clone(&is_down);
            spawn_local(async move {
                let mut behind = TcpStream::connect(gateway).await.ok()?;
                let ((mut from, mut to), (mut back, mut out)) = (client.split(), behind.split());
                let (mut buf, mut sum) = (vec![0; 8192], 0);
                let there = async {
                    while sum < TOO_MUCH {
                        let length = from.read(&mut buf).await.ok().filter(|length| *length > 0)?;
                        sum += length;
                        out.write_all(&buf[..length]).await.ok()?;
                    }
                    is_down.set(true);
                    std::future::pending::<Option<()>>().await
                };
                tokio::select! {
                    _ = there => {}
                    _ = tokio::io::copy(&mut back, &mut to) => {}
                }
                Some(())
            });
        }
    });
    address
}

/// Where the gateway listens.
async fn careless(origin: SocketAddr) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    spawn_local(async move {
        while let Ok((stream, _)) = listener.accept().await {
            spawn_local(serve(stream, origin));
        }
    });
    address
}

/// What came on a stream so far.
#[derive(Default)]
struct Request {
    fields: Vec<Field>,
    body: Vec<u8>,
}

/// One connection; none: it ended.
async fn serve(mut stream: TcpStream, origin: SocketAddr) -> Option<()> {
    let mut buf = vec![0; PREFACE.len()];
    stream.read_exact(&mut buf).await.ok()?;
    let mut out = Vec::new();
    // It has a limit on streams, which it does not keep.
    write(&mut out, kind::SETTINGS, 0, 0, b"\0\x03\0\0\0\x64");
    stream.write_all(&out).await.ok()?;
    buf.clear();
    let (mut decoder, mut open) = (Decoder::default(), HashMap::<u32, Request>::new());
    let mut upstream = TcpStream::connect(origin).await.ok()?;
    loop {
        let mut head = [0; HEAD_BYTES];
        stream.read_exact(&mut head).await.ok()?;
        let head = FrameHead::parse(&head);
        let mut payload = vec![0; head.length as usize];
        stream.read_exact(&mut payload).await.ok()?;
        if head.kind == kind::RST_STREAM {
            open.remove(&head.stream);
            continue;
        }
        if !matches!(head.kind, kind::HEADERS | kind::CONTINUATION | kind::DATA) {
            continue;
        }
        let payload = match payload.split_first() {
            Some((&padding, rest)) if head.has(flag::PADDED) => {
                rest[..rest.len().saturating_sub(usize::from(padding))].to_vec()
            }
            _ => payload,
        };
        let request = open.entry(head.stream).or_default();
        if head.kind == kind::DATA {
            request.body.extend_from_slice(&payload);
        } else {
            // What cannot be decoded is as good as empty; literals never depend on a table.
            let _ = decoder
                .decode(&payload, |field| request.fields.push((field.name.to_vec(), field.value.to_vec())));
        }
        // It takes a message for complete as soon as anything says so.
        let ends = head.has(flag::END_STREAM) && head.kind != kind::CONTINUATION;
        let is_whole = match head.kind {
            kind::HEADERS => ends && head.has(flag::END_HEADERS),
            kind::CONTINUATION => head.has(flag::END_HEADERS),
            _ => ends,
        };
        if is_whole && let Some(request) = open.remove(&head.stream) {
            forward(&mut stream, &mut upstream, origin, head.stream, &request).await;
        }
    }
}

/// The request as it is written over HTTP/1.1: whatever is in its fields is in it.
fn written(request: &Request) -> Vec<u8> {
    let of = |name: &str, usual: &str| {
        let found = request.fields.iter().rfind(|(own, _)| own == name.as_bytes());
        found.map_or_else(|| usual.as_bytes().to_vec(), |(_, value)| value.clone())
    };
    let mut out = [
        &of(":method", "GET")[..],
        b" ",
        &of(":path", "/"),
        b" HTTP/1.1\r\nHost: ",
        &of(":authority", "x"),
        b"\r\n",
    ]
    .concat();
    for (name, value) in request.fields.iter().filter(|(name, _)| !name.starts_with(b":")) {
        out.extend_from_slice(&[&name[..], b": ", value, b"\r\n"].concat());
    }
    if of(":scheme", "http") != b"http" {
        out.extend_from_slice(&[b"X-Scheme: ", &of(":scheme", "")[..], b"\r\n"].concat());
    }
    let has_length = request.fields.iter().any(|(name, _)| name.eq_ignore_ascii_case(b"content-length"));
    if !request.body.is_empty() && !has_length {
        out.extend_from_slice(format!("Content-Length: {}\r\n", request.body.len()).as_bytes());
    }
    [&out[..], b"\r\n", &request.body].concat()
}

/// Sends a request to the origin and its response to the client, each field as it is.
async fn forward(
    client: &mut TcpStream,
    upstream: &mut TcpStream,
    origin: SocketAddr,
    stream: u32,
    request: &Request,
) -> Option<()> {
    let method = request.fields.iter().find(|(name, _)| name == b":method");
    let method = method.map_or_else(String::new, |(_, value)| String::from_utf8_lossy(value).into_owned());
    if upstream.write_all(&written(request)).await.is_err() {
        *upstream = TcpStream::connect(origin).await.ok()?;
    }
    let (mut buf, mut ended) = (Vec::new(), false);
    loop {
        if let Some((mut head, length)) = Message::head(&buf) {
            let framing = head.response_framing(&method);
            if head.take_body(&buf[length..], framing, ended).is_some() {
                if ended {
                    *upstream = TcpStream::connect(origin).await.ok()?;
                }
                return respond(client, stream, &head).await;
            }
        }
        if ended {
            *upstream = TcpStream::connect(origin).await.ok()?;
            return None;
        }
        let wait =
            tokio::time::timeout(std::time::Duration::from_millis(500), upstream.read_buf(&mut buf)).await;
        ended = !matches!(wait, Ok(Ok(bytes)) if bytes > 0);
    }
}

async fn respond(client: &mut TcpStream, stream: u32, response: &Message) -> Option<()> {
    let mut fields: Vec<Field> = vec![(b":status".to_vec(), response.status().to_string().into_bytes())];
    let is_passed = |name: &str| !name.eq_ignore_ascii_case("transfer-encoding");
    // It does know that names are in lower case, but for one.
    let spelled = |name: &str| if name == "X-UPPER" { name.to_owned() } else { name.to_ascii_lowercase() };
    let raw = response.fields.iter().filter(|(name, _)| is_passed(name));
    fields.extend(raw.map(|(name, value)| (spelled(name).into_bytes(), value.clone().into_bytes())));
    let mut out = Vec::new();
    write(&mut out, kind::HEADERS, flag::END_HEADERS, stream, &block(&fields));
    write(&mut out, kind::DATA, flag::END_STREAM, stream, &response.body);
    client.write_all(&out).await.ok()
}
