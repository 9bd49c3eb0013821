//! Errors of TLS, in kinds that call for different remedies.

use rustls::{AlertDescription, CertificateError, Error, InvalidMessage};
use thiserror::Error as ThisError;

/// The library's message where no certificate was chosen for the name that a client sent; it has no kind of its own for that.
const NO_CERTIFICATE: &str = "no server certificate chain resolved";

/// The library's name for the certificate of an authority that a server presents as its own; it exports no kind for that.
const AUTHORITY_AS_SERVER: &str = "CaUsedAsEndEntity";

/// Failure of a session.
#[derive(Debug, Clone, PartialEq, Eq, ThisError)]
#[error("{detail}")]
pub struct TlsError {
    pub kind: TlsErrorKind,
    /// Description for people.
    pub detail: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum TlsErrorKind {
    /// The certificate is expired, or not valid yet.
    CertificateExpired,
    /// The certificate is for another name.
    CertificateName,
    /// No trusted authority has signed the certificate, or something else is wrong with it.
    CertificateUntrusted,
    /// The other side did not accept the certificate that it was shown.
    CertificateRefused,
    /// Both sides have no version, cipher suite or application protocol in common.
    NoCommonParameters,
    /// A client named another server than the one for which there is a certificate, or none.
    NameRefused,
    /// The other side does not speak TLS.
    NotTls,
    /// The connection ended without `close_notify`: what came may be incomplete (RFC 8446, 6.1).
    Truncated,
    /// Anything else: a record that was changed on the way, or a message out of order.
    Failed,
}

impl TlsErrorKind {
    /// Advice to the user.
    pub fn advice(self) -> &'static str {
        match self {
            TlsErrorKind::CertificateExpired => "renew the certificate, or set the clock of this machine",
            TlsErrorKind::CertificateName => {
                "use a certificate with that name, or request by a name that it has"
            }
            TlsErrorKind::CertificateUntrusted => {
                "name the authority that signed the certificate (--ca FILE), or do without verification (--insecure)"
            }
            TlsErrorKind::CertificateRefused => "let the other side trust the authority of that certificate",
            TlsErrorKind::NoCommonParameters => {
                "let both sides speak TLS 1.2 or 1.3 with a cipher suite that both have, and the same version of HTTP"
            }
            TlsErrorKind::NameRefused => "let the client name the server (SNI) that it connects to",
            TlsErrorKind::NotTls => "name the port that speaks TLS, or do without TLS on this leg",
            TlsErrorKind::Truncated => "see why the other side ends connections without `close_notify`",
            TlsErrorKind::Failed => "look at the log of the other side",
        }
    }
}

impl TlsError {
    pub fn new(kind: TlsErrorKind, detail: impl Into<String>) -> Self {
        Self { kind, detail: detail.into() }
    }

    /// The other side sent bytes that do not begin a TLS record.
    pub fn not_tls(first: &[u8]) -> Self {
        let seen = String::from_utf8_lossy(&first[..first.len().min(16)]).escape_default().to_string();
        Self::new(
            TlsErrorKind::NotTls,
            format!("the other side does not speak TLS: it sent \"{seen}\" where a handshake was expected"),
        )
    }

    /// The session has failed before.
    pub(crate) fn already_failed() -> Self {
        Self::new(TlsErrorKind::Failed, "the TLS session has failed before")
    }

    /// The connection ended without `close_notify`.
    pub fn truncated(is_handshaking: bool) -> Self {
        let detail = match is_handshaking {
            true => "the connection ended during the TLS handshake",
            false => "the connection ended without close_notify",
        };
        Self::new(if is_handshaking { TlsErrorKind::Failed } else { TlsErrorKind::Truncated }, detail)
    }
}

impl From<Error> for TlsError {
    fn from(error: Error) -> Self {
        Self { kind: kind_of(&error), detail: detail_of(&error) }
    }
}

