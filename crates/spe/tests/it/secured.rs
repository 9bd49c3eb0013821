//! An evaluation in front of an https origin, whose clients speak TLS and HTTP/2.

use std::path::Path;
use std::process::Command;
use std::time::{SystemTime, UNIX_EPOCH};

use assay_record::spe::{ResponseError, Verdict};
use assay_role::evaluation::TlsTo;
use assay_role::tls::{ClientTls, Offer, ServerTls};
use assay_tls::authority::{Authority, KeyKind, Validity};
use tokio::task::spawn_blocking;

use crate::collector_harness::{self, spec};
use crate::honest::proxy;
use crate::multiplier_bed::{Bed, Server, ok, run};

/// Writes the certificate of `www.test` and its authority into a directory.
fn certificate(dir: &Path) -> ServerTls {
    let now_unix_s = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs();
    let authority = Authority::new(KeyKind::P256, Validity::around(now_unix_s)).unwrap();
    let identity = authority.issue(&["www.test".to_owned()], Validity::around(now_unix_s)).unwrap();
    let write = |name: &str, text: &str| {
        std::fs::write(dir.join(name), text).unwrap();
        dir.join(name)
    };
    write("ca.pem", &authority.certificate);
    ServerTls {
        offer: Offer::default(),
        certificate: write("www.pem", &identity.certificate),
        key: write("www.key", &identity.key),
    }
}

/// What curl prints of three requests: each body, and the version of HTTP.
async fn curl(ca: std::path::PathBuf, port: u16, version: &'static str) -> String {
    let requesting = spawn_blocking(move || {
        let resolve = format!("www.test:{port}:127.0.0.1");
        let urls = ["a", "b", "a"].map(|path| format!("https://www.test:{port}/{path}"));
        let mut command = Command::new("curl");
        command.args([
            "-sS",
            "--max-time",
            "20",
            "--noproxy",
            "*",
            "--resolve",
            &resolve,
            version,
            "--cacert",
        ]);
        let output = command.arg(ca).args(["-w", " %{http_version};"]).args(urls).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    });
    requesting.await.unwrap()
}

#[test]
fn clients_speak_tls_and_either_version_and_the_origin_is_verified() {
    run(async {
        let dir = tempfile::tempdir().unwrap();
        let tls = certificate(dir.path());
        let server = Server::start(|seen, _| ok("Cache-Control: max-age=100\r\n", seen.line())).await;
        // A Multiplier without proxies is a server with TLS like any other.
        let origin = Bed::with(&server, &[], |spec| spec.tls = Some(tls.clone()));
        let mut told = spec(origin.address(), 1);
        told.origins.clear();
        let client =
            ClientTls { offer: Offer::default(), ca: Some(dir.path().join("ca.pem")), resumption: 1.0 };
        told.origin_tls = Some(TlsTo { client, authority: "www.test:443".into() });
        let collector = collector_harness::Bed::of(&told);
        let listeners = collector.collector.addresses().to_vec();
        let multiplier = Bed::with(&server, &[proxy(listeners[1])], |spec| {
            (spec.collector, spec.tls) = (listeners[0], Some(tls));
        });
        let port = multiplier.address().port();
        let expected =
            |version| ["a", "b", "a"].map(|path| format!("GET /{path} HTTP/1.1 {version};")).concat();
        for (flag, version) in [("--http2", "2"), ("--http1.1", "1.1")] {
            assert_eq!(curl(dir.path().join("ca.pem"), port, flag).await, expected(version));
        }
        multiplier.responses(6).await;
        assert_eq!(multiplier.counters().clients, 2, "a client is a connection, in either version");
        let rows = multiplier.finish().await;
        let same = rows.iter().filter(|row| row.target == 1 && row.verdict == Verdict::Ok).count();
        assert_eq!(same, 6, "{rows:?}");
        assert_eq!(server.seen().len(), 2, "one request for each need");
        let first = &server.seen()[0].head;
        assert!(first.contains("\r\nVia: 2.0 assay-"), "{first}");
    });
}

