//! A certificate authority of one run, and the certificates that it issues.
//!
//! Nothing else is signed by it, and whoever trusts it alone is trusted by nobody by accident. Keys are made here; the caller decides where
//! they are kept, and for how long.

use std::net::IpAddr;
use std::time::Duration;

use rcgen::{
    BasicConstraints, CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer,
    KeyPair, KeyUsagePurpose, PKCS_ECDSA_P256_SHA256, PKCS_ECDSA_P384_SHA384, PKCS_RSA_SHA256, RsaKeySize,
    SanType, date_time_ymd,
};
use strum::{EnumString, IntoStaticStr, VariantArray};
use thiserror::Error;

/// Algorithm and size of keys.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, EnumString, IntoStaticStr, VariantArray)]
#[strum(serialize_all = "lowercase")]
pub enum KeyKind {
    /// ECDSA on the curve P-256: some thirty times as many signatures a second as with RSA.
    #[default]
    P256,
    /// ECDSA on the curve P-384.
    P384,
    /// RSA with 2048 bits.
    Rsa2048,
}

impl KeyKind {
    /// `p256`, `p384` or `rsa2048`, as on the command line.
    pub fn name(self) -> &'static str {
        self.into()
    }

    fn make(self) -> Result<KeyPair, rcgen::Error> {
        match self {
            KeyKind::P256 => KeyPair::generate_for(&PKCS_ECDSA_P256_SHA256),
            KeyKind::P384 => KeyPair::generate_for(&PKCS_ECDSA_P384_SHA384),
            KeyKind::Rsa2048 => KeyPair::generate_rsa_for(&PKCS_RSA_SHA256, RsaKeySize::_2048),
        }
    }
}

/// A certificate could not be made.
#[derive(Debug, Error)]
#[error("cannot make a certificate for {subject}: {cause}")]
pub struct AuthorityError {
    pub subject: String,
    pub cause: rcgen::Error,
}

/// Validity of a certificate, in seconds of Unix time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Validity {
    pub from_unix_s: u64,
    pub until_unix_s: u64,
}

impl Validity {
    /// For a year from a day before `now_unix_s`.
    pub fn around(now_unix_s: u64) -> Self {
        let from_unix_s = now_unix_s.saturating_sub(86_400);
        Self { from_unix_s, until_unix_s: from_unix_s + 366 * 86_400 }
    }
}

/// A certificate with its private key, both as PEM.
#[derive(Clone, PartialEq, Eq)]
pub struct Identity {
    pub certificate: String,
    /// The private key (PKCS #8).
    pub key: String,
}

impl std::fmt::Debug for Identity {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // A key has no place in a log.
        f.debug_struct("Identity").field("certificate", &self.certificate).finish_non_exhaustive()
    }
}

#[derive(Debug)]
pub struct Authority {
    issuer: Issuer<'static, KeyPair>,
    /// Certificate (PEM) that clients are to trust.
    pub certificate: String,
    kind: KeyKind,
}

impl Authority {
    /// Makes an authority, whose keys and those of its certificates are of this kind.
    pub fn new(kind: KeyKind, validity: Validity) -> Result<Self, AuthorityError> {
        Self::named("Assay, authority of one run", kind, validity)
    }

    /// Makes an authority under another name, to which a part of its key's digest is added.
    pub fn named(subject: &str, kind: KeyKind, validity: Validity) -> Result<Self, AuthorityError> {
        let cannot = |cause| AuthorityError { subject: subject.into(), cause };
        let key = kind.make().map_err(cannot)?;
        let params = authority_params(subject, validity, &key);
        let certificate = params.self_signed(&key).map_err(cannot)?.pem();
        Ok(Self { issuer: Issuer::new(params, key), certificate, kind })
    }

    /// Restores an authority that [`Authority::named`] has made under this name from its certificate and key. Its certificates have keys of
    /// the default kind.
    pub(crate) fn from_pem(subject: &str, certificate: &str, key: &str) -> Result<Self, rcgen::Error> {
        let key = KeyPair::from_pem(key)?;
        let params = authority_params(subject, Validity { from_unix_s: 0, until_unix_s: 0 }, &key);
        let issuer = Issuer::new(params, key);
        Ok(Self { issuer, certificate: certificate.to_owned(), kind: KeyKind::default() })
    }

    /// The part of the key's digest with which the name ends, in hexadecimal.
    pub fn id(&self) -> String {
        id(&CertificateParams::default(), self.issuer.key())
    }

    /// Private key, as PEM (PKCS #8).
    pub fn key(&self) -> String {
        self.issuer.key().serialize_pem()
    }

    /// Makes a key, and signs a certificate of a server with these names: host names and IP addresses.
    pub fn issue(&self, names: &[String], validity: Validity) -> Result<Identity, AuthorityError> {
        let subject = names.first().map_or("a server", String::as_str);
        let cannot = |cause| AuthorityError { subject: subject.to_owned(), cause };
        let mut params = params(subject, validity);
        params.subject_alt_names =
            names.iter().map(|name| san(name)).collect::<Result<_, _>>().map_err(cannot)?;
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        if self.kind == KeyKind::Rsa2048 {
            // For key exchanges of TLS 1.2 that have the client encrypt with it.
            params.key_usages.push(KeyUsagePurpose::KeyEncipherment);
        }
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
        params.use_authority_key_identifier_extension = true;
        let key = self.kind.make().map_err(cannot)?;
        let certificate = params.signed_by(&key, &self.issuer).map_err(cannot)?.pem();
        Ok(Identity { certificate, key: key.serialize_pem() })
    }
}

fn id(params: &CertificateParams, key: &KeyPair) -> String {
    params.key_identifier(key).iter().take(8).map(|byte| format!("{byte:02x}")).collect()
}

fn authority_params(subject: &str, validity: Validity, key: &KeyPair) -> CertificateParams {
    let mut params = params(subject, validity);
    // Each has a name of its own, so that a certificate of another run is one of an unknown authority.
    let name = format!("{subject} ({})", id(&params, key));
    params.distinguished_name.push(DnType::CommonName, name);
    params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
    params
}

fn params(subject: &str, validity: Validity) -> CertificateParams {
    let at = |unix_s| date_time_ymd(1970, 1, 1) + Duration::from_secs(unix_s);
    let mut params = CertificateParams::default();
    params.distinguished_name = DistinguishedName::new();
    params.distinguished_name.push(DnType::CommonName, subject);
    params.not_before = at(validity.from_unix_s);
    params.not_after = at(validity.until_unix_s);
    params
}

fn san(name: &str) -> Result<SanType, rcgen::Error> {
    Ok(match name.parse::<IpAddr>() {
        Ok(ip) => SanType::IpAddress(ip),
        Err(_) => SanType::DnsName(name.try_into()?),
    })
}
