//! One HTTP request by hand, to see whether a proxy is ready and what its counters say.

use std::future::poll_fn;
use std::io;
use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;

use assay_host::link::Namespace;
use assay_http2::{Config, Connection, Event, RequestHead};
use assay_net::byte_stream::{ByteStream, MIN_READ_BYTES, tls_error};
use assay_net::tls::error::{TlsError, TlsErrorKind};
use assay_net::tls::{HTTP_1_1, HTTP_2};
use thiserror::Error;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpSocket, TcpStream, UnixStream};

use crate::tls::TlsProbe;

/// Longest response that is read.
const MAX_RESPONSE_BYTES: usize = 4 * 1024 * 1024;

/// A server, and how it is spoken to over TLS; none: in the clear.
#[derive(Debug, Clone, Copy)]
pub struct Endpoint<'a> {
    pub address: SocketAddr,
    pub tls: Option<&'a TlsProbe>,
}

/// Requests `target` of `host` from a server, out of a network (the lab's own when none). Returns status and
/// body.
pub async fn get(
    from: Option<&Namespace>,
    to: Endpoint<'_>,
    host: &str,
    target: &str,
    limit: Duration,
) -> io::Result<(u16, String)> {
    // HTTP/1.0: the response is not chunked, and the connection ends with it.
    let request = format!("GET {target} HTTP/1.0\r\nHost: {host}\r\nConnection: close\r\n\r\n");
    let exchange = async {
        let mut stream = secure(connect(from, to.address).await?, to.tls, HTTP_1_1).await?;
        stream.write_all(request.as_bytes()).await?;
        let mut response = Vec::new();
        let mut room = vec![0; MIN_READ_BYTES];
        // Not every server ends the connection when told to: a whole response is enough.
        while !is_whole(&response) && response.len() < MAX_RESPONSE_BYTES {
            let read = poll_fn(|context| stream.poll_recv(context, &mut room)).await?;
            if read.length == 0 {
                break;
            }
            response.extend_from_slice(&room[..read.length]);
        }
        Ok(response)
    };
    let response: io::Result<Vec<u8>> = tokio::time::timeout(limit, exchange)
        .await
        .map_err(|_| io::Error::new(io::ErrorKind::TimedOut, format!("no response within {limit:?}")))?;
    parse(&response?).ok_or_else(|| io::Error::new(io::ErrorKind::InvalidData, "the response is not HTTP"))
}

/// The same over HTTP/2: in clear with prior knowledge, or over TLS.
pub async fn get_over_http2(
    from: Option<&Namespace>,
    to: Endpoint<'_>,
    host: &str,
    target: &str,
    limit: Duration,
) -> io::Result<(u16, String)> {
    let exchange = async {
        let mut stream = secure(connect(from, to.address).await?, to.tls, HTTP_2).await?;
        let mut wire = Connection::client(Config::default());
        let head = RequestHead {
            method: b"GET",
            scheme: if to.tls.is_some() { b"https" } else { b"http" },
            authority: host.as_bytes(),
            path: target.as_bytes(),
        };
        wire.request(&head, std::iter::empty(), true).map_err(io::Error::other)?;
        let (mut room, mut seen) = (vec![0; MIN_READ_BYTES], Http2Response::default());
        while !seen.is_whole {
            stream.write_all(wire.output()).await?;
            wire.wrote(wire.output().len());
            let read = poll_fn(|context| stream.poll_recv(context, &mut room)).await?;
            if read.length == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            seen.take(&mut wire, &room[..read.length])?;
        }
        Ok((seen.status, String::from_utf8_lossy(&seen.body).into_owned()))
    };
    tokio::time::timeout(limit, exchange)
        .await
        .map_err(|_| io::Error::new(io::ErrorKind::TimedOut, format!("no response within {limit:?}")))?
}

/// The one response of a connection of HTTP/2, as far as it has come.
#[derive(Default)]
struct Http2Response {
    status: u16,
    body: Vec<u8>,
    is_whole: bool,
}

impl Http2Response {
    fn take(&mut self, wire: &mut Connection, input: &[u8]) -> io::Result<()> {
        let invalid = |what: String| io::Error::new(io::ErrorKind::InvalidData, what);
        let mut rest = input;
        loop {
            let (used, event) = wire.next(rest).map_err(|error| invalid(error.to_string()))?;
            rest = &rest[used..];
            match event {
                Event::NeedMore => return Ok(()),
                Event::Head { head, ends, .. } => (self.status, self.is_whole) = (head.status(), ends),
                Event::Data { data, ends, .. } if self.body.len() < MAX_RESPONSE_BYTES => {
                    self.body.extend_from_slice(data);
                    self.is_whole = ends;
                }
                Event::Data { .. } | Event::Trailers { .. } => self.is_whole = true,
                Event::Reset { code, .. } => return Err(invalid(format!("the stream was reset ({code})"))),
                Event::Failed { error, .. } => return Err(invalid(error.to_string())),
                Event::Unprocessed { .. } => return Err(io::ErrorKind::ConnectionAborted.into()),
                _ => {}
            }
        }
    }
}

