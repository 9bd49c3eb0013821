//! Requests of HTTP/1.1 in pipes, over a stream in memory, to a server of HTTP/2.

use std::cell::Cell;
use std::io::ErrorKind;
use std::rc::Rc;
use std::time::Duration;

use assay_http2::{Config, Connection as Wire, ErrorCode, Event, Stream as StreamId};
use assay_testbed::run;
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream};
use tokio::task::spawn_local;
use tokio::time::timeout;

use super::tests::{LIMITS, LONG, Seen, echo};
use super::*;
use crate::connection::Resources;

/// Runs a script with a client, and the server's end of its connection.
fn with_client<T>(script: impl AsyncFnOnce(&Http2Client, DuplexStream) -> T) -> T {
    run(async {
        let (socket, server) = tokio::io::duplex(1 << 14);
        let resources = Resources::new();
        let (client, carried) = Http2Client::new(Connection::new(socket, &resources), false);
        let carrying = spawn_local(async move { drop(carried.await) });
        let told = script(&client, server).await;
        drop(client);
        carrying.await.expect("it ends when nobody needs it");
        told
    })
}

/// The same with a server of echoes.
fn with_echoes<T>(script: impl AsyncFnOnce(&Http2Client) -> T) -> (T, u32) {
    let handled = Rc::new(Cell::new(0));
    let count = Rc::clone(&handled);
    let told = with_client(async |client, server| {
        spawn_local(echo(server, LIMITS, Seen { handled: count, ..Seen::default() }));
        script(client).await
    });
    (told, handled.get())
}

/// Writes a request and reads the response to its end.
async fn put(pipe: &mut Pipe, request: &[u8]) -> io::Result<String> {
    pipe.write_all(request).await?;
    let mut response = Vec::new();
    pipe.read_to_end(&mut response).await?;
    Ok(String::from_utf8_lossy(&response).into_owned())
}

async fn requested(client: &Http2Client, request: &[u8]) -> String {
    put(&mut client.pipe().expect("has room"), request).await.expect("is complete")
}

#[test]
fn requests_and_responses_are_those_of_http_1() {
    let (_, handled) = with_echoes(async |client| {
        let got =
            requested(client, b"GET /a?b=c HTTP/1.1\r\nHost: www.test\r\nConnection: x\r\nX: y\r\n\r\n")
                .await;
        let body = "GET /a?b=c www.test ";
        let head = format!(
            "HTTP/1.1 200 \r\nx-own: yes\r\ncontent-length: {}\r\nconnection: close\r\n\r\n",
            body.len()
        );
        assert_eq!(got, head + body);
        let got = requested(client, b"HEAD /h HTTP/1.1\r\nHost: www.test\r\n\r\n").await;
        assert!(got.ends_with("connection: close\r\n\r\n") && !got.contains("chunked"), "{got}");
        let got = requested(client, b"GET /chunks HTTP/1.1\r\nHost: www.test\r\n\r\n").await;
        assert!(got.contains("transfer-encoding: chunked\r\n") && got.ends_with("\r\n0\r\n\r\n"), "{got}");
        let got =
            requested(client, b"POST /p HTTP/1.1\r\nHost: www.test\r\nContent-Length: 4\r\n\r\nbody").await;
        assert!(got.ends_with("POST /p www.test body"), "{got}");
        let chunks =
            b"PUT /c HTTP/1.1\r\nHost: h\r\nExpect: 100-continue\r\nTransfer-Encoding: chunked\r\n\r\n\
                       2\r\nab\r\n1\r\nc\r\n0\r\n\r\n";
        let got = requested(client, chunks).await;
        assert!(
            got.starts_with("HTTP/1.1 100 \r\n\r\nHTTP/1.1 200 ") && got.ends_with("PUT /c h abc"),
            "{got}"
        );
    });
    assert_eq!(handled, 5);
}

#[test]
fn a_long_response_that_nobody_reads_holds_up_no_other() {
    let (_, handled) = with_echoes(async |client| {
        let mut long = client.pipe().expect("has room");
        long.write_all(b"GET /long HTTP/1.1\r\nHost: h\r\n\r\n").await.expect("is taken");
        for _ in 0..20 {
            assert!(
                requested(client, b"GET /short HTTP/1.1\r\nHost: h\r\n\r\n").await.ends_with("GET /short h ")
            );
        }
        let mut all = Vec::new();
        long.read_to_end(&mut all).await.expect("is complete");
        assert!(all.len() > LONG && all.ends_with(b"xxx"));
        assert_eq!(client.idle_since_ns(), None, "the pipe is there");
        drop(long);
        assert!(client.idle_since_ns().is_some());
    });
    assert_eq!(handled, 21);
}

