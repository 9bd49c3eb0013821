//! What the responses of a log say of themselves: whether a shared cache may store them, for how long they are fresh, and which
//! coded variant of its object each is.

use std::collections::HashMap;

use crate::access::Access;
use crate::hash::hash_on;
use crate::replay::Wanted;
use assay_base::settings::show::{count, several, verb};
use assay_cache::freshness::{
    Expires, Freshness, RequestControl, ResponseControl, ResponseFacts, has_explicit_lifetime,
};
use assay_cache::storage::{MethodClass, may_store};
use assay_http::cache_control::CacheControl;
use assay_http::date::parse_date;

use crate::size::http::FOREVER_S;

/// What a response says of its storing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Storing {
    /// Neither `Cache-Control` nor `Expires` decides it.
    NotSaid,
    /// A shared cache may not store it.
    No,
    /// It may, and the response is fresh for so many seconds.
    For(u32),
}

/// What a response says of its storing, according to RFC 9111. It is taken to have a validator.
pub(crate) fn storing(access: &Access<'_>, status: u16) -> Storing {
    if access.cache_control.is_empty() && access.expires.is_empty() {
        return Storing::NotSaid;
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
        return Storing::No;
    }
    if facts.control.no_cache {
        return Storing::For(0);
    }
    if !has_explicit_lifetime(&facts) {
        return Storing::NotSaid;
    }
    let remaining_ms = Freshness::new(&facts, at_ms, at_ms).remaining_ms(at_ms);
    Storing::For(u32::try_from(remaining_ms.max(0) / 1000).unwrap_or(FOREVER_S - 1))
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

/// What was said up to now, by key, for responses that say nothing: a proxy does not repeat all fields in a 304 or for a hit.
#[derive(Debug, Default)]
pub(crate) struct Told {
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

impl Told {
    /// How a request counts, from what its method and status say, and how long its response is fresh; none: that is not said.
    pub(crate) fn lifetime(
        &mut self,
        access: &Access<'_>,
        (method, status): (&[u8], u16),
        wanted: Wanted,
        key: u64,
    ) -> (Wanted, Option<u32>) {
        if !self.has_lifetimes || method != b"GET" {
            return (wanted, None);
        }
        // Of a part, or of nothing new, as of the whole object.
        let status = if wanted == Wanted::Part { 200 } else { status };
        match storing(access, status) {
            Storing::No => {
                self.never += u64::from(wanted != Wanted::Never);
                (Wanted::Never, None)
            }
            Storing::For(life_s) => {
                self.lives.insert(key, life_s);
                (if wanted == Wanted::Never { Wanted::Whole } else { wanted }, Some(life_s))
            }
            Storing::NotSaid => {
                let before = self.lives.get(&key).copied();
                self.silent += u64::from(wanted != Wanted::Never && before.is_none());
                (wanted, before)
            }
        }
    }

    /// The key of a coded variant. A response without a body is that of the variant that was requested last.
    pub(crate) fn variant(&mut self, access: &Access<'_>, wanted: Wanted, key: u64) -> u64 {
        if !self.has_codings {
            return key;
        }
        let is_coded = !access.coding.is_empty() && !access.coding.eq_ignore_ascii_case(b"identity");
        if wanted == Wanted::Part && !is_coded {
            return self.variants.get(&key).copied().unwrap_or(key);
        }
        let variant = if is_coded { hash_on(key, &access.coding.to_ascii_lowercase()) } else { key };
        self.variants.insert(key, variant);
        variant
    }

    /// What a reader should know.
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

    fn said(cache_control: &str, expires: &str, status: u16) -> Storing {
        let access = Access {
            time_us: Some(AT_S * 1_000_000),
            cache_control: cache_control.as_bytes(),
            expires: expires.as_bytes(),
            ..Access::default()
        };
        storing(&access, status)
    }

    #[test]
    fn what_is_stored_and_for_how_long_follows_from_the_fields() {
        // AT_S is 08:49:37.
        let expires = "Sun, 06 Nov 1994 08:51:17 GMT";
        for (cache_control, expires, status, expected) in [
            ("", "", 200, Storing::NotSaid),
            ("public", "", 200, Storing::NotSaid),
            ("max-age=60, public", "", 200, Storing::For(60)),
            ("max-age=60, s-maxage=5", expires, 200, Storing::For(5)),
            ("", expires, 200, Storing::For(100)),
            ("", "0", 200, Storing::For(0)),
            ("", "Sun, 06 Nov 1994 08:00:00 GMT", 200, Storing::For(0)),
            ("no-cache, max-age=60", "", 200, Storing::For(0)),
            ("no-store", expires, 200, Storing::No),
            ("private, max-age=60", "", 200, Storing::No),
            ("max-age=60", "", 302, Storing::For(60)),
            ("public", "", 302, Storing::NotSaid),
            ("must-revalidate", "", 500, Storing::No),
            ("max-age=99999999999999999999", "", 200, Storing::For(1 << 31)),
        ] {
            assert_eq!(said(cache_control, expires, status), expected, "{cache_control} {expires} {status}");
        }
    }

    #[test]
    fn a_response_that_says_nothing_is_fresh_as_long_as_the_one_before() {
        let mut told = Told { has_lifetimes: true, ..Told::default() };
        let with = |cache_control: &'static str| Access {
            cache_control: cache_control.as_bytes(),
            ..Access::default()
        };
        let mut of = |text, status, wanted| told.lifetime(&with(text), (b"GET", status), wanted, 7);
        assert_eq!(of("", 200, Wanted::Whole), (Wanted::Whole, None));
        assert_eq!(of("max-age=9", 200, Wanted::Whole), (Wanted::Whole, Some(9)));
        assert_eq!(of("", 304, Wanted::Part), (Wanted::Part, Some(9)));
        assert_eq!(of("max-age=5", 304, Wanted::Part), (Wanted::Part, Some(5)));
        assert_eq!(of("max-age=5", 302, Wanted::Never), (Wanted::Whole, Some(5)));
        assert_eq!(of("no-store", 200, Wanted::Whole), (Wanted::Never, None));
        assert_eq!((told.never, told.silent), (1, 1));
    }

    #[test]
    fn a_coded_variant_has_a_key_of_its_own_and_a_304_is_that_of_the_one_before() {
        let mut told = Told { has_codings: true, ..Told::default() };
        let with = |coding: &'static str| Access { coding: coding.as_bytes(), ..Access::default() };
        let mut key = |coding, wanted| told.variant(&with(coding), wanted, 7);
        let coded = key("gzip", Wanted::Whole);
        assert!(coded != 7 && key("GZIP", Wanted::Whole) == coded && key("", Wanted::Part) == coded);
        assert_eq!([key("identity", Wanted::Whole), key("", Wanted::Part)], [7, 7]);
        assert!(![7, coded].contains(&key("br", Wanted::Whole)));
    }
}