fn kind_of(error: &Error) -> TlsErrorKind {
    match error {
        Error::InvalidCertificate(wrong) => match wrong {
            CertificateError::Expired
            | CertificateError::ExpiredContext { .. }
            | CertificateError::NotValidYet
            | CertificateError::NotValidYetContext { .. } => TlsErrorKind::CertificateExpired,
            CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. } => {
                TlsErrorKind::CertificateName
            }
            _ => TlsErrorKind::CertificateUntrusted,
        },
        Error::NoCertificatesPresented => TlsErrorKind::CertificateUntrusted,
        Error::PeerIncompatible(_) | Error::NoApplicationProtocol => TlsErrorKind::NoCommonParameters,
        Error::AlertReceived(alert) => kind_of_alert(*alert),
        Error::InvalidMessage(InvalidMessage::InvalidContentType) => TlsErrorKind::NotTls,
        Error::General(text) if text == NO_CERTIFICATE => TlsErrorKind::NameRefused,
        _ => TlsErrorKind::Failed,
    }
}

fn kind_of_alert(alert: AlertDescription) -> TlsErrorKind {
    match alert {
        AlertDescription::ProtocolVersion
        | AlertDescription::HandshakeFailure
        | AlertDescription::InsufficientSecurity
        | AlertDescription::NoApplicationProtocol => TlsErrorKind::NoCommonParameters,
        AlertDescription::BadCertificate
        | AlertDescription::UnsupportedCertificate
        | AlertDescription::CertificateRevoked
        | AlertDescription::CertificateExpired
        | AlertDescription::CertificateUnknown
        | AlertDescription::UnknownCA => TlsErrorKind::CertificateRefused,
        _ => TlsErrorKind::Failed,
    }
}

fn detail_of(error: &Error) -> String {
    match error {
        Error::InvalidCertificate(wrong) => detail_of_certificate(wrong),
        Error::General(text) if text == NO_CERTIFICATE => {
            "the client named a server (SNI) for which there is no certificate here, or none".to_owned()
        }
        Error::AlertReceived(alert) => format!("the other side ended the TLS handshake: {alert:?}"),
        other => format!("TLS failed: {other}"),
    }
}

/// A name of a certificate as it stands in it: the library writes `DnsName("a.example")`.
fn plain(name: &str) -> &str {
    let inner = name.strip_suffix(')').and_then(|name| name.split_once('(')).map_or(name, |(_, inner)| inner);
    inner.trim_matches('"')
}

/// Text for a certificate with these names, where another was expected.
fn other_names(expected: &str, presented: &[String]) -> String {
    let names: Vec<&str> = presented.iter().map(|name| plain(name)).collect();
    if names.contains(&expected) {
        // An address that a certificate has as the name of a host (RFC 6125 section 6.5, RFC 9110 section 4.3.5).
        return format!(
            "the certificate is not valid for the address {expected}: it has it as the name of a host (DNS), not as an \
             address (IP)"
        );
    }
    let names = if names.is_empty() { "no name".to_owned() } else { names.join(", ") };
    format!("the certificate is not valid for {expected}; it is for {names}")
}

/// Formats a time in the largest unit of which there are two at least.
pub(crate) fn format_span(seconds: u64) -> String {
    let units = [("days", 86_400), ("hours", 3600), ("minutes", 60)];
    let (unit, length) = units.into_iter().find(|(_, length)| seconds >= 2 * length).unwrap_or(("s", 1));
    format!("{} {unit}", seconds / length)
}

fn detail_of_certificate(wrong: &CertificateError) -> String {
    match wrong {
        CertificateError::ExpiredContext { time, not_after } => format!(
            "the certificate expired {} ago",
            format_span(time.as_secs().saturating_sub(not_after.as_secs()))
        ),
        CertificateError::NotValidYetContext { time, not_before } => format!(
            "the certificate is not valid yet, for another {}",
            format_span(not_before.as_secs().saturating_sub(time.as_secs()))
        ),
        CertificateError::NotValidForNameContext { expected, presented } => {
            other_names(&expected.to_str(), presented)
        }
        CertificateError::UnknownIssuer => {
            "the certificate is signed by no authority that is trusted".to_owned()
        }
        CertificateError::Other(cause) if cause.to_string().contains(AUTHORITY_AS_SERVER) => {
            "the certificate is that of an authority (CA:TRUE), and it is not itself among those that are trusted".to_owned()
        }
        other => format!("the certificate is not acceptable: {other}"),
    }
}
