//! Interception: a server for whatever name a tunnel leads to, with certificates that an authority issues at that moment.
//!
//! The authority is one that a user has made and keeps; nothing here trusts it. A client gets a certificate for the host of its tunnel and
//! for no other: if it names another server (SNI), or none where the host has a name, the handshake ends.

use std::cell::RefCell;
use std::collections::{HashMap, VecDeque};
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use crate::tls::settings::Offer;
use rustls::crypto::CryptoProvider;
use rustls::crypto::aws_lc_rs::Ticketer;
use rustls::pki_types::{ServerName, UnixTime};
use rustls::server::{ClientHello, ResolvesServerCert, UnbufferedServerConnection};
use rustls::sign::CertifiedKey;
use rustls::{Error as RustlsError, ServerConfig};
use thiserror::Error;

use crate::tls::authority::{Authority, AuthorityError, Validity};
use crate::tls::client::host_of;
use crate::tls::der;
use crate::tls::error::{TlsError, format_span};
use crate::tls::offer::{TlsSettingsError, provider, versions};
use crate::tls::server::{IdentityPem, certified_key};
use crate::tls::session::Session;
use crate::tls::trust::{Trust, verifier};
use crate::tls::{HTTP_1_0, HTTP_1_1, HTTP_2};

/// Name of the authorities for interception.
pub const AUTHORITY_NAME: &str = "Assay, opened tunnels";

/// Hosts whose certificates are kept; the oldest go first.
const MAX_HOSTS: usize = 1024;
/// Validity of a certificate, and the time for which it is used, so that clients never get one that is about to expire.
const VALID_S: u64 = 30 * 86_400;
const USED_S: u64 = 86_400;
/// Start of the validity before the time of issue: a client whose clock is behind accepts the certificate all the same.
const BEFORE_S: u64 = 86_400;

/// Reason why an authority cannot be used for interception.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum InterceptError {
    /// The certificate or the key cannot be used.
    #[error(transparent)]
    Settings(#[from] TlsSettingsError),
    /// The certificate was made in another way.
    #[error("the certificate is not that of an authority which `assay spe authority` has made")]
    NotAnAuthority,
    #[error("the authority expired {} ago", format_span(*.0))]
    Expired(u64),
    #[error("the authority is not valid yet, for another {}; check the clock of this machine", format_span(*.0))]
    TooEarly(u64),
}

/// Failure to intercept a tunnel.
#[derive(Debug, Error)]
pub enum TunnelError {
    /// No certificate can be made for its host.
    #[error("`{0}` is neither a host name nor an IP address, so no certificate can be made for it")]
    Host(String),
    /// The certificate could not be made.
    #[error(transparent)]
    Certificate(#[from] AuthorityError),
    /// The session could not begin.
    #[error(transparent)]
    Tls(#[from] TlsError),
    /// The authority has expired since the start.
    #[error(transparent)]
    Authority(#[from] InterceptError),
}

/// A server for any host.
pub struct Interceptor {
    authority: Authority,
    valid: Validity,
    provider: Arc<CryptoProvider>,
    /// Settings of all servers but for their certificates. Tickets are of one key; a session is resumed under its own name only.
    settings: ServerConfig,
    issued_hosts: RefCell<IssuedHosts>,
}

impl std::fmt::Debug for Interceptor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Interceptor").field("valid", &self.valid).finish_non_exhaustive()
    }
}

/// Servers by host, up to a bound.
#[derive(Default)]
struct IssuedHosts {
    by_host: HashMap<String, IssuedHost>,
    /// Hosts in the order in which their certificates were issued.
    order: VecDeque<String>,
}

struct IssuedHost {
    settings: Arc<ServerConfig>,
    at_unix_s: u64,
}

impl Interceptor {
    /// An interceptor with the certificate of an authority called [`AUTHORITY_NAME`] and its key, as PEM. They must belong together, and be
    /// valid at `now_unix_s`.
    pub fn new(certificate: &[u8], key: &[u8], now_unix_s: u64) -> Result<Self, InterceptError> {
        let offer = Offer::default();
        let provider = provider(&offer)?;
        let own = certified_key(&IdentityPem { certificates: certificate, key }, "authority", &provider)?;
        let der = own.cert.first().ok_or(InterceptError::NotAnAuthority)?;
        let valid = der::validity(der).ok_or(InterceptError::NotAnAuthority)?;
        check_validity(valid, now_unix_s)?;
        let text = |bytes| String::from_utf8_lossy(bytes).into_owned();
        let unusable = |cause: String| InterceptError::Settings(TlsSettingsError::Unusable(cause));
        let authority = Authority::from_pem(AUTHORITY_NAME, &text(certificate), &text(key))
            .map_err(|e| unusable(e.to_string()))?;
        if !has_signed(&authority, valid, now_unix_s, &provider) {
            return Err(InterceptError::NotAnAuthority);
        }
        let of_library = |e: RustlsError| unusable(e.to_string());
        let nobody = Arc::new(HostCertificate { name: None, key: own });
        let mut settings = ServerConfig::builder_with_provider(Arc::clone(&provider))
            .with_protocol_versions(&versions(&offer)?)
            .map_err(of_library)?
            .with_no_client_auth()
            .with_cert_resolver(nobody);
        settings.alpn_protocols = vec![HTTP_2.to_vec(), HTTP_1_1.to_vec(), HTTP_1_0.to_vec()];
        settings.ticketer = Ticketer::new().map_err(of_library)?;
        Ok(Self { authority, valid, provider, settings, issued_hosts: RefCell::default() })
    }

