//! Target of a tunnel.

const HTTPS_PORT: u16 = 443;

/// Host and port of a tunnel.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TunnelTarget {
    /// `host:port`, in lower case.
    authority: String,
    /// Length of the host in `authority`.
    host_bytes: usize,
    port: u16,
}

impl TunnelTarget {
    /// Parses the target of a CONNECT: `host[:port]`.
    pub fn new(authority: &str) -> Self {
        let (host, port) = split(authority);
        let host = host.to_ascii_lowercase();
        Self { authority: format!("{host}:{port}"), host_bytes: host.len(), port }
    }

    pub fn authority(&self) -> &str {
        &self.authority
    }

    /// Authority in `https` URLs: without the default port.
    pub fn url_authority(&self) -> &str {
        if self.port == HTTPS_PORT { &self.authority[..self.host_bytes] } else { &self.authority }
    }

    /// Whether an authority (`host[:port]`) of an `https` URL names this target.
    pub fn matches(&self, authority: &str) -> bool {
        let (host, port) = split(authority);
        port == self.port && host.eq_ignore_ascii_case(&self.authority[..self.host_bytes])
    }
}

/// Host and port of a valid authority.
fn split(authority: &str) -> (&str, u16) {
    let after_address = authority.rfind(']').unwrap_or(0);
    match authority[after_address..].rfind(':') {
        Some(colon) => {
            let (host, port) = authority.split_at(after_address + colon);
            (host, port[1..].parse().unwrap_or(HTTPS_PORT))
        }
        None => (authority, HTTPS_PORT),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spellings_of_one_place_are_one() {
        for same in ["A.example:443", "a.example", "a.example:", "a.example:0443"] {
            assert_eq!(TunnelTarget::new(same), TunnelTarget::new("a.example:443"), "{same}");
            assert!(TunnelTarget::new("a.example").matches(same), "{same}");
        }
        for other in ["b.example", "a.example:80", "a.example.", "[::1]"] {
            assert!(!TunnelTarget::new("a.example").matches(other), "{other}");
        }
        let address = TunnelTarget::new("[::1]");
        assert_eq!((address.authority(), address.url_authority()), ("[::1]:443", "[::1]"));
        assert_eq!(TunnelTarget::new("[::1]:8443").url_authority(), "[::1]:8443");
    }
}
