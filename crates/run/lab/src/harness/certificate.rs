//! A certificate for a proxy that is started alone, of an authority that signs nothing else.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use assay_net::tls::authority::Identity;
use assay_net::tls::client::host_of;

use crate::error::{FileError, LabError};
use crate::tls::{self, ProxyTls, Written};

/// Certificate and key of one proxy, and the authority by which clients verify it. Only the certificate of that authority is ever written,
/// and the key of the proxy where a role of Assay reads it.
#[derive(Debug)]
pub struct ProxyCertificate {
    identity: Identity,
    authority: String,
}

impl ProxyCertificate {
    /// For these hosts and addresses.
    pub fn new(names: &[String]) -> Result<Self, LabError> {
        let (identity, authority) = tls::identity(names)?;
        Ok(Self { identity, authority })
    }

    /// For the host of this authority (`host:port`), and for where the proxy listens itself.
    pub fn standing_for(authority: &str, listen: SocketAddr) -> Result<Self, LabError> {
        Self::new(&[host_of(authority).to_owned(), listen.ip().to_string()])
    }

    /// For a described proxy.
    pub fn for_described(&self) -> ProxyTls {
        ProxyTls { identity: Some(self.identity.clone()), to_origins: false, ca: self.authority.clone() }
    }

    /// For the built-in proxy, in files below a directory.
    pub fn for_builtin(&self, directory: &Path) -> Result<Written, LabError> {
        tls::written(directory, &self.identity)
    }

    /// Writes what clients trust below a directory, as `tls/ca.pem`: where.
    pub fn write_authority(&self, directory: &Path) -> Result<PathBuf, LabError> {
        let directory = directory.join("tls");
        let file = directory.join("ca.pem");
        std::fs::create_dir_all(&directory)
            .and_then(|()| std::fs::write(&file, &self.authority))
            .map_err(|e| LabError::run(FileError::write(&file, e)))?;
        Ok(file)
    }
}
