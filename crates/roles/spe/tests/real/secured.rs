//! An evaluation in front of an https origin, whose clients speak TLS and HTTP/2: curl is the client.

use std::process::Command;

use assay_net::tls::settings::{ClientTls, Offer};
use assay_record::spe::Verdict;
use assay_spe::spec::TlsTo;
use tokio::task::spawn_blocking;

use crate::certificate::certificate;
use crate::collector_harness::{self, spec};
use crate::honest_proxy::proxy;
use crate::multiplier_bed::{Bed, Server, ok, run};

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
