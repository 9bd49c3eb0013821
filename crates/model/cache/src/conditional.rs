//! Conditional requests and 304 responses, held against what is stored (RFC 9111, 3.2 and 4.3; RFC 9110, 13).

/// Validators of a stored response: each names a version of a representation.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Validators<'a> {
    /// `ETag`, as sent.
    pub etag: Option<&'a [u8]>,
    /// `Last-Modified`, in Unix seconds.
    pub last_modified_s: Option<i64>,
}

/// The conditions of a request that a cache evaluates itself.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Conditions<'a> {
    /// `If-None-Match`, as sent.
    pub if_none_match: Option<&'a [u8]>,
    /// `If-Modified-Since`, in Unix seconds; none also when it is not a date.
    pub if_modified_since_s: Option<i64>,
}

/// The condition of `If-Range`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IfRange<'a> {
    /// An entity tag, as sent.
    Tag(&'a [u8]),
    /// A date, in Unix seconds; none when it is not a date.
    Date(Option<i64>),
}

impl IfRange<'_> {
    /// True when parts of a representation with these validators, made at `date_s`, may be sent (RFC 9110, 13.1.5). Parts are put
    /// together, so only a strong validator will do: a strong tag, or a date of modification before the representation was made.
    pub fn holds(&self, stored: &Validators<'_>, date_s: Option<i64>) -> bool {
        match *self {
            IfRange::Tag(tag) => stored.etag.is_some_and(|etag| strong_equal(tag, etag)),
            IfRange::Date(requested_s) => match (requested_s, stored.last_modified_s, date_s) {
                (Some(requested_s), Some(modified_s), Some(date_s)) => {
                    requested_s == modified_s && date_s > modified_s
                }
                _ => false,
            },
        }
    }
}

impl Conditions<'_> {
    /// True when the response is 304 for a representation with these validators. `If-None-Match` wins, and a
    /// date is compared with `Last-Modified` only: without that, the whole response is sent.
    pub fn are_not_modified(&self, stored: &Validators<'_>) -> bool {
        match (self.if_none_match, self.if_modified_since_s) {
            (Some(tags), _) => matches_any(tags, stored.etag),
            (None, Some(since_s)) => stored.last_modified_s.is_some_and(|modified_s| modified_s <= since_s),
            (None, None) => false,
        }
    }
}

/// Whether a 304 with the validators `newer` confirms the stored response that the validation was made from
/// (4.3.4). A 304 without validators confirms the response that was to be validated.
pub fn confirms(newer: &Validators<'_>, stored: &Validators<'_>) -> bool {
    match (newer.etag, stored.etag) {
        (Some(new), Some(old)) => weak_equal(new, old),
        // A tag where there was none cannot be compared; the date can.
        _ => match (newer.last_modified_s, stored.last_modified_s) {
            (Some(new), Some(old)) => new == old,
            _ => true,
        },
    }
}

/// Whether a field of a 304 replaces the stored field of that name (3.2). Fields that describe the stored bytes stay.
pub fn is_updated(name: &[u8]) -> bool {
    const KEPT: [&[u8]; 4] = [b"content-length", b"content-encoding", b"content-type", b"content-range"];
    !KEPT.iter().any(|kept| name.eq_ignore_ascii_case(kept))
}

/// Whether the list of entity tags names this one (weak comparison), or is `*`.
fn matches_any(list: &[u8], etag: Option<&[u8]>) -> bool {
    if list.trim_ascii() == b"*" {
        return true;
    }
    let Some(etag) = etag else { return false };
    let mut rest = list;
    while let Some((tag, after)) = next_tag(rest) {
        if weak_equal(tag, etag) {
            return true;
        }
        rest = after;
    }
    false
}

/// The next entity tag of a list, and what follows it; tags may hold commas, so they are found by their
/// quotes.
fn next_tag(list: &[u8]) -> Option<(&[u8], &[u8])> {
    let open = list.iter().position(|&b| b == b'"')?;
    let length = list[open + 1..].iter().position(|&b| b == b'"')?;
    let end = open + 1 + length + 1;
    Some((&list[open..end], &list[end..]))
}

