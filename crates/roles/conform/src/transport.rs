//! A connection to a target, in clear or over TLS: bytes in and bytes out.

use std::io;
use std::net::SocketAddr;

use assay_net::tls::client::{TlsClient, TlsServerName, TlsSettingsError, Trust};
use assay_net::tls::error::TlsError;
use assay_net::tls::session::Session;
use assay_net::tls::settings::Offer;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// Bytes that are read at once.
const READ_BYTES: usize = 16 << 10;

/// TLS client for a target. Its certificate is not verified: cases are about HTTP.
#[derive(Debug, Clone)]
pub struct Tls {
    http1: TlsClient,
    http2: TlsClient,
    name: TlsServerName,
}

impl Tls {
    /// For a target that stands for this host (`host` or `host:port`).
    pub fn to(host: &str) -> Result<Self, TlsSettingsError> {
        let http1 = TlsClient::new(Trust::Everybody, &Offer::default())?;
        let http2 = http1.with_protocol(assay_net::tls::HTTP_2);
        Ok(Self { http1, http2, name: TlsServerName::from_authority(host)? })
    }
}

/// Address of a target, and the TLS client for it.
#[derive(Debug, Clone)]
pub struct Endpoint {
    pub address: SocketAddr,
    /// TLS client; none: plain text.
    pub tls: Option<Tls>,
}

pub struct TargetStream {
    stream: TcpStream,
    session: Option<Session>,
    /// Plain text that came with the end of the handshake.
    early: Vec<u8>,
}

impl TargetStream {
    /// Connects, and agrees on a protocol where TLS is spoken.
    pub async fn connect(endpoint: &Endpoint, is_http2: bool) -> io::Result<Self> {
        let stream = TcpStream::connect(endpoint.address).await?;
        stream.set_nodelay(true)?;
        let mut wire = Self { stream, session: None, early: Vec::new() };
        if let Some(tls) = &endpoint.tls {
            let client = if is_http2 { &tls.http2 } else { &tls.http1 };
            wire.shake_hands(client.connect(&tls.name, false).map_err(wrong)?).await?;
            let agreed = wire.session.as_ref().and_then(Session::negotiated);
            if is_http2 && !agreed.is_some_and(|agreed| agreed.is_http2) {
                return Err(io::Error::other("the target does not agree to speak HTTP/2 over TLS (ALPN)"));
            }
        }
        Ok(wire)
    }

    async fn shake_hands(&mut self, mut session: Session) -> io::Result<()> {
        let mut out = Vec::new();
        session.begin(&mut out).map_err(wrong)?;
        loop {
            self.stream.write_all(&out).await?;
            out.clear();
            if session.is_open() {
                self.session = Some(session);
                return Ok(());
            }
            let mut read = vec![0; READ_BYTES];
            let bytes = self.stream.read(&mut read).await?;
            if bytes == 0 {
                return Err(io::Error::other("the connection ended within the handshake of TLS"));
            }
            let early = &mut self.early;
            let received =
                session.receive(&mut read[..bytes], &mut |plain| early.extend_from_slice(plain), &mut out);
            if let Err(error) = received {
                // The alert that says what is wrong is a courtesy.
                let _ = self.stream.write_all(&out).await;
                return Err(wrong(error));
            }
        }
    }

    /// Sends all of these bytes.
    pub async fn write_all(&mut self, bytes: &[u8]) -> io::Result<()> {
        let Some(session) = &mut self.session else { return self.stream.write_all(bytes).await };
        let mut out = Vec::new();
        session.seal(bytes, &mut out).map_err(wrong)?;
        self.stream.write_all(&out).await
    }

    /// Appends what comes; 0: the other side has ended the connection. Nothing is lost if the future is dropped.
    pub async fn read_buf(&mut self, buf: &mut Vec<u8>) -> io::Result<usize> {
        let Some(session) = &mut self.session else { return self.stream.read_buf(buf).await };
        let before = buf.len();
        buf.append(&mut self.early);
        let mut read = vec![0; READ_BYTES];
        while buf.len() == before && !session.is_closed() {
            let bytes = self.stream.read(&mut read).await?;
            if bytes == 0 {
                break;
            }
            let mut out = Vec::new();
            session
                .receive(&mut read[..bytes], &mut |plain| buf.extend_from_slice(plain), &mut out)
                .map_err(wrong)?;
            self.stream.write_all(&out).await?;
        }
        Ok(buf.len() - before)
    }
}

fn wrong(error: TlsError) -> io::Error {
    io::Error::other(format!("TLS: {error}"))
}
