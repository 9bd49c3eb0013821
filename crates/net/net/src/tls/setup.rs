//! Clients and servers of TLS from their settings: the files are read here.

use std::io;
use std::path::{Path, PathBuf};

use crate::tls::client::{Client, Name, SettingsError, Trust};
use crate::tls::intercept::{InterceptError, Interceptor};
use crate::tls::server::Server;
use crate::tls::settings::{AuthorityFiles, ClientTls, ServerTls};
use thiserror::Error;

use assay_base::clock::realtime_ns;

/// Why a role cannot speak TLS with its settings. Causes are part of the message, and so no `source` of the error.
#[derive(Debug, Error)]
pub enum TlsSetupError {
    /// A file cannot be read.
    #[error("cannot read {path}, which TLS needs: {cause}")]
    Read {
        path: PathBuf,
        /// What the system said.
        cause: io::Error,
    },
    /// The authorities cannot be used.
    #[error("{path}: {cause}")]
    Authorities { path: PathBuf, cause: SettingsError },
    /// The server's certificate or its key cannot be used.
    #[error("{certificate} with {key}: {cause}")]
    Server {
        /// The file of the certificate.
        certificate: PathBuf,
        /// The file of the key.
        key: PathBuf,
        cause: SettingsError,
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
    /// What is to be offered is not possible.
    #[error(transparent)]
    Settings(SettingsError),
}

/// A client that trusts and offers what its settings say.
pub fn client(settings: &ClientTls) -> Result<Client, TlsSetupError> {
    let Some(path) = &settings.ca else {
        return Client::new(Trust::Everybody, &settings.offer).map_err(TlsSetupError::Settings);
    };
    let pem = read(path)?;
    Client::new(Trust::Authorities(&pem), &settings.offer)
        .map_err(|cause| TlsSetupError::Authorities { path: path.clone(), cause })
}

/// A client for one server, and the name that its certificate is verified for: the host of `authority`.
pub fn client_to(settings: &ClientTls, authority: &str) -> Result<(Client, Name), TlsSetupError> {
    let name = Name::of_authority(authority).map_err(TlsSetupError::Settings)?;
    Ok((client(settings)?, name))
}

/// What opens tunnels with an authority that a user keeps. It must be valid now.
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
pub fn server(settings: &ServerTls) -> Result<Server, TlsSetupError> {
    let ServerTls { offer, certificate, key } = settings;
    Server::new(&read(certificate)?, &read(key)?, offer).map_err(|cause| TlsSetupError::Server {
        certificate: certificate.clone(),
        key: key.clone(),
        cause,
    })
}

fn read(path: &Path) -> Result<Vec<u8>, TlsSetupError> {
    assay_base::files::bytes(path, assay_base::files::SETTINGS_MAX)
        .map_err(|cause| TlsSetupError::Read { path: path.to_owned(), cause })
}
