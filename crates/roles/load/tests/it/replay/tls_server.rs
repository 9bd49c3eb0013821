//! A server over TLS, and a log that is sent to it.

use std::io::ErrorKind;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::time::{SystemTime, UNIX_EPOCH};

use assay_base::clock::monotonic_ns;
use assay_load::replay::{LogSource, ReplayOptions, ReplayResults, ReplayTls, RequestSource};
use assay_net::byte_stream::{ByteStream, MIN_READ_BYTES};
use assay_net::tls::authority::{Authority, KeyKind, Validity};
use assay_net::tls::client::{TlsClient, Trust};
use assay_net::tls::server::TlsServer;
use assay_net::tls::settings::Offer;

use crate::replay::harness::{combined, log, options, replay};

/// What came, in any order of connections.
pub type Lines = Arc<Mutex<Vec<String>>>;

/// A server over TLS, whose certificate is for `a.example`.
pub struct Secured {
    pub address: SocketAddr,
    authority: String,
    lines: Lines,
}

impl Secured {
    /// Told of each connection that its client closed: the target of its last request, whether it was
    /// resumed, and when it began and ended on the clock of the machine.
    pub fn start(ends: impl Fn(&str, bool, u64, u64) + Send + Sync + 'static) -> Self {
        let now_unix_s = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs();
        let authority = Authority::new(KeyKind::P256, Validity::around(now_unix_s)).unwrap();
        let identity = authority.issue(&["a.example".into()], Validity::around(now_unix_s)).unwrap();
        let (certificate, key) = (identity.certificate.as_bytes(), identity.key.as_bytes());
        let server = TlsServer::new(certificate, key, &Offer::default()).unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let lines = Lines::default();
        let (lines_there, ends) = (Arc::clone(&lines), Arc::new(ends));
        std::thread::spawn(move || {
            for socket in listener.incoming().flatten() {
                let (server, lines, ends) = (server.clone(), Arc::clone(&lines_there), Arc::clone(&ends));
                std::thread::spawn(move || serve(socket, &server, &lines, &*ends));
            }
        });
        Self { address, authority: authority.certificate, lines }
    }

    pub fn client(&self) -> TlsClient {
        TlsClient::new(Trust::Authorities(self.authority.as_bytes()), &Offer::default()).unwrap()
    }

    pub fn lines(&self) -> Vec<String> {
        let mut lines = self.lines.lock().unwrap().clone();
        lines.sort();
        lines
    }
}

/// Serves requests until the client closes the connection, as it is told to after `close` in a path; `cut` is a body that ends too soon.
fn serve(socket: TcpStream, server: &TlsServer, lines: &Lines, ends: &dyn Fn(&str, bool, u64, u64)) {
    let mut stream = ByteStream::over_tls(socket, server.accept().unwrap());
    let (mut room, mut unread) = (vec![0; MIN_READ_BYTES], Vec::new());
    let (mut target, mut handshake) = (String::new(), None);
    loop {
        match stream.recv(&mut room) {
            Ok(read) if read.length > 0 => unread.extend_from_slice(&room[..read.length]),
            Err(error) if error.kind() == ErrorKind::WouldBlock => continue,
            Ok(_) | Err(_) => break,
        }
        handshake = handshake.or_else(|| stream.take_handshake());
        while let Some(end) = unread.windows(4).position(|four| four == b"\r\n\r\n") {
            let head: Vec<u8> = unread.drain(..end + 4).collect();
            let text = String::from_utf8(head).unwrap();
            let line = text.lines().next().unwrap().to_owned();
            let host = text.lines().find_map(|line| line.strip_prefix("Host: ")).unwrap();
            lines.lock().unwrap().push(format!("{line} {host}"));
            target = line.split(' ').nth(1).unwrap().to_owned();
            let response: &[u8] = match target.rsplit('-').next() {
                Some("cut") => b"HTTP/1.1 200 OK\r\n\r\nhello",
                Some("close") => b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 5\r\n\r\nhello",
                _ => b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello",
            };
            stream.send(response).unwrap();
            if target.ends_with("cut") {
                stream.abort();
                return;
            }
        }
    }
    let Some(handshake) = handshake else { return };
    ends(&target, handshake.negotiated.resumed, handshake.begun_ns, monotonic_ns());
}

/// Sends a log of three clients, each a minute after the one before, to an address over TLS.
pub fn over_tls(secured: &Secured, host: &str, path: &str) -> ReplayResults {
    let tmp = tempfile::tempdir().unwrap();
    let file = tmp.path().join("access.log");
    let text: String = (0..9u32)
        .map(|n| combined(1 + (n % 3) as u8, n * 120, &format!("GET /{n}{path} HTTP/1.1")))
        .collect();
    std::fs::write(&file, text).unwrap();
    let tls = Some(ReplayTls { client: secured.client(), to_address: true });
    let options = ReplayOptions { tls, ..options(secured.address) };
    let told = LogSource { host: Some(host.into()), speed: 2_000.0, skips_https: false, ..log(vec![file]) };
    replay(options, RequestSource::Log(told)).unwrap()
}
