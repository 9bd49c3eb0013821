//! Tunnels to a Multiplier that opens them.

use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

use assay_net::tls::authority::{Authority, KeyKind, Validity};
use assay_net::tls::intercept::AUTHORITY_NAME;
use assay_net::tls::settings::AuthorityFiles;
use assay_protocol::evaluation::OpenedCounters;
use assay_spe::multiplier::MultiplierLimits;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::multiplier_bed::{Bed, Server, until};

const ESTABLISHED: &[u8] = b"HTTP/1.1 200 Connection established\r\n\r\n";

pub fn valid() -> Validity {
    Validity::around(SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs())
}

pub fn authority() -> Authority {
    Authority::named(AUTHORITY_NAME, KeyKind::P256, valid()).unwrap()
}

pub fn kept(authority: &Authority, dir: &Path) -> AuthorityFiles {
    let files = AuthorityFiles { certificate: dir.join("authority.pem"), key: dir.join("authority.key") };
    std::fs::write(&files.certificate, &authority.certificate).unwrap();
    std::fs::write(&files.key, authority.key()).unwrap();
    files
}

/// A Multiplier that opens tunnels with this authority.
pub fn opening(authority: &Authority, dir: &Path, collector: &Server, limits: MultiplierLimits) -> Bed {
    let files = kept(authority, dir);
    Bed::with_limits(collector, &[], limits, |spec| (spec.forward, spec.intercept) = (true, Some(files)))
}

/// A connection on which a tunnel was requested, with what is sent before the response.
pub async fn tunnel(bed: &Bed, target: &str, early: &[u8]) -> TcpStream {
    let mut stream = TcpStream::connect(bed.address()).await.unwrap();
    let connect = format!("CONNECT {target} HTTP/1.1\r\nHost: {target}\r\n\r\n");
    stream.write_all(&[connect.as_bytes(), early].concat()).await.unwrap();
    let mut head = vec![0; ESTABLISHED.len()];
    stream.read_exact(&mut head).await.unwrap();
    assert_eq!(head, ESTABLISHED);
    stream
}

pub async fn counted(bed: &Bed, expected: OpenedCounters) {
    until(|| bed.counters().opened == expected).await;
}
