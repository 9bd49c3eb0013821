//! Comparison of the header fields of two responses.

use assay_http::date;
use assay_http::field::is_named_in_connection;
use assay_http::field::{Field, Fields, list};
use assay_http::head::ResponseHead;

use super::rules::{FieldComparison, Rules};

/// First field that differs: of the first response's fields in their order, then of those that only the other response has.
/// `is_partial`: the responses may omit fields (a 304, or a response to HEAD), so a field that only one has is no difference. The
/// field `except` is skipped, and so are those that `one` lists in `Connection`, which proxies remove.
pub fn difference<'b>(
    rules: &Rules,
    one: &ResponseHead<'b>,
    other: &ResponseHead<'b>,
    is_partial: bool,
    except: &str,
) -> Option<&'b [u8]> {
    let differs = |field: &Field<'b>| {
        if field.is(except) || is_named_in_connection(one.headers(), field.name) {
            return false;
        }
        let comparison = rules.comparison_for(field.name);
        let sides = [one.headers(), other.headers()].map(|fields| Side { fields, name: field.name });
        !are_same(comparison, &sides, [one, other], is_partial)
    };
    let names = Names { fields: one.headers(), all: one.headers() };
    if let Some(field) = names.into_iter().find(&differs) {
        return Some(field.name);
    }
    let names = Names { fields: other.headers(), all: other.headers() };
    let only_there = |field: &Field<'b>| !has(one.headers(), field.name);
    names.into_iter().filter(only_there).find(differs).map(|field| field.name)
}

fn has(fields: Fields<'_>, name: &[u8]) -> bool {
    fields.into_iter().any(|field| field.name.eq_ignore_ascii_case(name))
}

/// Distinct names of fields, in the order of their first occurrence.
struct Names<'b> {
    fields: Fields<'b>,
    all: Fields<'b>,
}

impl<'b> Iterator for Names<'b> {
    type Item = Field<'b>;

    fn next(&mut self) -> Option<Field<'b>> {
        loop {
            let field = self.fields.next()?;
            let mut all = self.all.clone();
            let first = all.find(|other| other.name.eq_ignore_ascii_case(field.name))?;
            // The first occurrence is the same slice of the head, not only the same text.
            if std::ptr::eq(first.name.as_ptr(), field.name.as_ptr()) {
                return Some(field);
            }
        }
    }
}

/// Values of one field in one response.
struct Side<'b> {
    fields: Fields<'b>,
    name: &'b [u8],
}

impl<'b> Side<'b> {
    fn values(&self) -> impl Iterator<Item = &'b [u8]> + use<'_, 'b> {
        let named = self.fields.clone().filter(|field| field.name.eq_ignore_ascii_case(self.name));
        named.map(|field| field.value)
    }

    fn is_there(&self) -> bool {
        self.values().next().is_some()
    }
}

