//! Client information for servers behind the switch: `X-Forwarded-For`, `X-Forwarded-Proto` and `Forwarded` (RFC 7239).
//!
//! Existing values are passed on, with our part appended, only if they come from a trusted peer; from any other peer they are
//! dropped, since a client could write anything there.

use std::net::{IpAddr, SocketAddr};

use assay_http::field::{Field, Fields, list, trim, write_decimal};

use assay_protocol::network::Network;

/// Peer of a connection, with the parts of forwarding fields that are the same for all of its requests.
#[derive(Debug, Clone, Default)]
pub struct ClientPeer {
    pub address: String,
    is_trusted: bool,
    /// `http`, or `https` over TLS.
    scheme: &'static str,
    /// `for=…;by=…;proto=http`, to which the host is appended.
    element: String,
}

impl ClientPeer {
    /// Describes a peer at `from`, connected over TLS if `is_secured`, to a switch called `name`.
    pub fn new(from: SocketAddr, name: &str, trusted: &[Network], is_secured: bool) -> Self {
        let scheme = if is_secured { "https" } else { "http" };
        let ip = from.ip().to_canonical();
        let address = text(ip);
        let mut element = String::with_capacity(address.len() + name.len() + 32);
        element.push_str(if ip.is_ipv4() { "for=" } else { "for=\"[" });
        element.push_str(&address);
        element.push_str(if ip.is_ipv4() { "" } else { "]\"" });
        // An identifier that is not an address begins with an underscore (RFC 7239, 6.3).
        for part in [";by=\"_", name, "\";proto=", scheme] {
            element.push_str(part);
        }
        Self { address, is_trusted: trusted.iter().any(|network| network.contains(ip)), scheme, element }
    }

    /// Whether a field of the request describes the client, and so is rewritten or dropped. A name with `_` for `-`, which some
    /// servers take for the real field, is always dropped: a trusted peer may pass on what its client wrote there.
    pub fn replaces(&self, field: &Field<'_>) -> bool {
        match field.name.len() {
            9 => field.is("forwarded"),
            15 => field.is_taken_for("x-forwarded-for"),
            16 => field.is_misspelt("x-forwarded-host") || (!self.is_trusted && field.is("x-forwarded-host")),
            17 => field.is_taken_for("x-forwarded-proto"),
            _ => false,
        }
    }

    pub fn append(&self, out: &mut Vec<u8>, fields: Fields<'_>, host: Option<&[u8]>) {
        out.extend_from_slice(b"X-Forwarded-For: ");
        self.append_before(out, &fields, "x-forwarded-for");
        out.extend_from_slice(self.address.as_bytes());
        out.extend_from_slice(b"\r\nX-Forwarded-Proto: ");
        let received_proto =
            self.is_trusted.then(|| fields.clone().find(|field| field.is("x-forwarded-proto"))).flatten();
        out.extend_from_slice(received_proto.map_or(self.scheme.as_bytes(), |field| field.value));
        out.extend_from_slice(b"\r\nForwarded: ");
        self.append_before(out, &fields, "forwarded");
        out.extend_from_slice(self.element.as_bytes());
        if let Some(host) = host.filter(|host| !host.is_empty() && can_be_quoted(host)) {
            out.extend_from_slice(b";host=\"");
            out.extend_from_slice(host);
            out.push(b'"');
        }
        out.extend_from_slice(b"\r\n");
    }

    /// Appends the value received from a trusted peer, followed by a comma.
    fn append_before(&self, out: &mut Vec<u8>, fields: &Fields<'_>, name: &str) {
        if !self.is_trusted {
            return;
        }
        for field in fields.clone().filter(|field| field.is(name) && !field.value.is_empty()) {
            out.extend_from_slice(field.value);
            out.extend_from_slice(b", ");
        }
    }

    /// Address of the client: the last one listed that is not trusted itself, if the peer may state it.
    pub fn client<'p>(&'p self, fields: Fields<'p>, trusted: &[Network]) -> &'p str {
        if !self.is_trusted {
            return &self.address;
        }
        let mut client = None;
        for field in fields.filter(|field| field.is("x-forwarded-for")) {
            for member in list(field.value) {
                let named = std::str::from_utf8(trim(member)).ok();
                let Some((text, ip)) =
                    named.and_then(|text| text.parse::<IpAddr>().ok().map(|ip| (text, ip)))
                else {
                    client = None;
                    continue;
                };
                if !trusted.iter().any(|network| network.contains(ip)) {
                    client = Some(text);
                }
            }
        }
        client.unwrap_or(&self.address)
    }
}

