//! Fields of a head by which caches decide, in the terms of [`freshness`](crate::freshness).
//!
//! All programs that keep responses parse fields here: a proxy and a collector that read a directive differently would not be
//! comparable.

use crate::freshness::{Expires, MaxStale, RequestControl, ResponseControl, ResponseFacts};
use assay_http::cache_control::{self, CacheControl};
use assay_http::date::parse_date;
use assay_http::dictionary;
use assay_http::field::{Field, Fields, decimal, is_named_in_connection, tokens};
use assay_http::head::ResponseHead;

/// An HTTP date in Unix seconds; none if the text is not a date.
pub fn date_s(text: &[u8]) -> Option<i64> {
    parse_date(text).and_then(|seconds| i64::try_from(seconds).ok())
}

/// `Age`, in seconds (0 when it is no number); none: there is none.
pub fn age_s(head: &ResponseHead<'_>) -> Option<u64> {
    head.header("age").map(age_value)
}

/// Value of `Age`: the first member of a list, and the largest value for a number that overflows (RFC 9111, 5.1, 1.2.2).
fn age_value(text: &[u8]) -> u64 {
    let first = text.split(|&byte| byte == b',').next().unwrap_or_default().trim_ascii();
    let is_number = !first.is_empty() && first.iter().all(u8::is_ascii_digit);
    decimal(first).unwrap_or(if is_number { u64::MAX } else { 0 })
}

/// The directives of a request. `pragma_no_cache` counts only where there is no `Cache-Control` (RFC 9111, 5.4).
pub fn request_control(directives: Option<CacheControl>, pragma_no_cache: bool) -> RequestControl {
    let Some(directives) = directives else {
        return RequestControl { no_cache: pragma_no_cache, ..RequestControl::default() };
    };
    RequestControl {
        no_cache: directives.no_cache,
        no_store: directives.no_store,
        only_if_cached: directives.only_if_cached,
        max_age_s: directives.max_age_s,
        min_fresh_s: directives.min_fresh_s,
        stale_if_error_s: directives.stale_if_error_s,
        max_stale: directives.max_stale.map(|accepted| match accepted {
            cache_control::MaxStale::Any => MaxStale::Any,
            cache_control::MaxStale::Seconds(seconds) => MaxStale::Seconds(seconds),
        }),
    }
}

/// Metadata of a response that the storing rules depend on.
pub fn response_facts(head: &ResponseHead<'_>, age_s: u64) -> ResponseFacts {
    ResponseFields::collect(head.headers()).facts(head.status, age_s)
}

/// Whether `Connection` names a field that decides how a response may be kept. Such a field is hop-by-hop and is removed (RFC 9110,
/// 7.6.1), though it is meant for everybody: a response that is kept without it would be served as if it had not been there.
pub fn connection_names_cache_field(fields: Fields<'_>) -> bool {
    const DECISIVE: [&str; 8] =
        ["cache-control", "cdn-cache-control", "vary", "expires", "age", "date", "etag", "last-modified"];
    let is_decisive = |name: &[u8]| DECISIVE.iter().any(|known| name.eq_ignore_ascii_case(known.as_bytes()));
    fields.filter(|field| field.is("connection")).any(|field| tokens(field.value).any(is_decisive))
}

/// Fields by which caches decide what they keep, for how long and for whom: those of HTTP, and those of products.
const CACHE_FIELDS: [&str; 17] = [
    "age",
    "authentication-info",
    "cache-control",
    "cdn-cache-control",
    "content-location",
    "date",
    "etag",
    "expires",
    "last-modified",
    "location",
    "pragma",
    "set-cookie",
    "surrogate-control",
    "vary",
    "warning",
    "www-authenticate",
    "x-accel-expires",
];

/// Whether caches decide by the field of this name.
pub fn is_cache_field(name: &[u8]) -> bool {
    CACHE_FIELDS.iter().any(|known| name.eq_ignore_ascii_case(known.as_bytes()))
}

