//! TLS of a switch: certificates for clients, and authorities that verify servers. The files are read here.

use std::io;
use std::path::{Path, PathBuf};

use assay_net::tls::HTTP_2;
use assay_net::tls::client::{TlsClient, TlsServerName, TlsSettingsError, Trust};
use assay_net::tls::server::{IdentityPem, TlsServer};
use assay_net::tls::settings::Offer;
use thiserror::Error;

use crate::config::{ClientHttp2, Config, ListenTls, ServerSpec, ServerTls};

#[derive(Debug, Error)]
pub enum TlsError {
    #[error("cannot read {path}, which TLS needs: {cause}")]
    Read { path: PathBuf, cause: io::Error },
    #[error("[[certificate]] {files}: {cause}")]
    Certificate {
        /// File names of certificate and key.
        files: String,
        cause: TlsSettingsError,
    },
    #[error("tls of server {server}: {cause}")]
    Server { server: String, cause: TlsSettingsError },
}

/// TLS settings of a configuration, with its files read.
#[derive(Debug, Clone, Default)]
pub struct TlsContext {
    /// `None`: all clients are served in the clear.
    pub clients: Option<TlsServer>,
    /// By index of the server in the settings; `None`: in the clear.
    pub servers: Vec<Option<UpstreamTls>>,
}

/// TLS to one server.
#[derive(Debug, Clone)]
pub struct UpstreamTls {
    /// Trusted authorities, with sessions that can be resumed.
    pub client: TlsClient,
    /// Name that the server's certificate is verified for.
    pub name: TlsServerName,
}

impl TlsContext {
    /// Reads the files of a configuration.
    pub fn read(config: &Config) -> Result<Self, TlsError> {
        let clients = config.tls.as_ref().map(|tls| clients(tls, config.http2)).transpose()?;
        let servers = config.servers.iter().map(|spec| {
            let tls = spec.tls.as_ref();
            tls.map(|tls| to_server(spec, tls)).transpose()
        });
        Ok(Self { clients, servers: servers.collect::<Result<_, _>>()? })
    }
}

impl TlsContext {
    /// Keeps the ticket keys, so that clients can resume sessions of an earlier configuration.
    pub fn keep_tickets(&mut self, former: Option<&TlsServer>) {
        if let (Some(clients), Some(former)) = (&mut self.clients, former) {
            *clients = clients.with_tickets_of(former);
        }
    }
}

fn clients(tls: &ListenTls, http2: ClientHttp2) -> Result<TlsServer, TlsError> {
    let mut read_pairs = Vec::new();
    for files in &tls.certificates {
        let pair = (read(&files.certificate)?, read(&files.key)?);
        let offer = Offer { oldest: tls.oldest, ..Offer::default() };
        // Each pair is tried alone first, so that an error names its files.
        TlsServer::new(&pair.0, &pair.1, &offer).map_err(|cause| TlsError::Certificate {
            files: format!("{} with {}", files.certificate.display(), files.key.display()),
            cause,
        })?;
        read_pairs.push(pair);
    }
    let pairs: Vec<IdentityPem<'_>> =
        read_pairs.iter().map(|(certificates, key)| IdentityPem { certificates, key }).collect();
    let offer = Offer { oldest: tls.oldest, ..Offer::default() };
    let server = TlsServer::with_names(&pairs, &offer)
        .map_err(|cause| TlsError::Certificate { files: "of all names".into(), cause })?;
    Ok(if http2 == ClientHttp2::None { server } else { server.with_http2() })
}

fn to_server(spec: &ServerSpec, tls: &ServerTls) -> Result<UpstreamTls, TlsError> {
    let wrong = |cause| TlsError::Server { server: spec.name.clone(), cause };
    let offer = Offer { oldest: tls.oldest, ..Offer::default() };
    let client = match &tls.ca {
        Some(ca) => TlsClient::new(Trust::Authorities(&read(ca)?), &offer),
        None => TlsClient::new(Trust::Everybody, &offer),
    };
    let client = client.map(|client| if spec.speaks_http2 { client.with_protocol(HTTP_2) } else { client });
    let host = tls.name.clone().unwrap_or_else(|| spec.address.to_string());
    let name = TlsServerName::from_authority(&host).map_err(wrong)?;
    Ok(UpstreamTls { client: client.map_err(wrong)?, name })
}

fn read(path: &Path) -> Result<Vec<u8>, TlsError> {
    assay_base::files::bytes(path, assay_base::files::SETTINGS_MAX)
        .map_err(|cause| TlsError::Read { path: path.to_owned(), cause })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_certificate_is_a_regular_file() {
        let error = read(Path::new("/dev/zero")).expect_err("has no end");
        let TlsError::Read { cause, .. } = error else { panic!("{error}") };
        assert!(cause.to_string().contains("it is a device"), "{cause}");
    }
}
