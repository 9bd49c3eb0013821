//! Active health checks: one request, and whether its response is as configured.

use std::net::SocketAddr;

use assay_http::head::ResponseHead;
use assay_net::byte_stream::{ByteStream, MIN_READ_BYTES};
use assay_net::connection::{Connection, Resources};
use assay_net::http2::Http2Client;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;

use crate::config::HealthCheck;
use crate::tls::UpstreamTls;

/// Server to be checked.
#[derive(Clone, Copy)]
pub struct CheckTarget<'c> {
    pub address: SocketAddr,
    pub tls: Option<&'c UpstreamTls>,
    pub speaks_http2: bool,
}

pub async fn is_healthy(server: CheckTarget<'_>, check: &HealthCheck) -> bool {
    if check.connects {
        let connected = timeout(check.timeout, TcpStream::connect(server.address)).await;
        return matches!(connected, Ok(Ok(_)));
    }
    let status = timeout(check.timeout, probe(server, check)).await;
    let Ok(Some(status)) = status else { return false };
    check.statuses.iter().any(|(first, last)| (*first..=*last).contains(&status))
}

/// Status of the response; `None` without a response, or if it is not HTTP.
async fn probe(server: CheckTarget<'_>, check: &HealthCheck) -> Option<u16> {
    let CheckTarget { address, tls, speaks_http2 } = server;
    let socket = TcpStream::connect(address).await.ok()?;
    let session = tls.map(|tls| tls.client.connect(&tls.name, true)).transpose().ok()?;
    let mut stream = ByteStream::new(socket, session);
    stream.wait_open().await.ok()?;
    let host = check.host.clone().unwrap_or_else(|| address.to_string());
    let request = format!(
        "GET {} HTTP/1.1\r\nHost: {host}\r\nUser-Agent: assay-switch\r\nConnection: close\r\n\r\n",
        check.path
    );
    if !speaks_http2 {
        stream.write_all(request.as_bytes()).await.ok()?;
        stream.flush_all().await.ok()?;
        return status(&mut stream).await;
    }
    if stream.take_handshake().is_some_and(|handshake| !handshake.negotiated.is_http2) {
        return None;
    }
    let (client, carried) = Http2Client::new(Connection::new(stream, &Resources::new()), tls.is_some());
    let mut pipe = client.pipe()?;
    let exchange = async {
        pipe.write_all(request.as_bytes()).await.ok()?;
        status(&mut pipe).await
    };
    tokio::select! {
        status = exchange => status,
        _ = carried => None,
    }
}

/// Reads until the head of the final response.
async fn status(stream: &mut (impl AsyncRead + Unpin)) -> Option<u16> {
    let mut response = Vec::new();
    // The buffer must hold a whole TLS record.
    let mut buffer = vec![0; MIN_READ_BYTES];
    loop {
        match ResponseHead::parse(&response) {
            Err(_) => return None,
            Ok(Some((head, length))) if head.is_interim() => drop(response.drain(..length)),
            Ok(Some((head, _))) => return Some(head.status),
            Ok(None) => match stream.read(&mut buffer).await.ok()? {
                0 => return None,
                count => response.extend_from_slice(&buffer[..count]),
            },
        }
    }
}