/// Cache fields ([`is_cache_field`]) that are present and that `Connection` names.
pub fn cache_fields_in_connection(fields: Fields<'_>) -> impl Iterator<Item = &'static str> {
    let is_present = |name: &str, mut all: Fields<'_>| all.any(|field| field.is(name));
    let is_named = |name: &str, all| is_named_in_connection(all, name.as_bytes());
    CACHE_FIELDS
        .into_iter()
        .filter(move |name| is_named(name, fields.clone()) && is_present(name, fields.clone()))
}

/// A targeted cache-control field (RFC 9213), as far as it has been read.
#[derive(Debug, Clone, Copy)]
enum TargetedControl {
    /// Every line so far is a valid dictionary.
    Valid { directives: CacheControl, is_empty: bool },
    /// A line is not a dictionary, so the field is ignored (RFC 9213, 2.2).
    Invalid,
}

impl TargetedControl {
    fn with(self, line: &[u8]) -> Self {
        let TargetedControl::Valid { mut directives, is_empty } = self else { return self };
        match dictionary::members(line, |name, value| directives.set(name, value)) {
            Some(members) => TargetedControl::Valid { directives, is_empty: is_empty && members == 0 },
            None => TargetedControl::Invalid,
        }
    }
}

/// Fields of a response that matter to a cache, found in one walk and not yet parsed. The first of several with one name counts.
#[derive(Debug, Default)]
pub struct ResponseFields<'h> {
    /// `Cache-Control`, all of it.
    directives: CacheControl,
    /// `CDN-Cache-Control`, which replaces `Cache-Control` and `Expires` where it is valid (RFC 9213).
    targeted: Option<TargetedControl>,
    /// `Connection` names a field that decides how the response may be kept.
    is_hidden: bool,
    /// `Date`.
    pub date: Option<&'h [u8]>,
    /// `Age`.
    pub age: Option<&'h [u8]>,
    /// `Expires`.
    pub expires: Option<&'h [u8]>,
    /// `Last-Modified`.
    pub last_modified: Option<&'h [u8]>,
    /// `ETag`.
    pub etag: Option<&'h [u8]>,
    /// The response has a `Vary`.
    pub varies: bool,
}

impl<'h> ResponseFields<'h> {
    pub fn collect(fields: Fields<'h>) -> Self {
        let mut found = Self::default();
        for field in fields {
            found.add(&field);
        }
        found
    }

    pub fn add(&mut self, field: &Field<'h>) {
        // By length first: most fields of most responses are none of these.
        let value = match field.name.len() {
            3 if field.is("age") => &mut self.age,
            4 if field.is("date") => &mut self.date,
            4 if field.is("etag") => &mut self.etag,
            4 if field.is("vary") => return self.varies = true,
            7 if field.is("expires") => &mut self.expires,
            13 if field.is("cache-control") => return self.directives.add(field.value),
            13 if field.is("last-modified") => &mut self.last_modified,
            17 if field.is("cdn-cache-control") => {
                let empty = TargetedControl::Valid { directives: CacheControl::default(), is_empty: true };
                return self.targeted = Some(self.targeted.unwrap_or(empty).with(field.value));
            }
            _ => return,
        };
        value.get_or_insert(field.value);
    }

    /// `Age`, in seconds (0 when it is no number); none: there is none.
    pub fn age_s(&self) -> Option<u64> {
        self.age.map(age_value)
    }

    /// Marks the response as one that may not be kept, because `Connection` names a cache field ([`connection_names_cache_field`]).
    pub fn hide(&mut self) {
        self.is_hidden = true;
    }

    /// Effective directives: the targeted ones where they are valid.
    pub fn control(&self) -> CacheControl {
        let control = self.targeted_control().unwrap_or(self.directives);
        CacheControl { no_store: control.no_store || self.is_hidden, ..control }
    }

    fn targeted_control(&self) -> Option<CacheControl> {
        match self.targeted {
            Some(TargetedControl::Valid { directives, is_empty: false }) => Some(directives),
            _ => None,
        }
    }

