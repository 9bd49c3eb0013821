//! Settings of one side of TLS, as documents hold them: versions, cipher suites, resumption, files.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

/// A version of TLS. Older ones are not supported: RFC 8996 forbids them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Version {
    /// TLS 1.2 (RFC 5246).
    #[serde(rename = "1.2")]
    Tls12,
    /// TLS 1.3 (RFC 8446).
    #[serde(rename = "1.3")]
    Tls13,
}

impl Version {
    /// All of them, the oldest first.
    pub const ALL: [Version; 2] = [Version::Tls12, Version::Tls13];

    /// `1.2` or `1.3`, as on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Version::Tls12 => "1.2",
            Version::Tls13 => "1.3",
        }
    }

    /// The version of this name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|version| version.name() == name)
    }
}

/// What one side of a TLS connection offers or accepts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Offer {
    /// The oldest version.
    pub oldest: Version,
    /// The newest version.
    pub newest: Version,
    /// Names of cipher suites as in the registry of IANA (`TLS_AES_128_GCM_SHA256`), in order of preference; empty: all that
    /// are implemented.
    pub ciphers: Vec<String>,
}

impl Default for Offer {
    fn default() -> Self {
        Self { oldest: Version::Tls12, newest: Version::Tls13, ciphers: Vec::new() }
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
    /// Its certificate (PEM), and those between it and the authority.
    pub certificate: PathBuf,
    /// The private key of its certificate (PEM, PKCS #8).
    pub key: PathBuf,
}

/// An authority that a user keeps.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AuthorityFiles {
    /// Its certificate (PEM).
    pub certificate: PathBuf,
    /// Its private key (PEM, PKCS #8).
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
        for version in Version::ALL {
            assert_eq!(Version::from_name(version.name()), Some(version));
        }
        assert_eq!(Version::from_name("1.1"), None);
        assert!(Version::Tls12 < Version::Tls13);
    }
}
