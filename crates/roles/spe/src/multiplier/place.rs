//! Where a tunnel leads.

const HTTPS_PORT: u16 = 443;

/// A host and a port.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// `host:port`, in lower case.
    authority: String,
    /// How much of it is the host.
    host_bytes: usize,
    port: u16,
}

impl Place {
    /// Of the target of a CONNECT: `host[:port]`.
    pub fn of(authority: &str) -> Self {
        let (host, port) = split(authority);
        let host = host.to_ascii_lowercase();
        Self { authority: format!("{host}:{port}"), host_bytes: host.len(), port }
    }

    /// `host:port`.
    pub fn authority(&self) -> &str {
        &self.authority
    }

    /// As it is in `https` URLs: without the port that they mean anyway.
    pub fn in_urls(&self) -> &str {
        if self.port == HTTPS_PORT { &self.authority[..self.host_bytes] } else { &self.authority }
    }

    /// True where an authority (`host[:port]`) of an `https` URL names this place.
    pub fn is(&self, authority: &str) -> bool {
        let (host, port) = split(authority);
        port == self.port && host.eq_ignore_ascii_case(&self.authority[..self.host_bytes])
    }
}

/// Host and port of what was found to be an authority.
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
            assert_eq!(Place::of(same), Place::of("a.example:443"), "{same}");
            assert!(Place::of("a.example").is(same), "{same}");
        }
        for other in ["b.example", "a.example:80", "a.example.", "[::1]"] {
            assert!(!Place::of("a.example").is(other), "{other}");
        }
        let address = Place::of("[::1]");
        assert_eq!((address.authority(), address.in_urls()), ("[::1]:443", "[::1]"));
        assert_eq!(Place::of("[::1]:8443").in_urls(), "[::1]:8443");
    }
}
