//! TLS to clients: which certificate they are shown, and what a reload does to it.

use std::net::{SocketAddr, TcpStream};

use assay_net::byte_stream::{ByteStream, MIN_READ_BYTES};
use assay_net::tls::authority::Authority;
use assay_net::tls::client::{TlsClient, TlsServerName, Trust};
use assay_net::tls::settings::Offer;
use assay_switch::Switch;

use crate::certificates::{Files, authority, secured};
use crate::harness::{PATIENCE, Server, config, file, switch};

/// A connection with TLS that trusts one authority, and requests one thing after the other.
struct Kept(ByteStream<TcpStream>);

impl Kept {
    fn new(at: SocketAddr, authority: &Authority) -> Result<Self, std::io::Error> {
        let trust = Trust::Authorities(authority.certificate.as_bytes());
        let client = TlsClient::new(trust, &Offer::default()).expect("can be made");
        let name = TlsServerName::from_authority("one.test").expect("a name");
        let socket = TcpStream::connect(at)?;
        socket.set_read_timeout(Some(PATIENCE))?;
        let session = client.connect(&name, false).map_err(std::io::Error::other)?;
        let mut stream = ByteStream::over_tls(socket, session);
        stream.handshake()?;
        Ok(Self(stream))
    }

    fn status_line(&mut self) -> String {
        let request = b"GET / HTTP/1.1\r\nHost: one.test\r\n\r\n";
        assert_eq!(self.0.send(request).expect("is taken"), request.len());
        let mut room = vec![0; MIN_READ_BYTES];
        let mut got = Vec::new();
        while !got.windows(4).any(|end| end == b"\r\n\r\n") {
            match self.0.recv(&mut room) {
                Ok(read) if read.length == 0 => break,
                Ok(read) => got.extend_from_slice(&room[..read.length]),
                // A ticket came, and nothing with it.
                Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => {}
                Err(error) => panic!("{error}"),
            }
        }
        String::from_utf8_lossy(&got).lines().next().unwrap_or("").to_owned()
    }
}

#[test]
fn a_reload_shows_the_new_certificate_and_keeps_connections_with_the_old_one() {
    let (files, server) = (Files::new(), Server::named("a"));
    let text = file("", &[&server], &files.toml(&["one"]));
    let mut switch = switch(&text);
    let at = secured(&switch);
    let mut kept = Kept::new(at, &files.authority).expect("is trusted");
    assert_eq!(kept.status_line(), "HTTP/1.1 200 OK");
    let other = authority();
    files.issue("one", &other);
    switch.reload(config(&text)).expect("is taken on");
    assert_eq!(secured(&switch), at);
    assert_eq!(kept.status_line(), "HTTP/1.1 200 OK");
    assert!(Kept::new(at, &files.authority).is_err(), "it shows the new one");
    assert_eq!(Kept::new(at, &other).expect("is trusted").status_line(), "HTTP/1.1 200 OK");
    // What cannot be used changes nothing.
    files.write("one.key", "no key");
    let error = switch.reload(config(&text)).expect_err("is wrong");
    assert!(
        error.to_string().contains("one.key: ") && error.to_string().contains("no private key"),
        "{error}"
    );
    assert_eq!(Kept::new(at, &other).expect("is trusted").status_line(), "HTTP/1.1 200 OK");
}

#[test]
fn a_key_that_does_not_match_is_named_before_anything_listens() {
    let (files, server) = (Files::new(), Server::named("a"));
    std::fs::copy(files.path("two.key"), files.path("one.key")).expect("is there");
    let file = file("", &[&server], &files.toml(&["one"]));
    let error = Switch::start(config(&file)).map(drop).expect_err("cannot be").to_string();
    assert!(error.contains("one.pem with ") && error.contains("does not match the certificate"), "{error}");
}

#[test]
fn a_reload_keeps_sessions_that_can_be_resumed() {
    let (files, server) = (Files::new(), Server::named("a"));
    let text = file("", &[&server], &files.toml(&["one"]));
    let mut switch = switch(&text);
    let trust = Trust::Authorities(files.authority.certificate.as_bytes());
    let client = TlsClient::new(trust, &Offer::default()).expect("can be made");
    let name = TlsServerName::from_authority("one.test").expect("a name");
    let at = secured(&switch);
    let connect = || {
        let socket = TcpStream::connect(at).expect("is listened at");
        socket.set_read_timeout(Some(PATIENCE)).expect("a socket");
        let session = client.connect(&name, true).expect("can begin");
        let mut kept = Kept(ByteStream::over_tls(socket, session));
        kept.0.handshake().expect("is trusted");
        assert_eq!(kept.status_line(), "HTTP/1.1 200 OK");
        kept.0.take_handshake().expect("is over").negotiated.resumed
    };
    assert!(!connect() && connect());
    switch.reload(config(&text)).expect("is taken on");
    assert!(connect(), "the ticket is from before");
}