    /// Metadata for the storing rules, without a default lifetime.
    pub fn facts(&self, status: u16, age_s: u64) -> ResponseFacts {
        let control = self.control();
        let has_last_modified = self.last_modified.and_then(date_s).is_some();
        ResponseFacts {
            status,
            date_s: self.date.and_then(date_s),
            age_s,
            expires: match self.expires.filter(|_| self.targeted_control().is_none()) {
                None => Expires::Absent,
                Some(text) => date_s(text).map_or(Expires::Invalid, Expires::At),
            },
            has_validator: has_last_modified || self.etag.is_some(),
            control: ResponseControl {
                max_age_s: control.max_age_s,
                s_maxage_s: control.s_maxage_s,
                no_store: control.no_store,
                no_cache: control.no_cache,
                private: control.private,
                public: control.public,
                must_revalidate: control.must_revalidate,
                proxy_revalidate: control.proxy_revalidate,
                stale_if_error_s: control.stale_if_error_s,
                stale_while_revalidate_s: control.stale_while_revalidate_s,
            },
            default_lifetime_s: 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_for_caches_that_connection_names_are_found_where_they_are_there() {
        let named = |fields: &str| {
            let text = format!("HTTP/1.1 200 OK\r\n{fields}\r\n");
            let (head, _) = ResponseHead::parse(text.as_bytes()).unwrap().unwrap();
            cache_fields_in_connection(head.headers()).collect::<Vec<_>>().join(" ")
        };
        let fields = "Vary: a\r\nETag: b\r\nX-Own: 1\r\nCache-Control: no-store\r\n";
        assert_eq!(named(fields), "");
        let connection =
            "Connection: close, VARY, x-own, age, vary\r\nConnection: cache-control, keep-alive\r\n";
        assert_eq!(named(&format!("{fields}{connection}")), "cache-control vary");
    }

    #[test]
    fn age_is_its_first_member_and_no_number_is_too_large() {
        for (text, age_s) in
            [("5", 5), ("7200, 0", 7200), ("99999999999999999999", u64::MAX), ("-1", 0), ("1.5", 0), ("", 0)]
        {
            assert_eq!(age_value(text.as_bytes()), age_s, "{text}");
        }
    }

    fn facts(fields: &str) -> ResponseFacts {
        let text = format!("HTTP/1.1 200 OK\r\n{fields}\r\n");
        let (head, _) = ResponseHead::parse(text.as_bytes()).unwrap().unwrap();
        response_facts(&head, age_s(&head).unwrap_or(0))
    }

    #[test]
    fn expires_that_is_no_date_means_expired() {
        assert_eq!(facts("").expires, Expires::Absent);
        assert_eq!(facts("Expires: 0\r\n").expires, Expires::Invalid);
        assert_eq!(facts("Expires: Thu, 01 Jan 1970 00:00:10 GMT\r\n").expires, Expires::At(10));
    }

    #[test]
    fn directives_of_several_lines_are_one_list_and_a_date_that_is_none_validates_nothing() {
        let facts =
            facts("Cache-Control: max-age=5\r\nAge: 3\r\nCache-Control: private\r\nLast-Modified: x\r\n");
        assert_eq!((facts.control.max_age_s, facts.control.private, facts.age_s), (Some(5), true, 3));
        assert!(!facts.has_validator);
    }

    #[test]
    fn a_targeted_field_takes_the_place_of_the_others_where_it_can_be_read() {
        let of = |text: &str| facts(&format!("Cache-Control: no-store\r\nExpires: 0\r\n{text}")).control;
        let heeded = of("CDN-Cache-Control: max-age=60, stale-while-revalidate=5\r\n");
        assert_eq!(
            (heeded.no_store, heeded.max_age_s, heeded.stale_while_revalidate_s),
            (false, Some(60), Some(5))
        );
        let lines = of("CDN-Cache-Control: max-age=60\r\nCDN-Cache-Control: private\r\n");
        assert!(lines.private && lines.max_age_s == Some(60));
        let alone = facts("Expires: Thu, 01 Jan 1970 00:00:10 GMT\r\nCDN-Cache-Control: public\r\n");
        assert_eq!(alone.expires, Expires::Absent);
        for ignored in ["", "max-age=60, &&", "max-age=60,", "Max-Age=60", "max-age=6x"] {
            assert!(of(&format!("CDN-Cache-Control: {ignored}\r\n")).no_store, "{ignored}");
        }
        assert!(of("CDN-Cache-Control: max-age=60\r\nCDN-Cache-Control: =\r\n").no_store);
        let other_types = of("CDN-Cache-Control: max-age=\"60\", s-maxage=30.5, no-store=1, public\r\n");
        assert_eq!(other_types, ResponseControl { public: true, ..ResponseControl::default() });
    }

    #[test]
    fn fields_that_connection_names_are_hidden_whatever_their_case_and_place() {
        let hides = |fields: &str| {
            let text = format!("HTTP/1.1 200 OK\r\n{fields}\r\n");
            let (head, _) = ResponseHead::parse(text.as_bytes()).unwrap().unwrap();
            connection_names_cache_field(head.headers())
        };
        assert!(hides("Connection: close\r\nCONNECTION: x ,cache-CONTROL\r\n"));
        assert!(hides("Connection: Vary\r\nVary: Cookie\r\n"));
        assert!(!hides("Connection: close, X-Own, Cache\r\nCache-Control: private\r\n"));
    }

    #[test]
    fn pragma_counts_only_without_cache_control() {
        assert!(request_control(None, true).no_cache && !request_control(None, false).no_cache);
        let directives = CacheControl::parse(std::iter::once(&b"max-age=5"[..]));
        let control = request_control(Some(directives), true);
        assert_eq!((control.no_cache, control.max_age_s), (false, Some(5)));
    }
}
