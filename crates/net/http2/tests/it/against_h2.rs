//! Another implementation as the peer, in both roles, over a pipe in memory.

use assay_http2::{Config, Connection, ErrorCode, Event, RequestHead, Stream};
use bytes::Bytes;
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream, duplex};

/// Requests of each test; more than may be open at once.
const REQUESTS: usize = 300;
/// Streams that the server allows.
const STREAMS: u32 = 20;

fn body(number: usize) -> Vec<u8> {
    let size = [0, 1, 1000, 100_000][number % 4];
    (0..size).map(|at| (number + at) as u8).collect()
}

/// Runs on one thread, to its end.
fn run(test: impl Future<Output = ()>) {
    let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
    tokio::task::LocalSet::new().block_on(&runtime, test);
}

async fn flush(connection: &mut Connection, pipe: &mut DuplexStream) {
    let bytes = connection.output().to_vec();
    connection.wrote(bytes.len());
    // The other side may be gone already.
    let _ = pipe.write_all(&bytes).await;
}

/// A request that our client has sent: what has come, and what of its body has not been sent.
#[derive(Debug)]
struct Sent {
    stream: Stream,
    number: usize,
    upload: Vec<u8>,
    seen: Vec<u8>,
}

/// The other implementation, as a server that sends back what it gets.
async fn echo_server(pipe: DuplexStream) {
    let mut builder = h2::server::Builder::new();
    builder.max_concurrent_streams(STREAMS).initial_window_size(70_000);
    let mut connection = builder.handshake::<_, Bytes>(pipe).await.expect("our preface is right");
    while let Some(Ok((request, mut respond))) = connection.accept().await {
        tokio::task::spawn_local(async move {
            let number = request.headers()["x-number"].clone();
            let has_cookie = request.headers().get("cookie").is_some_and(|value| value == "a=1");
            assert!(has_cookie && request.uri().path() == format!("/{}", number.to_str().expect("is text")));
            let mut body = request.into_body();
            let response = http::Response::builder().header("x-number", number).body(()).expect("is valid");
            let mut send = respond.send_response(response, false).expect("the stream is open");
            while let Some(Ok(data)) = body.data().await {
                body.flow_control().release_capacity(data.len()).expect("was received");
                send.send_data(data, false).expect("the stream is open");
            }
            send.send_data(Bytes::new(), true).expect("the stream is open");
        });
    }
}

/// Our client: sends requests as the peer allows until all have their responses.
async fn echo_client(mut pipe: DuplexStream) {
    let config = Config { stream_window: 70_000, connection_window: 80_000, ..Config::default() };
    let mut client = Connection::client(config);
    let (mut next, mut done, mut sent) = (0, 0, Vec::<Sent>::new());
    let mut input = vec![0; 10_000];
    while done < REQUESTS {
        while next < REQUESTS && client.openable() > 0 {
            let (path, number, upload) = (format!("/{next}"), next.to_string(), body(next));
            let head =
                RequestHead { method: b"POST", scheme: b"http", authority: b"a.test", path: path.as_bytes() };
            let fields = [(&b"X-Number"[..], number.as_bytes()), (b"Cookie", b"a=1")];
            let stream = client.request(&head, fields.into_iter(), upload.is_empty()).expect("is openable");
            sent.push(Sent { stream, number: next, upload, seen: Vec::new() });
            next += 1;
        }
        for one in sent.iter_mut().filter(|one| !one.upload.is_empty()) {
            let taken = client.data(one.stream, &one.upload, true).expect("the stream is open");
            one.upload.drain(..taken);
        }
        flush(&mut client, &mut pipe).await;
        let length = pipe.read(&mut input).await.expect("the pipe is open");
        assert!(length > 0, "the server has ended the connection");
        let mut rest = &input[..length];
        loop {
            let (used, event) = client.next(rest).expect("the server keeps the rules");
            rest = &rest[used..];
            let complete = match event {
                Event::NeedMore => break,
                Event::Head { head, stream, ends } => {
                    let one = sent.iter().find(|one| one.stream == stream).expect("was sent");
                    assert_eq!(head.field("x-number"), Some(one.number.to_string().as_bytes()));
                    ends.then_some(stream)
                }
                Event::Data { stream, data, ends } => {
                    let one = sent.iter_mut().find(|one| one.stream == stream).expect("was sent");
                    one.seen.extend_from_slice(data);
                    ends.then_some(stream)
                }
                Event::Writable { .. } => None,
                // Sent before its settings came.
                Event::Reset { stream, code: ErrorCode::REFUSED_STREAM } => {
                    let at = sent.iter().position(|one| one.stream == stream).expect("was sent");
                    assert!(sent.remove(at).number >= STREAMS as usize);
                    done += 1;
                    None
                }
                other => panic!("{other:?}"),
            };
            if let Some(stream) = complete {
                let at = sent.iter().position(|one| one.stream == stream).expect("was sent");
                let one = sent.remove(at);
                assert_eq!(one.seen, body(one.number), "request {}", one.number);
                done += 1;
            }
        }
    }
    assert!(client.totals().coded_sent_bytes < client.totals().fields_sent_bytes / 2);
}