    /// Begins a session with the client of a tunnel to this authority (`host` or `host:port`).
    pub fn accept(&self, authority: &str, now_unix_s: u64) -> Result<Session, TunnelError> {
        let settings = self.settings_for(authority, now_unix_s)?;
        let connection = UnbufferedServerConnection::new(settings).map_err(TlsError::from)?;
        Ok(Session::server(connection))
    }

    fn settings_for(&self, authority: &str, now_unix_s: u64) -> Result<Arc<ServerConfig>, TunnelError> {
        // A name is sent (SNI) and verified without the dot at its end.
        let host = host_of(authority).trim_end_matches('.').to_ascii_lowercase();
        let mut issued_hosts = self.issued_hosts.borrow_mut();
        if let Some(made) = issued_hosts.by_host.get(&host)
            && now_unix_s.saturating_sub(made.at_unix_s) < USED_S
        {
            return Ok(Arc::clone(&made.settings));
        }
        let settings = self.make(&host, now_unix_s)?;
        issued_hosts.add(host, IssuedHost { settings: Arc::clone(&settings), at_unix_s: now_unix_s });
        Ok(settings)
    }

    fn make(&self, host: &str, now_unix_s: u64) -> Result<Arc<ServerConfig>, TunnelError> {
        check_validity(self.valid, now_unix_s)?;
        if ServerName::try_from(host).is_err() {
            return Err(TunnelError::Host(host.to_owned()));
        }
        let validity = Validity {
            from_unix_s: now_unix_s.saturating_sub(BEFORE_S).max(self.valid.from_unix_s),
            until_unix_s: (now_unix_s + VALID_S).min(self.valid.until_unix_s),
        };
        let identity = self.authority.issue(&[host.to_owned()], validity)?;
        // With the authority's own, so that a client can be told to accept what this authority has signed without installing it.
        let chain = [identity.certificate, self.authority.certificate.clone()].concat();
        let pair = IdentityPem { certificates: chain.as_bytes(), key: identity.key.as_bytes() };
        let key = certified_key(&pair, "host", &self.provider).map_err(InterceptError::from)?;
        let name = host.parse::<IpAddr>().is_err().then(|| host.to_owned());
        let mut settings = self.settings.clone();
        settings.cert_resolver = Arc::new(HostCertificate { name, key });
        Ok(Arc::new(settings))
    }
}

impl IssuedHosts {
    fn add(&mut self, host: String, issued: IssuedHost) {
        if self.by_host.insert(host.clone(), issued).is_some() {
            self.order.retain(|other| *other != host);
        }
        self.order.push_back(host);
        while self.order.len() > MAX_HOSTS
            && let Some(oldest) = self.order.pop_front()
        {
            self.by_host.remove(&oldest);
        }
    }
}

/// Whether clients that trust the certificate of an authority accept the certificates that it issues.
fn has_signed(
    authority: &Authority,
    valid: Validity,
    now_unix_s: u64,
    provider: &Arc<CryptoProvider>,
) -> bool {
    let host = "host.test";
    let Ok(identity) = authority.issue(&[host.to_owned()], valid) else { return false };
    let pair = IdentityPem { certificates: identity.certificate.as_bytes(), key: identity.key.as_bytes() };
    let trust = Trust::Authorities(authority.certificate.as_bytes());
    let (Ok(key), Ok(verifier), Ok(name)) = (
        certified_key(&pair, "host", provider),
        verifier(trust, Arc::clone(provider)),
        ServerName::try_from(host),
    ) else {
        return false;
    };
    let now = UnixTime::since_unix_epoch(Duration::from_secs(now_unix_s));
    let accepts = |certificate| verifier.verify_server_cert(certificate, &[], &name, &[], now).is_ok();
    key.cert.first().is_some_and(accepts)
}

fn check_validity(valid: Validity, now_unix_s: u64) -> Result<(), InterceptError> {
    if now_unix_s > valid.until_unix_s {
        return Err(InterceptError::Expired(now_unix_s - valid.until_unix_s));
    }
    match valid.from_unix_s.saturating_sub(now_unix_s) {
        0 => Ok(()),
        early_s => Err(InterceptError::TooEarly(early_s)),
    }
}

/// The certificate of one host, for clients that name that one.
#[derive(Debug)]
struct HostCertificate {
    /// None: an IP address, which clients do not name (RFC 6066, 3).
    name: Option<String>,
    key: Arc<CertifiedKey>,
}

impl ResolvesServerCert for HostCertificate {
    fn resolve(&self, hello: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        let is_it = match (&self.name, hello.server_name()) {
            (Some(name), Some(named)) => name.eq_ignore_ascii_case(named),
            (None, None) => true,
            _ => false,
        };
        is_it.then(|| Arc::clone(&self.key))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tls::authority::KeyKind;

    const NOW_UNIX_S: u64 = 1_800_000_000;

    fn kept() -> Authority {
        Authority::named(AUTHORITY_NAME, KeyKind::P256, Validity::around(NOW_UNIX_S)).expect("can be made")
    }

    fn interceptor() -> Interceptor {
        let kept = kept();
        let made = Interceptor::new(kept.certificate.as_bytes(), kept.key().as_bytes(), NOW_UNIX_S);
        made.expect("certificate and key belong together")
    }

    #[test]
    fn what_is_wrong_with_an_authority_has_a_message_each() {
        let (kept, other) = (kept(), kept());
        let refused = |certificate: &str, key: &str, now_unix_s| {
            Interceptor::new(certificate.as_bytes(), key.as_bytes(), now_unix_s).expect_err("is refused")
        };
        let (certificate, key) = (&kept.certificate, kept.key());
        assert_eq!(refused(certificate, &other.key(), NOW_UNIX_S), TlsSettingsError::KeyMismatch.into());
        let late = refused(certificate, &key, NOW_UNIX_S + 366 * 86_400);
        assert_eq!(late, InterceptError::Expired(86_400));
        let early = refused(certificate, &key, NOW_UNIX_S - 2 * 86_400);
        assert_eq!(early, InterceptError::TooEarly(86_400));
        assert!(refused("", &key, NOW_UNIX_S).to_string().contains("the authority's certificate has no"));
        assert!(refused(certificate, "x", NOW_UNIX_S).to_string().contains("the authority's private key"));
        let server =
            kept.issue(&["a.example".to_owned()], Validity::around(NOW_UNIX_S)).expect("can be made");
        assert_eq!(refused(&server.certificate, &server.key, NOW_UNIX_S), InterceptError::NotAnAuthority);
        let run = Authority::new(KeyKind::P256, Validity::around(NOW_UNIX_S)).expect("can be made");
        assert_eq!(refused(&run.certificate, &run.key(), NOW_UNIX_S), InterceptError::NotAnAuthority);
    }

    #[test]
    fn a_certificate_is_made_once_for_a_host_and_again_after_a_day() {
        let interceptor = interceptor();
        let of = |authority, now_unix_s| interceptor.settings_for(authority, now_unix_s).expect("is made");
        let first = of("www.example:443", NOW_UNIX_S);
        assert!(Arc::ptr_eq(&first, &of("WWW.example.:8443", NOW_UNIX_S + 86_399)));
        assert!(!Arc::ptr_eq(&first, &of("other.example", NOW_UNIX_S)));
        assert!(!Arc::ptr_eq(&first, &of("www.example", NOW_UNIX_S + 86_400)));
        assert_eq!(interceptor.issued_hosts.borrow().order.len(), 2, "the older one went");
    }

    #[test]
    fn no_more_hosts_are_known_than_may_be() {
        let made = || IssuedHost { settings: Arc::new(interceptor().settings), at_unix_s: 0 };
        let settings = made().settings;
        let mut issued_hosts = IssuedHosts::default();
        for number in 0..=MAX_HOSTS {
            issued_hosts
                .add(number.to_string(), IssuedHost { settings: Arc::clone(&settings), at_unix_s: 0 });
        }
        assert_eq!((issued_hosts.by_host.len(), issued_hosts.order.len()), (MAX_HOSTS, MAX_HOSTS));
        assert!(!issued_hosts.by_host.contains_key("0") && issued_hosts.by_host.contains_key("1"));
    }

    #[test]
    fn a_host_that_no_certificate_can_be_for_is_refused_and_so_are_all_once_the_authority_has_expired() {
        let interceptor = interceptor();
        for host in ["a%20b:443", "a..b:443", "a!b"] {
            assert!(matches!(interceptor.accept(host, NOW_UNIX_S), Err(TunnelError::Host(_))), "{host}");
        }
        for host in ["[::1]:443", "10.0.0.1:8443", "a_b.example"] {
            assert!(interceptor.accept(host, NOW_UNIX_S).is_ok(), "{host}");
        }
        let late = interceptor.accept("www.example:443", NOW_UNIX_S + 400 * 86_400);
        assert!(matches!(late, Err(TunnelError::Authority(InterceptError::Expired(_)))), "{late:?}");
    }
}
