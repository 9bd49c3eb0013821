//! Health checks of servers. One request, and whether the response is what it should be.

use std::net::SocketAddr;

use assay_http::head::ResponseHead;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;

use crate::config::Check;

/// Sends one probe.
pub async fn is_well(address: SocketAddr, check: &Check) -> bool {
    let status = timeout(check.timeout, probe(address, check)).await;
    let Ok(Some(status)) = status else { return false };
    check.statuses.iter().any(|(first, last)| (*first..=*last).contains(&status))
}

/// The status of the response; none when there is no response, or it is not HTTP.
async fn probe(address: SocketAddr, check: &Check) -> Option<u16> {
    let mut stream = TcpStream::connect(address).await.ok()?;
    let host = check.host.clone().unwrap_or_else(|| address.to_string());
    let request = format!(
        "GET {} HTTP/1.1\r\nHost: {host}\r\nUser-Agent: assay-switch\r\nConnection: close\r\n\r\n",
        check.path
    );
    stream.write_all(request.as_bytes()).await.ok()?;
    let mut response = Vec::new();
    loop {
        match ResponseHead::parse(&response) {
            Err(_) => return None,
            Ok(Some((head, length))) if head.is_interim() => drop(response.drain(..length)),
            Ok(Some((head, _))) => return Some(head.status),
            Ok(None) => {
                if stream.read_buf(&mut response).await.ok()? == 0 {
                    return None;
                }
            }
        }
    }
}
