//! Tunnels that the Multiplier opens: what clients are served in them, and what is counted where they cannot be opened.

use assay_net::byte_stream::{ByteStream, tls_error};
use assay_net::tls::authority::{Authority, KeyKind};
use assay_net::tls::client::{TlsClient, TlsServerName, Trust};
use assay_net::tls::error::TlsErrorKind;
use assay_net::tls::intercept::AUTHORITY_NAME;
use assay_net::tls::settings::{ClientTls, Offer, ServerTls};
use assay_protocol::evaluation::OpenedCounters;
use assay_record::spe::{ResponseError, Verdict};
use assay_spe::multiplier::MultiplierLimits;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::collector_harness::{self, spec};
use crate::honest_proxy::proxy;
use crate::multiplier_bed::{Bed, Server, ok, run};
use crate::tunnels::{authority, counted, kept, opening, tunnel, valid};

/// Bytes that a read needs room for: a record of TLS.
const ROOM: usize = 64 * 1024;

fn client_of(authority: &Authority) -> TlsClient {
    TlsClient::new(Trust::Authorities(authority.certificate.as_bytes()), &Offer::default()).unwrap()
}

/// What comes on a stream until it ends.
async fn rest(mut stream: ByteStream<TcpStream>) -> String {
    let mut all = Vec::new();
    let mut room = vec![0; ROOM];
    while let Ok(length @ 1..) = stream.read(&mut room).await {
        all.extend_from_slice(&room[..length]);
    }
    String::from_utf8(all).unwrap()
}

fn get(host: &str) -> String {
    format!("GET /x HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n")
}

#[test]
fn a_request_in_a_tunnel_is_served_as_one_for_its_https_url_whenever_the_client_begins() {
    run(async {
        let (dir, authority) = (tempfile::tempdir().unwrap(), authority());
        let collector = Server::start(|seen, _| ok("", seen.line())).await;
        let bed = opening(&authority, dir.path(), &collector, MultiplierLimits::default());
        let (client, name) = (client_of(&authority), TlsServerName::from_authority("www.test").unwrap());
        for is_early in [false, true] {
            let mut session = client.connect(&name, false).unwrap();
            let mut early = Vec::new();
            if is_early {
                session.begin(&mut early).unwrap();
            }
            let stream = tunnel(&bed, "www.test:443", &early).await;
            let mut stream = ByteStream::over_tls(stream, session);
            stream.wait_open().await.unwrap();
            stream.write_all(get("www.test").as_bytes()).await.unwrap();
            let response = rest(stream).await;
            assert!(response.ends_with("GET http://www.test:443/x HTTP/1.1"), "{response}");
        }
        let seen = collector.seen();
        assert!(seen[0].has("Host: www.test:443") && seen[0].has("X-Assay-Request: 1-https"), "{seen:?}");
        counted(&bed, OpenedCounters { opened: 2, ..OpenedCounters::default() }).await;
        let rows = bed.finish().await;
        let urls: Vec<_> = rows.iter().map(|row| row.url.as_str()).collect();
        assert_eq!(urls, ["https://www.test/x", "https://www.test/x"]);
    });
}

#[test]
fn a_request_for_another_host_than_that_of_its_tunnel_is_refused() {
    run(async {
        let (dir, authority) = (tempfile::tempdir().unwrap(), authority());
        let collector = Server::start(|_, _| ok("", "x")).await;
        let bed = opening(&authority, dir.path(), &collector, MultiplierLimits::default());
        let name = TlsServerName::from_authority("www.test").unwrap();
        let within = "CONNECT www.test:443 HTTP/1.1\r\nHost: www.test\r\n\r\n";
        for (request, status) in [(get("other.test"), 421), (within.to_owned(), 501)] {
            let session = client_of(&authority).connect(&name, false).unwrap();
            let mut stream = ByteStream::over_tls(tunnel(&bed, "www.test:443", b"").await, session);
            stream.wait_open().await.unwrap();
            stream.write_all(request.as_bytes()).await.unwrap();
            let response = rest(stream).await;
            assert!(response.starts_with(&format!("HTTP/1.1 {status} ")), "{response}");
        }
        assert!(collector.seen().is_empty());
        let mut plain = bed.client().await;
        plain.send("CONNECT a..b:443 HTTP/1.1\r\nHost: a..b\r\n\r\n").await;
        assert_eq!(plain.response("CONNECT").await.status, 400, "there is no certificate for that");
    });
}