/// Whether a host can be written in quotes without escapes.
fn can_be_quoted(host: &[u8]) -> bool {
    host.iter().all(|byte| byte.is_ascii_graphic() && *byte != b'"' && *byte != b'\\')
}

/// Formats an address. IPv4, the usual case, is needed for every connection and avoids the formatting machinery.
fn text(ip: IpAddr) -> String {
    let IpAddr::V4(address) = ip else { return ip.to_string() };
    let mut digits = Vec::with_capacity(16);
    for octet in address.octets() {
        if !digits.is_empty() {
            digits.push(b'.');
        }
        write_decimal(&mut digits, u64::from(octet));
    }
    String::from_utf8(digits).unwrap_or_else(|_| ip.to_string())
}

#[cfg(test)]
mod tests {
    use assay_http::head::RequestHead;

    use super::*;

    fn trusted() -> Vec<Network> {
        vec!["10.0.0.0/8".parse().expect("a network")]
    }

    fn told(from: &str, fields: &str) -> (String, String) {
        let peer = ClientPeer::new(from.parse().expect("an address"), "sw", &trusted(), false);
        let text = format!("GET / HTTP/1.1\r\nHost: a.example:80\r\n{fields}\r\n");
        let (head, _) = RequestHead::parse(text.as_bytes()).expect("is HTTP").expect("is complete");
        let mut out = Vec::new();
        peer.append(&mut out, head.headers(), head.host);
        let client = peer.client(head.headers(), &trusted()).to_owned();
        (String::from_utf8(out).expect("text"), client)
    }

    #[test]
    fn what_a_client_says_of_itself_is_dropped() {
        let (out, client) = told(
            "192.0.2.1:5",
            "X-Forwarded-For: 1.1.1.1\r\nForwarded: for=1.1.1.1\r\nX-Forwarded-Proto: https\r\n",
        );
        let expected = "X-Forwarded-For: 192.0.2.1\r\nX-Forwarded-Proto: http\r\n\
                        Forwarded: for=192.0.2.1;by=\"_sw\";proto=http;host=\"a.example:80\"\r\n";
        assert_eq!((out.as_str(), client.as_str()), (expected, "192.0.2.1"));
    }

    #[test]
    fn servers_learn_that_a_client_speaks_tls() {
        let peer = ClientPeer::new("192.0.2.1:5".parse().expect("an address"), "sw", &[], true);
        let mut out = Vec::new();
        let (head, _) =
            RequestHead::parse(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n").expect("is HTTP").expect("is complete");
        peer.append(&mut out, head.headers(), None);
        let out = String::from_utf8(out).expect("text");
        assert!(out.contains("X-Forwarded-Proto: https\r\n") && out.contains(";proto=https"), "{out}");
    }

    #[test]
    fn what_a_trusted_peer_says_is_kept_and_ours_comes_last() {
        let fields = "X-Forwarded-For: 198.51.100.7, 10.2.2.2\r\nForwarded: for=\"_x,y\"\r\n\
                      X-Forwarded-Proto: https\r\n";
        let (out, client) = told("10.1.1.1:5", fields);
        assert!(out.starts_with(
            "X-Forwarded-For: 198.51.100.7, 10.2.2.2, 10.1.1.1\r\nX-Forwarded-Proto: https\r\n"
        ));
        assert!(out.contains("Forwarded: for=\"_x,y\", for=10.1.1.1;by=\"_sw\";"), "{out}");
        assert_eq!(client, "198.51.100.7");
        assert_eq!(told("10.1.1.1:5", "X-Forwarded-For: unknown\r\n").1, "10.1.1.1");
    }

    #[test]
    fn six_stands_in_brackets_and_quotes_and_a_host_that_cannot_be_quoted_is_left_out() {
        let (out, client) = told("[2001:db8::1]:5", "");
        assert!(out.contains("X-Forwarded-For: 2001:db8::1\r\n") && client == "2001:db8::1");
        assert!(out.contains("for=\"[2001:db8::1]\";by=\"_sw\";proto=http;host=\"a.example:80\""), "{out}");
        let peer = ClientPeer::new("[::ffff:192.0.2.9]:1".parse().expect("an address"), "sw", &[], false);
        assert_eq!(peer.address, "192.0.2.9");
        let text = "GET / HTTP/1.1\r\nHost: a\"b\r\n\r\n";
        let (head, _) = RequestHead::parse(text.as_bytes()).expect("is HTTP").expect("is complete");
        let mut out = Vec::new();
        peer.append(&mut out, head.headers(), head.host);
        assert!(!out.windows(5).any(|window| window == b";host"));
    }
}
