//! Origins over HTTP/2: what an origin has certainly not acted on is sent again, with its body as long as that is kept.

use std::cell::{Cell, RefCell};
use std::net::SocketAddr;
use std::rc::Rc;

use assay_http2::{Config, Connection, ErrorCode, Event};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::spawn_local;

use crate::harness::{Bed, Client, run};

/// A little more than is kept of a body.
const TOO_LONG: usize = 80 * 1024;

/// An origin over HTTP/2. The first of its connections retire once a request with so much of a body is there; the others respond
/// with the length of the body that they got.
struct Origin {
    address: SocketAddr,
    connections: Rc<Cell<usize>>,
    /// The bodies that were acted on.
    bodies: Rc<RefCell<Vec<Vec<u8>>>>,
}

impl Origin {
    async fn start(retiring: usize, retires_after_bytes: usize) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (connections, bodies) = (Rc::<Cell<usize>>::default(), Rc::<RefCell<Vec<Vec<u8>>>>::default());
        let (accepted, acted_on) = (Rc::clone(&connections), Rc::clone(&bodies));
        spawn_local(async move {
            while let Ok((socket, _)) = listener.accept().await {
                let retires_after = (accepted.get() < retiring).then_some(retires_after_bytes);
                accepted.set(accepted.get() + 1);
                spawn_local(serve(socket, retires_after, Rc::clone(&acted_on)));
            }
        });
        Self { address, connections, bodies }
    }
}

/// Serves one request after the other, or retires.
async fn serve(mut socket: TcpStream, retires_after: Option<usize>, acted_on: Rc<RefCell<Vec<Vec<u8>>>>) {
    let mut wire = Connection::server(Config::default());
    let (mut room, mut body) = (vec![0; 16 * 1024], Vec::new());
    // What the connection has not taken yet.
    let mut unread = Vec::new();
    while let Ok(count @ 1..) = socket.read(&mut room).await {
        unread.extend_from_slice(&room[..count]);
        let mut used = 0;
        loop {
            let (taken, event) = wire.next(&unread[used..]).unwrap();
            used += taken;
            let ended = match event {
                Event::NeedMore => break,
                Event::Head { stream, ends, .. } => ends.then_some(stream),
                Event::Data { stream, data, ends } => {
                    body.extend_from_slice(data);
                    ends.then_some(stream)
                }
                _ => None,
            };
            if let Some(stream) = ended.filter(|_| retires_after.is_none()) {
                let length = body.len().to_string();
                acted_on.borrow_mut().push(std::mem::take(&mut body));
                let fields = [(&b"content-length"[..], length.len().to_string())];
                let fields = fields.iter().map(|(name, value)| (*name, value.as_bytes()));
                wire.respond(stream, 200, fields, false).unwrap();
                wire.data(stream, length.as_bytes(), true).unwrap();
            }
        }
        unread.drain(..used);
        if retires_after.is_some_and(|bytes| body.len() >= bytes) {
            return retire(socket).await;
        }
        flush(&mut socket, &mut wire).await;
    }
}

/// Says that no request was acted on: this connection has seen none.
async fn retire(mut socket: TcpStream) {
    let mut wire = Connection::server(Config::default());
    wire.go_away(ErrorCode::NO_ERROR);
    flush(&mut socket, &mut wire).await;
    let mut rest = vec![0; 16 * 1024];
    while let Ok(1..) = socket.read(&mut rest).await {}
}

async fn flush(socket: &mut TcpStream, wire: &mut Connection) {
    let bytes = wire.output().to_vec();
    wire.wrote(bytes.len());
    // The proxy may have given the connection up.
    let _ = socket.write_all(&bytes).await;
}

async fn put(client: &mut Client, body: &[u8]) -> (u16, Option<String>) {
    let head = format!("PUT http://a/x HTTP/1.1\r\nHost: a\r\nContent-Length: {}\r\n\r\n", body.len());
    client.stream.write_all(&[head.as_bytes(), body].concat()).await.unwrap();
    let response = client.response("PUT").await;
    (response.status, response.body)
}

#[test]
fn an_upload_that_was_not_acted_on_is_sent_again_with_its_whole_body() {
    run(async {
        // Before its body has come, with a part of it there, and with all of it.
        for (body, after) in [(&b"0123456789"[..], 0), (&[b'x'; 50_000], 20_000), (&[b'y'; 60_000], 60_000)] {
            let origin = Origin::start(1, after).await;
            let bed = Bed::with_http2(&[("a", origin.address)]);
            let (status, response) = put(&mut bed.client().await, body).await;
            assert_eq!((status, response), (200, Some(body.len().to_string())), "{after}");
            assert_eq!(origin.connections.get(), 2, "{after}");
            assert_eq!(*origin.bodies.borrow(), [body], "it was acted on once: {after}");
        }
    });
}

#[test]
fn an_upload_whose_body_is_not_kept_any_more_is_refused_and_never_sent_in_part() {
    run(async {
        let origin = Origin::start(1, TOO_LONG - 1).await;
        let bed = Bed::with_http2(&[("a", origin.address)]);
        let mut client = bed.client().await;
        let (status, _) = put(&mut client, &[b'z'; TOO_LONG]).await;
        assert_eq!(status, 502);
        assert!(origin.bodies.borrow().is_empty());
    });
}

#[test]
fn an_upload_that_nobody_acts_on_is_refused_in_the_end() {
    run(async {
        let origin = Origin::start(usize::MAX, 0).await;
        let bed = Bed::with_http2(&[("a", origin.address)]);
        let (status, _) = put(&mut bed.client().await, b"0123456789").await;
        assert_eq!((status, origin.connections.get()), (502, 4), "once, and three times more");
    });
}
