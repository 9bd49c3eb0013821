//! A relay that edits the messages it passes on: on both sides of a cache, it makes a wrong one of a right one.

use std::net::SocketAddr;
use std::rc::Rc;

use assay_conform::message::Message;
use assay_proxy::spec::{EVERY_HOST, OriginRoute, ProxySpec, Storing};
use assay_proxy::{Clock, Proxy, ProxyLimits};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::spawn_local;

/// The built-in proxy in front of an origin: where it listens.
pub fn built_in(origin: SocketAddr) -> SocketAddr {
    let spec = ProxySpec {
        name: "assay".into(),
        listen: "127.0.0.1:0".parse().unwrap(),
        threads: 1,
        cpus: Vec::new(),
        memory_bytes: 10_000_000,
        stale_if_error_s: 0,
        origins: vec![OriginRoute { authority: EVERY_HOST.into(), address: origin }],
        cooperation: None,
        access_log: None,
        prefetch: None,
        storing: Storing::default(),
        tls: None,
        origin_tls: None,
        origin_http2: false,
    };
    let proxy = Rc::new(Proxy::bind(&spec, Clock::System, ProxyLimits::default()).unwrap());
    let address = proxy.address();
    spawn_local(async move { proxy.serve().await });
    address
}

/// Changes a whole message, head and body.
pub trait Edit: Fn(Vec<u8>) -> Vec<u8> + Clone + 'static {}

impl<F: Fn(Vec<u8>) -> Vec<u8> + Clone + 'static> Edit for F {}

/// Passes messages on to `upstream`, each changed by its edit; where it listens.
pub async fn relay(upstream: SocketAddr, request: impl Edit, response: impl Edit) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    spawn_local(async move {
        while let Ok((stream, _)) = listener.accept().await {
            spawn_local(exchanges(stream, upstream, request.clone(), response.clone()));
        }
    });
    address
}

/// The exchanges of one connection; none: it ended.
async fn exchanges(
    mut client: TcpStream,
    upstream: SocketAddr,
    request: impl Edit,
    response: impl Edit,
) -> Option<()> {
    let mut server = TcpStream::connect(upstream).await.ok()?;
    let (mut from_client, mut from_server) = (Vec::new(), Vec::new());
    loop {
        let (message, _) = message(&mut client, &mut from_client, None).await?;
        let method = String::from_utf8(message.split(|byte| *byte == b' ').next()?.to_vec()).ok()?;
        server.write_all(&request(message)).await.ok()?;
        loop {
            let (message, is_complete) = self::message(&mut server, &mut from_server, Some(&method)).await?;
            let is_interim = message.starts_with(b"HTTP/1.1 1");
            client.write_all(&response(message)).await.ok()?;
            if !is_complete {
                return None;
            }
            if !is_interim {
                break;
            }
        }
    }
}

/// The next message, and whether it is complete. `method`: it is the response to such a request.
pub async fn message(
    stream: &mut TcpStream,
    buf: &mut Vec<u8>,
    method: Option<&str>,
) -> Option<(Vec<u8>, bool)> {
    let mut ended = false;
    loop {
        if let Some((mut head, length)) = Message::head(buf) {
            let framing =
                method.map_or_else(|| head.request_framing(), |method| head.response_framing(method));
            if let Some(used) = head.take_body(&buf[length..], framing, ended) {
                return Some((buf.drain(..length + used).collect(), head.is_complete && !ended));
            }
        }
        if ended {
            return None;
        }
        ended = stream.read_buf(buf).await.ok()? == 0;
    }
}
