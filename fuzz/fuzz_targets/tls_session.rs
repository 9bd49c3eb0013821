//! Bytes that claim to be TLS, on either side of a connection: an error at most, whatever the pieces; and no more is kept than the
//! start of a record.
#![no_main]

use std::sync::OnceLock;

use assay_net::tls::settings::Offer;
use assay_net::tls::authority::{Authority, KeyKind, Validity};
use assay_net::tls::client::{TlsClient, TlsServerName, Trust};
use assay_net::tls::server::TlsServer;
use assay_net::tls::session::Session;
use libfuzzer_sys::fuzz_target;

/// Most bytes of a handshake message that wait for its end.
const LARGEST_HANDSHAKE: usize = 0x20_0000;

fn sides() -> &'static (TlsClient, TlsServer) {
    static SIDES: OnceLock<(TlsClient, TlsServer)> = OnceLock::new();
    SIDES.get_or_init(|| {
        let validity = Validity::around(1_700_000_000);
        let authority = Authority::new(KeyKind::P256, validity).expect("can be made");
        let identity = authority.issue(&["www.example".to_owned()], validity).expect("can be made");
        let offer = Offer::default();
        let client = TlsClient::new(Trust::Everybody, &offer).expect("needs nothing");
        let server = TlsServer::new(identity.certificate.as_bytes(), identity.key.as_bytes(), &offer);
        (client, server.expect("belong together"))
    })
}

fn receive(mut session: Session, bytes: &[u8], step: usize) {
    let mut out = Vec::new();
    let _ = session.begin(&mut out);
    let mut bytes = bytes.to_vec();
    for piece in bytes.chunks_mut(step) {
        // Once wrong, it stays so.
        let _ = session.receive(piece, &mut |_| (), &mut out);
        assert!(session.kept_bytes() <= LARGEST_HANDSHAKE);
    }
    session.close(&mut out);
}

fuzz_target!(|input: (u8, &[u8])| {
    let (step, bytes) = input;
    let (client, server) = sides();
    let name = TlsServerName::from_authority("www.example").expect("is a name");
    receive(client.connect(&name, true).expect("can begin"), bytes, usize::from(step).max(1));
    receive(server.accept().expect("can begin"), bytes, usize::from(step).max(1));
});
