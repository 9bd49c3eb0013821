use std::io::Write;
use std::os::unix::net::UnixStream;

use crate::tls::authority::{Authority, KeyKind, Validity};
use crate::tls::client::{TlsClient, TlsServerName, Trust};
use crate::tls::error::TlsErrorKind;
use crate::tls::server::TlsServer;
use crate::tls::settings::{Offer, TlsVersion};
use crate::tls::{HTTP_1_1, HTTP_2};

use super::*;

/// Both ends of a connection, in the clear or with TLS.
fn pair(is_secured: bool) -> (ByteStream<UnixStream>, ByteStream<UnixStream>) {
    let (one, other) = UnixStream::pair().expect("is made");
    for socket in [&one, &other] {
        socket.set_nonblocking(true).expect("is an option of every socket");
    }
    if !is_secured {
        return (ByteStream::cleartext(one), ByteStream::cleartext(other));
    }
    let (client, server) = sessions(&Offer::default(), HTTP_1_1);
    (ByteStream::over_tls(one, client), ByteStream::over_tls(other, server))
}

/// Both ends of a connection with TLS 1.2, over which both speak this.
fn tls12(protocol: &'static [u8]) -> (ByteStream<UnixStream>, ByteStream<UnixStream>) {
    let (mut one, mut other) = pair(false);
    let (client, server) = sessions(&Offer { newest: TlsVersion::Tls12, ..Offer::default() }, protocol);
    one.start_tls(client);
    other.start_tls(server);
    (one, other)
}

fn sessions(offer: &Offer, protocol: &'static [u8]) -> (Session, Session) {
    let now_unix_s = assay_base::clock::realtime_ns() / 1_000_000_000;
    let validity = Validity::around(now_unix_s);
    let authority = Authority::new(KeyKind::P256, validity).expect("can be made");
    let identity = authority.issue(&["www.example".to_owned()], validity).expect("can be made");
    let trust = Trust::Authorities(authority.certificate.as_bytes());
    let client = TlsClient::new(trust, offer).expect("has a certificate");
    let server = TlsServer::new(identity.certificate.as_bytes(), identity.key.as_bytes(), offer);
    let name = TlsServerName::from_authority("www.example:443").expect("is a name");
    let client = client.with_protocol(protocol).connect(&name, true).expect("can begin");
    let server = server.expect("belong together").with_protocol(protocol).accept().expect("can begin");
    (client, server)
}

fn would_block<T>(result: io::Result<T>) -> bool {
    result.is_err_and(|error| error.kind() == io::ErrorKind::WouldBlock)
}

/// Lets both ends make the handshake.
fn open(client: &mut ByteStream<UnixStream>, server: &mut ByteStream<UnixStream>) {
    let mut room = vec![0; MIN_READ_BYTES];
    while client.handshake().is_err() {
        assert!(would_block(server.recv(&mut room)));
    }
    client.flush().expect("there is room");
    assert!(would_block(server.recv(&mut room)));
    assert!(server.is_open());
}

#[test]
fn what_is_sent_on_one_end_is_read_on_the_other_in_the_clear_and_with_tls() {
    for is_secured in [false, true] {
        let (mut client, mut server) = pair(is_secured);
        assert_eq!((client.is_tls(), client.is_open()), (is_secured, !is_secured));
        open(&mut client, &mut server);
        assert!(client.is_open());
        let mut room = vec![0; MIN_READ_BYTES];
        assert_eq!(client.send(b"a request").expect("is taken"), 9);
        let read = server.recv(&mut room).expect("has come");
        assert_eq!((&room[..read.length], read.more), (&b"a request"[..], false));
        let parts = [IoSlice::new(b"a "), IoSlice::new(b"response")];
        assert_eq!(server.send_parts(&parts).expect("is taken"), 10);
        let read = client.recv(&mut room).expect("has come");
        assert_eq!(&room[..read.length], b"a response");
        assert!(would_block(client.recv(&mut room)));
        assert_eq!(client.take_handshake().is_some(), is_secured);
        assert_eq!(server.take_handshake().is_some(), is_secured);
        assert!(client.take_handshake().is_none(), "it is told once");
        drop(client);
        assert_eq!(server.recv(&mut room).expect("is the end").length, 0);
    }
}

