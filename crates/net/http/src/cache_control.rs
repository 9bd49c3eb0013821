//! The directives of `Cache-Control`.
//!
//! The directives that matter to a shared cache (RFC 9111, 5.2; RFC 5861; RFC 8246). Where a sender is unclear the stricter
//! reading wins: the shorter of two ages, an age that is no number is 0, and `private="field"` is `private`.

use crate::dictionary::MemberValue;
use crate::field::{decimal, list, tokens, trim};

/// Longest time kept, in seconds; longer ones count as this (RFC 9111, 1.2.2).
pub const MAX_DELTA_S: u64 = 1 << 31;

/// Staleness that the `max-stale` of a request accepts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MaxStale {
    Any,
    /// Upper bound on the staleness, in seconds.
    Seconds(u64),
}

/// Directives of one message. Times are in seconds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct CacheControl {
    /// `max-age`.
    pub max_age_s: Option<u64>,
    /// `s-maxage` (responses).
    pub s_maxage_s: Option<u64>,
    /// `min-fresh` (requests).
    pub min_fresh_s: Option<u64>,
    /// `max-stale` (requests).
    pub max_stale: Option<MaxStale>,
    /// `no-store`.
    pub no_store: bool,
    /// `no-cache`, with or without field names.
    pub no_cache: bool,
    /// `private`, with or without field names (responses).
    pub private: bool,
    /// `public` (responses).
    pub public: bool,
    /// `must-revalidate` (responses).
    pub must_revalidate: bool,
    /// `proxy-revalidate` (responses).
    pub proxy_revalidate: bool,
    /// `only-if-cached` (requests).
    pub only_if_cached: bool,
    /// `stale-if-error` (RFC 5861).
    pub stale_if_error_s: Option<u64>,
    /// `stale-while-revalidate` (responses; RFC 5861).
    pub stale_while_revalidate_s: Option<u64>,
    /// `immutable` (responses).
    pub immutable: bool,
    /// `no-transform`.
    pub no_transform: bool,
}

impl CacheControl {
    /// Reads all `Cache-Control` fields of a message.
    pub fn parse<'v>(values: impl IntoIterator<Item = &'v [u8]>) -> Self {
        let mut directives = Self::default();
        for value in values {
            directives.add(value);
        }
        directives
    }

    /// Reads one more field; several count as one list.
    pub fn add(&mut self, value: &[u8]) {
        if memchr::memchr(b'"', value).is_none() {
            // Nearly always, and then every comma separates.
            return tokens(value).for_each(|member| self.member(member));
        }
        list(value).for_each(|member| self.member(member));
    }

    fn member(&mut self, member: &[u8]) {
        match member.iter().position(|&byte| byte == b'=') {
            Some(equals) => self.directive(trim(&member[..equals]), Some(trim(&member[equals + 1..]))),
            None => self.directive(member, None),
        }
    }

    /// Takes a member of a field for one kind of cache, such as `CDN-Cache-Control`. A value of another type than its directive's is
    /// not taken (RFC 9213, 2.1), and the last member of a name counts.
    pub fn set(&mut self, name: &[u8], value: MemberValue<'_>) {
        let seconds = match value {
            MemberValue::Integer(seconds) => {
                u64::try_from(seconds).ok().map(|seconds| seconds.min(MAX_DELTA_S))
            }
            _ => None,
        };
        let is_on = value == MemberValue::Boolean(true);
        let is_on_or_names = is_on || matches!(value, MemberValue::String(_));
        match name {
            b"max-age" => self.max_age_s = seconds,
            b"s-maxage" => self.s_maxage_s = seconds,
            b"stale-while-revalidate" => self.stale_while_revalidate_s = seconds,
            b"stale-if-error" => self.stale_if_error_s = seconds,
            b"no-cache" => self.no_cache = is_on_or_names,
            b"private" => self.private = is_on_or_names,
            b"no-store" => self.no_store = is_on,
            b"public" => self.public = is_on,
            b"must-revalidate" => self.must_revalidate = is_on,
            b"proxy-revalidate" => self.proxy_revalidate = is_on,
            b"immutable" => self.immutable = is_on,
            b"no-transform" => self.no_transform = is_on,
            _ => {}
        }
    }

    /// For how long the sender says that a shared cache may use the response: `s-maxage`, else `max-age`.
    pub fn shared_lifetime_s(&self) -> Option<u64> {
        self.s_maxage_s.or(self.max_age_s)
    }

    fn directive(&mut self, name: &[u8], argument: Option<&[u8]>) {
        // As long as the longest; what is longer is none of these.
        let mut room = [0; 22];
        let Some(lower) = room.get_mut(..name.len()) else { return };
        lower.copy_from_slice(name);
        lower.make_ascii_lowercase();
        match &*lower {
            b"max-age" => shorten(&mut self.max_age_s, argument),
            b"s-maxage" => shorten(&mut self.s_maxage_s, argument),
            b"no-cache" => self.no_cache = true,
            b"no-store" => self.no_store = true,
            b"private" => self.private = true,
            b"public" => self.public = true,
            b"must-revalidate" => self.must_revalidate = true,
            b"proxy-revalidate" => self.proxy_revalidate = true,
            b"only-if-cached" => self.only_if_cached = true,
            b"immutable" => self.immutable = true,
            b"no-transform" => self.no_transform = true,
            b"min-fresh" => {
                // The stricter reading is the longer one.
                let seconds = argument.and_then(delta_s).unwrap_or(MAX_DELTA_S);
                self.min_fresh_s = Some(self.min_fresh_s.map_or(seconds, |other| other.max(seconds)));
            }
            b"stale-while-revalidate" => shorten(&mut self.stale_while_revalidate_s, argument),
            b"stale-if-error" => shorten(&mut self.stale_if_error_s, argument),
            b"max-stale" => self.max_stale(argument),
            _ => {}
        }
    }

    fn max_stale(&mut self, argument: Option<&[u8]>) {
        let said = match argument {
            None => MaxStale::Any,
            Some(text) => MaxStale::Seconds(delta_s(text).unwrap_or(0)),
        };
        self.max_stale = Some(match (self.max_stale, said) {
            (None | Some(MaxStale::Any), said) => said,
            (Some(before), MaxStale::Any) => before,
            (Some(MaxStale::Seconds(a)), MaxStale::Seconds(b)) => MaxStale::Seconds(a.min(b)),
        });
    }
}

