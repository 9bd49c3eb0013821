//! Everything that can be wrong, each under its own kind, on the side that sees it.

use std::time::Duration;

use assay_net::tls::HTTP_2;
use assay_net::tls::authority::{Authority, KeyKind, Validity};
use assay_net::tls::client::{TlsClient, TlsServerName, TlsSettingsError, Trust};
use assay_net::tls::error::{TlsError, TlsErrorKind};
use assay_net::tls::server::TlsServer;
use assay_net::tls::settings::{Offer, TlsVersion};

use crate::pair::{Pair, client, now_unix_s, server};

/// What a client and its server each make of a handshake for `name`.
fn refused(client: &TlsClient, server: &TlsServer, name: &str) -> (TlsError, Option<TlsError>) {
    let mut pair = Pair::new(client, server, name, true);
    let mut seen = [None, None];
    for _ in 0..4 {
        // What comes first: a session that has failed says so whenever it is called again.
        let served = pair.server.take(&mut pair.client.out, usize::MAX).err();
        let accepted = pair.client.take(&mut pair.server.out, usize::MAX).err();
        seen = [seen[0].take().or(accepted), seen[1].take().or(served)];
    }
    let [client, server] = seen;
    (client.expect("is refused"), server)
}

fn here() -> Validity {
    Validity::around(now_unix_s())
}

#[test]
fn an_expired_certificate_is_found_and_named() {
    let now_unix_s = now_unix_s();
    let validity = Validity { from_unix_s: now_unix_s - 7_200, until_unix_s: now_unix_s - 3_600 };
    let (authority, server) = server(KeyKind::P256, &["www.example"], validity, &Offer::default());
    let (error, seen) = refused(&client(&authority, &Offer::default()), &server, "www.example");
    assert_eq!(error.kind, TlsErrorKind::CertificateExpired);
    assert!(error.to_string().contains("expired 60 minutes ago"), "{error}");
    let seen = seen.expect("the server is told");
    assert_eq!(seen.kind, TlsErrorKind::CertificateRefused, "{seen}");
}

#[test]
fn a_certificate_of_tomorrow_is_not_valid_yet() {
    let now_unix_s = now_unix_s();
    let validity = Validity { from_unix_s: now_unix_s + 86_400, until_unix_s: now_unix_s + 172_800 };
    let (authority, server) = server(KeyKind::P256, &["www.example"], validity, &Offer::default());
    let (error, _) = refused(&client(&authority, &Offer::default()), &server, "www.example");
    assert_eq!(error.kind, TlsErrorKind::CertificateExpired);
    assert!(error.to_string().contains("not valid yet"), "{error}");
}

#[test]
fn a_certificate_for_another_name_is_found_and_both_names_are_told() {
    let (authority, server) = server(KeyKind::P256, &["a.example", "10.0.0.1"], here(), &Offer::default());
    for wrong in ["b.example", "10.0.0.2"] {
        let (error, _) = refused(&client(&authority, &Offer::default()), &server, wrong);
        assert_eq!(error.kind, TlsErrorKind::CertificateName);
        assert!(error.to_string().contains(wrong) && error.to_string().contains("a.example"), "{error}");
    }
}

#[test]
fn another_authority_is_not_trusted_unless_nothing_is_verified() {
    let (_, server) = server(KeyKind::P256, &["www.example"], here(), &Offer::default());
    let stranger = Authority::new(KeyKind::P256, here()).expect("can be made");
    let (error, seen) = refused(&client(&stranger, &Offer::default()), &server, "www.example");
    assert_eq!(error.kind, TlsErrorKind::CertificateUntrusted);
    assert_eq!(seen.map(|seen| seen.kind), Some(TlsErrorKind::CertificateRefused));
    let careless = TlsClient::new(Trust::Everybody, &Offer::default()).expect("needs nothing");
    Pair::new(&careless, &server, "other.example", true).settle(usize::MAX).expect("is accepted");
}

#[test]
fn sides_without_a_common_version_say_so() {
    let only = |version| Offer { oldest: version, newest: version, ciphers: Vec::new() };
    for (theirs, ours) in [(TlsVersion::Tls12, TlsVersion::Tls13), (TlsVersion::Tls13, TlsVersion::Tls12)] {
        let (authority, server) = server(KeyKind::P256, &["www.example"], here(), &only(theirs));
        let (error, seen) = refused(&client(&authority, &only(ours)), &server, "www.example");
        assert_eq!(error.kind, TlsErrorKind::NoCommonParameters, "{error}");
        assert_eq!(seen.map(|seen| seen.kind), Some(TlsErrorKind::NoCommonParameters));
    }
}

#[test]
fn a_client_that_speaks_http_in_the_clear_is_told_from_one_that_speaks_tls() {
    let (authority, server) = server(KeyKind::P256, &["www.example"], here(), &Offer::default());
    let mut pair = Pair::new(&client(&authority, &Offer::default()), &server, "www.example", true);
    let error = pair.server.take(&mut b"GET / HTTP/1.1\r\n".to_vec(), 99).expect_err("is no TLS");
    assert_eq!(error.kind, TlsErrorKind::NotTls);
    assert!(error.to_string().contains("it sent \"GET / HTTP/1.1\\r\\n\""), "{error}");
    let error = pair.client.take(&mut b"HTTP/1.1 400 Bad Request\r\n".to_vec(), 99).expect_err("is no TLS");
    assert_eq!(error.kind, TlsErrorKind::NotTls);
}