#[test]
fn a_server_of_http_1_that_sends_data_with_the_end_of_the_handshake_is_refused() {
    let (mut client, mut server) = tls12(HTTP_1_1);
    let mut room = vec![0; MIN_READ_BYTES];
    let refused = loop {
        match client.handshake() {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            ended => break ended.expect_err("there was no request"),
        }
        assert!(would_block(server.recv(&mut room)));
        if server.is_open() {
            assert_eq!(server.send(b"HTTP/1.1 200 OK").expect("is taken"), 15);
        }
    };
    assert!(refused.to_string().contains("before it had a request"), "{refused}");
}

/// As servers of HTTP/2 do it with their settings: the last message of a full handshake of TLS 1.2 is the server's.
#[test]
fn what_a_server_sends_with_the_end_of_the_handshake_is_read_after_it() {
    let (mut client, mut server) = tls12(HTTP_2);
    let mut room = vec![0; MIN_READ_BYTES];
    while client.handshake().is_err() {
        assert!(would_block(server.recv(&mut room)));
        if server.is_open() {
            assert_eq!(server.send(b"settings").expect("is taken"), 8);
        }
    }
    let mut little = [0; 3];
    let read = client.recv(&mut little).expect("has come");
    assert_eq!((&little[..read.length], read.more), (&b"set"[..], true));
    let read = client.recv(&mut room).expect("has come");
    assert_eq!((&room[..read.length], read.more), (&b"tings"[..], true));
    assert!(would_block(client.recv(&mut room)));
    assert_eq!(client.send(b"a request").expect("is taken"), 9);
    assert_eq!(server.recv(&mut room).expect("has come").length, 9);
}

#[test]
fn a_socket_that_takes_no_more_gets_the_rest_later_and_nothing_is_lost() {
    for is_secured in [false, true] {
        let (mut client, mut server) = pair(is_secured);
        open(&mut client, &mut server);
        let body: Vec<u8> = (0..3_000_000_u32).map(|at| (at % 251) as u8).collect();
        let (mut sent, mut got, mut waits) = (0, Vec::new(), 0);
        let mut room = vec![0; MIN_READ_BYTES];
        while got.len() < body.len() {
            while sent < body.len() {
                match server.send(&body[sent..]) {
                    Ok(taken) => sent += taken,
                    Err(error) => {
                        assert_eq!(error.kind(), io::ErrorKind::WouldBlock);
                        break;
                    }
                }
            }
            waits += usize::from(server.flush().is_err());
            match client.recv(&mut room) {
                Ok(read) => got.extend_from_slice(&room[..read.length]),
                Err(error) => assert_eq!(error.kind(), io::ErrorKind::WouldBlock),
            }
        }
        assert!(got == body && !server.has_unsent());
        assert!(waits > 0 || !is_secured, "the socket was full at times");
    }
}

#[test]
fn an_end_without_a_word_is_an_error_with_tls() {
    let (mut client, mut server) = pair(true);
    open(&mut client, &mut server);
    let mut room = vec![0; MIN_READ_BYTES];
    server.abort();
    drop(server);
    let error = client.recv(&mut room).expect_err("something is missing");
    assert_eq!(tls_error(&error).map(|error| error.kind), Some(TlsErrorKind::Truncated));
}

#[test]
fn a_port_that_speaks_in_the_clear_is_named() {
    let (mut client, server) = pair(true);
    assert!(would_block(client.handshake()));
    let mut socket = server.socket();
    socket.write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n").expect("is written");
    let error = client.handshake().expect_err("is no TLS");
    assert_eq!(tls_error(&error).map(|error| error.kind), Some(TlsErrorKind::NotTls));
    assert!(error.to_string().contains("HTTP/1.1 400 Bad"), "{error}");
}

#[test]
fn nothing_is_sent_before_the_handshake_is_over() {
    let (mut client, _server) = pair(true);
    assert!(would_block(client.send(b"a request")));
}
