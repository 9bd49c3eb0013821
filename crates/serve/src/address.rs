//! The address of a server. On loopback, unless another address is named.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};

/// Reads `9464`, `:9464`, `localhost:9464`, `127.0.0.1:9464`, `[::1]:9464`, `0.0.0.0:9464`. A port alone is on loopback: that
/// others can see a run is for its owner to say.
pub fn listen_address(text: &str) -> Result<SocketAddr, String> {
    let loopback = |port: &str| Some(SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), port.parse().ok()?));
    let port = text.strip_prefix("localhost:").or(text.strip_prefix(':')).unwrap_or(text);
    loopback(port)
        .or_else(|| text.parse().ok())
        .ok_or_else(|| format!("`{text}` is neither a PORT nor an ADDRESS:PORT, like 9464 or 127.0.0.1:9464"))
}

/// Whether a request with this `Host` may be served. A page from elsewhere can make a browser send requests to a server on
/// loopback in the name of a host of its own; then the browser says that name, which is none of ours.
pub(crate) fn is_host_of_ours(host: Option<&[u8]>, listening: IpAddr) -> bool {
    let Some(host) = host.filter(|_| listening.is_loopback()) else { return true };
    let Ok(host) = std::str::from_utf8(host) else { return false };
    let has_port = |port: &str| port.parse::<u16>().is_ok();
    let name = host.rsplit_once(':').filter(|(_, port)| has_port(port)).map_or(host, |(name, _)| name);
    let bare = name.strip_prefix('[').and_then(|name| name.strip_suffix(']')).unwrap_or(name);
    bare.parse::<IpAddr>().is_ok()
        || name.eq_ignore_ascii_case("localhost")
        || name.to_ascii_lowercase().ends_with(".localhost")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_port_alone_is_on_loopback() {
        for text in ["9464", ":9464", "localhost:9464", "127.0.0.1:9464"] {
            assert_eq!(listen_address(text), Ok("127.0.0.1:9464".parse().unwrap()), "{text}");
        }
        for text in ["0.0.0.0:1", "[::1]:9464", "10.1.2.3:80"] {
            assert_eq!(listen_address(text), Ok(text.parse().unwrap()), "{text}");
        }
        for text in ["", "70000", "here", "example.net:80", "1.2.3.4"] {
            assert!(listen_address(text).unwrap_err().contains("PORT"), "{text}");
        }
    }

    #[test]
    fn a_name_of_somebody_else_is_refused_on_loopback_only() {
        let loopback = "127.0.0.1".parse().unwrap();
        for host in ["127.0.0.1:9464", "localhost", "LOCALHOST:1", "[::1]:9464", "a.localhost:1", "10.0.0.1"]
        {
            assert!(is_host_of_ours(Some(host.as_bytes()), loopback), "{host}");
        }
        for host in ["evil.example:9464", "localhost.evil.example", "", "\u{e4}"] {
            assert!(!is_host_of_ours(Some(host.as_bytes()), loopback), "{host}");
        }
        assert!(is_host_of_ours(None, loopback));
        assert!(is_host_of_ours(Some(b"lab.example"), "0.0.0.0".parse().unwrap()));
    }
}