/// Keeps the shorter time; one that cannot be read is 0.
fn shorten(kept: &mut Option<u64>, argument: Option<&[u8]>) {
    let seconds = argument.and_then(delta_s).unwrap_or(0);
    *kept = Some(kept.map_or(seconds, |other| other.min(seconds)));
}

/// `60` or `"60"`; too large a number is the largest.
fn delta_s(text: &[u8]) -> Option<u64> {
    let digits = match text {
        [b'"', digits @ .., b'"'] => digits,
        digits => digits,
    };
    if digits.is_empty() || !digits.iter().all(u8::is_ascii_digit) {
        return None;
    }
    Some(decimal(digits).unwrap_or(MAX_DELTA_S).min(MAX_DELTA_S))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn parsed(value: &str) -> CacheControl {
        CacheControl::parse([value.as_bytes()])
    }

    #[test]
    fn directives_are_found_whatever_their_case_and_spacing() {
        let found =
            parsed(" Public ,, MAX-AGE=60,s-maxage = \"30\" , Must-Revalidate, unknown=\"a, no-store\"");
        assert!(found.public && found.must_revalidate && !found.no_store);
        assert_eq!((found.max_age_s, found.s_maxage_s), (Some(60), Some(30)));
        assert_eq!(found.shared_lifetime_s(), Some(30));
    }

    #[test]
    fn a_value_of_another_type_than_its_directives_is_not_taken() {
        let set = |line: &str| {
            let mut found = CacheControl::default();
            crate::dictionary::members(line.as_bytes(), |name, value| found.set(name, value)).unwrap();
            found
        };
        assert_eq!(set("max-age=60;x=1, s-maxage=30").shared_lifetime_s(), Some(30));
        assert_eq!(set("max-age=999999999999999").max_age_s, Some(MAX_DELTA_S));
        for wrong in [
            "max-age=\"60\"",
            "max-age=60.0",
            "max-age=sixty",
            "max-age=?1",
            "max-age",
            "max-age=-1",
            "max-age=(60)",
        ] {
            assert_eq!(set(wrong), CacheControl::default(), "{wrong}");
        }
        assert_eq!(set("max-age=60, max-age=5, max-age=9").max_age_s, Some(9));
        assert_eq!(set("max-age=60, max-age=\"5\"").max_age_s, None);
        assert!(set("no-store").no_store && set("no-store=?1").no_store && set("private=\"a, b\"").private);
        for wrong in [
            "no-store=?0",
            "no-store=1",
            "no-store=\"x\"",
            "private=1",
            "no-cache=x",
            "no-store, no-store=?0",
        ] {
            assert_eq!(set(wrong), CacheControl::default(), "{wrong}");
        }
    }

    #[test]
    fn several_fields_count_as_one() {
        let found = CacheControl::parse([&b"private"[..], b"no-cache", b"no-store"]);
        assert!(found.private && found.no_cache && found.no_store && !found.public);
    }

    #[test]
    fn the_stricter_of_two_readings_wins() {
        assert_eq!(parsed("max-age=60, max-age=5").max_age_s, Some(5));
        assert_eq!(parsed("max-age=soon").max_age_s, Some(0));
        assert_eq!(parsed("max-age").max_age_s, Some(0));
        assert_eq!(parsed("max-age=-1").max_age_s, Some(0));
        assert_eq!(parsed("max-age=99999999999999999999999").max_age_s, Some(MAX_DELTA_S));
        assert_eq!(parsed("max-stale, max-stale=5").max_stale, Some(MaxStale::Seconds(5)));
        assert!(parsed("private=\"set-cookie\"").private);
        assert!(parsed("no-cache=\"set-cookie, x\"").no_cache);
    }

    #[test]
    fn request_directives_are_found() {
        let found =
            parsed("only-if-cached, max-stale, min-fresh=10, immutable, proxy-revalidate, no-transform");
        assert!(found.only_if_cached && found.immutable && found.proxy_revalidate && found.no_transform);
        assert_eq!((found.max_stale, found.min_fresh_s), (Some(MaxStale::Any), Some(10)));
        assert_eq!(parsed(""), CacheControl::default());
    }

    proptest! {
        #[test]
        fn any_bytes_give_a_result(value in prop::collection::vec(any::<u8>(), 0..60)) {
            CacheControl::parse([&value[..]]);
        }

        #[test]
        fn order_does_not_matter(mut parts in prop::collection::vec(prop::sample::select(vec![
            "max-age=5", "max-age=7", "s-maxage=1", "no-store", "no-cache=\"a\"", "private", "max-stale",
            "max-stale=3", "min-fresh=2", "min-fresh=4", "public",
        ]), 0..8)) {
            let forward = parsed(&parts.join(","));
            parts.reverse();
            prop_assert_eq!(parsed(&parts.join(", ")), forward);
        }
    }
}
