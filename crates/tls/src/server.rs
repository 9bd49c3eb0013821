//! The side that is connected to: its certificate, and what it accepts.

use std::sync::Arc;

use assay_role::tls::Offer;
use rustls::crypto::aws_lc_rs::Ticketer;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::UnbufferedServerConnection;
use rustls::{Error, ServerConfig};

use crate::HTTP_1_1;
use crate::error::TlsError;
pub use crate::offer::SettingsError;
use crate::offer::{provider, versions};
use crate::session::Session;

/// A server. Sessions can be resumed with tickets (RFC 8446, 4.6.1; RFC 5077), whose keys it keeps to itself.
#[derive(Debug, Clone)]
pub struct Server(Arc<ServerConfig>);

impl Server {
    /// With a certificate and those that lead to its authority, and the key of the first, as PEM.
    pub fn new(certificates: &[u8], key: &[u8], offer: &Offer) -> Result<Self, SettingsError> {
        let what = || "the file of the server's certificate".to_owned();
        let none = |cause: String| SettingsError::NoCertificate { what: what(), cause };
        let chain: Vec<CertificateDer<'static>> = CertificateDer::pem_slice_iter(certificates)
            .collect::<Result<_, _>>()
            .map_err(|e| none(e.to_string()))?;
        if chain.is_empty() {
            return Err(none("nothing was found".into()));
        }
        let key = PrivateKeyDer::from_pem_slice(key).map_err(|e| SettingsError::NoKey {
            what: "the file of the server's private key".into(),
            cause: e.to_string(),
        })?;
        let unusable = |e: Error| SettingsError::Unusable(e.to_string());
        let mut config = ServerConfig::builder_with_provider(provider(offer)?)
            .with_protocol_versions(&versions(offer)?)
            .map_err(unusable)?
            .with_no_client_auth()
            .with_single_cert(chain, key)
            .map_err(|e| match e {
                Error::InconsistentKeys(_) => SettingsError::KeyMismatch,
                other => unusable(other),
            })?;
        config.alpn_protocols = vec![HTTP_1_1.to_vec()];
        config.ticketer = Ticketer::new().map_err(unusable)?;
        Ok(Self(Arc::new(config)))
    }

    /// The same server, accepting this application protocol alone.
    pub fn speaking(&self, protocol: &[u8]) -> Self {
        let mut config = ServerConfig::clone(&self.0);
        config.alpn_protocols = vec![protocol.to_vec()];
        Self(Arc::new(config))
    }

    /// Begins a session with a client that has connected.
    pub fn accept(&self) -> Result<Session, TlsError> {
        Ok(Session::server(UnbufferedServerConnection::new(Arc::clone(&self.0))?))
    }
}
