//! Settings of one side of TLS, as documents contain them: versions, cipher suites, resumption, files.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

/// A version of TLS. Older ones are not supported: RFC 8996 forbids them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum TlsVersion {
    /// TLS 1.2 (RFC 5246).
    #[serde(rename = "1.2")]
    Tls12,
    /// TLS 1.3 (RFC 8446).
    #[serde(rename = "1.3")]
    Tls13,
}

impl TlsVersion {
    /// All versions, the oldest first.
    pub const ALL: [TlsVersion; 2] = [TlsVersion::Tls12, TlsVersion::Tls13];

    /// `1.2` or `1.3`, as on the command line.
    pub fn name(self) -> &'static str {
        match self {
            TlsVersion::Tls12 => "1.2",
            TlsVersion::Tls13 => "1.3",
        }
    }

    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|version| version.name() == name)
    }
}

/// Parameters that one side of a TLS connection offers or accepts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Offer {
    pub oldest: TlsVersion,
    pub newest: TlsVersion,
    /// Names of cipher suites as in the registry of IANA (`TLS_AES_128_GCM_SHA256`), in order of preference; empty: all that
    /// are implemented.
    pub ciphers: Vec<String>,
}

impl Default for Offer {
    fn default() -> Self {
        Self { oldest: TlsVersion::Tls12, newest: TlsVersion::Tls13, ciphers: Vec::new() }
    }
}

/// Settings of a client.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ClientTls {
    #[serde(default)]
    pub offer: Offer,
    /// Certificates (PEM) of the authorities that it trusts; it trusts no others. None: it verifies nothing.
    pub ca: Option<PathBuf>,
    /// Probability that a new connection offers to resume an earlier session, where there is one.
    #[serde(default = "always")]
    pub resumption: f64,
}

/// Settings of a server.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ServerTls {
    #[serde(default)]
    pub offer: Offer,
    /// Certificate (PEM), and those between it and the authority.
    pub certificate: PathBuf,
    /// The private key of its certificate (PEM, PKCS #8).
    pub key: PathBuf,
}

/// An authority that a user keeps.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AuthorityFiles {
    /// Certificate (PEM).
    pub certificate: PathBuf,
    /// Private key (PEM, PKCS #8).
    pub key: PathBuf,
}

fn always() -> f64 {
    1.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_named_as_people_name_them() {
        for version in TlsVersion::ALL {
            assert_eq!(TlsVersion::from_name(version.name()), Some(version));
        }
        assert_eq!(TlsVersion::from_name("1.1"), None);
        assert!(TlsVersion::Tls12 < TlsVersion::Tls13);
    }
}
