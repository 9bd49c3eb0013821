//! TLS of a switch: certificates that clients are shown, and authorities that servers are verified by. The files are read here.

use std::io;
use std::path::{Path, PathBuf};

use assay_net::tls::HTTP_2;
use assay_net::tls::client::{Client, Name, SettingsError, Trust};
use assay_net::tls::server::{Pair, Server};
use assay_net::tls::settings::Offer;
use thiserror::Error;

use crate::config::{Config, Http2, ListenTls, ServerSpec, ServerTls};

/// Why TLS cannot be spoken as the configuration says.
#[derive(Debug, Error)]
pub enum SecureError {
    /// A file cannot be read.
    #[error("cannot read {path}, which TLS needs: {cause}")]
    Read {
        path: PathBuf,
        /// What the system said.
        cause: io::Error,
    },
    /// A certificate cannot be used.
    #[error("[[certificate]] {files}: {cause}")]
    Certificate {
        /// The files of certificate and key.
        files: String,
        cause: SettingsError,
    },
    /// A server cannot be verified as the configuration says.
    #[error("tls of server {server}: {cause}")]
    Server { server: String, cause: SettingsError },
}

/// What a switch needs for TLS.
#[derive(Debug, Clone, Default)]
pub struct Secure {
    /// For clients; none: all are served in the clear.
    pub clients: Option<Server>,
    /// For servers, by their places in the settings; none: in the clear.
    pub servers: Vec<Option<ToServer>>,
}

/// TLS to one server.
#[derive(Debug, Clone)]
pub struct ToServer {
    /// Whom the switch trusts, with sessions that can be resumed.
    pub client: Client,
    /// The name that the server's certificate is verified for.
    pub name: Name,
}

impl Secure {
    /// Reads the files of a configuration.
    pub fn read(config: &Config) -> Result<Self, SecureError> {
        let clients = config.tls.as_ref().map(|tls| clients(tls, config.http2)).transpose()?;
        let servers = config.servers.iter().map(|spec| {
            let tls = spec.tls.as_ref();
            tls.map(|tls| to_server(spec, tls)).transpose()
        });
        Ok(Self { clients, servers: servers.collect::<Result<_, _>>()? })
    }
}

impl Secure {
    /// Clients can resume the sessions that they have from an earlier configuration.
    pub fn keep_tickets(&mut self, former: Option<&Server>) {
        if let (Some(clients), Some(former)) = (&mut self.clients, former) {
            *clients = clients.with_tickets_of(former);
        }
    }
}

fn clients(tls: &ListenTls, http2: Http2) -> Result<Server, SecureError> {
    let mut read_pairs = Vec::new();
    for files in &tls.certificates {
        let pair = (read(&files.certificate)?, read(&files.key)?);
        let offer = Offer { oldest: tls.oldest, ..Offer::default() };
        // One by one first: a mistake is to name its files.
        Server::new(&pair.0, &pair.1, &offer).map_err(|cause| SecureError::Certificate {
            files: format!("{} with {}", files.certificate.display(), files.key.display()),
            cause,
        })?;
        read_pairs.push(pair);
    }
    let pairs: Vec<Pair<'_>> =
        read_pairs.iter().map(|(certificates, key)| Pair { certificates, key }).collect();
    let offer = Offer { oldest: tls.oldest, ..Offer::default() };
    let server = Server::with_names(&pairs, &offer)
        .map_err(|cause| SecureError::Certificate { files: "of all names".into(), cause })?;
    Ok(if http2 == Http2::None { server } else { server.speaking_both() })
}

fn to_server(spec: &ServerSpec, tls: &ServerTls) -> Result<ToServer, SecureError> {
    let wrong = |cause| SecureError::Server { server: spec.name.clone(), cause };
    let offer = Offer { oldest: tls.oldest, ..Offer::default() };
    let client = match &tls.ca {
        Some(ca) => Client::new(Trust::Authorities(&read(ca)?), &offer),
        None => Client::new(Trust::Everybody, &offer),
    };
    let client = client.map(|client| if spec.speaks_http2 { client.speaking(HTTP_2) } else { client });
    let host = tls.name.clone().unwrap_or_else(|| spec.address.to_string());
    let name = Name::of_authority(&host).map_err(wrong)?;
    Ok(ToServer { client: client.map_err(wrong)?, name })
}

fn read(path: &Path) -> Result<Vec<u8>, SecureError> {
    assay_base::files::bytes(path, assay_base::files::SETTINGS_MAX)
        .map_err(|cause| SecureError::Read { path: path.to_owned(), cause })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_certificate_is_a_regular_file() {
        let error = read(Path::new("/dev/zero")).expect_err("has no end");
        let SecureError::Read { cause, .. } = error else { panic!("{error}") };
        assert!(cause.to_string().contains("it is a device"), "{cause}");
    }
}
