//! Health checks of servers. One request, and whether the response is what it should be.

use std::net::SocketAddr;

use assay_http::head::ResponseHead;
use assay_net::byte_stream::{ByteStream, LEAST_ROOM};
use assay_net::connection::{Connection, Resources};
use assay_net::http2::Client;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;

use crate::config::Check;
use crate::secure::ToServer;

/// A server: where it is, how it is spoken to over TLS, and whether over HTTP/2.
type Checked<'c> = (SocketAddr, Option<&'c ToServer>, bool);

pub async fn is_well(server: Checked<'_>, check: &Check) -> bool {
    let (address, ..) = server;
    if check.connects {
        let connected = timeout(check.timeout, TcpStream::connect(address)).await;
        return matches!(connected, Ok(Ok(_)));
    }
    let status = timeout(check.timeout, probe(server, check)).await;
    let Ok(Some(status)) = status else { return false };
    check.statuses.iter().any(|(first, last)| (*first..=*last).contains(&status))
}

/// The status of the response; none when there is no response, or it is not HTTP.
async fn probe((address, tls, speaks_http2): Checked<'_>, check: &Check) -> Option<u16> {
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
    if stream.take_handshake().is_some_and(|handshake| !handshake.agreed.is_http2) {
        return None;
    }
    let (client, carried) = Client::new(Connection::new(stream, &Resources::new()), tls.is_some());
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

/// The status of the response that comes.
async fn status(stream: &mut (impl AsyncRead + Unpin)) -> Option<u16> {
    let mut response = Vec::new();
    // A whole record of TLS must fit.
    let mut room = vec![0; LEAST_ROOM];
    loop {
        match ResponseHead::parse(&response) {
            Err(_) => return None,
            Ok(Some((head, length))) if head.is_interim() => drop(response.drain(..length)),
            Ok(Some((head, _))) => return Some(head.status),
            Ok(None) => match stream.read(&mut room).await.ok()? {
                0 => return None,
                count => response.extend_from_slice(&room[..count]),
            },
        }
    }
}
