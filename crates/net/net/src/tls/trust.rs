//! Verification of servers' certificates.
//!
//! Chains are verified by the library underneath. It refuses the certificate of an authority (`CA:TRUE`) as a server's own, and that
//! is what `openssl req -x509` makes unless it is told otherwise. Where such a certificate itself is among the trusted ones, no
//! signature says more about it: its name and its validity are checked, and that the server has its key.

use std::sync::Arc;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{WebPkiServerVerifier, verify_server_name};
use rustls::crypto::{CryptoProvider, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::pem::{self, PemObject};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::server::ParsedCertificate;
use rustls::{CertificateError, DigitallySignedStruct, Error, RootCertStore, SignatureScheme};

use crate::tls::der;
use crate::tls::offer::TlsSettingsError;

/// Certificates that a client trusts.
#[derive(Debug, Clone, Copy)]
pub enum Trust<'a> {
    /// The authorities, and the servers, whose certificates these are (PEM).
    Authorities(&'a [u8]),
    /// Everybody: certificates are not verified.
    Everybody,
}

/// The verifier of certificates.
pub(crate) fn verifier(
    trust: Trust<'_>,
    provider: Arc<CryptoProvider>,
) -> Result<Arc<dyn ServerCertVerifier>, TlsSettingsError> {
    let Trust::Authorities(pem) = trust else {
        return Ok(Arc::new(Verification { chains: None, certificates: Vec::new(), provider }));
    };
    let certificates = certificates(pem)?;
    let mut roots = RootCertStore::empty();
    for (number, certificate) in (1..).zip(&certificates) {
        let damaged =
            || format!("number {number} in the file of authorities is no certificate (X.509), or is damaged");
        roots.add(certificate.clone()).map_err(|_| TlsSettingsError::Unusable(damaged()))?;
    }
    let chains = WebPkiServerVerifier::builder_with_provider(Arc::new(roots), Arc::clone(&provider))
        .build()
        .map_err(|e| TlsSettingsError::Unusable(e.to_string()))?;
    Ok(Arc::new(Verification { chains: Some(chains), certificates, provider }))
}

fn certificates(pem: &[u8]) -> Result<Vec<CertificateDer<'static>>, TlsSettingsError> {
    let certificates: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(pem).collect();
    let certificates = certificates.map_err(|e| none(describe_pem_error(&e)))?;
    if certificates.is_empty() { Err(none("nothing was found".into())) } else { Ok(certificates) }
}

/// Describes an error in PEM: the library shows lines as numbers.
pub(crate) fn describe_pem_error(error: &pem::Error) -> String {
    match error {
        pem::Error::MissingSectionEnd { .. } => {
            "a section has no END line; the file may be cut off".to_owned()
        }
        pem::Error::IllegalSectionStart { line } => {
            format!("a section does not begin as it should: `{}`", String::from_utf8_lossy(line).trim_end())
        }
        pem::Error::Base64Decode(_) => "a section is not in base64".to_owned(),
        pem::Error::NoItemsFound => "nothing was found".to_owned(),
        other => other.to_string(),
    }
}

fn none(cause: String) -> TlsSettingsError {
    TlsSettingsError::NoCertificate { what: "the file of authorities".into(), cause }
}

/// Accepts certificates that the trusted have signed, and those of the trusted themselves. That the other side has its key is verified in
/// any case.
#[derive(Debug)]
struct Verification {
    /// None: every certificate is accepted.
    chains: Option<Arc<WebPkiServerVerifier>>,
    certificates: Vec<CertificateDer<'static>>,
    provider: Arc<CryptoProvider>,
}

impl ServerCertVerifier for Verification {
    fn verify_server_cert(
        &self,
        certificate: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        name: &ServerName<'_>,
        ocsp: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let Some(chains) = &self.chains else { return Ok(ServerCertVerified::assertion()) };
        let verified = chains.verify_server_cert(certificate, intermediates, name, ocsp, now);
        if verified.is_err() && self.certificates.contains(certificate) {
            return verify_itself(certificate, name, now);
        }
        verified
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls12_signature(message, certificate, signed, &self.provider.signature_verification_algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls13_signature(message, certificate, signed, &self.provider.signature_verification_algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}

/// Name and validity of a certificate that is trusted itself.
fn verify_itself(
    certificate: &CertificateDer<'_>,
    name: &ServerName<'_>,
    now: UnixTime,
) -> Result<ServerCertVerified, Error> {
    let valid = der::validity(certificate).ok_or(CertificateError::BadEncoding)?;
    let at = |unix_s| UnixTime::since_unix_epoch(std::time::Duration::from_secs(unix_s));
    if now.as_secs() > valid.until_unix_s {
        return Err(CertificateError::ExpiredContext { time: now, not_after: at(valid.until_unix_s) }.into());
    }
    if now.as_secs() < valid.from_unix_s {
        return Err(
            CertificateError::NotValidYetContext { time: now, not_before: at(valid.from_unix_s) }.into()
        );
    }
    verify_server_name(&ParsedCertificate::try_from(certificate)?, name)?;
    Ok(ServerCertVerified::assertion())
}
