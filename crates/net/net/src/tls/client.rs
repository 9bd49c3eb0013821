//! The client's side: trust, offer, and the sessions that it can resume.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

use crate::tls::settings::Offer;
use rustls::client::{
    ClientSessionStore, Resumption, Tls12ClientSessionValue, Tls13ClientSessionValue,
    UnbufferedClientConnection,
};
use rustls::pki_types::ServerName;
use rustls::{ClientConfig, NamedGroup};

use crate::tls::HTTP_1_1;
use crate::tls::error::TlsError;
pub use crate::tls::offer::TlsSettingsError;
use crate::tls::offer::{provider, versions};
use crate::tls::session::Session;
use crate::tls::trust;
pub use crate::tls::trust::Trust;

/// Tickets that are kept for one server: a server sends two as a rule, and each can be used once.
const MAX_TICKETS: usize = 4;

/// A name that a certificate is verified for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TlsServerName(ServerName<'static>);

impl TlsServerName {
    /// The host of an authority (`host` or `host:port`): a DNS name, which is also sent to the server (SNI, RFC 6066), or an IP
    /// address, which is not.
    pub fn from_authority(authority: &str) -> Result<Self, TlsSettingsError> {
        let host = host_of(authority);
        let name = ServerName::try_from(host).map_err(|_| TlsSettingsError::Name(host.to_owned()))?;
        Ok(Self(name.to_owned()))
    }
}

/// The host of an authority.
pub fn host_of(authority: &str) -> &str {
    if let Some(rest) = authority.strip_prefix('[') {
        return rest.split(']').next().unwrap_or(rest);
    }
    authority.rsplit_once(':').map_or(authority, |(host, _)| host)
}

/// A client, with the sessions that it can resume. Its clones share them.
#[derive(Debug, Clone)]
pub struct TlsClient {
    resuming: Arc<ClientConfig>,
    /// Configuration that does not resume sessions, but stores those that it gets.
    fresh: Arc<ClientConfig>,
}

impl TlsClient {
    /// A client without sessions.
    pub fn new(trust: Trust<'_>, offer: &Offer) -> Result<Self, TlsSettingsError> {
        let provider = provider(offer)?;
        let builder = ClientConfig::builder_with_provider(Arc::clone(&provider))
            .with_protocol_versions(&versions(offer)?)
            .map_err(|e| TlsSettingsError::Unusable(e.to_string()))?;
        let verifier = trust::verifier(trust, provider)?;
        let mut config = builder.dangerous().with_custom_certificate_verifier(verifier).with_no_client_auth();
        config.alpn_protocols = vec![HTTP_1_1.to_vec()];
        Ok(Self::from_config(&config))
    }

    /// The same client with an empty session store of its own.
    pub fn with_own_sessions(&self) -> Self {
        Self::from_config(&self.fresh)
    }

    /// The same client with an empty session store of its own, offering this application protocol alone.
    pub fn with_protocol(&self, protocol: &[u8]) -> Self {
        let mut config = ClientConfig::clone(&self.fresh);
        config.alpn_protocols = vec![protocol.to_vec()];
        Self::from_config(&config)
    }

    fn from_config(config: &ClientConfig) -> Self {
        let sessions = Arc::new(SessionStore::default());
        let with = |resumption| {
            let mut config = config.clone();
            config.resumption = resumption;
            Arc::new(config)
        };
        Self {
            fresh: with(Resumption::store(Arc::new(StoresOnly(Arc::clone(&sessions))))),
            resuming: with(Resumption::store(sessions)),
        }
    }

    /// Begins a session with a server of this name. If it `resumes`, it offers to resume an earlier one, where there is one.
    pub fn connect(&self, name: &TlsServerName, resumes: bool) -> Result<Session, TlsError> {
        let config = if resumes { &self.resuming } else { &self.fresh };
        Ok(Session::client(UnbufferedClientConnection::new(Arc::clone(config), name.0.clone())?))
    }
}

/// Sessions that can be resumed, with each server. One robot has few servers, so a list is enough.
#[derive(Debug, Default)]
struct SessionStore(Mutex<Vec<ResumableServer>>);

#[derive(Debug)]
struct ResumableServer {
    name: ServerName<'static>,
    group: Option<NamedGroup>,
    tls12: Option<Tls12ClientSessionValue>,
    tickets: VecDeque<Tls13ClientSessionValue>,
}