#[test]
fn what_breaks_off_is_an_error_and_the_connection_goes_on() {
    with_echoes(async |client| {
        let mut pipe = client.pipe().expect("has room");
        let broken = put(&mut pipe, b"GET /breaks HTTP/1.1\r\nHost: h\r\n\r\n").await;
        assert_eq!(broken.expect_err("it breaks off").kind(), ErrorKind::ConnectionReset);
        let mut never = client.pipe().expect("has room");
        never.write_all(b"GET /never HTTP/1.1\r\nHost: h\r\n\r\n").await.expect("is taken");
        drop(never);
        assert!(requested(client, b"GET / HTTP/1.1\r\nHost: h\r\n\r\n").await.ends_with("GET / h "));
        assert!(!client.is_closing());
    });
}

/// A server that is scripted frame by frame.
struct Scripted {
    socket: DuplexStream,
    wire: Wire,
}

impl Scripted {
    fn new(socket: DuplexStream, max_streams: u32) -> Self {
        Self { socket, wire: Wire::server(Config { max_streams, stream_window: 0, ..Config::default() }) }
    }

    async fn flush(&mut self) {
        let out = self.wire.output().to_vec();
        self.socket.write_all(&out).await.expect("is read");
        self.wire.wrote(out.len());
    }

    /// Reads until so many requests have come.
    async fn requests(&mut self, count: usize) -> Vec<StreamId> {
        let mut streams = Vec::new();
        while streams.len() < count {
            self.flush().await;
            let mut room = vec![0; 1 << 14];
            let read = self.socket.read(&mut room).await.expect("is open");
            let mut rest = &room[..read];
            loop {
                let (used, event) = self.wire.next(rest).expect("is HTTP/2");
                rest = &rest[used..];
                match event {
                    Event::NeedMore => break,
                    Event::Head { stream, .. } => streams.push(stream),
                    _ => {}
                }
            }
        }
        streams
    }
}

impl Scripted {
    /// Reads until a stream is reset: why.
    async fn until_reset(&mut self) -> ErrorCode {
        let mut room = vec![0; 1 << 14];
        loop {
            let read = self.socket.read(&mut room).await.expect("is open");
            assert!(read > 0, "the connection has ended");
            let mut rest = &room[..read];
            while !rest.is_empty() {
                let (used, event) = self.wire.next(rest).expect("is HTTP/2");
                rest = &rest[used..];
                if let Event::Reset { code, .. } = event {
                    return code;
                }
            }
        }
    }

    /// Reads a request to its end: the bytes of its body.
    async fn body_bytes(&mut self) -> usize {
        let mut bytes = 0;
        loop {
            self.flush().await;
            let mut room = vec![0; 1 << 14];
            let read = self.socket.read(&mut room).await.expect("is open");
            assert!(read > 0, "{bytes} bytes have come");
            let mut rest = &room[..read];
            loop {
                let (used, event) = self.wire.next(rest).expect("is HTTP/2");
                rest = &rest[used..];
                match event {
                    Event::NeedMore => break,
                    Event::Data { data, ends, .. } => {
                        bytes += data.len();
                        if ends {
                            return bytes;
                        }
                    }
                    _ => {}
                }
            }
        }
    }
}

/// HEADERS of stream 1: status 103, and a field that takes 15 times 4 KB where it is decoded; the first of them tells what that is.
fn interim(is_first: bool) -> Vec<u8> {
    let told = [&[0x40, 1, b'a', 0x7f, 0xa1, 0x1e][..], &[b'v'; 4000]].concat();
    let block = [&[0x08, 3][..], b"103", if is_first { &told } else { &[0xbe; 15] }].concat();
    let [.., a, b] = block.len().to_be_bytes();
    [&[0, a, b, 1, 4, 0, 0, 0, 1], &block[..]].concat()
}

#[test]
fn interim_responses_that_nobody_reads_are_given_up_however_short_they_are_on_the_way() {
    with_client(async |client, socket| {
        let mut pipe = client.pipe().expect("has room");
        pipe.write_all(POST).await.expect("has room");
        let mut server = Scripted::new(socket, 10);
        server.requests(1).await;
        server.flush().await;
        for number in 0..40 {
            server.socket.write_all(&interim(number == 0)).await.expect("is read");
        }
        let reset = server.until_reset();
        let code = timeout(Duration::from_secs(60), reset).await.expect("what nobody reads is not kept");
        assert_eq!(code, ErrorCode::ENHANCE_YOUR_CALM);
        let mut rest = Vec::new();
        let error = pipe.read_to_end(&mut rest).await.expect_err("there is no response");
        assert_eq!((error.kind(), rest.len()), (ErrorKind::ConnectionReset, 0));
    });
}

const POST: &[u8] = b"POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 0\r\n\r\n";