#[test]
fn our_client_and_another_server_agree() {
    run(async {
        let (ours, theirs) = duplex(5000);
        let server = tokio::task::spawn_local(echo_server(theirs));
        echo_client(ours).await;
        server.await.expect("the server does not panic");
    });
}

/// Our server: sends back what it gets.
async fn our_server(mut pipe: DuplexStream) {
    let config = Config {
        max_streams: STREAMS,
        stream_window: 70_000,
        connection_window: 80_000,
        ..Config::default()
    };
    let mut server = Connection::server(config);
    let mut echoes: Vec<(Stream, Vec<u8>, bool)> = Vec::new();
    let mut input = vec![0; 10_000];
    loop {
        for (stream, data, ends) in &mut echoes {
            if server.is_open(*stream) && (!data.is_empty() || *ends) {
                let taken = server.data(*stream, data, *ends).expect("the stream is open");
                data.drain(..taken);
            }
        }
        echoes.retain(|(stream, ..)| server.is_open(*stream));
        flush(&mut server, &mut pipe).await;
        let Ok(length @ 1..) = pipe.read(&mut input).await else { return };
        let mut rest = &input[..length];
        loop {
            let (used, event) = server.next(rest).expect("the client keeps the rules");
            rest = &rest[used..];
            match event {
                Event::NeedMore => break,
                Event::Head { stream, head, ends } => {
                    assert_eq!((head.method(), head.authority()), ("POST", Some(&b"a.test"[..])));
                    let fields: Vec<_> = head.field("x-number").into_iter().map(<[u8]>::to_vec).collect();
                    let fields = fields.iter().map(|value| (&b"X-Number"[..], &value[..]));
                    server.respond(stream, 200, fields, false).expect("the stream is open");
                    echoes.push((stream, Vec::new(), ends));
                }
                Event::Data { stream, data, ends } => {
                    let echo = echoes.iter_mut().find(|(one, ..)| *one == stream).expect("its head came");
                    echo.1.extend_from_slice(data);
                    echo.2 = ends;
                }
                Event::Writable { .. } | Event::GoAway { .. } => {}
                other => panic!("{other:?}"),
            }
        }
    }
}

/// The other implementation, as a client.
async fn another_client(pipe: DuplexStream) {
    let mut builder = h2::client::Builder::new();
    builder.initial_window_size(70_000).initial_max_send_streams(1);
    let (mut client, connection) = builder.handshake::<_, Bytes>(pipe).await.expect("our settings are right");
    tokio::task::spawn_local(async move { connection.await.expect("our server keeps the rules") });
    let mut tasks = Vec::new();
    for number in 0..REQUESTS {
        client = client.ready().await.expect("the connection is open");
        let request =
            http::Request::post(format!("http://a.test/{number}")).header("x-number", number.to_string());
        let (response, mut send) =
            client.send_request(request.body(()).expect("is valid"), false).expect("the connection is open");
        tasks.push(tokio::task::spawn_local(async move {
            send.send_data(body(number).into(), true).expect("the stream is open");
            let response = response.await.expect("there is a response");
            assert_eq!(response.headers()["x-number"], number.to_string());
            let (mut incoming, mut seen) = (response.into_body(), Vec::new());
            while let Some(data) = incoming.data().await {
                let data = data.expect("the stream is open");
                incoming.flow_control().release_capacity(data.len()).expect("was received");
                seen.extend_from_slice(&data);
            }
            assert_eq!(seen, body(number), "request {number}");
        }));
    }
    for task in tasks {
        task.await.expect("no request panics");
    }
}

#[test]
fn our_server_and_another_client_agree() {
    run(async {
        let (ours, theirs) = duplex(5000);
        let server = tokio::task::spawn_local(our_server(ours));
        another_client(theirs).await;
        server.await.expect("the server does not panic");
    });
}
