//! An evaluation over TLS: who is not verified gets no request.

use assay_net::tls::settings::{ClientTls, Offer};
use assay_record::spe::{ResponseError, Verdict};
use assay_spe::spec::TlsTo;

use crate::certificate::certificate;
use crate::collector_harness::{self, spec};
use crate::multiplier_bed::{Bed, Server, ok, run};

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