impl SessionStore {
    fn with<T>(&self, name: &ServerName<'_>, what: impl FnOnce(&mut ResumableServer) -> T) -> Option<T> {
        let mut servers = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        servers.iter_mut().find(|server| server.name == *name).map(what)
    }

    fn with_new(&self, name: ServerName<'static>, what: impl FnOnce(&mut ResumableServer)) {
        let mut servers = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let at = servers.iter().position(|server| server.name == name).unwrap_or_else(|| {
            servers.push(ResumableServer { name, group: None, tls12: None, tickets: VecDeque::new() });
            servers.len() - 1
        });
        what(&mut servers[at]);
    }
}

impl ClientSessionStore for SessionStore {
    fn set_kx_hint(&self, name: ServerName<'static>, group: NamedGroup) {
        self.with_new(name, |server| server.group = Some(group));
    }

    fn kx_hint(&self, name: &ServerName<'_>) -> Option<NamedGroup> {
        self.with(name, |server| server.group).flatten()
    }

    fn set_tls12_session(&self, name: ServerName<'static>, session: Tls12ClientSessionValue) {
        self.with_new(name, |server| server.tls12 = Some(session));
    }

    fn tls12_session(&self, name: &ServerName<'_>) -> Option<Tls12ClientSessionValue> {
        self.with(name, |server| server.tls12.clone()).flatten()
    }

    fn remove_tls12_session(&self, name: &ServerName<'static>) {
        self.with(name, |server| server.tls12 = None);
    }

    fn insert_tls13_ticket(&self, name: ServerName<'static>, ticket: Tls13ClientSessionValue) {
        self.with_new(name, |server| {
            if server.tickets.len() == MAX_TICKETS {
                server.tickets.pop_front();
            }
            server.tickets.push_back(ticket);
        });
    }

    fn take_tls13_ticket(&self, name: &ServerName<'static>) -> Option<Tls13ClientSessionValue> {
        self.with(name, |server| server.tickets.pop_back()).flatten()
    }
}

/// A store that takes sessions and returns none.
#[derive(Debug)]
struct StoresOnly(Arc<SessionStore>);

impl ClientSessionStore for StoresOnly {
    fn set_kx_hint(&self, name: ServerName<'static>, group: NamedGroup) {
        self.0.set_kx_hint(name, group);
    }

    fn kx_hint(&self, name: &ServerName<'_>) -> Option<NamedGroup> {
        self.0.kx_hint(name)
    }

    fn set_tls12_session(&self, name: ServerName<'static>, session: Tls12ClientSessionValue) {
        self.0.set_tls12_session(name, session);
    }

    fn tls12_session(&self, _: &ServerName<'_>) -> Option<Tls12ClientSessionValue> {
        None
    }

    fn remove_tls12_session(&self, name: &ServerName<'static>) {
        self.0.remove_tls12_session(name);
    }

    fn insert_tls13_ticket(&self, name: ServerName<'static>, ticket: Tls13ClientSessionValue) {
        self.0.insert_tls13_ticket(name, ticket);
    }

    fn take_tls13_ticket(&self, _: &ServerName<'static>) -> Option<Tls13ClientSessionValue> {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_host_of_an_authority_is_what_a_certificate_is_verified_for() {
        for (authority, host) in [
            ("www.example:443", "www.example"),
            ("www.example", "www.example"),
            ("10.0.1.2:80", "10.0.1.2"),
            ("[::1]:80", "::1"),
        ] {
            assert_eq!(host_of(authority), host);
            assert!(TlsServerName::from_authority(authority).is_ok(), "{authority}");
        }
        assert_eq!(TlsServerName::from_authority("a b:80"), Err(TlsSettingsError::Name("a b".into())));
    }

    #[test]
    fn a_file_without_certificates_is_no_file_of_authorities() {
        let error = TlsClient::new(Trust::Authorities(b"nothing"), &Offer::default()).unwrap_err();
        assert!(error.to_string().contains("no certificate in it"), "{error}");
        let cut_off = b"-----BEGIN CERTIFICATE-----\nMIIB\n";
        let error = TlsClient::new(Trust::Authorities(cut_off), &Offer::default()).unwrap_err();
        assert!(error.to_string().ends_with("a section has no END line; the file may be cut off"), "{error}");
        let damaged = b"-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----\n";
        let error = TlsClient::new(Trust::Authorities(damaged), &Offer::default()).unwrap_err();
        assert!(
            error.to_string().contains("number 1 in the file of authorities is no certificate"),
            "{error}"
        );
    }
}
