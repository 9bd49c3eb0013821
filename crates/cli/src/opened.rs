//! What a listener that is not on loopback opens, and to whom.

use std::net::SocketAddr;

/// A note on `address`, at which other machines `can` do something; `flag` says where it listens. None: it is on loopback.
pub fn note(address: SocketAddr, can: &str, flag: &str) -> Option<String> {
    let ip = address.ip();
    if ip.is_loopback() {
        return None;
    }
    let at = if ip.is_unspecified() {
        format!("port {} is open on all addresses of this machine", address.port())
    } else {
        format!("{address} is open to other machines")
    };
    let loopback = if ip.is_ipv4() { "127.0.0.1" } else { "[::1]" };
    Some(format!(
        "note: {at}: whoever reaches it can {can}; for programs on this machine alone: {flag} {loopback}:{}\n",
        address.port()
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_that_is_not_on_loopback_is_told_with_the_way_back() {
        let note = |address: &str| note(address.parse().unwrap(), "use it", "--listen");
        assert_eq!(note("127.0.0.1:1"), None);
        assert_eq!(note("[::1]:1"), None);
        assert_eq!(
            note("0.0.0.0:3128").unwrap(),
            "note: port 3128 is open on all addresses of this machine: whoever reaches it can use it; for programs on this machine \
             alone: --listen 127.0.0.1:3128\n"
        );
        assert!(note("[::]:1").unwrap().ends_with("--listen [::1]:1\n"));
        assert!(note("10.0.0.1:1").unwrap().starts_with("note: 10.0.0.1:1 is open to other machines: "));
    }
}
