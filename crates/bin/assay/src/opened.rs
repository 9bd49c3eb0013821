//! Notice of a listener that is not on loopback: what it opens, and to whom.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use crate::output;

/// A note on `address`, at which other machines `can` do something; `flag` says where it listens. None: it is on loopback.
pub fn note(address: SocketAddr, can: &str, flag: &str) -> Option<String> {
    notes(&[address], can, |loopback| format!("{flag} {loopback}"))
}

/// Prints one note on all of these addresses, which `flag` names: of those that are not on loopback, the first stands for the others.
pub fn print_notice(addresses: &[SocketAddr], can: &str, flag: &str) {
    let note = notes(addresses, can, |loopback| format!("{flag} {loopback}"));
    note.iter().for_each(|note| output::eprint(note));
}

/// Prints a note on these addresses, which are the value of `key` in a file.
pub fn print_notice_of_file(addresses: &[SocketAddr], can: &str, key: &str) {
    let note = notes(addresses, can, |loopback| format!("{key} = \"{loopback}\""));
    note.iter().for_each(|note| output::eprint(note));
}

fn notes(addresses: &[SocketAddr], can: &str, way_back: impl Fn(SocketAddr) -> String) -> Option<String> {
    let mut open = addresses.iter().filter(|address| !address.ip().is_loopback());
    let (address, more) = (open.next()?, open.count());
    let (ip, port) = (address.ip(), address.port());
    let at = match (ip.is_unspecified(), port) {
        (true, 0) => "a port is open on all addresses of this machine".to_owned(),
        (true, _) => format!("port {port} is open on all addresses of this machine"),
        (false, 0) => format!("a port of {ip} is open to other machines"),
        (false, _) => format!("{address} is open to other machines"),
    };
    let more = if more > 0 { format!(", and {more} more") } else { String::new() };
    let loopback: IpAddr = if ip.is_ipv4() { Ipv4Addr::LOCALHOST.into() } else { Ipv6Addr::LOCALHOST.into() };
    let way_back = way_back(SocketAddr::new(loopback, port));
    Some(format!(
        "note: {at}{more}: whoever reaches it can {can}; for programs on this machine alone: {way_back}\n"
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
        assert!(note("0.0.0.0:0").unwrap().starts_with("note: a port is open on all addresses"));
        assert!(
            note("10.0.0.1:0").unwrap().starts_with("note: a port of 10.0.0.1 is open to other machines")
        );
    }

    #[test]
    fn several_addresses_have_one_note_and_a_file_says_it_in_its_own_way() {
        let addresses = ["127.0.0.1:1", "10.0.0.1:2", "10.0.0.1:3"].map(|text| text.parse().unwrap());
        let note = notes(&addresses, "use it", |loopback| format!("listen = \"{loopback}\""));
        assert_eq!(
            note.unwrap(),
            "note: 10.0.0.1:2 is open to other machines, and 1 more: whoever reaches it can use it; for programs on this machine \
             alone: listen = \"127.0.0.1:2\"\n"
        );
        assert_eq!(notes(&addresses[..1], "use it", |_| String::new()), None);
    }
}