fn are_same(
    comparison: &FieldComparison,
    [one, other]: &[Side<'_>; 2],
    heads: [&ResponseHead<'_>; 2],
    is_partial: bool,
) -> bool {
    let both = one.is_there() && other.is_there();
    match comparison {
        FieldComparison::Ignore => true,
        // A missing list counts as an empty one.
        FieldComparison::List { .. } if !both && is_partial => true,
        FieldComparison::List { without } => members(one, without) == members(other, without),
        FieldComparison::Length => !both || !is_partial || !same_coding(heads) || exact(one, other),
        FieldComparison::IfPresent => !both || exact(one, other),
        _ if !both => is_partial,
        FieldComparison::Exact => exact(one, other),
        FieldComparison::Weak => one.values().map(strong).eq(other.values().map(strong)),
        FieldComparison::Date { tolerance_s } => exact(one, other) || near(one, other, *tolerance_s),
    }
}

/// Several fields of one name equal one field with a list.
fn exact(one: &Side<'_>, other: &Side<'_>) -> bool {
    one.values().eq(other.values()) || joined(one) == joined(other)
}

fn joined(side: &Side<'_>) -> Vec<u8> {
    side.values().collect::<Vec<_>>().join(&b", "[..])
}

fn members<'b>(side: &Side<'b>, without: &[String]) -> Vec<Vec<u8>> {
    let all = side.values().flat_map(list).map(<[u8]>::to_ascii_lowercase);
    let mut all: Vec<_> =
        all.filter(|member| !without.iter().any(|name| name.as_bytes() == member)).collect();
    all.sort_unstable();
    all.dedup();
    all
}

/// Entity tag without its weakness prefix.
fn strong(value: &[u8]) -> &[u8] {
    value.strip_prefix(b"W/").unwrap_or(value)
}

fn near(one: &Side<'_>, other: &Side<'_>, tolerance_s: u64) -> bool {
    let at = |side: &Side<'_>| side.values().next().and_then(date::parse_date);
    match (at(one), at(other)) {
        (Some(one), Some(other)) => one.abs_diff(other) <= tolerance_s,
        _ => false,
    }
}

fn same_coding([one, other]: [&ResponseHead<'_>; 2]) -> bool {
    one.header("content-encoding") == other.header("content-encoding")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(one: &str, other: &str, is_partial: bool) -> Option<String> {
        let text = |fields: &str| format!("HTTP/1.1 200 OK\r\n{fields}\r\n");
        let (one, other) = (text(one), text(other));
        let parse = |text| ResponseHead::parse(text).unwrap().unwrap().0;
        let name = difference(
            &Rules::with_defaults(),
            &parse(one.as_bytes()),
            &parse(other.as_bytes()),
            is_partial,
            "",
        );
        name.map(|name| String::from_utf8(name.to_vec()).unwrap())
    }

    fn same(one: &str, other: &str) -> bool {
        found(one, other, false).is_none() && found(other, one, false).is_none()
    }

    #[test]
    fn what_proxies_say_about_themselves_is_no_difference() {
        let added = "Age: 5\r\nVia: 1.1 varnish\r\nX-Varnish: 1 2\r\nX-Cache: HIT\r\nX-Cache-Lookup: HIT\r\n\
                     Cache-Status: a; hit\r\nWarning: 110 - stale\r\nConnection: keep-alive\r\nAccept-Ranges: bytes\r\n\
                     Transfer-Encoding: chunked\r\nServer: ATS\r\nVary: Accept-Encoding\r\n";
        assert!(same("Date: Sun, 06 Nov 1994 08:49:37 GMT\r\nServer: x\r\nContent-Length: 5\r\n", added));
    }

    #[test]
    fn what_the_origin_names_in_connection_is_no_difference_whether_a_proxy_passes_it_on_or_not() {
        let direct =
            "Cache-Control: no-store\r\nVary: a\r\nX-A: 1\r\nConnection: close, vary, Cache-Control\r\n";
        for proxy in
            ["X-A: 1\r\n", "X-A: 1\r\nVary: a\r\n", "X-A: 1\r\nVary: b\r\nCache-Control: private\r\n"]
        {
            assert_eq!(found(direct, proxy, false), None, "{proxy}");
        }
        assert_eq!(found(direct, "Vary: a\r\n", false).as_deref(), Some("X-A"));
        let proxy = "X-A: 1\r\nConnection: x-a\r\n";
        assert_eq!(found("X-A: 2\r\n", proxy, false).as_deref(), Some("X-A"), "only the origin's counts");
    }

    #[test]
    fn lists_are_compared_in_any_order_and_entity_tags_weakly() {
        assert!(same("Vary: Accept, Cookie\r\n", "Vary: cookie\r\nVary: accept, accept-encoding\r\n"));
        assert!(!same("Vary: Accept\r\n", "Vary: Cookie\r\n"));
        assert!(same("Cache-Control: public, max-age=5\r\n", "Cache-Control: max-age=5,public\r\n"));
        assert!(same("ETag: \"a\"\r\n", "ETag: W/\"a\"\r\n"));
        assert!(!same("ETag: \"a\"\r\n", "ETag: \"b\"\r\n"));
    }

    #[test]
    fn dates_are_compared_with_a_tolerance_and_what_is_no_date_as_it_is() {
        let expires = |s| format!("Expires: Sun, 06 Nov 1994 08:49:{s} GMT\r\n");
        assert!(same(&expires("37"), &expires("38")));
        assert!(!same(&expires("37"), &expires("57")));
        assert!(same("Expires: 0\r\n", "Expires: 0\r\n"));
        assert!(!same("Expires: 0\r\n", "Expires: -1\r\n"));
    }

    #[test]
    fn a_last_modified_counts_to_the_second_in_whatever_form_it_is_written() {
        let modified = "Last-Modified: Sun, 06 Nov 1994 08:49:37 GMT\r\n";
        assert!(same(modified, "Last-Modified: Sunday, 06-Nov-94 08:49:37 GMT\r\n"));
        assert!(!same(modified, "Last-Modified: Sun, 06 Nov 1994 08:49:38 GMT\r\n"));
    }

    #[test]
    fn the_first_field_that_differs_is_named_as_its_owner_spells_it() {
        assert_eq!(
            found("X-A: 1\r\nX-B: 1\r\n", "X-A: 1\r\nx-b: 2\r\nX-C: 3\r\n", false).as_deref(),
            Some("X-B")
        );
        assert_eq!(found("X-A: 1\r\n", "x-a: 1\r\nX-New: 3\r\n", false).as_deref(), Some("X-New"));
        assert_eq!(found("X-A: 1\r\n", "x-a: 1\r\nX-New: 3\r\n", true), None);
    }

    #[test]
    fn several_fields_of_one_name_are_one_list_and_their_order_counts() {
        assert!(same("X-L: a\r\nX-L: b\r\n", "X-L: a, b\r\n"));
        assert!(!same("X-L: b\r\nX-L: a\r\n", "X-L: a, b\r\n"));
        assert!(!same("Set-Cookie: a=1\r\nSet-Cookie: b=1\r\n", "Set-Cookie: a=1\r\n"));
    }

    #[test]
    fn a_length_counts_only_where_there_is_no_body_to_count() {
        assert!(same("Content-Length: 5\r\n", "Content-Length: 6\r\n"));
        let other = found("Content-Length: 5\r\n", "Content-Length: 6\r\n", true);
        assert_eq!(other.as_deref(), Some("Content-Length"));
        assert_eq!(
            found("Content-Length: 5\r\n", "Content-Length: 6\r\nContent-Encoding: gzip\r\n", true),
            None
        );
    }
}
