//! Clients and servers of TLS from what a role was told: the files are read here.

use std::io;
use std::path::{Path, PathBuf};

use assay_role::evaluation::{AuthorityFiles, TlsTo};
use assay_role::tls::{ClientTls, ServerTls};
use assay_tls::client::{Client, Name, SettingsError, Trust};
use assay_tls::intercept::{InterceptError, Interceptor};
use assay_tls::server::Server;
use thiserror::Error;

use crate::clock::realtime_ns;

/// Why a role cannot speak TLS as it was told. Causes are part of the message, and so no `source` of the error.
#[derive(Debug, Error)]
pub enum TlsSetupError {
    /// A file cannot be read.
    #[error("cannot read {path}, which TLS needs: {cause}")]
    Read {
        /// Which file.
        path: PathBuf,
        /// What the system said.
        cause: io::Error,
    },
    /// The authorities cannot be used.
    #[error("{path}: {cause}")]
    Authorities {
        /// Their file.
        path: PathBuf,
        /// What is wrong.
        cause: SettingsError,
    },
    /// The server's certificate or its key cannot be used.
    #[error("{certificate} with {key}: {cause}")]
    Server {
        /// The file of the certificate.
        certificate: PathBuf,
        /// The file of the key.
        key: PathBuf,
        /// What is wrong.
        cause: SettingsError,
    },
    /// The authority with which tunnels are opened, or its key, cannot be used.
    #[error("{certificate} with {key}: {cause}")]
    Authority {
        /// The file of its certificate.
        certificate: PathBuf,
        /// The file of its key.
        key: PathBuf,
        /// What is wrong.
        cause: Box<InterceptError>,
    },
    /// What is to be offered is not possible.
    #[error(transparent)]
    Settings(SettingsError),
}

/// A client that trusts and offers what it was told.
pub fn client(told: &ClientTls) -> Result<Client, TlsSetupError> {
    let Some(path) = &told.ca else {
        return Client::new(Trust::Everybody, &told.offer).map_err(TlsSetupError::Settings);
    };
    let pem = read(path)?;
    Client::new(Trust::Authorities(&pem), &told.offer)
        .map_err(|cause| TlsSetupError::Authorities { path: path.clone(), cause })
}

/// A client for one server, and the name that its certificate is verified for.
pub fn client_to(told: &TlsTo) -> Result<(Client, Name), TlsSetupError> {
    let name = Name::of_authority(&told.authority).map_err(TlsSetupError::Settings)?;
    Ok((client(&told.client)?, name))
}

/// What opens tunnels with an authority that a user keeps. It must be valid now.
pub fn interceptor(told: &AuthorityFiles) -> Result<Interceptor, TlsSetupError> {
    let AuthorityFiles { certificate, key } = told;
    let now_unix_s = realtime_ns() / 1_000_000_000;
    Interceptor::new(&read(certificate)?, &read(key)?, now_unix_s).map_err(|cause| TlsSetupError::Authority {
        certificate: certificate.clone(),
        key: key.clone(),
        cause: Box::new(cause),
    })
}

/// A server with the certificate that it was told to show.
pub fn server(told: &ServerTls) -> Result<Server, TlsSetupError> {
    let ServerTls { offer, certificate, key } = told;
    Server::new(&read(certificate)?, &read(key)?, offer).map_err(|cause| TlsSetupError::Server {
        certificate: certificate.clone(),
        key: key.clone(),
        cause,
    })
}

fn read(path: &Path) -> Result<Vec<u8>, TlsSetupError> {
    assay_files::bytes(path, assay_files::SETTINGS_MAX)
        .map_err(|cause| TlsSetupError::Read { path: path.to_owned(), cause })
}
