//! What the responses of a log say of themselves: whether a shared cache may store them, for how long they are fresh, and which
//! coded variant of its object each is.

use std::collections::HashMap;

use crate::access::Access;
use crate::hash::hash_on;
use crate::replay::Cacheability;
use assay_base::settings::show::{count, several, verb};
use assay_cache::freshness::{
    Expires, Freshness, RequestControl, ResponseControl, ResponseFacts, has_explicit_lifetime,
};
use assay_cache::storage::{MethodClass, may_store};
use assay_http::cache_control::CacheControl;
use assay_http::date::parse_date;

use crate::size::http::FOREVER_S;

/// Storability of a response by its fields.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Storability {
    /// Neither `Cache-Control` nor `Expires` decides it.
    Unspecified,
    /// A shared cache may not store it.
    No,
    /// Storable, and fresh for this many seconds.
    For(u32),
}

/// Storability of a response according to RFC 9111. It is assumed to have a validator.
pub(crate) fn storability(access: &Access<'_>, status: u16) -> Storability {
    if access.cache_control.is_empty() && access.expires.is_empty() {
        return Storability::Unspecified;
    }
    // The time of the line is that of the response.
    let at_ms = access.time_us.unwrap_or(0).div_euclid(1000);
    let facts = ResponseFacts {
        status,
        expires: expires(access.expires),
        has_validator: true,
        control: control(&CacheControl::parse([access.cache_control])),
        ..ResponseFacts::default()
    };
    if may_store(MethodClass::Get, &RequestControl::default(), false, &facts).is_err() {
        return Storability::No;
    }
    if facts.control.no_cache {
        return Storability::For(0);
    }
    if !has_explicit_lifetime(&facts) {
        return Storability::Unspecified;
    }
    let remaining_ms = Freshness::new(&facts, at_ms, at_ms).remaining_ms(at_ms);
    Storability::For(u32::try_from(remaining_ms.max(0) / 1000).unwrap_or(FOREVER_S - 1))
}

fn expires(text: &[u8]) -> Expires {
    match parse_date(text).and_then(|seconds| i64::try_from(seconds).ok()) {
        Some(seconds) => Expires::At(seconds),
        None if text.is_empty() => Expires::Absent,
        None => Expires::Invalid,
    }
}

fn control(said: &CacheControl) -> ResponseControl {
    ResponseControl {
        max_age_s: said.max_age_s,
        s_maxage_s: said.s_maxage_s,
        no_store: said.no_store,
        no_cache: said.no_cache,
        private: said.private,
        public: said.public,
        must_revalidate: said.must_revalidate,
        proxy_revalidate: said.proxy_revalidate,
        stale_if_error_s: said.stale_if_error_s,
        stale_while_revalidate_s: said.stale_while_revalidate_s,
    }
}

/// Last lifetime and coding by key, for responses without: a proxy does not repeat all fields in a 304 or for a hit.
#[derive(Debug, Default)]
pub(crate) struct ResponseMetadata {
    /// The log has lifetimes.
    pub(crate) has_lifetimes: bool,
    /// The log has codings.
    pub(crate) has_codings: bool,
    lives: HashMap<u64, u32>,
    variants: HashMap<u64, u64>,
    /// Requests whose response may not be stored.
    never: u64,
    /// Requests of whose lifetime nothing was said, and that a cache may serve.
    silent: u64,
}

impl ResponseMetadata {
    /// Cacheability of a request, and its freshness lifetime; none: not stated.
    pub(crate) fn lifetime(
        &mut self,
        access: &Access<'_>,
        method: &[u8],
        status: u16,
        cacheability: Cacheability,
        key: u64,
    ) -> (Cacheability, Option<u32>) {
        if !self.has_lifetimes || method != b"GET" {
            return (cacheability, None);
        }
        // Of a part, or of nothing new, as of the whole object.
        let status = if cacheability == Cacheability::Part { 200 } else { status };
        match storability(access, status) {
            Storability::No => {
                self.never += u64::from(cacheability != Cacheability::Never);
                (Cacheability::Never, None)
            }
            Storability::For(life_s) => {
                self.lives.insert(key, life_s);
                (
                    if cacheability == Cacheability::Never { Cacheability::Whole } else { cacheability },
                    Some(life_s),
                )
            }
            Storability::Unspecified => {
                let before = self.lives.get(&key).copied();
                self.silent += u64::from(cacheability != Cacheability::Never && before.is_none());
                (cacheability, before)
            }
        }
    }

