//! The server's side: its certificates, and the versions and protocols that it accepts.

use std::sync::Arc;

use crate::tls::settings::Offer;
use rustls::client::verify_server_name;
use rustls::crypto::CryptoProvider;
use rustls::crypto::aws_lc_rs::Ticketer;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::server::{ClientHello, ParsedCertificate, ResolvesServerCert, UnbufferedServerConnection};
use rustls::sign::CertifiedKey;
use rustls::{Error, ServerConfig};

use crate::tls::error::TlsError;
pub use crate::tls::offer::TlsSettingsError;
use crate::tls::offer::{provider, versions};
use crate::tls::session::Session;
use crate::tls::trust::describe_pem_error;
use crate::tls::{HTTP_1_1, HTTP_2};

/// A certificate with its key, as PEM.
#[derive(Debug, Clone, Copy)]
pub struct IdentityPem<'a> {
    /// The certificate, and those that lead from it to its authority.
    pub certificates: &'a [u8],
    /// The private key of the first.
    pub key: &'a [u8],
}

/// A server. Sessions can be resumed with tickets (RFC 8446, 4.6.1; RFC 5077), whose keys it keeps to itself.
#[derive(Debug, Clone)]
pub struct TlsServer(Arc<ServerConfig>);

impl TlsServer {
    /// A server with one certificate and those that lead to its authority, and the key of the first, as PEM.
    pub fn new(certificates: &[u8], key: &[u8], offer: &Offer) -> Result<Self, TlsSettingsError> {
        Self::with_names(&[IdentityPem { certificates, key }], offer)
    }

    /// A server with several certificates: a client gets the first that is valid for the name that it sends (SNI), or else the first of
    /// all.
    pub fn with_names(pairs: &[IdentityPem<'_>], offer: &Offer) -> Result<Self, TlsSettingsError> {
        let provider = provider(offer)?;
        let unusable = |e: Error| TlsSettingsError::Unusable(e.to_string());
        let keys =
            pairs.iter().map(|pair| certified_key(pair, "server", &provider)).collect::<Result<_, _>>()?;
        let mut config = ServerConfig::builder_with_provider(provider)
            .with_protocol_versions(&versions(offer)?)
            .map_err(unusable)?
            .with_no_client_auth()
            .with_cert_resolver(Arc::new(CertificatesByName(keys)));
        config.alpn_protocols = vec![HTTP_1_1.to_vec()];
        config.ticketer = Ticketer::new().map_err(unusable)?;
        Ok(Self(Arc::new(config)))
    }

    /// The same server, accepting HTTP/2 and HTTP/1.1; HTTP/2 where the client leaves the choice.
    pub fn with_http2(&self) -> Self {
        let mut config = ServerConfig::clone(&self.0);
        config.alpn_protocols = vec![HTTP_2.to_vec(), HTTP_1_1.to_vec()];
        Self(Arc::new(config))
    }

    /// The same server, with the keys of another's tickets: sessions with that one can be resumed with this one.
    pub fn with_tickets_of(&self, other: &TlsServer) -> Self {
        let mut config = ServerConfig::clone(&self.0);
        config.ticketer = Arc::clone(&other.0.ticketer);
        Self(Arc::new(config))
    }

    /// The same server, accepting this application protocol alone.
    pub fn with_protocol(&self, protocol: &[u8]) -> Self {
        let mut config = ServerConfig::clone(&self.0);
        config.alpn_protocols = vec![protocol.to_vec()];
        Self(Arc::new(config))
    }

    /// Begins a session with a client that has connected.
    pub fn accept(&self) -> Result<Session, TlsError> {
        Ok(Session::server(UnbufferedServerConnection::new(Arc::clone(&self.0))?))
    }
}

/// Reads a certificate and its key, which must belong together; `whose` names their owner in messages.
pub(crate) fn certified_key(
    pair: &IdentityPem<'_>,
    whose: &str,
    provider: &CryptoProvider,
) -> Result<Arc<CertifiedKey>, TlsSettingsError> {
    let what = || format!("the file of the {whose}'s certificate");
    let none = |cause: String| TlsSettingsError::NoCertificate { what: what(), cause };
    let chain: Vec<CertificateDer<'static>> = CertificateDer::pem_slice_iter(pair.certificates)
        .collect::<Result<_, _>>()
        .map_err(|e| none(describe_pem_error(&e)))?;
    if chain.is_empty() {
        return Err(none("nothing was found".into()));
    }
    let key = PrivateKeyDer::from_pem_slice(pair.key).map_err(|e| TlsSettingsError::NoKey {
        what: format!("the file of the {whose}'s private key"),
        cause: describe_pem_error(&e),
    })?;
    let key = CertifiedKey::from_der(chain, key, provider).map_err(|e| match e {
        Error::InconsistentKeys(_) => TlsSettingsError::KeyMismatch,
        other => TlsSettingsError::Unusable(other.to_string()),
    })?;
    Ok(Arc::new(key))
}

/// Chooses a certificate by the name that a client sends.
#[derive(Debug)]
struct CertificatesByName(Vec<Arc<CertifiedKey>>);

impl ResolvesServerCert for CertificatesByName {
    fn resolve(&self, hello: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        let name = hello.server_name().filter(|_| self.0.len() > 1);
        let name = name.and_then(|name| ServerName::try_from(name).ok());
        let named = name.and_then(|name| self.0.iter().find(|key| is_for(key, &name)));
        named.or(self.0.first()).cloned()
    }
}

fn is_for(key: &CertifiedKey, name: &ServerName<'_>) -> bool {
    let certificate = key.cert.first().and_then(|certificate| ParsedCertificate::try_from(certificate).ok());
    certificate.is_some_and(|certificate| verify_server_name(&certificate, name).is_ok())
}
