//! Flags of how TLS is spoken.

use std::ops::RangeInclusive;
use std::path::PathBuf;

use anyhow::anyhow;
use assay_lab::TlsPlan;
use assay_net::tls::authority::KeyKind;
use assay_net::tls::settings::{Offer, TlsVersion as Version};
use assay_workload::model::{Tls, TlsCipher, TlsKey, TlsVersion};
use clap::Args;

use crate::exit::Failure;

/// How TLS is spoken, on the legs that speak it. What is not given is as the workload says (`ssl_wraps`).
#[derive(Debug, Clone, Args)]
pub struct TlsArgs {
    /// Versions of TLS that robots and origins speak: 1.2, 1.3, or 1.2-1.3 [default: as the workload says, else 1.2-1.3]
    #[arg(long, value_name = "RANGE", value_parser = versions)]
    pub tls_versions: Option<Versions>,
    /// Cipher suites that robots and origins speak, as in the registry of IANA, separated by commas [default: as the workload
    /// says, else all that are implemented]
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    pub tls_ciphers: Vec<String>,
    /// Keys of the certificates that the run makes: p256, p384 or rsa2048 [default: as the workload says, else p256]
    #[arg(long, value_name = "KIND", value_parser = key)]
    pub tls_key: Option<KeyKind>,
    /// Share of robots' new connections that offer to resume an earlier session, where they have one [default: as the
    /// workload says, else 1]
    #[arg(long, value_name = "SHARE", value_parser = share)]
    pub tls_resumption: Option<f64>,
    /// Robots trust the authorities in FILE (PEM) in place of the run's own, for a target that is already running
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
    /// Refuses flags of legs that do not speak TLS: they would do nothing.
    pub fn check(
        &self,
        robots: Option<bool>,
        origins: Option<bool>,
        said: Option<&Tls>,
    ) -> Result<(), Failure> {
        let (robots, origins) = legs(robots, origins, said);
        let flags = [
            ("--tls-versions", self.tls_versions.is_some(), robots || origins),
            ("--tls-ciphers", !self.tls_ciphers.is_empty(), robots || origins),
            ("--tls-key", self.tls_key.is_some(), robots || origins),
            ("--tls-resumption", self.tls_resumption.is_some(), robots),
        ];
        let Some((flag, ..)) = flags.iter().find(|(_, is_given, is_of_use)| *is_given && !is_of_use) else {
            return Ok(());
        };
        let (legs, needed) = match *flag {
            "--tls-resumption" => ("robots", "--robot-tls"),
            _ => ("robots or origins", "--robot-tls or --origin-tls"),
        };
        let failure = anyhow!("{flag} is for {legs} that speak TLS, and this run has none");
        Err(Failure::usage(failure).hint(format!("add {needed}, or leave {flag} out")))
    }

    /// TLS on the legs of robots and of origins, as the command line says, or else the workload.
    pub fn plan(&self, robots: Option<bool>, origins: Option<bool>, said: Option<&Tls>) -> TlsPlan {
        let (robots, origins) = legs(robots, origins, said);
        let by_workload = said.map(|tls| Versions(version(tls.oldest), version(tls.newest)));
        let Versions(oldest, newest) =
            self.tls_versions.or(by_workload).unwrap_or(Versions(Version::Tls12, Version::Tls13));
        let key = said.map(|tls| match tls.key {
            TlsKey::P256 => KeyKind::P256,
            TlsKey::Rsa2048 => KeyKind::Rsa2048,
        });
        let ciphers = match (self.tls_ciphers.is_empty(), said) {
            (true, Some(tls)) => suites(&tls.ciphers, oldest..=newest),
            _ => self.tls_ciphers.clone(),
        };
        let is_unverified = said.is_some_and(|tls| !tls.verified) && self.ca.is_none() && (robots || origins);
        TlsPlan {
            robots,
            origins,
            key: self.tls_key.or(key).unwrap_or_default(),
            offer: Offer { oldest, newest, ciphers },
            resumption: self.tls_resumption.or(said.and_then(|tls| tls.resumption)).unwrap_or(1.0),
            ca: self.ca.clone(),
            insecure: self.insecure || is_unverified,
        }
    }
}

/// Whether robots and origins speak TLS: as the command line says, or else the workload.
fn legs(robots: Option<bool>, origins: Option<bool>, said: Option<&Tls>) -> (bool, bool) {
    let robots = robots.unwrap_or_else(|| said.is_some_and(|tls| tls.robots));
    (robots, origins.unwrap_or_else(|| said.is_some_and(|tls| tls.origins)))
}

