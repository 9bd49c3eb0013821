//! What goes in at one end comes out at the other.

use assay_net::tls::authority::{KeyKind, Validity};
use assay_net::tls::error::TlsErrorKind;
use assay_net::tls::session::MAX_KEPT_BYTES;
use assay_net::tls::settings::{Offer, TlsVersion};
use proptest::prelude::*;
use strum::VariantArray;

use crate::pair::{Pair, client, now_unix_s, server};

fn only(version: TlsVersion) -> Offer {
    Offer { oldest: version, newest: version, ciphers: Vec::new() }
}

fn here() -> Validity {
    Validity::around(now_unix_s())
}

#[test]
fn every_kind_of_key_serves_both_versions() {
    for &kind in KeyKind::VARIANTS {
        for version in TlsVersion::ALL {
            let offer = only(version);
            let (authority, server) = server(kind, &["www.example"], here(), &offer);
            let mut pair =
                Pair::new(&client(&authority, &Offer::default()), &server, "www.example:443", true);
            pair.settle(usize::MAX).unwrap_or_else(|e| panic!("{kind:?} {version:?}: {e}"));
            let agreed = pair.client.session.negotiated().expect("is open");
            assert_eq!(agreed.version, version.name());
            assert!(agreed.cipher.starts_with("TLS_") && !agreed.resumed, "{agreed:?}");
            assert_eq!(pair.server.session.negotiated(), Some(agreed));
        }
    }
}

#[test]
fn a_session_is_resumed_if_it_is_to_be_and_kept_if_not() {
    for version in TlsVersion::ALL {
        let offer = only(version);
        let (authority, server) = server(KeyKind::P256, &["10.0.0.1"], here(), &offer);
        let client = client(&authority, &offer);
        let resumed = |client, resumes| {
            let mut pair = Pair::new(client, &server, "10.0.0.1:80", resumes);
            pair.settle(usize::MAX).expect("is accepted");
            pair.client.session.negotiated().expect("is open").resumed
        };
        assert!(!resumed(&client, true), "there is nothing to resume yet");
        assert!(resumed(&client, true));
        assert!(!resumed(&client, false), "it was told not to");
        assert!(resumed(&client, true), "what it kept then can be resumed");
        assert!(!resumed(&client.with_own_sessions(), true), "another memory");
    }
}

#[test]
fn an_end_is_one_only_if_the_other_side_says_so() {
    let (authority, server) = server(KeyKind::P256, &["www.example"], here(), &Offer::default());
    let mut pair = Pair::new(&client(&authority, &Offer::default()), &server, "www.example", true);
    let error = pair.client.session.end().expect_err("it has not begun");
    assert_eq!(error.kind, TlsErrorKind::Failed);
    pair.settle(usize::MAX).expect("is accepted");
    let error = pair.client.session.end().expect_err("is cut off");
    assert_eq!(error.kind, TlsErrorKind::Truncated);
    pair.server.session.seal(b"last words", &mut pair.server.out).expect("is open");
    pair.server.session.close(&mut pair.server.out);
    pair.settle(usize::MAX).expect("is accepted");
    assert_eq!(pair.client.received, b"last words");
    assert!(pair.client.session.is_closed());
    pair.client.session.end().expect("is the end");
    pair.client.session.seal(b"more", &mut pair.client.out).expect("the other direction is open");
    pair.settle(usize::MAX).expect("is accepted");
    assert_eq!(pair.server.received, b"more");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn what_is_sealed_arrives_whatever_the_pieces(
        parts in prop::collection::vec((any::<u8>(), 0usize..40_000, any::<bool>()), 1..8),
        piece in 1usize..40_000, is_old in any::<bool>(),
    ) {
        let offer = only(if is_old { TlsVersion::Tls12 } else { TlsVersion::Tls13 });
        let (authority, server) = server(KeyKind::P256, &["www.example"], here(), &offer);
        let mut pair = Pair::new(&client(&authority, &offer), &server, "www.example", true);
        pair.settle(piece).expect("is accepted");
        let (mut up, mut down) = (Vec::new(), Vec::new());
        for (byte, length, is_up) in parts {
            let part = vec![byte; length];
            let (end, sent) = if is_up { (&mut pair.client, &mut up) } else { (&mut pair.server, &mut down) };
            end.session.seal(&part, &mut end.out).expect("is open");
            sent.extend_from_slice(&part);
        }
        pair.settle(piece).expect("is intact");
        prop_assert!(pair.client.received == down && pair.server.received == up);
        prop_assert!(pair.client.session.kept_bytes() <= MAX_KEPT_BYTES);
        prop_assert_eq!(pair.client.session.kept_bytes() + pair.server.session.kept_bytes(), 0);
    }

    #[test]
    fn what_is_changed_on_the_way_never_arrives(at in any::<u16>(), change in 1u8.., piece in 1usize..3_000, is_old in any::<bool>()) {
        let offer = only(if is_old { TlsVersion::Tls12 } else { TlsVersion::Tls13 });
        let (authority, server) = server(KeyKind::P256, &["www.example"], here(), &offer);
        let mut pair = Pair::new(&client(&authority, &offer), &server, "www.example", true);
        let (mut carried, mut sealed) = (0, false);
        for _ in 0..6 {
            for is_up in [true, false] {
                let (from, to) = if is_up { (&mut pair.client, &mut pair.server) } else { (&mut pair.server, &mut pair.client) };
                let at = usize::from(at % 2_500);
                if let Some(byte) = at.checked_sub(carried).and_then(|at| from.out.get_mut(at)) {
                    *byte ^= change;
                }
                carried += from.out.len();
                // Whoever finds it ends the connection, with an alert for the other side.
                let _ = to.take(&mut from.out, piece);
            }
            if !sealed && pair.client.session.is_open() {
                pair.client.session.seal(b"a request", &mut pair.client.out).expect("is open");
                sealed = true;
            }
        }
        prop_assert!(pair.server.received.is_empty() || pair.server.received == b"a request");
    }

    #[test]
    fn bytes_that_are_no_records_are_an_error_and_nothing_worse(bytes in prop::collection::vec(any::<u8>(), 1..300)) {
        let (authority, server) = server(KeyKind::P256, &["www.example"], here(), &Offer::default());
        let mut pair = Pair::new(&client(&authority, &Offer::default()), &server, "www.example", true);
        let is_record = (20..=24).contains(&bytes[0]);
        let mut sent = bytes;
        let taken = pair.client.take(&mut sent, usize::MAX);
        if !is_record {
            prop_assert_eq!(taken.expect_err("is no TLS").kind, TlsErrorKind::NotTls);
        }
    }
}
