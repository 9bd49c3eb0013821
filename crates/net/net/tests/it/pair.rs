//! Two ends of a connection, and the wire between them as two buffers.

use assay_net::tls::authority::{Authority, KeyKind, Validity};
use assay_net::tls::client::{TlsClient, TlsServerName, Trust};
use assay_net::tls::error::TlsError;
use assay_net::tls::server::TlsServer;
use assay_net::tls::session::Session;
use assay_net::tls::settings::Offer;

/// A time at which all certificates of these tests were made. The library looks at the wall clock, so it must be about now.
pub fn now_unix_s() -> u64 {
    std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).expect("after 1970").as_secs()
}

/// An authority, and a server that has a certificate of it for these names.
pub fn server(kind: KeyKind, names: &[&str], validity: Validity, offer: &Offer) -> (Authority, TlsServer) {
    let authority = Authority::new(kind, Validity::around(now_unix_s())).expect("can be made");
    let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
    let identity = authority.issue(&names, validity).expect("can be made");
    let server = TlsServer::new(identity.certificate.as_bytes(), identity.key.as_bytes(), offer)
        .expect("belong together");
    (authority, server)
}

/// A client that trusts this authority.
pub fn client(authority: &Authority, offer: &Offer) -> TlsClient {
    TlsClient::new(Trust::Authorities(authority.certificate.as_bytes()), offer).expect("has a certificate")
}

/// One end, and what it has received.
pub struct End {
    pub session: Session,
    pub received: Vec<u8>,
    /// On its way to the other end.
    pub out: Vec<u8>,
}

impl End {
    pub fn new(session: Session) -> Self {
        Self { session, received: Vec::new(), out: Vec::new() }
    }

    /// Takes what the other end has sent, in pieces of this many bytes.
    pub fn take(&mut self, from: &mut Vec<u8>, piece: usize) -> Result<(), TlsError> {
        let mut bytes = std::mem::take(from);
        for piece in bytes.chunks_mut(piece.max(1)) {
            let received = &mut self.received;
            self.session.receive(piece, &mut |plain| received.extend_from_slice(plain), &mut self.out)?;
        }
        Ok(())
    }
}

/// Both ends of a connection.
pub struct Pair {
    pub client: End,
    pub server: End,
}

impl Pair {
    pub fn new(client: &TlsClient, server: &TlsServer, name: &str, resumes: bool) -> Self {
        let name = TlsServerName::from_authority(name).expect("is a name");
        let mut client = End::new(client.connect(&name, resumes).expect("can begin"));
        client.session.begin(&mut client.out).expect("can begin");
        Self { client, server: End::new(server.accept().expect("can begin")) }
    }

    /// Carries bytes to and fro, in pieces, until nobody has any. What the client, or else the server, made of it.
    pub fn settle(&mut self, piece: usize) -> Result<(), TlsError> {
        while !(self.client.out.is_empty() && self.server.out.is_empty()) {
            let served = self.server.take(&mut self.client.out, piece);
            let accepted = self.client.take(&mut self.server.out, piece);
            accepted.and(served)?;
        }
        Ok(())
    }
}