fn version(version: TlsVersion) -> Version {
    match version {
        TlsVersion::Tls12 => Version::Tls12,
        TlsVersion::Tls13 => Version::Tls13,
    }
}

/// The cipher suites of these ciphers, of the versions in this range.
fn suites(ciphers: &[TlsCipher], versions: RangeInclusive<Version>) -> Vec<String> {
    let known = [(Version::Tls13, TlsVersion::Tls13), (Version::Tls12, TlsVersion::Tls12)];
    let offered = known.into_iter().filter(|(version, _)| versions.contains(version));
    offered
        .flat_map(|(_, version)| ciphers.iter().flat_map(move |cipher| cipher.suites(version)))
        .map(|suite| (*suite).to_owned())
        .collect()
}

/// `on` or `off`: whether a leg speaks TLS.
pub fn on_or_off(text: &str) -> Result<bool, String> {
    match text {
        "on" => Ok(true),
        "off" => Ok(false),
        _ => Err("write on or off".into()),
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
    text.parse().map_err(|_| "write p256, p384 or rsa2048".into())
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

    fn args() -> TlsArgs {
        let (tls_versions, tls_ciphers, tls_key, tls_resumption) = (None, Vec::new(), None, None);
        TlsArgs { tls_versions, tls_ciphers, tls_key, tls_resumption, ca: None, insecure: false }
    }

    fn said() -> Tls {
        Tls {
            robots: true,
            origins: false,
            oldest: TlsVersion::Tls12,
            newest: TlsVersion::Tls12,
            ciphers: vec![TlsCipher::Aes128],
            key: TlsKey::Rsa2048,
            resumption: Some(0.25),
            verified: false,
        }
    }

    #[test]
    fn flags_of_legs_in_the_clear_are_refused() {
        let of = |flags: TlsArgs, robots, origins, said: Option<&Tls>| {
            flags.check(robots, origins, said).err().map(|failure| failure.error.to_string())
        };
        let resumption = || TlsArgs { tls_resumption: Some(0.5), ..args() };
        let key = || TlsArgs { tls_key: Some(KeyKind::P384), ..args() };
        assert_eq!(of(args(), None, None, None), None);
        assert_eq!(of(key(), None, Some(true), None), None);
        assert_eq!(of(resumption(), None, None, Some(&said())), None);
        let why = of(key(), None, None, None).expect("nobody speaks TLS");
        assert!(why.starts_with("--tls-key is for robots or origins that"), "{why}");
        let why = of(resumption(), Some(false), Some(true), Some(&said())).expect("robots do not speak it");
        assert!(why.starts_with("--tls-resumption is for robots that"), "{why}");
    }

    #[test]
    fn what_the_command_line_does_not_say_is_as_the_workload_says() {
        let plan = args().plan(None, None, Some(&said()));
        assert!(plan.robots && !plan.origins && plan.insecure);
        assert_eq!((plan.key, plan.resumption), (KeyKind::Rsa2048, 0.25));
        assert_eq!((plan.offer.oldest, plan.offer.newest), (Version::Tls12, Version::Tls12));
        assert_eq!(plan.offer.ciphers.len(), 2, "{:?}", plan.offer.ciphers);
        assert_eq!(args().plan(None, None, None), TlsPlan::default());
    }

    #[test]
    fn flags_take_precedence_over_the_workload() {
        let (tls_versions, tls_resumption) = (versions("1.3").ok(), Some(1.0));
        let flags = TlsArgs { tls_versions, tls_resumption, tls_key: Some(KeyKind::P384), ..args() };
        let plan = flags.plan(Some(false), Some(true), Some(&said()));
        assert!(!plan.robots && plan.origins);
        assert_eq!((plan.key, plan.resumption), (KeyKind::P384, 1.0));
        assert_eq!(plan.offer.ciphers, ["TLS_AES_128_GCM_SHA256"]);
        let clear = args().plan(Some(false), None, Some(&said()));
        assert!(!clear.is_some() && !clear.insecure, "nothing is left of it");
    }

    #[test]
    fn a_share_is_a_number_or_a_percentage() {
        assert_eq!((share("0.5"), share("50%")), (Ok(0.5), Ok(0.5)));
        for wrong in ["2", "-1", "101%", "half"] {
            assert!(share(wrong).is_err(), "{wrong}");
        }
    }
}
