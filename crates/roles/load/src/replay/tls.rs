//! Where TLS is spoken: to the address that requests are sent to, or through it with the hosts that `https` URLs name.

use std::borrow::Cow;
use std::cell::RefCell;
use std::collections::{HashMap, VecDeque};

use assay_net::tls::client::{Client, Name, SettingsError};
use assay_net::tls::error::{TlsError, TlsErrorKind};
use assay_net::tls::session::Session;

use crate::replay::options::Options;
use crate::replay::request::Call;

/// Clients of a log whose sessions are kept, so that their next connections can resume them: some 3 KB each.
const MOST_CLIENTS: usize = 10_000;
/// Where `https` is, unless a URL says otherwise.
const HTTPS_PORT: u16 = 443;

/// How TLS is spoken.
#[derive(Debug, Clone)]
pub struct Tls {
    /// Whom it trusts, and what it offers.
    pub client: Client,
    /// The address itself speaks TLS; else only the hosts of `https` URLs do, in tunnels through it.
    pub to_address: bool,
}

/// How a request gets to its server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Way {
    /// In the clear, to the address.
    Clear,
    /// Over TLS, to the address: its certificate has to be valid for the host of the URL.
    Secured,
    /// Over TLS with the host of the URL, in a tunnel (CONNECT) to this authority.
    Tunnel(String),
}

impl Way {
    /// What a connection is for, beside its client: names are not mixed on one.
    pub(crate) fn key<'c>(&self, client: &'c str, call: &Call) -> Cow<'c, str> {
        match self {
            Way::Clear => Cow::Borrowed(client),
            Way::Secured => Cow::Owned(format!("{client} {}", call.authority)),
            Way::Tunnel(authority) => Cow::Owned(format!("{client} {authority}")),
        }
    }
}

impl Options {
    /// How a request gets to its server. Simulated origins speak in the clear, so nothing is tunnelled to them.
    pub(crate) fn way(&self, call: &Call) -> Way {
        match &self.tls {
            Some(tls) if tls.to_address => Way::Secured,
            Some(_) if self.forward && call.is_https && self.simulated.is_none() => {
                Way::Tunnel(with_port(&call.authority))
            }
            _ => Way::Clear,
        }
    }
}

/// Host and port, as CONNECT needs them.
fn with_port(authority: &str) -> String {
    let has_port = authority.rsplit_once(':').is_some_and(|(_, port)| port.parse::<u16>().is_ok());
    if has_port { authority.to_owned() } else { format!("{authority}:{HTTPS_PORT}") }
}

/// The sessions of one client, which it can resume.
pub(crate) struct ClientSessions(Client);

impl ClientSessions {
    /// Begins a session with the host of an authority.
    pub(crate) fn connect(&self, authority: &str) -> Result<Session, TlsError> {
        let unusable = |error: SettingsError| TlsError::new(TlsErrorKind::CertificateName, error.to_string());
        self.0.connect(&Name::of_authority(authority).map_err(unusable)?, true)
    }
}

/// What each client of a log has been given by servers: tickets are never shared between clients.
#[derive(Default)]
pub(crate) struct Sessions {
    known: RefCell<HashMap<Box<str>, Client>>,
    /// In the order in which they came.
    order: RefCell<VecDeque<Box<str>>>,
}

impl Sessions {
    /// Those of a client. One that has no more requests (`keep` is false) leaves nothing behind.
    pub(crate) fn of(&self, tls: &Tls, client: &str, keep: bool) -> ClientSessions {
        let mut known = self.known.borrow_mut();
        if let Some(found) = known.get(client) {
            return ClientSessions(found.clone());
        }
        let new = tls.client.forgetful();
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
        let call = Call::new(false, b"https://a.example/x", None).unwrap();
        assert_eq!(Way::Clear.key("c", &call), "c");
        assert_eq!(Way::Secured.key("c", &call), "c a.example");
        assert_eq!(Way::Tunnel("a.example:443".into()).key("c", &call), "c a.example:443");
    }

    #[test]
    fn sessions_are_kept_for_a_bounded_number_of_clients() {
        let client = Client::new(Trust::Everybody, &Offer::default()).unwrap();
        let (tls, sessions) = (Tls { client, to_address: true }, Sessions::default());
        for number in 0..MOST_CLIENTS + 5 {
            sessions.of(&tls, &format!("c{number}"), number != 7);
        }
        let known = sessions.known.borrow();
        assert_eq!((known.len(), sessions.order.borrow().len()), (MOST_CLIENTS, MOST_CLIENTS));
        assert!(!known.contains_key("c0") && !known.contains_key("c7") && known.contains_key("c10004"));
    }
}
