//! Which servers are spoken to over TLS, where the Multiplier opens tunnels, and how.
//!
//! A request says so itself if it has the number of one of a client ([`number`]). One without a number (a proxy has made it by itself, or
//! passes on no field that it does not know) names a server with a port: that of https, or one to which a tunnel was opened.

use std::cell::RefCell;
use std::collections::HashSet;

use assay_http::head::RequestHead;
use assay_net::tls::client::{Client, Name};
use assay_net::tls::error::{TlsError, TlsErrorKind};
use assay_net::tls::session::Session;
use assay_net::tls::settings::ClientTls;

use crate::collector::error::CollectorError;
use crate::collector::url::{self, Target};
use crate::number;

/// Most servers on other ports that are known; beyond, all of them are forgotten, and become known again with the next request.
const MOST_SERVERS: usize = 1 << 14;
/// The port of https.
const PORT: &str = "443";

/// The servers of opened tunnels.
pub struct Secured {
    client: Client,
    /// Those on another port than that of https.
    known: RefCell<HashSet<Vec<u8>>>,
}

impl Secured {
    /// With what is trusted.
    pub fn new(told: &ClientTls) -> Result<Self, CollectorError> {
        Ok(Self { client: assay_net::tls::setup::client(told)?, known: RefCell::default() })
    }

    /// Whether a request is for an https URL. What comes from the Multiplier (`is_direct`) makes its server known.
    pub fn is_for(&self, head: &RequestHead<'_>, target: &Target<'_>, is_direct: bool) -> bool {
        let mut server = Vec::with_capacity(target.authority.len());
        url::write_authority(target.authority, "80", &mut server);
        let is_https_port = url::split_port(target.authority).1 == PORT;
        let mut known = self.known.borrow_mut();
        match number::of_request_with_scheme(head) {
            None => is_https_port || known.contains(&server),
            Some((_, is_secured)) => {
                if is_secured && is_direct && !is_https_port && !known.contains(&server) {
                    if known.len() == MOST_SERVERS {
                        known.clear();
                    }
                    known.insert(server);
                }
                is_secured
            }
        }
    }

    /// Begins a session with the server of this authority. None is resumed: every response is to cost what it costs over a
    /// connection of its own.
    pub fn session(&self, authority: &str) -> Result<Session, TlsError> {
        let name = Name::of_authority(authority)
            .map_err(|error| TlsError::new(TlsErrorKind::Failed, error.to_string()))?;
        self.client.forgetful().connect(&name, false)
    }
}

#[cfg(test)]
mod tests {
    use assay_net::tls::settings::Offer;

    use super::*;

    fn is_for(secured: &Secured, line: &str, number: &str, is_direct: bool) -> bool {
        let field = if number.is_empty() { String::new() } else { format!("X-Assay-Request: {number}\r\n") };
        let text = format!("GET {line} HTTP/1.1\r\nHost: a\r\n{field}\r\n");
        let (head, _) = RequestHead::parse(text.as_bytes()).unwrap().unwrap();
        secured.is_for(&head, &Target::of(&head, None).unwrap(), is_direct)
    }

    #[test]
    fn a_request_without_a_number_is_for_https_on_its_port_and_where_a_tunnel_was_opened() {
        let told = ClientTls { offer: Offer::default(), ca: None, resumption: 0.0 };
        let secured = Secured::new(&told).unwrap();
        assert!(is_for(&secured, "http://a:443/x", "", false));
        assert!(
            !is_for(&secured, "http://a/x", "", false) && !is_for(&secured, "http://a:8443/x", "", false)
        );
        assert!(is_for(&secured, "http://a:8443/x", "1-https", false), "it says so itself");
        assert!(!is_for(&secured, "http://a:8443/x", "", false), "no proxy makes it so for others");
        assert!(is_for(&secured, "http://a:8443/x", "1-https", true));
        assert!(is_for(&secured, "http://A:8443/y", "", false));
        assert!(!is_for(&secured, "http://a:8443/x", "2", false), "that one came in the clear");
    }
}