#[test]
fn a_request_that_is_refused_before_a_handler_sees_it_is_counted() {
    run(async {
        let dir = tempfile::tempdir().unwrap();
        let tls = certificate(dir.path());
        let server = Server::start(|_, _| ok("", "never")).await;
        let multiplier = Bed::with(&server, &[], |spec| spec.tls = Some(tls));
        let port = multiplier.address().port();
        let ca = dir.path().join("ca.pem");
        let requesting = spawn_blocking(move || {
            let mut command = Command::new("curl");
            command.args([
                "-sS",
                "--max-time",
                "20",
                "--noproxy",
                "*",
                "--http2",
                "-o",
                "/dev/null",
                "--cacert",
            ]);
            command.arg(ca).arg("--resolve");
            command.arg(format!("www.test:{port}:127.0.0.1"));
            // No method (RFC 9110, 9.1).
            command.args(["-X", "G(T", &format!("https://www.test:{port}/a")]);
            String::from_utf8(command.output().unwrap().stderr).unwrap()
        });
        let told = requesting.await.unwrap();
        assert!(told.contains("HTTP/2 stream 1 was not closed cleanly"), "{told}");
        assert_eq!(multiplier.counters().refused, 1);
        multiplier.finish().await;
        assert_eq!(server.seen().len(), 0);
    });
}

#[test]
fn a_proxy_is_compared_over_tls_and_gets_no_request_where_it_is_not_verified() {
    run(async {
        let dir = tempfile::tempdir().unwrap();
        let tls = certificate(dir.path());
        let server = Server::start(|seen, _| ok("", seen.line())).await;
        // A Multiplier without proxies is a server with TLS like any other.
        let behind = Server::start(|seen, _| ok("", seen.line())).await;
        let secured = Bed::with(&behind, &[], |spec| spec.tls = Some(tls));
        let to = |authority: &str| {
            let ca = Some(dir.path().join("ca.pem"));
            let client = ClientTls { offer: Offer::default(), ca, resumption: 1.0 };
            Some(TlsTo { client, authority: authority.to_owned() })
        };
        let multiplier = Bed::with(&server, &[secured.address(); 3], |spec| {
            (spec.proxies[0].tls, spec.proxies[1].tls) = (to("www.test:443"), to("other.test"));
        });
        assert_eq!(multiplier.get("/a").await.body.as_deref(), Some("GET /a HTTP/1.1"));
        multiplier.responses(1).await;
        let rows = multiplier.finish().await;
        let of = |target: usize| (rows[target].verdict, rows[target].error);
        assert_eq!(of(1), (Verdict::Ok, None), "{rows:#?}");
        assert!(rows[1].connect_us > Some(0), "the handshake is part of it");
        assert_eq!(of(2), (Verdict::NoResponse, Some(ResponseError::Tls)), "another name");
        assert_eq!(of(3).0, Verdict::NoResponse, "in the clear, where TLS is spoken");
        assert_eq!(behind.seen().len(), 1, "of the one that is verified");
    });
}

#[test]
fn an_origin_that_is_not_verified_gets_no_request() {
    run(async {
        let dir = tempfile::tempdir().unwrap();
        let tls = certificate(dir.path());
        let server = Server::start(|_, _| ok("", "x")).await;
        let origin = Bed::with(&server, &[], |spec| spec.tls = Some(tls));
        let mut told = spec(origin.address(), 0);
        let client =
            ClientTls { offer: Offer::default(), ca: Some(dir.path().join("ca.pem")), resumption: 1.0 };
        told.origin_tls = Some(TlsTo { client, authority: "other.test".into() });
        let collector = collector_harness::Bed::of(&told);
        let response = collector.get(0, "/", "").await;
        assert_eq!(response.status, 502);
        let text = response.body.unwrap_or_default();
        assert!(text.contains("not valid for other.test"), "{text}");
        assert!(server.seen().is_empty());
    });
}
