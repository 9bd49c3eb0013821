//! Where requests come from, by what their `Referer` says: a site, or nothing.

use strum::{IntoStaticStr, VariantArray};

use crate::access::{authority, strip_default_port};

#[derive(Debug, Clone, Copy, PartialEq, Eq, IntoStaticStr, VariantArray)]
#[strum(serialize_all = "kebab-case")]
#[repr(u8)]
pub enum ReferrerKind {
    /// The request has none.
    None,
    /// The host that was requested itself.
    SameHost,
    /// Another host; any host where the log does not say which was requested.
    Site,
    /// A text that is no URL with a host.
    #[strum(serialize = "no-url")]
    Other,
}

impl ReferrerKind {
    pub fn name(self) -> &'static str {
        self.into()
    }
}

/// The kind of a referrer, and the host that it names; `host` is that of the request, empty where it is not known.
#[inline]
pub fn classify<'a>(referrer: &'a [u8], host: &[u8]) -> (ReferrerKind, &'a [u8]) {
    if referrer.is_empty() {
        return (ReferrerKind::None, b"");
    }
    let Some((scheme, written)) = authority(referrer) else { return (ReferrerKind::Other, b"") };
    let classify = strip_default_port(scheme, written);
    match classify {
        b"" => (ReferrerKind::Other, b""),
        // A request often has no port where the referrer has none either; one of them may have been left out.
        classify if !host.is_empty() && strip_default_port(scheme, host).eq_ignore_ascii_case(classify) => {
            (ReferrerKind::SameHost, classify)
        }
        classify => (ReferrerKind::Site, classify),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_referrer_is_known_by_its_host_and_that_of_the_request() {
        for (referrer, host, expected) in [
            ("", "a", (ReferrerKind::None, "")),
            ("http://a/x", "a", (ReferrerKind::SameHost, "a")),
            ("https://A:443/x", "a", (ReferrerKind::SameHost, "A")),
            ("https://a/x", "a:443", (ReferrerKind::SameHost, "a")),
            ("https://b.example?q=http://a/", "a", (ReferrerKind::Site, "b.example")),
            ("https://a/", "", (ReferrerKind::Site, "a")),
            ("android-app://com.example/", "a", (ReferrerKind::Other, "")),
            ("b.example", "a", (ReferrerKind::Other, "")),
            ("http:///x", "a", (ReferrerKind::Other, "")),
        ] {
            let (kind, found) = classify(referrer.as_bytes(), host.as_bytes());
            assert_eq!((kind, std::str::from_utf8(found).unwrap()), expected, "{referrer} {host}");
        }
    }

    proptest! {
        #[test]
        fn any_bytes_are_of_some_kind(text in proptest::collection::vec(any::<u8>(), 0..60), host in "[a-z:0-9]{0,4}") {
            let (kind, found) = classify(&text, host.as_bytes());
            prop_assert_eq!(found.is_empty(), matches!(kind, ReferrerKind::None | ReferrerKind::Other));
        }
    }
}
