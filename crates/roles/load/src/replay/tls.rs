//! TLS of a replay: with the address that requests are sent to, or through it with the hosts that `https` URLs name.

use std::borrow::Cow;
use std::cell::RefCell;
use std::collections::{HashMap, VecDeque};

use assay_net::tls::client::{TlsClient, TlsServerName, TlsSettingsError};
use assay_net::tls::error::{TlsError, TlsErrorKind};
use assay_net::tls::session::Session;

use crate::replay::drive::ReplayOptions;
use crate::replay::request::ReplayRequest;

/// Clients of a log whose sessions are kept, so that their next connections can resume them: some 3 KB each.
const MOST_CLIENTS: usize = 10_000;
/// Port of `https`, unless a URL has another.
const HTTPS_PORT: u16 = 443;

/// TLS of a replay.
#[derive(Debug, Clone)]
pub struct ReplayTls {
    pub client: TlsClient,
    /// The address itself speaks TLS; else only the hosts of `https` URLs do, in tunnels through it.
    pub to_address: bool,
}

/// Route of a request to its server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ReplayRoute {
    /// In the clear, to the address.
    Clear,
    /// Over TLS, to the address: its certificate has to be valid for the host of the URL.
    Secured,
    /// Over TLS with the host of the URL, in a tunnel (CONNECT) to this authority.
    Tunnel(String),
}

impl ReplayRoute {
    /// Key of a connection, beside its client: names are not mixed on one.
    pub(crate) fn key<'c>(&self, client: &'c str, request: &ReplayRequest) -> Cow<'c, str> {
        match self {
            ReplayRoute::Clear => Cow::Borrowed(client),
            ReplayRoute::Secured => Cow::Owned(format!("{client} {}", request.authority)),
            ReplayRoute::Tunnel(authority) => Cow::Owned(format!("{client} {authority}")),
        }
    }
}

impl ReplayOptions {
    /// Chooses the route of a request. Simulated origins speak in the clear, so nothing is tunnelled to them.
    pub(crate) fn route(&self, request: &ReplayRequest) -> ReplayRoute {
        match &self.tls {
            Some(tls) if tls.to_address => ReplayRoute::Secured,
            Some(_) if self.forward && request.is_https && self.simulated.is_none() => {
                ReplayRoute::Tunnel(with_port(&request.authority))
            }
            _ => ReplayRoute::Clear,
        }
    }
}

/// Host and port, as CONNECT needs them.
fn with_port(authority: &str) -> String {
    let has_port = authority.rsplit_once(':').is_some_and(|(_, port)| port.parse::<u16>().is_ok());
    if has_port { authority.to_owned() } else { format!("{authority}:{HTTPS_PORT}") }
}

/// The sessions of one client, which it can resume.
pub(crate) struct ClientSessions(TlsClient);

impl ClientSessions {
    /// Begins a session with the host of an authority.
    pub(crate) fn connect(&self, authority: &str) -> Result<Session, TlsError> {
        let unusable =
            |error: TlsSettingsError| TlsError::new(TlsErrorKind::CertificateName, error.to_string());
        self.0.connect(&TlsServerName::from_authority(authority).map_err(unusable)?, true)
    }
}

/// Sessions by client of the log: tickets are never shared between clients.
#[derive(Default)]
pub(crate) struct ClientSessionCache {
    known: RefCell<HashMap<Box<str>, TlsClient>>,
    /// In the order in which they came.
    order: RefCell<VecDeque<Box<str>>>,
}

impl ClientSessionCache {
    /// Sessions of a client. One that has no more requests (`keep` is false) leaves nothing behind.
    pub(crate) fn for_client(&self, tls: &ReplayTls, client: &str, keep: bool) -> ClientSessions {
        let mut known = self.known.borrow_mut();
        if let Some(found) = known.get(client) {
            return ClientSessions(found.clone());
        }
        let new = tls.client.with_own_sessions();
        if keep {
            let mut order = self.order.borrow_mut();
            if order.len() == MOST_CLIENTS
                && let Some(oldest) = order.pop_front()
            {
                known.remove(&oldest);
            }
            order.push_back(client.into());
            known.insert(client.into(), new.clone());
        }
        ClientSessions(new)
    }
}

#[cfg(test)]
mod tests {
    use assay_net::tls::client::Trust;
    use assay_net::tls::settings::Offer;

    use super::*;

    #[test]
    fn a_tunnel_leads_to_a_port_and_clients_share_no_connection() {
        assert_eq!(with_port("a.example"), "a.example:443");
        assert_eq!(with_port("a.example:8443"), "a.example:8443");
        assert_eq!(with_port("[::1]"), "[::1]:443");
        let request = ReplayRequest::new(false, b"https://a.example/x", None).unwrap();
        assert_eq!(ReplayRoute::Clear.key("c", &request), "c");
        assert_eq!(ReplayRoute::Secured.key("c", &request), "c a.example");
        assert_eq!(ReplayRoute::Tunnel("a.example:443".into()).key("c", &request), "c a.example:443");
    }

    #[test]
    fn sessions_are_kept_for_a_bounded_number_of_clients() {
        let client = TlsClient::new(Trust::Everybody, &Offer::default()).unwrap();
        let (tls, sessions) = (ReplayTls { client, to_address: true }, ClientSessionCache::default());
        for number in 0..MOST_CLIENTS + 5 {
            sessions.for_client(&tls, &format!("c{number}"), number != 7);
        }
        let known = sessions.known.borrow();
        assert_eq!((known.len(), sessions.order.borrow().len()), (MOST_CLIENTS, MOST_CLIENTS));
        assert!(!known.contains_key("c0") && !known.contains_key("c7") && known.contains_key("c10004"));
    }
}
