//! Clients and servers of TLS from their settings: the files are read here.

use std::io;
use std::path::{Path, PathBuf};

use crate::tls::client::{TlsClient, TlsServerName, TlsSettingsError, Trust};
use crate::tls::intercept::{InterceptError, Interceptor};
use crate::tls::server::TlsServer;
use crate::tls::settings::{AuthorityFiles, ClientTls, ServerTls};
use thiserror::Error;

use assay_base::clock::realtime_ns;

/// Failure to set up TLS from settings. Causes are part of the message, and so no `source` of the error.
#[derive(Debug, Error)]
pub enum TlsSetupError {
    #[error("cannot read {path}, which TLS needs: {cause}")]
    Read { path: PathBuf, cause: io::Error },
    #[error("{path}: {cause}")]
    Authorities { path: PathBuf, cause: TlsSettingsError },
    /// The server's certificate or its key cannot be used.
    #[error("{certificate} with {key}: {cause}")]
    Server {
        /// The file of the certificate.
        certificate: PathBuf,
        /// The file of the key.
        key: PathBuf,
        cause: TlsSettingsError,
    },
    /// The authority with which tunnels are opened, or its key, cannot be used.
    #[error("{certificate} with {key}: {cause}")]
    Authority {
        /// The file of its certificate.
        certificate: PathBuf,
        /// The file of its key.
        key: PathBuf,
        cause: Box<InterceptError>,
    },
    /// The offer is impossible.
    #[error(transparent)]
    Settings(TlsSettingsError),
}

/// A client from its settings.
pub fn client(settings: &ClientTls) -> Result<TlsClient, TlsSetupError> {
    let Some(path) = &settings.ca else {
        return TlsClient::new(Trust::Everybody, &settings.offer).map_err(TlsSetupError::Settings);
    };
    let pem = read(path)?;
    TlsClient::new(Trust::Authorities(&pem), &settings.offer)
        .map_err(|cause| TlsSetupError::Authorities { path: path.clone(), cause })
}

/// A client for one server, and the name that its certificate is verified for: the host of `authority`.
pub fn client_to(settings: &ClientTls, authority: &str) -> Result<(TlsClient, TlsServerName), TlsSetupError> {
    let name = TlsServerName::from_authority(authority).map_err(TlsSetupError::Settings)?;
    Ok((client(settings)?, name))
}

/// An interceptor of tunnels, with an authority that a user keeps. The authority must be valid now.
pub fn interceptor(settings: &AuthorityFiles) -> Result<Interceptor, TlsSetupError> {
    let AuthorityFiles { certificate, key } = settings;
    let now_unix_s = realtime_ns() / 1_000_000_000;
    Interceptor::new(&read(certificate)?, &read(key)?, now_unix_s).map_err(|cause| TlsSetupError::Authority {
        certificate: certificate.clone(),
        key: key.clone(),
        cause: Box::new(cause),
    })
}

/// A server with the certificate of its settings.
pub fn server(settings: &ServerTls) -> Result<TlsServer, TlsSetupError> {
    let ServerTls { offer, certificate, key } = settings;
    TlsServer::new(&read(certificate)?, &read(key)?, offer).map_err(|cause| TlsSetupError::Server {
        certificate: certificate.clone(),
        key: key.clone(),
        cause,
    })
}

fn read(path: &Path) -> Result<Vec<u8>, TlsSetupError> {
    assay_base::files::bytes(path, assay_base::files::SETTINGS_MAX)
        .map_err(|cause| TlsSetupError::Read { path: path.to_owned(), cause })
}
