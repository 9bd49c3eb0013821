//! TLS to the origins of intercepted tunnels.
//!
//! A numbered request states its scheme ([`number`]). One without a number (a proxy has made it by itself, or drops unknown
//! fields) names a server with a port: that of https, or one to which a tunnel was opened.

use std::cell::RefCell;
use std::collections::HashSet;

use assay_http::head::RequestHead;
use assay_net::tls::client::{TlsClient, TlsServerName};
use assay_net::tls::error::{TlsError, TlsErrorKind};
use assay_net::tls::session::Session;
use assay_net::tls::settings::ClientTls;

use crate::collector::error::CollectorError;
use crate::collector::url::{self, FetchTarget};
use crate::number;

/// Bound on the known servers on other ports; beyond it all are forgotten, and become known again with the next request.
const SERVERS_MAX: usize = 1 << 14;
const PORT: &str = "443";

/// TLS client, and the servers that speak TLS.
pub struct TunnelTls {
    client: TlsClient,
    /// Servers on another port than that of https.
    known: RefCell<HashSet<Vec<u8>>>,
}

impl TunnelTls {
    pub fn new(settings: &ClientTls) -> Result<Self, CollectorError> {
        Ok(Self { client: assay_net::tls::setup::client(settings)?, known: RefCell::default() })
    }

    /// Whether a request is for an https URL. Requests of the Multiplier (`is_direct`) make their server known.
    pub fn is_https(&self, head: &RequestHead<'_>, target: &FetchTarget<'_>, is_direct: bool) -> bool {
        let mut server = Vec::with_capacity(target.authority.len());
        url::write_authority(target.authority, "80", &mut server);
        let is_https_port = url::split_port(target.authority).1 == PORT;
        let mut known = self.known.borrow_mut();
        match number::request_number_and_scheme(head) {
            None => is_https_port || known.contains(&server),
            Some((_, is_secured)) => {
                if is_secured && is_direct && !is_https_port && !known.contains(&server) {
                    if known.len() == SERVERS_MAX {
                        known.clear();
                    }
                    known.insert(server);
                }
                is_secured
            }
        }
    }

    /// Starts a session with a server. Sessions are never resumed: every response must cost what it costs over a connection of
    /// its own.
    pub fn session(&self, authority: &str) -> Result<Session, TlsError> {
        let name = TlsServerName::from_authority(authority)
            .map_err(|error| TlsError::new(TlsErrorKind::Failed, error.to_string()))?;
        self.client.with_own_sessions().connect(&name, false)
    }
}

#[cfg(test)]
mod tests {
    use assay_net::tls::settings::Offer;

    use super::*;

    fn is_https(secured: &TunnelTls, line: &str, number: &str, is_direct: bool) -> bool {
        let field = if number.is_empty() { String::new() } else { format!("X-Assay-Request: {number}\r\n") };
        let text = format!("GET {line} HTTP/1.1\r\nHost: a\r\n{field}\r\n");
        let (head, _) = RequestHead::parse(text.as_bytes()).unwrap().unwrap();
        secured.is_https(&head, &FetchTarget::from_head(&head, None).unwrap(), is_direct)
    }

    #[test]
    fn a_request_without_a_number_is_for_https_on_its_port_and_where_a_tunnel_was_opened() {
        let settings = ClientTls { offer: Offer::default(), ca: None, resumption: 0.0 };
        let secured = TunnelTls::new(&settings).unwrap();
        assert!(is_https(&secured, "http://a:443/x", "", false));
        assert!(
            !is_https(&secured, "http://a/x", "", false) && !is_https(&secured, "http://a:8443/x", "", false)
        );
        assert!(is_https(&secured, "http://a:8443/x", "1-https", false), "it says so itself");
        assert!(!is_https(&secured, "http://a:8443/x", "", false), "no proxy makes it so for others");
        assert!(is_https(&secured, "http://a:8443/x", "1-https", true));
        assert!(is_https(&secured, "http://A:8443/y", "", false));
        assert!(!is_https(&secured, "http://a:8443/x", "2", false), "that one came in the clear");
    }
}
