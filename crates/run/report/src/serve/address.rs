//! The address of a server. On loopback, unless another address is named.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};

/// A text that is no address to listen on.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is neither a PORT nor an ADDRESS:PORT, like 9464 or 127.0.0.1:9464")]
pub struct ListenAddressError(String);

/// Reads `9464`, `:9464`, `localhost:9464`, `127.0.0.1:9464`, `[::1]:9464`, `0.0.0.0:9464`. A port alone is on loopback: that
/// others can see a run is for its owner to say.
pub fn listen_address(text: &str) -> Result<SocketAddr, ListenAddressError> {
    let loopback = |port: &str| Some(SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), port.parse().ok()?));
    let port = text.strip_prefix("localhost:").or(text.strip_prefix(':')).unwrap_or(text);
    loopback(port).or_else(|| text.parse().ok()).ok_or_else(|| ListenAddressError(text.to_owned()))
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
            assert!(listen_address(text).unwrap_err().to_string().contains("PORT"), "{text}");
        }
    }
}
