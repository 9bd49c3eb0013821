//! Fields of a response that tell caches for how long they may keep it, compared with those that its origin sent.
//!
//! A proxy has to pass them on (RFC 9111, 5.2), but many can be told to replace them for the caches of their clients. So a
//! changed field is counted, and is no error.

use assay_http::cache_control::CacheControl;
use assay_http::date::parse_date;
use assay_http::head::ResponseHead;
use assay_workload::Life;
use assay_workload::model::Workload;

/// `Cache-Control` of an origin's response about an object. What never changes may be kept for a year, the longest time that
/// caches take seriously. Without a lifetime a cache would have to guess, and most guess that it must not keep it at all.
#[inline]
pub fn cache_control(cachable: bool, never_modified: bool) -> &'static str {
    match (cachable, never_modified) {
        (false, _) => "private, no-cache, no-store",
        (true, true) => "public, max-age=31536000",
        (true, false) => "public",
    }
}

/// True if a response can have such a field by the workload's own rules.
pub fn sets_cache_fields(workload: &Workload) -> bool {
    let servers = workload.servers.iter().flat_map(|server| &server.headers);
    let contents = workload.contents.iter().flat_map(|content| &content.headers);
    servers.chain(contents).flat_map(|rule| &rule.fields).any(|(name, _)| {
        ["Cache-Control", "Expires", "Last-Modified"].iter().any(|field| name.eq_ignore_ascii_case(field))
    })
}

/// What these fields say. None: the field is absent, or is no date. Dates are in seconds since the start of the run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CacheFields {
    pub cache_control: Option<CacheControl>,
    pub expires_s: Option<i64>,
    pub last_modified_s: Option<i64>,
}

/// Which of them are not as the origin sent them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ChangedFields {
    pub cache_control: bool,
    pub expires: bool,
    pub last_modified: bool,
}

impl CacheFields {
    /// Those of a received head, in a run that began at `start_unix_s`.
    pub fn of_head(head: &ResponseHead<'_>, start_unix_s: u64) -> Self {
        let mut fields = Self { cache_control: None, expires_s: None, last_modified_s: None };
        let second = |value| parse_date(value).map(|unix_s| unix_s as i64 - start_unix_s as i64);
        for field in head.headers() {
            match field.name.len() {
                7 if field.is("Expires") => fields.expires_s = second(field.value),
                13 if field.is("Cache-Control") => {
                    fields.cache_control.get_or_insert_default().add(field.value);
                }
                13 if field.is("Last-Modified") => fields.last_modified_s = second(field.value),
                _ => {}
            }
        }
        fields
    }

    /// Those that an origin sends with an object.
    pub fn of_origin(cachable: bool, life: &Life) -> Self {
        let cache_control = cache_control(cachable, life.next_modified_s.is_none());
        Self {
            cache_control: Some(CacheControl::parse([cache_control.as_bytes()])),
            expires_s: life.expires_s.filter(|_| cachable),
            last_modified_s: life.last_modified_s.filter(|_| cachable),
        }
    }

    /// Those that differ from what the origin sent. A confirmation (304) may leave fields out, though it should not
    /// (RFC 9110, 15.4.5).
    pub fn changed_from(&self, sent: &Self, is_confirmation: bool) -> ChangedFields {
        fn differs<T: PartialEq>(received: &Option<T>, sent: &Option<T>, is_confirmation: bool) -> bool {
            received != sent && !(received.is_none() && is_confirmation)
        }
        ChangedFields {
            cache_control: differs(&self.cache_control, &sent.cache_control, is_confirmation),
            expires: differs(&self.expires_s, &sent.expires_s, is_confirmation),
            last_modified: differs(&self.last_modified_s, &sent.last_modified_s, is_confirmation),
        }
    }
}

impl ChangedFields {
    /// Names of those that changed.
    pub fn names(self) -> impl Iterator<Item = &'static str> {
        [
            (self.cache_control, "Cache-Control"),
            (self.expires, "Expires"),
            (self.last_modified, "Last-Modified"),
        ]
        .into_iter()
        .filter_map(|(is_changed, name)| is_changed.then_some(name))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn changed(fields: &str, is_confirmation: bool) -> Vec<&'static str> {
        let text = format!("HTTP/1.1 200 OK\r\n{fields}\r\n");
        let (head, _) = ResponseHead::parse(text.as_bytes()).expect("is HTTP").expect("is complete");
        let life = Life {
            last_modified_s: Some(-10),
            expires_s: Some(20),
            next_modified_s: Some(30),
            ..Life::default()
        };
        let sent = CacheFields::of_origin(true, &life);
        CacheFields::of_head(&head, 784_111_777).changed_from(&sent, is_confirmation).names().collect()
    }

    #[test]
    fn a_field_that_says_something_else_is_changed_and_one_that_is_written_differently_is_not() {
        let dates =
            "Last-Modified: Sun, 06 Nov 1994 08:49:27 GMT\r\nExpires: Sun, 06 Nov 1994 08:49:57 GMT\r\n";
        assert_eq!(changed(&format!("{dates}cache-control: PUBLIC,\r\n"), false), [""; 0]);
        let later = dates.replace("49:57", "50:57");
        assert_eq!(changed(&format!("{later}Cache-Control: public\r\n"), false), ["Expires"]);
        assert_eq!(
            changed(&format!("{dates}Cache-Control: public, max-age=5\r\n"), false),
            ["Cache-Control"]
        );
        assert_eq!(changed("Expires: 0\r\n", false), ["Cache-Control", "Expires", "Last-Modified"]);
        assert_eq!(changed("", true), [""; 0]);
        assert_eq!(changed("Cache-Control: no-store\r\n", true), ["Cache-Control"]);
    }

    #[test]
    fn origins_let_caches_keep_what_never_changes_for_long_and_nobody_what_is_private() {
        let said = |cachable, life| CacheFields::of_origin(cachable, &life).cache_control.expect("is sent");
        let life = Life { expires_s: Some(20), ..Life::default() };
        assert_eq!(said(true, life).max_age_s, Some(31_536_000));
        let private = CacheFields::of_origin(false, &life);
        assert!(said(false, life).no_store && private.expires_s.is_none());
    }
}