/// The library panics if it does not see such a beginning again; any stranger can send one.
#[test]
fn the_beginning_of_a_message_keeps_nobody_from_ending_a_connection() {
    let (authority, server) = server(KeyKind::P256, &["www.example"], here(), &Offer::default());
    let client = client(&authority, &Offer::default());
    let name = TlsServerName::from_authority("www.example").expect("is a name");
    for kind in [1, 2] {
        let session = || match kind {
            1 => server.accept().expect("can begin"),
            _ => client.connect(&name, true).expect("can begin"),
        };
        // A record that has two bytes of a handshake message.
        let begun = [22, 3, 3, 0, 2, kind, 0];
        let (mut closed, mut out) = (session(), Vec::new());
        closed.begin(&mut out).expect("can begin");
        closed.receive(&mut begun.to_vec(), &mut |_| (), &mut out).expect("goes on");
        closed.close(&mut out);
        let (mut broken, mut out) = (session(), Vec::new());
        broken.begin(&mut out).expect("can begin");
        broken.receive(&mut begun.to_vec(), &mut |_| (), &mut out).expect("goes on");
        out.clear();
        let error = broken.receive(&mut [22, 9, 9, 255, 255, 0], &mut |_| (), &mut out);
        assert!(error.is_err() && out.first() == Some(&21), "an alert says so: {error:?}, {out:?}");
        broken.close(&mut out);
    }
}

#[test]
fn a_key_that_does_not_match_is_refused_before_anybody_connects() {
    let authority = Authority::new(KeyKind::P256, here()).expect("can be made");
    let identity = || authority.issue(&["www.example".to_owned()], here()).expect("can be made");
    let (one, other) = (identity(), identity());
    let with = |certificate: &str, key: &str| {
        TlsServer::new(certificate.as_bytes(), key.as_bytes(), &Offer::default()).map(drop)
    };
    assert_eq!(with(&one.certificate, &one.key), Ok(()));
    assert_eq!(with(&one.certificate, &other.key), Err(TlsSettingsError::KeyMismatch));
    assert!(matches!(with(&one.key, &one.key), Err(TlsSettingsError::NoCertificate { .. })));
    assert!(matches!(with(&one.certificate, &one.certificate), Err(TlsSettingsError::NoKey { .. })));
    assert!(!format!("{one:?}").contains("PRIVATE"), "a key is never printed");
}

#[test]
fn both_sides_speak_the_same_version_of_http_or_say_that_they_do_not() {
    let (authority, http1) = server(KeyKind::P256, &["www.example"], here(), &Offer::default());
    let http2 = http1.with_protocol(HTTP_2);
    let client = client(&authority, &Offer::default());
    for (server, client) in [(&http1, client.with_protocol(HTTP_2)), (&http2, client.clone())] {
        let (error, seen) = refused(&client, server, "www.example");
        assert_eq!(error.kind, TlsErrorKind::NoCommonParameters, "{error}");
        let seen = seen.expect("the server sees it first");
        assert_eq!(seen.kind, TlsErrorKind::NoCommonParameters, "{seen}");
    }
    for (server, client, is_http2) in
        [(&http1, client.clone(), false), (&http2, client.with_protocol(HTTP_2), true)]
    {
        let mut pair = Pair::new(&client, server, "www.example", false);
        pair.settle(usize::MAX).expect("they agree");
        assert_eq!(pair.client.session.negotiated().map(|agreed| agreed.is_http2), Some(is_http2));
    }
}

/// What `openssl req -x509` makes: signed with its own key, and marked as that of an authority. It begins and ends so many seconds from now.
fn signed_by_itself(from_s: i64, until_s: i64) -> (String, TlsServer) {
    let at = |s: i64| std::time::UNIX_EPOCH + Duration::from_secs(now_unix_s().saturating_add_signed(s));
    let mut told = rcgen::CertificateParams::new(["www.example".to_owned()]).expect("is a name");
    told.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
    told.not_before = at(from_s).into();
    told.not_after = at(until_s).into();
    let key = rcgen::KeyPair::generate().expect("can be made");
    let certificate = told.self_signed(&key).expect("can be made").pem();
    let server = TlsServer::new(certificate.as_bytes(), key.serialize_pem().as_bytes(), &Offer::default());
    (certificate, server.expect("belong together"))
}

#[test]
fn a_certificate_that_is_trusted_itself_is_accepted_for_its_name_while_it_is_valid() {
    let trusting = |certificate: &str| {
        TlsClient::new(Trust::Authorities(certificate.as_bytes()), &Offer::default())
            .expect("has a certificate")
    };
    let (certificate, server) = signed_by_itself(-60, 3600);
    Pair::new(&trusting(&certificate), &server, "www.example", true).settle(usize::MAX).expect("is accepted");
    let (error, _) = refused(&trusting(&certificate), &server, "other.example");
    assert_eq!(error.kind, TlsErrorKind::CertificateName, "{error}");
    // Another one with the same names is another one.
    let (other, _) = signed_by_itself(-60, 3600);
    let (error, _) = refused(&trusting(&other), &server, "www.example");
    assert_eq!(error.kind, TlsErrorKind::CertificateUntrusted, "{error}");
    assert!(error.to_string().contains("that of an authority (CA:TRUE)"), "{error}");
    for (from_s, until_s, expected) in
        [(-7200, -3600, "expired 60 minutes ago"), (3600, 7200, "is not valid yet, for another ")]
    {
        let (certificate, server) = signed_by_itself(from_s, until_s);
        let (error, _) = refused(&trusting(&certificate), &server, "www.example");
        assert_eq!(error.kind, TlsErrorKind::CertificateExpired, "{error}");
        assert!(error.to_string().contains(expected), "{error}");
    }
}