#[test]
fn a_request_that_was_certainly_not_acted_on_is_told_from_one_that_was_lost() {
    with_client(async |client, socket| {
        let mut server = Scripted::new(socket, 100);
        let mut pipes: Vec<Pipe> = (0..3).map(|_| client.pipe().expect("has room")).collect();
        for pipe in &mut pipes {
            pipe.write_all(POST).await.expect("is taken");
        }
        let streams = server.requests(3).await;
        server.wire.reset(streams[0], ErrorCode::REFUSED_STREAM);
        server.wire.reset(streams[1], ErrorCode::INTERNAL_ERROR);
        server.flush().await;
        let mut kinds = Vec::new();
        for pipe in &mut pipes[..2] {
            kinds.push(pipe.read_u8().await.expect_err("is gone").kind());
        }
        assert_eq!(kinds, [UNPROCESSED, ErrorKind::ConnectionReset]);
        // GOAWAY: what it names is completed, and nothing begins any more.
        server.wire.go_away(ErrorCode::NO_ERROR);
        server.wire.respond(streams[2], 204, std::iter::empty(), true).expect("is open");
        server.flush().await;
        let mut response = String::new();
        pipes[2].read_to_string(&mut response).await.expect("is complete");
        assert_eq!(response, "HTTP/1.1 204 \r\nconnection: close\r\n\r\n");
        assert!(client.is_closing() && client.pipe().is_none());
    });
}

#[test]
fn what_came_before_a_reset_is_read_before_the_response_breaks_off() {
    with_client(async |client, socket| {
        let mut server = Scripted::new(socket, 10);
        let mut pipe = client.pipe().expect("has room");
        pipe.write_all(POST).await.expect("is taken");
        let streams = server.requests(1).await;
        let fields = [(&b"content-length"[..], &b"9"[..])];
        server.wire.respond(streams[0], 200, fields.into_iter(), false).expect("is open");
        server.wire.data(streams[0], b"begin", false).expect("there is room");
        server.wire.reset(streams[0], ErrorCode::INTERNAL_ERROR);
        // All in one write.
        server.flush().await;
        let mut sent = Vec::new();
        let error = pipe.read_to_end(&mut sent).await.expect_err("is not complete");
        assert_eq!(error.kind(), ErrorKind::ConnectionReset);
        let sent = String::from_utf8_lossy(&sent);
        assert!(
            sent.starts_with("HTTP/1.1 200 \r\ncontent-length: 9\r\n") && sent.ends_with("\r\n\r\nbegin"),
            "{sent}"
        );
        assert!(!client.is_closing());
    });
}

#[test]
fn no_more_requests_are_made_than_the_server_allows_and_the_end_of_a_connection_loses_those_on_it() {
    with_client(async |client, socket| {
        let mut server = Scripted::new(socket, 2);
        let mut first = client.pipe().expect("has room");
        let mut early = client.pipe().expect("has room");
        let mut third = client.pipe().expect("the limit is not known yet");
        first.write_all(POST).await.expect("is taken");
        let streams = server.requests(1).await;
        server.wire.respond(streams[0], 200, std::iter::empty(), true).expect("is open");
        server.flush().await;
        let mut response = String::new();
        first.read_to_string(&mut response).await.expect("is complete");
        assert!(response.contains("content-length: 0\r\n"), "{response}");
        drop(first);
        assert!(client.pipe().is_none(), "two are there, though nothing was sent on them");
        early.write_all(POST).await.expect("is taken");
        server.requests(1).await;
        drop(server);
        assert_eq!(early.read_u8().await.expect_err("is lost").kind(), ErrorKind::ConnectionReset);
        let unsent = third.write_all(POST).await.expect_err("there is no connection").kind();
        assert_eq!(unsent, UNPROCESSED);
    });
}

#[test]
fn what_a_server_sent_before_it_closed_the_connection_is_read_though_nothing_can_be_written_any_more() {
    with_client(async |client, socket| {
        let mut server = Scripted::new(socket, 100);
        let mut pipes: Vec<Pipe> = (0..2).map(|_| client.pipe().expect("has room")).collect();
        pipes[0].write_all(POST).await.expect("is taken");
        let streams = server.requests(1).await;
        server.wire.respond(streams[0], 204, std::iter::empty(), true).expect("is open");
        server.wire.go_away(ErrorCode::NO_ERROR);
        server.flush().await;
        drop(server);
        // The client's task has read nothing of that when it finds that it cannot write.
        pipes[1].write_all(POST).await.expect("is taken");
        assert_eq!(pipes[1].read_u8().await.expect_err("nobody saw it").kind(), UNPROCESSED);
        let mut response = String::new();
        pipes[0].read_to_string(&mut response).await.expect("is complete");
        assert_eq!(response, "HTTP/1.1 204 \r\nconnection: close\r\n\r\n");
    });
}

#[test]
fn a_chunk_that_is_written_while_the_window_is_used_up_is_sent_when_it_opens() {
    with_client(async |client, socket| {
        let mut server = Scripted::new(socket, 100);
        let mut pipe = client.pipe().expect("has room");
        let head = b"PUT / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n";
        pipe.write_all(head).await.expect("is taken");
        // More than the least window in two parts, of which the second has to wait; and the end, which comes meanwhile.
        for part in [60_000, 20_000] {
            let chunk = [format!("{part:x}\r\n").into_bytes(), vec![b'x'; part], b"\r\n".to_vec()].concat();
            pipe.write_all(&chunk).await.expect("is taken");
            tokio::task::yield_now().await;
        }
        pipe.write_all(b"1\r\ny\r\n0\r\n\r\n").await.expect("is taken");
        tokio::task::yield_now().await;
        assert_eq!(server.body_bytes().await, 80_001);
    });
}
