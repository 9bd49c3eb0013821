//! Hosts that a request may name: a protection of pages and counters against DNS rebinding.
//!
//! A foreign page can make a browser send requests to a server that the page could not reach itself, in the name of a host that belongs to
//! whoever made the page; the browser then sends that name. No address can be forged like this, as no name has to be looked up for it, and
//! neither can the machine's own name.
//!
//! *Does not:* say who may connect. An address on loopback does that.

use std::net::IpAddr;

/// The name of this machine.
pub fn host_name() -> String {
    String::from_utf8_lossy(rustix::system::uname().nodename().to_bytes()).into_owned()
}

/// Whether a request with this `Host` may be served by a machine of this name: it names an address, `localhost` or a name below
/// it, the machine's name (also with `.local` behind it, as multicast DNS has it), or nothing.
pub fn is_allowed_host(host: Option<&[u8]>, host_name: &str) -> bool {
    let Some(host) = host else { return true };
    let Ok(host) = std::str::from_utf8(host) else { return false };
    let has_port = |port: &str| port.parse::<u16>().is_ok();
    let name = host.rsplit_once(':').filter(|(_, port)| has_port(port)).map_or(host, |(name, _)| name);
    let bare = name.strip_prefix('[').and_then(|name| name.strip_suffix(']')).unwrap_or(name);
    let name = name.to_ascii_lowercase();
    let host_name = host_name.to_ascii_lowercase();
    bare.parse::<IpAddr>().is_ok()
        || name == "localhost"
        || name.ends_with(".localhost")
        || (!name.is_empty() && (name == host_name || name.strip_suffix(".local") == Some(&host_name)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_and_names_of_this_machine_are_its_own() {
        for host in [
            "127.0.0.1:9464",
            "localhost",
            "LOCALHOST:1",
            "[::1]:9464",
            "a.localhost:1",
            "10.0.0.1",
            "Bench7:9464",
            "bench7.local",
        ] {
            assert!(is_allowed_host(Some(host.as_bytes()), "bench7"), "{host}");
        }
        assert!(is_allowed_host(None, "bench7"));
        assert!(is_allowed_host(Some(b"bench7.lab.example:1"), "bench7.lab.example"));
    }

    #[test]
    fn names_of_others_are_not() {
        for host in [
            "evil.example:9464",
            "localhost.evil.example",
            "bench7.evil.example",
            "",
            ":80",
            ".local",
            "\u{e4}",
        ] {
            assert!(!is_allowed_host(Some(host.as_bytes()), "bench7"), "{host}");
        }
        assert!(!is_allowed_host(Some(b"\xff"), "bench7"));
        assert!(!is_allowed_host(Some(b""), ""), "a machine without a name");
    }
}
