//! Flags of how TLS is spoken.

use std::path::PathBuf;

use assay_lab::TlsPlan;
use assay_role::tls::{Offer, Version};
use assay_tls::authority::KeyKind;
use clap::Args;

/// How TLS is spoken, on the legs that speak it.
#[derive(Debug, Clone, Args)]
pub struct TlsArgs {
    /// Versions of TLS that robots and origins speak: 1.2, 1.3, or 1.2-1.3
    #[arg(long, value_name = "RANGE", default_value = "1.2-1.3", value_parser = versions)]
    pub tls_versions: Versions,
    /// Cipher suites that robots and origins speak, as in the registry of IANA, separated by commas [default: all that are
    /// implemented]
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    pub tls_ciphers: Vec<String>,
    /// Keys of the certificates that the run makes: p256, p384 or rsa2048
    #[arg(long, value_name = "KIND", default_value = "p256", value_parser = key)]
    pub tls_key: KeyKind,
    /// Share of robots' new connections that offer to resume an earlier session, where they have one
    #[arg(long, value_name = "SHARE", default_value_t = 1.0, value_parser = share)]
    pub tls_resumption: f64,
    /// Robots trust the authorities in FILE (PEM) in place of the run's own, for a target that runs already
    #[arg(long, value_name = "FILE", conflicts_with = "insecure")]
    pub ca: Option<PathBuf>,
    /// Robots do not verify the target's certificate
    #[arg(long)]
    pub insecure: bool,
}

/// A range of versions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Versions(Version, Version);

impl TlsArgs {
    /// TLS on these legs, spoken like this.
    pub fn plan(&self, robots: bool, origins: bool) -> TlsPlan {
        let Versions(oldest, newest) = self.tls_versions;
        TlsPlan {
            robots,
            origins,
            key: self.tls_key,
            offer: Offer { oldest, newest, ciphers: self.tls_ciphers.clone() },
            resumption: self.tls_resumption,
            ca: self.ca.clone(),
            insecure: self.insecure,
        }
    }
}

fn versions(text: &str) -> Result<Versions, String> {
    let (oldest, newest) = text.split_once('-').unwrap_or((text, text));
    match (Version::from_name(oldest), Version::from_name(newest)) {
        (Some(oldest), Some(newest)) if oldest <= newest => Ok(Versions(oldest, newest)),
        _ => Err("TLS 1.2 and 1.3 are implemented; write 1.2, 1.3 or 1.2-1.3".into()),
    }
}

fn key(text: &str) -> Result<KeyKind, String> {
    KeyKind::from_name(text).ok_or_else(|| "write p256, p384 or rsa2048".into())
}

fn share(text: &str) -> Result<f64, String> {
    let number = match text.strip_suffix('%') {
        Some(percent) => percent.parse::<f64>().map(|percent| percent / 100.0),
        None => text.parse::<f64>(),
    };
    match number {
        Ok(share) if (0.0..=1.0).contains(&share) => Ok(share),
        _ => Err("write a share between 0 and 1, or between 0% and 100%".into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_one_or_a_range_from_old_to_new() {
        assert_eq!(versions("1.3"), Ok(Versions(Version::Tls13, Version::Tls13)));
        assert_eq!(versions("1.2-1.3"), Ok(Versions(Version::Tls12, Version::Tls13)));
        for wrong in ["1.1", "1.3-1.2", "ssl3", ""] {
            assert!(versions(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_share_is_a_number_or_a_percentage() {
        assert_eq!((share("0.5"), share("50%")), (Ok(0.5), Ok(0.5)));
        for wrong in ["2", "-1", "101%", "half"] {
            assert!(share(wrong).is_err(), "{wrong}");
        }
    }
}