    /// The key of a coded variant. A response without a body is that of the variant that was requested last.
    pub(crate) fn variant(&mut self, access: &Access<'_>, cacheability: Cacheability, key: u64) -> u64 {
        if !self.has_codings {
            return key;
        }
        let is_coded = !access.coding.is_empty() && !access.coding.eq_ignore_ascii_case(b"identity");
        if cacheability == Cacheability::Part && !is_coded {
            return self.variants.get(&key).copied().unwrap_or(key);
        }
        let variant = if is_coded { hash_on(key, &access.coding.to_ascii_lowercase()) } else { key };
        self.variants.insert(key, variant);
        variant
    }

    pub(crate) fn notes(&self) -> Vec<String> {
        let mut notes = Vec::new();
        if self.has_lifetimes {
            notes.push(format!(
                "What is stored, and how long it is fresh, follows from Cache-Control and Expires of the log: {} {} for what may not be \
                 stored.",
                several(self.never, "request"),
                verb(self.never, "is", "are")
            ));
            if self.silent > 0 {
                notes.push(format!(
                    "Responses that say nothing of their lifetime: {}. They are fresh as long as --ttl says, or else for ever.",
                    count(self.silent)
                ));
            }
        }
        if self.has_codings {
            notes.push("Coded variants of a response (Content-Encoding) are objects of their own.".into());
        }
        notes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const AT_S: i64 = 784_111_777;

    fn said(cache_control: &str, expires: &str, status: u16) -> Storability {
        let access = Access {
            time_us: Some(AT_S * 1_000_000),
            cache_control: cache_control.as_bytes(),
            expires: expires.as_bytes(),
            ..Access::default()
        };
        storability(&access, status)
    }

    #[test]
    fn what_is_stored_and_for_how_long_follows_from_the_fields() {
        // AT_S is 08:49:37.
        let expires = "Sun, 06 Nov 1994 08:51:17 GMT";
        for (cache_control, expires, status, expected) in [
            ("", "", 200, Storability::Unspecified),
            ("public", "", 200, Storability::Unspecified),
            ("max-age=60, public", "", 200, Storability::For(60)),
            ("max-age=60, s-maxage=5", expires, 200, Storability::For(5)),
            ("", expires, 200, Storability::For(100)),
            ("", "0", 200, Storability::For(0)),
            ("", "Sun, 06 Nov 1994 08:00:00 GMT", 200, Storability::For(0)),
            ("no-cache, max-age=60", "", 200, Storability::For(0)),
            ("no-store", expires, 200, Storability::No),
            ("private, max-age=60", "", 200, Storability::No),
            ("max-age=60", "", 302, Storability::For(60)),
            ("public", "", 302, Storability::Unspecified),
            ("must-revalidate", "", 500, Storability::No),
            ("max-age=99999999999999999999", "", 200, Storability::For(1 << 31)),
        ] {
            assert_eq!(said(cache_control, expires, status), expected, "{cache_control} {expires} {status}");
        }
    }

    #[test]
    fn a_response_that_says_nothing_is_fresh_as_long_as_the_one_before() {
        let mut metadata = ResponseMetadata { has_lifetimes: true, ..ResponseMetadata::default() };
        let with = |cache_control: &'static str| Access {
            cache_control: cache_control.as_bytes(),
            ..Access::default()
        };
        let mut of =
            |text, status, cacheability| metadata.lifetime(&with(text), b"GET", status, cacheability, 7);
        assert_eq!(of("", 200, Cacheability::Whole), (Cacheability::Whole, None));
        assert_eq!(of("max-age=9", 200, Cacheability::Whole), (Cacheability::Whole, Some(9)));
        assert_eq!(of("", 304, Cacheability::Part), (Cacheability::Part, Some(9)));
        assert_eq!(of("max-age=5", 304, Cacheability::Part), (Cacheability::Part, Some(5)));
        assert_eq!(of("max-age=5", 302, Cacheability::Never), (Cacheability::Whole, Some(5)));
        assert_eq!(of("no-store", 200, Cacheability::Whole), (Cacheability::Never, None));
        assert_eq!((metadata.never, metadata.silent), (1, 1));
    }

    #[test]
    fn a_coded_variant_has_a_key_of_its_own_and_a_304_is_that_of_the_one_before() {
        let mut metadata = ResponseMetadata { has_codings: true, ..ResponseMetadata::default() };
        let with = |coding: &'static str| Access { coding: coding.as_bytes(), ..Access::default() };
        let mut key = |coding, cacheability| metadata.variant(&with(coding), cacheability, 7);
        let coded = key("gzip", Cacheability::Whole);
        assert!(
            coded != 7 && key("GZIP", Cacheability::Whole) == coded && key("", Cacheability::Part) == coded
        );
        assert_eq!([key("identity", Cacheability::Whole), key("", Cacheability::Part)], [7, 7]);
        assert!(![7, coded].contains(&key("br", Cacheability::Whole)));
    }
}
