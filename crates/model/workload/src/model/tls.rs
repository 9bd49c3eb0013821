//! TLS as a workload says it (PGL `SslWrap`): which legs speak it, and how.
//!
//! All agents of a run speak TLS alike. Certificates are not part of it: each run makes its own.

use serde::{Deserialize, Serialize};

/// TLS from the `ssl_wraps` of all agents.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Tls {
    /// Robots speak it to the target.
    pub robots: bool,
    pub origins: bool,
    /// The oldest version that is offered.
    pub oldest: TlsVersion,
    /// The newest version.
    pub newest: TlsVersion,
    /// Kinds of cipher suites that are offered; empty: all.
    pub ciphers: Vec<TlsCipher>,
    pub key: TlsKey,
    /// Probability that a robot's new connection offers to resume an earlier session, where there is one. None: the workload
    /// says nothing of robots' sessions.
    pub resumption: Option<f64>,
    pub verified: bool,
}

/// A version of TLS.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum TlsVersion {
    /// TLS 1.2 (RFC 5246).
    #[serde(rename = "1.2")]
    Tls12,
    /// TLS 1.3 (RFC 8446).
    #[serde(rename = "1.3")]
    Tls13,
}

/// Record cipher; each stands for the cipher suites of both versions that use it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TlsCipher {
    /// AES-256-GCM.
    Aes256,
    /// AES-128-GCM.
    Aes128,
    /// ChaCha20-Poly1305.
    Chacha20,
}

/// A kind of key of a certificate.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TlsKey {
    /// ECDSA on P-256.
    #[default]
    P256,
    /// RSA of 2048 bits.
    Rsa2048,
}

impl TlsCipher {
    /// All of them, in the order of preference.
    pub const ALL: [TlsCipher; 3] = [TlsCipher::Aes256, TlsCipher::Aes128, TlsCipher::Chacha20];

    /// Cipher suites of a version, named as in the registry of IANA.
    pub fn suites(self, version: TlsVersion) -> &'static [&'static str] {
        match (version, self) {
            (TlsVersion::Tls13, TlsCipher::Aes256) => &["TLS_AES_256_GCM_SHA384"],
            (TlsVersion::Tls13, TlsCipher::Aes128) => &["TLS_AES_128_GCM_SHA256"],
            (TlsVersion::Tls13, TlsCipher::Chacha20) => &["TLS_CHACHA20_POLY1305_SHA256"],
            (TlsVersion::Tls12, TlsCipher::Aes256) => {
                &["TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384", "TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384"]
            }
            (TlsVersion::Tls12, TlsCipher::Aes128) => {
                &["TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256", "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256"]
            }
            (TlsVersion::Tls12, TlsCipher::Chacha20) => &[
                "TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256",
                "TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256",
            ],
        }
    }
}
