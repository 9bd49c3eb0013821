//! Settings of the library from the offer of a side.

use std::sync::Arc;

use crate::tls::settings::{Offer, TlsVersion};
use rustls::crypto::{CryptoProvider, aws_lc_rs};
use rustls::{SupportedCipherSuite, SupportedProtocolVersion, version};
use thiserror::Error;

/// Settings of TLS that cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum TlsSettingsError {
    /// No version lies in the range.
    #[error("no version of TLS is from {oldest} to {newest}; give the older one first")]
    Versions { oldest: &'static str, newest: &'static str },
    /// The cipher suite is not implemented.
    #[error("there is no cipher suite `{name}` for TLS {versions}; there are {known}")]
    UnknownCipher {
        name: String,
        versions: String,
        /// Cipher suites that are implemented for these versions.
        known: String,
    },
    /// A version is offered, and no cipher suite for it.
    #[error("none of the cipher suites is for TLS {0}; name one, or do not offer this version")]
    NoCipherFor(&'static str),
    /// The PEM has no certificate.
    #[error("{what} has no certificate in it (PEM): {cause}")]
    NoCertificate {
        /// The file, or its purpose.
        what: String,
        cause: String,
    },
    /// The PEM has no private key.
    #[error("{what} has no private key in it (PEM, PKCS #8): {cause}")]
    NoKey {
        /// The file, or its purpose.
        what: String,
        cause: String,
    },
    /// The key belongs to another certificate.
    #[error("the private key does not match the certificate; give the key that it was made with")]
    KeyMismatch,
    /// The library does not accept the certificate.
    #[error("the certificate cannot be used: {0}")]
    Unusable(String),
    /// The name cannot be verified.
    #[error("`{0}` is neither a host name nor an IP address, so no certificate can be verified for it")]
    Name(String),
}

/// The provider of cryptography, with the cipher suites that are offered.
pub(crate) fn provider(offer: &Offer) -> Result<Arc<CryptoProvider>, TlsSettingsError> {
    let mut provider = aws_lc_rs::default_provider();
    if !offer.ciphers.is_empty() {
        provider.cipher_suites = ciphers(offer, &provider.cipher_suites)?;
    }
    Ok(Arc::new(provider))
}

pub(crate) fn versions(offer: &Offer) -> Result<Vec<&'static SupportedProtocolVersion>, TlsSettingsError> {
    let all = [(TlsVersion::Tls13, &version::TLS13), (TlsVersion::Tls12, &version::TLS12)];
    let offered: Vec<_> = all
        .into_iter()
        .filter(|(version, _)| (offer.oldest..=offer.newest).contains(version))
        .map(|(_, supported)| supported)
        .collect();
    match offered.is_empty() {
        true => Err(TlsSettingsError::Versions { oldest: offer.oldest.name(), newest: offer.newest.name() }),
        false => Ok(offered),
    }
}

fn ciphers(
    offer: &Offer,
    implemented: &[SupportedCipherSuite],
) -> Result<Vec<SupportedCipherSuite>, TlsSettingsError> {
    let offered = versions(offer)?;
    let for_offered: Vec<SupportedCipherSuite> =
        implemented.iter().copied().filter(|suite| offered.contains(&suite.version())).collect();
    let find = |name: &String| {
        for_offered.iter().copied().find(|suite| cipher_name(*suite) == *name).ok_or_else(|| {
            TlsSettingsError::UnknownCipher {
                name: name.clone(),
                versions: offered.iter().map(|v| version_name(v)).collect::<Vec<_>>().join(" and "),
                known: for_offered.iter().map(|suite| cipher_name(*suite)).collect::<Vec<_>>().join(", "),
            }
        })
    };
    let chosen: Vec<SupportedCipherSuite> = offer.ciphers.iter().map(find).collect::<Result<_, _>>()?;
    match offered.iter().find(|version| !chosen.iter().any(|suite| suite.version() == **version)) {
        Some(without) => Err(TlsSettingsError::NoCipherFor(version_name(without))),
        None => Ok(chosen),
    }
}

fn version_name(version: &SupportedProtocolVersion) -> &'static str {
    if *version == version::TLS13 { TlsVersion::Tls13.name() } else { TlsVersion::Tls12.name() }
}

/// The name of a cipher suite in the registry of IANA.
pub(crate) fn cipher_name(suite: SupportedCipherSuite) -> String {
    let name = suite.suite().as_str().unwrap_or("unknown");
    // The library has a name of its own for those of TLS 1.3, to tell them apart.
    name.replacen("TLS13_", "TLS_", 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(names: &[&str]) -> Offer {
        Offer { ciphers: names.iter().map(|name| (*name).to_owned()).collect(), ..Offer::default() }
    }

    #[test]
    fn cipher_suites_are_chosen_by_their_registered_names_in_order() {
        let names = ["TLS_AES_256_GCM_SHA384", "TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256"];
        let provider = provider(&named(&names)).expect("both are implemented");
        let chosen: Vec<String> = provider.cipher_suites.iter().map(|suite| cipher_name(*suite)).collect();
        assert_eq!(chosen, names);
    }

    #[test]
    fn what_is_not_implemented_is_refused_with_what_is() {
        let error = provider(&named(&["RC4-MD5"])).expect_err("is no name").to_string();
        assert!(error.contains("`RC4-MD5` for TLS 1.3 and 1.2; there are TLS_AES_256_GCM_SHA384"), "{error}");
        let error = provider(&named(&["TLS_AES_128_GCM_SHA256"])).expect_err("is for TLS 1.3 alone");
        assert_eq!(error, TlsSettingsError::NoCipherFor("1.2"));
        let backwards = Offer { oldest: TlsVersion::Tls13, newest: TlsVersion::Tls12, ..Offer::default() };
        assert!(versions(&backwards).is_err());
    }
}