#[test]
fn what_keeps_a_tunnel_from_being_opened_is_counted_under_its_own_name() {
    run(async {
        let (dir, authority) = (tempfile::tempdir().unwrap(), authority());
        let collector = Server::start(|_, _| ok("", "x")).await;
        let bed = opening(&authority, dir.path(), &collector, MultiplierLimits::default());
        let client = client_of(&authority);
        let refused = async |client: &TlsClient, name: &str, kind| {
            let session = client.connect(&TlsServerName::from_authority(name).unwrap(), false).unwrap();
            let mut stream = ByteStream::over_tls(tunnel(&bed, "www.test:443", b"").await, session);
            let error = match stream.wait_open().await {
                Err(error) => Some(error),
                // In TLS 1.3 a client is ready before the server has heard that it is.
                Ok(()) => stream.read(&mut vec![0; ROOM]).await.err(),
            };
            assert_eq!(
                error.as_ref().and_then(tls_error).map(|error| error.kind),
                Some(kind),
                "{name}: {error:?}"
            );
        };
        refused(&client, "other.test", TlsErrorKind::Failed).await;
        refused(&client, "10.0.0.1", TlsErrorKind::Failed).await;
        let other = Authority::named(AUTHORITY_NAME, KeyKind::P256, valid()).unwrap();
        refused(&client_of(&other), "www.test", TlsErrorKind::CertificateUntrusted).await;
        refused(&client.with_protocol(b"foo"), "www.test", TlsErrorKind::NoCommonParameters).await;
        let mut clear = tunnel(&bed, "www.test:443", b"").await;
        clear.write_all(get("www.test").as_bytes()).await.unwrap();
        // It is ended, in whatever way.
        let _ = clear.read_to_end(&mut Vec::new()).await;
        drop(tunnel(&bed, "www.test:443", b"").await);
        let expected = OpenedCounters {
            opened: 0,
            certificate_refused: 1,
            name_refused: 2,
            not_tls: 1,
            no_common_parameters: 1,
            failed: 1,
        };
        counted(&bed, expected).await;
        let rows = bed.finish().await;
        assert!(
            rows.iter().all(|row| (row.method.as_str(), row.url.as_str()) == ("CONNECT", "www.test:443"))
        );
        assert!(rows.iter().all(|row| row.error == Some(ResponseError::Tls)), "{rows:?}");
        assert_eq!(rows.len(), 5, "who only leaves has no row");
        assert!(collector.seen().is_empty());
    });
}

#[test]
fn the_origin_of_a_tunnel_is_asked_once_over_tls_and_verified_and_the_proxy_in_the_clear() {
    run(async {
        let (dir, authority, of_origins) = (tempfile::tempdir().unwrap(), authority(), authority());
        let server = Server::start(|seen, _| ok("Cache-Control: max-age=100\r\n", seen.line())).await;
        let identity = of_origins.issue(&["www.test".to_owned()], valid()).unwrap();
        let write = |name: &str, text: &str| {
            std::fs::write(dir.path().join(name), text).unwrap();
            dir.path().join(name)
        };
        let (certificate, key) = (write("www.pem", &identity.certificate), write("www.key", &identity.key));
        let tls = ServerTls { offer: Offer::default(), certificate, key };
        // A Multiplier without proxies is a server with TLS like any other.
        let origin = Bed::with(&server, &[], |spec| spec.tls = Some(tls));
        let mut told = spec(origin.address(), 1);
        told.default_origin = None;
        for (route, name) in told.origins.iter_mut().zip(["www.test"]) {
            route.authority = name.to_owned();
        }
        told.origins.extend(told.origins.clone().into_iter().map(|mut route| {
            route.authority = "other.test".to_owned();
            route
        }));
        let ca = Some(write("ca.pem", &of_origins.certificate));
        told.tunnels_tls = Some(ClientTls { offer: Offer::default(), ca, resumption: 0.0 });
        let collector = collector_harness::Bed::of(&told);
        let listeners = collector.collector.addresses().to_vec();
        let files = kept(&authority, dir.path());
        let bed = Bed::with(&server, &[proxy(listeners[1])], |spec| {
            (spec.collector, spec.forward, spec.intercept) = (listeners[0], true, Some(files));
        });
        for (host, status) in [("www.test", 200), ("www.test", 200), ("other.test", 502)] {
            let name = TlsServerName::from_authority(host).unwrap();
            let session = client_of(&authority).connect(&name, false).unwrap();
            let stream = tunnel(&bed, &format!("{host}:443"), b"").await;
            let mut stream = ByteStream::over_tls(stream, session);
            stream.wait_open().await.unwrap();
            stream.write_all(get(host).as_bytes()).await.unwrap();
            let response = rest(stream).await;
            assert!(response.starts_with(&format!("HTTP/1.1 {status} ")), "{response}");
            assert!(response.ends_with("GET /x HTTP/1.1") || response.contains("not valid for other.test"));
        }
        bed.responses(3).await;
        let rows = bed.finish().await;
        let same = rows.iter().filter(|row| row.target == 1 && row.verdict == Verdict::Ok).count();
        assert_eq!(same, 3, "{rows:?}");
        assert_eq!(server.seen().len(), 1, "one request for each need, and none to whoever is not verified");
        assert!(server.seen()[0].has("Host: www.test"), "{:?}", server.seen());
    });
}