/// Weak comparison: `W/` is ignored (RFC 9110, 8.8.3.2).
fn weak_equal(a: &[u8], b: &[u8]) -> bool {
    opaque(a) == opaque(b)
}

/// Strong comparison: neither tag is weak, and both are the same.
fn strong_equal(a: &[u8], b: &[u8]) -> bool {
    let (a, b) = (a.trim_ascii(), b.trim_ascii());
    a.starts_with(b"\"") && a == b
}

fn opaque(tag: &[u8]) -> &[u8] {
    let tag = tag.trim_ascii();
    tag.strip_prefix(b"W/").unwrap_or(tag)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tagged(etag: &[u8]) -> Validators<'_> {
        Validators { etag: Some(etag), last_modified_s: Some(100) }
    }

    fn none_match(tags: &[u8]) -> Conditions<'_> {
        Conditions { if_none_match: Some(tags), if_modified_since_s: None }
    }

    #[test]
    fn a_date_at_or_after_the_modification_gets_a_304() {
        let stored = Validators { etag: None, last_modified_s: Some(100) };
        let since = |s| Conditions { if_none_match: None, if_modified_since_s: Some(s) };
        assert!(!since(99).are_not_modified(&stored));
        assert!(since(100).are_not_modified(&stored));
        assert!(since(101).are_not_modified(&stored));
        assert!(!since(101).are_not_modified(&Validators::default()));
        assert!(!Conditions::default().are_not_modified(&stored));
    }

    #[test]
    fn tags_are_compared_weakly_and_win_over_dates() {
        assert!(none_match(b"\"a\", W/\"b,c\"").are_not_modified(&tagged(b"\"b,c\"")));
        assert!(none_match(b"*").are_not_modified(&Validators::default()));
        assert!(!none_match(b"\"a\"").are_not_modified(&tagged(b"\"b\"")));
        assert!(!none_match(b"\"a\"").are_not_modified(&Validators::default()));
        let both = Conditions { if_none_match: Some(b"\"x\""), if_modified_since_s: Some(1000) };
        assert!(!both.are_not_modified(&tagged(b"\"b\"")));
        assert!(!none_match(b"\"open").are_not_modified(&tagged(b"\"open\"")));
    }

    #[test]
    fn parts_are_sent_only_of_what_is_certainly_the_same() {
        let strong = tagged(b"\"a\"");
        assert!(IfRange::Tag(b"\"a\"").holds(&strong, None));
        assert!(!IfRange::Tag(b"\"b\"").holds(&strong, None));
        assert!(!IfRange::Tag(b"W/\"a\"").holds(&tagged(b"W/\"a\""), None), "weak tags name no bytes");
        assert!(!IfRange::Tag(b"\"a\"").holds(&Validators::default(), None));
        let at = |requested_s, date_s| IfRange::Date(requested_s).holds(&strong, date_s);
        assert!(at(Some(100), Some(101)));
        assert!(!at(Some(101), Some(200)), "a later date is another date");
        assert!(!at(Some(100), Some(100)), "it may have been modified again in that second");
        assert!(!at(None, Some(200)) && !at(Some(100), None));
    }

    #[test]
    fn a_304_confirms_what_its_validators_name() {
        let stored = tagged(b"\"a\"");
        assert!(confirms(&Validators::default(), &stored));
        assert!(confirms(&tagged(b"W/\"a\""), &stored));
        assert!(!confirms(&tagged(b"\"b\""), &stored));
        let dated = |s| Validators { etag: None, last_modified_s: Some(s) };
        assert!(confirms(&dated(100), &stored));
        assert!(!confirms(&dated(101), &stored));
    }

    #[test]
    fn a_304_updates_all_but_what_describes_the_stored_bytes() {
        assert!(is_updated(b"Expires") && is_updated(b"X-Assay"));
        assert!(!is_updated(b"Content-Length") && !is_updated(b"content-type"));
    }
}
