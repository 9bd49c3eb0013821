//! A pool whose server is spoken to over HTTP/2.

use std::cell::RefCell;
use std::net::SocketAddr;
use std::rc::Rc;
use std::time::Duration;

use assay_http2::{Config, Connection as Wire, ErrorCode};
use assay_testbed::run;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::task::{JoinHandle, spawn_local};

use super::tests::{LIMITS, Seen, echo};
use crate::body::BodyReader;
use crate::byte_stream::ByteStream;
use crate::connection::Resources;
use crate::pool::Pool;
use crate::upstream::{MAX_RETRIES, UpstreamError, UpstreamTimeouts};

const PATIENCE: UpstreamTimeouts =
    UpstreamTimeouts { connect: Duration::from_secs(30), response: Duration::from_secs(30) };
const REQUEST: &[u8] = b"GET /a HTTP/1.1\r\nHost: www.test\r\n\r\n";

/// A server of echoes at an address, and the tasks of its connections.
struct Server {
    address: SocketAddr,
    connections: Rc<RefCell<Vec<JoinHandle<()>>>>,
}

/// A server that takes no request on its connection: what it was sent, it has not acted on.
async fn retire(mut socket: TcpStream) {
    let mut wire = Wire::server(Config::default());
    let mut bytes = vec![0; 4096];
    let _ = socket.read(&mut bytes).await;
    wire.go_away(ErrorCode::NO_ERROR);
    let _ = socket.write_all(wire.output()).await;
    while socket.read(&mut bytes).await.is_ok_and(|read| read > 0) {}
}

impl Server {
    /// Its first connections retire as the first request comes.
    async fn start(retiring: usize) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("binds");
        let address = listener.local_addr().expect("is bound");
        let connections = Rc::<RefCell<Vec<_>>>::default();
        let accepted = Rc::clone(&connections);
        spawn_local(async move {
            while let Ok((socket, _)) = listener.accept().await {
                if accepted.borrow().len() < retiring {
                    accepted.borrow_mut().push(spawn_local(retire(socket)));
                    continue;
                }
                let serving = echo(ByteStream::new(socket, None), LIMITS, Seen::default());
                accepted.borrow_mut().push(spawn_local(serving));
            }
        });
        Self { address, connections }
    }

    fn accepted(&self) -> usize {
        self.connections.borrow().len()
    }
}

/// Makes a request, and gives the body of its response.
async fn request(pool: &Pool, address: SocketAddr) -> Result<Vec<u8>, UpstreamError> {
    let take = |received: crate::upstream::ReceivedHead<'_>| received.head.body("GET");
    let (mut upstream, framing) = pool.exchange(address, REQUEST, PATIENCE, |_| (), take).await?;
    let (mut body, mut all) = (BodyReader::new(framing), Vec::new());
    while let Some(part) = body.next(&mut upstream.connection, PATIENCE.response).await.expect("is whole") {
        all.extend_from_slice(&part);
    }
    pool.put_back(upstream);
    Ok(all)
}

fn with_pool(script: impl AsyncFnOnce(Rc<Pool>, Server)) {
    with_pool_and(0, script);
}

fn with_pool_and(retiring: usize, script: impl AsyncFnOnce(Rc<Pool>, Server)) {
    run(async {
        let server = Server::start(retiring).await;
        let resources = Resources::new();
        resources.run_deadlines();
        let pool = Rc::new(Pool::new(&resources).with_http2_servers([server.address]));
        script(pool, server).await;
    });
}

#[test]
fn requests_share_a_connection_also_those_that_come_before_there_is_one() {
    with_pool(async |pool, server| {
        let address = server.address;
        let many: Vec<_> = (0..20)
            .map(|_| {
                let pool = Rc::clone(&pool);
                spawn_local(async move { request(&pool, address).await })
            })
            .collect();
        for one in many {
            let body = one.await.expect("does not panic").expect("gets a response");
            assert!(body.starts_with(b"GET /a www.test"), "{}", String::from_utf8_lossy(&body));
        }
        assert_eq!((server.accepted(), pool.take_opened()), (1, 1));
    });
}

#[test]
fn a_connection_that_has_ended_is_replaced() {
    with_pool(async |pool, server| {
        for connections in 1..=3 {
            request(&pool, server.address).await.expect("gets a response");
            assert_eq!(server.accepted(), connections);
            for connection in server.connections.borrow().iter() {
                connection.abort();
            }
        }
    });
}

#[test]
fn what_a_server_has_not_acted_on_is_sent_again_and_not_for_ever() {
    with_pool_and(2, async |pool, server| {
        request(&pool, server.address).await.expect("gets a response on the third connection");
        assert_eq!(server.accepted(), 3);
    });
    with_pool_and(usize::MAX, async |pool, server| {
        let error = request(&pool, server.address).await.expect_err("nobody acts on it");
        assert!(matches!(error, UpstreamError::Unprocessed(_)), "{error}");
        assert_eq!(server.accepted(), 1 + MAX_RETRIES as usize);
    });
}

#[test]
fn a_connection_without_requests_is_let_go() {
    with_pool(async |pool, server| {
        request(&pool, server.address).await.expect("gets a response");
        assert!(pool.take(&server.address).is_some(), "it has room for more");
        tokio::task::yield_now().await;
        pool.close_older_than(Duration::ZERO);
        assert!(pool.take(&server.address).is_none());
        request(&pool, server.address).await.expect("gets a response");
        assert_eq!(server.accepted(), 2);
    });
}

#[test]
fn a_server_that_is_not_there_is_an_error_for_every_request() {
    with_pool(async |pool, server| {
        let resources = Resources::new();
        // Bound, so that nobody else can listen there, and not listening.
        let bound = TcpSocket::new_v4().expect("there are sockets");
        bound.bind(([127, 0, 0, 1], 0).into()).expect("loopback has ports");
        let nobody = bound.local_addr().expect("is bound");
        let alone = Pool::new(&resources).with_http2_servers([nobody]);
        for _ in 0..2 {
            let error = request(&alone, nobody).await.expect_err("is refused");
            assert!(matches!(error, UpstreamError::Unreachable(..)), "{error}");
        }
        request(&pool, server.address).await.expect("gets a response");
    });
}

#[test]
fn a_server_has_no_more_requests_at_once_than_it_may_have() {
    run(async {
        let server = Server::start(0).await;
        let resources = Resources::new();
        resources.run_deadlines();
        let pool = Pool::new(&resources).with_http2_servers([server.address]).with_max_per_server(2);
        let first = pool.connect(server.address, PATIENCE).await.expect("may have it");
        let second = pool.take(&server.address).expect("has room on its connection");
        assert!(pool.take(&server.address).is_none(), "it has two");
        let full = request(&pool, server.address).await.expect_err("it has two");
        assert!(matches!(full, UpstreamError::Full(address) if address == server.address), "{full}");
        drop((first, second));
        request(&pool, server.address).await.expect("gets a response");
        assert_eq!(server.accepted(), 1);
    });
}
