//! Where requests come from, by what their `Referer` says: a site, or nothing.

use crate::access::{authority, without_usual_port};

/// What kind of referrer it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Kind {
    /// The request has none.
    None,
    /// The host that was requested itself.
    SameHost,
    /// Another host; any host where the log does not say which was requested.
    Site,
    /// A text that is no URL with a host.
    Other,
}

pub const KINDS: usize = 4;

impl Kind {
    /// All of them, in the order in which they are shown.
    pub const ALL: [Kind; KINDS] = [Kind::None, Kind::SameHost, Kind::Site, Kind::Other];

    pub fn name(self) -> &'static str {
        match self {
            Kind::None => "none",
            Kind::SameHost => "same-host",
            Kind::Site => "site",
            Kind::Other => "no-url",
        }
    }
}

/// The kind of a referrer, and the host that it names; `host` is that of the request, empty where it is not known.
#[inline]
pub fn site<'a>(referrer: &'a [u8], host: &[u8]) -> (Kind, &'a [u8]) {
    if referrer.is_empty() {
        return (Kind::None, b"");
    }
    let Some((scheme, written)) = authority(referrer) else { return (Kind::Other, b"") };
    let site = without_usual_port(scheme, written);
    match site {
        b"" => (Kind::Other, b""),
        // A request often has no port where the referrer has none either; one of them may have been left out.
        site if !host.is_empty() && without_usual_port(scheme, host).eq_ignore_ascii_case(site) => {
            (Kind::SameHost, site)
        }
        site => (Kind::Site, site),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_referrer_is_known_by_its_host_and_that_of_the_request() {
        for (referrer, host, expected) in [
            ("", "a", (Kind::None, "")),
            ("http://a/x", "a", (Kind::SameHost, "a")),
            ("https://A:443/x", "a", (Kind::SameHost, "A")),
            ("https://a/x", "a:443", (Kind::SameHost, "a")),
            ("https://b.example?q=http://a/", "a", (Kind::Site, "b.example")),
            ("https://a/", "", (Kind::Site, "a")),
            ("android-app://com.example/", "a", (Kind::Other, "")),
            ("b.example", "a", (Kind::Other, "")),
            ("http:///x", "a", (Kind::Other, "")),
        ] {
            let (kind, found) = site(referrer.as_bytes(), host.as_bytes());
            assert_eq!((kind, std::str::from_utf8(found).unwrap()), expected, "{referrer} {host}");
        }
    }

    proptest! {
        #[test]
        fn any_bytes_are_of_some_kind(text in proptest::collection::vec(any::<u8>(), 0..60), host in "[a-z:0-9]{0,4}") {
            let (kind, found) = site(&text, host.as_bytes());
            prop_assert_eq!(found.is_empty(), matches!(kind, Kind::None | Kind::Other));
        }
    }
}