/// Sends a line to a program that listens on a Unix socket, and returns all that it sends back.
pub async fn say(socket: &Path, words: &str, limit: Duration) -> io::Result<String> {
    let exchange = async {
        let mut stream = UnixStream::connect(socket).await?;
        stream.write_all(format!("{words}\n").as_bytes()).await?;
        let mut response = Vec::new();
        stream.take(MAX_RESPONSE_BYTES as u64).read_to_end(&mut response).await?;
        Ok(String::from_utf8_lossy(&response).into_owned())
    };
    tokio::time::timeout(limit, exchange)
        .await
        .map_err(|_| io::Error::new(io::ErrorKind::TimedOut, format!("no response within {limit:?}")))?
}

/// A handshake that failed, with what to do about it.
#[derive(Debug, Error)]
#[error("TLS: {0}; {advice}", advice = .0.kind.advice())]
pub struct HandshakeError(TlsError);

/// True if a server's certificate is not accepted: no later attempt will be.
pub fn is_refused_certificate(error: &io::Error) -> bool {
    let handshake = error.get_ref().and_then(|error| error.downcast_ref::<HandshakeError>());
    handshake.is_some_and(|HandshakeError(error)| {
        matches!(
            error.kind,
            TlsErrorKind::CertificateExpired
                | TlsErrorKind::CertificateName
                | TlsErrorKind::CertificateUntrusted
        )
    })
}

/// Makes the handshake, where there is to be one. A server that does not speak the protocol is invalid data, as one is that responds in
/// another.
async fn secure(
    socket: TcpStream,
    tls: Option<&TlsProbe>,
    protocol: &[u8],
) -> io::Result<ByteStream<TcpStream>> {
    let Some(tls) = tls else { return Ok(ByteStream::cleartext(socket)) };
    let session = tls.client.with_protocol(protocol).connect(&tls.name, false).map_err(io::Error::other)?;
    let mut stream = ByteStream::over_tls(socket, session);
    stream.wait_open().await.map_err(|error| match tls_error(&error) {
        Some(wrong) => {
            let has_none_in_common = wrong.kind == TlsErrorKind::NoCommonParameters;
            let kind = if has_none_in_common { io::ErrorKind::InvalidData } else { io::ErrorKind::Other };
            io::Error::new(kind, HandshakeError(wrong.clone()))
        }
        None => error,
    })?;
    Ok(stream)
}

async fn connect(from: Option<&Namespace>, address: SocketAddr) -> io::Result<TcpStream> {
    match from {
        None => TcpStream::connect(address).await,
        // A socket belongs to the network that it was made in, whoever uses it.
        Some(namespace) => {
            let make = || if address.is_ipv4() { TcpSocket::new_v4() } else { TcpSocket::new_v6() };
            namespace.run(make).map_err(io::Error::other)??.connect(address).await
        }
    }
}

/// True when the response says how long it is, and is.
fn is_whole(response: &[u8]) -> bool {
    let Some(head_end) = response.windows(4).position(|bytes| bytes == b"\r\n\r\n") else { return false };
    let head = String::from_utf8_lossy(&response[..head_end]);
    let length = head.lines().find_map(|line| {
        let (name, value) = line.split_once(':')?;
        name.eq_ignore_ascii_case("content-length").then(|| value.trim().parse::<usize>().ok())?
    });
    length.is_some_and(|length| response.len() - head_end - 4 >= length)
}

fn parse(response: &[u8]) -> Option<(u16, String)> {
    let text = String::from_utf8_lossy(response);
    let (head, body) = text.split_once("\r\n\r\n")?;
    let status = head.strip_prefix("HTTP/1.")?.split(' ').nth(1)?.parse().ok()?;
    Some((status, body.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_response_that_says_its_length_is_whole_when_it_has_it() {
        let response = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok";
        assert!(is_whole(response));
        for end in 0..response.len() {
            assert!(!is_whole(&response[..end]), "{end}");
        }
        assert!(!is_whole(b"HTTP/1.1 200 OK\r\n\r\nok"));
    }

    #[test]
    fn only_a_certificate_is_not_worth_another_attempt() {
        use TlsErrorKind::{
            CertificateExpired, CertificateName, CertificateUntrusted, Failed, NoCommonParameters, NotTls,
        };
        let is_refused =
            |kind| is_refused_certificate(&io::Error::other(HandshakeError(TlsError::new(kind, "seen"))));
        assert!([CertificateExpired, CertificateName, CertificateUntrusted].into_iter().all(is_refused));
        assert!(![NotTls, NoCommonParameters, Failed].into_iter().any(is_refused));
        assert!(!is_refused_certificate(&io::ErrorKind::ConnectionRefused.into()));
    }

    #[test]
    fn status_and_body_are_told_apart() {
        let response = b"HTTP/1.1 200 OK\r\nA: b\r\n\r\nbody\r\n\r\nmore";
        assert_eq!(parse(response), Some((200, "body\r\n\r\nmore".into())));
        assert_eq!(parse(b"HTTP/1.1 502\r\n\r\n"), Some((502, String::new())));
        assert_eq!(parse(b"SSH-2.0-x\r\n\r\n"), None);
        assert_eq!(parse(b"HTTP/1.1 200 OK\r\n"), None);
    }
}
