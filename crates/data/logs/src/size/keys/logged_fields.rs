//! What the formats of a log can tell of fields and cookies, and what its responses say that they vary by.

use std::collections::{BTreeSet, HashMap};

use crate::format::{ExtraField, Format, canonical_field_name, logging_hint};
use assay_cache::vary::Vary;

use super::fields::{COOKIE, RequestFields};
use super::pattern::glob;

/// Ignored where a log has the codings of responses: variants are told apart by these.
const ACCEPT_ENCODING: &str = "accept-encoding";
/// Fields that responses vary by and that are not logged: so many are named.
const MAX_NAMED: usize = 5;

/// Fields and cookies that the formats of a log contain.
#[derive(Debug, Default)]
pub struct LoggedFields {
    /// Header fields of requests.
    fields: BTreeSet<String>,
    /// Cookies that are logged by themselves.
    cookies: BTreeSet<String>,
    has_vary: bool,
    has_codings: bool,
    /// The `Vary` that was said last of each URL, which stands in `known`.
    by_url: HashMap<u64, u32>,
    known: Vec<Box<[Box<str>]>>,
    numbers: HashMap<Vec<u8>, Option<u32>>,
    /// Responses that vary by fields which the log does not have.
    blind: HashMap<String, u64>,
    /// Responses that serve no other request (`Vary: *`).
    never: u64,
}

/// Fields by which a response varies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum VariesBy<'v> {
    Fields(&'v [Box<str>]),
    /// `Vary: *`: the response serves no other request.
    Everything,
}

impl LoggedFields {
    /// Before the first line of a format; `has_vary`: what it says of variants counts.
    pub(crate) fn begin(&mut self, format: &Format, counts_vary: bool, has_codings: bool) {
        self.has_codings |= has_codings;
        for extra in format.extras() {
            match extra {
                ExtraField::Request(name) => {
                    self.fields.insert(name.to_owned());
                }
                ExtraField::Cookie(name) => {
                    self.cookies.insert(name.to_owned());
                }
                ExtraField::Vary => self.has_vary |= counts_vary,
                ExtraField::Validator => {}
            }
        }
    }

    /// The log says what responses vary by.
    pub(crate) fn has_vary(&self) -> bool {
        self.has_vary
    }

    /// The log has a header field.
    pub(super) fn has_field(&self, name: &str) -> bool {
        self.fields.contains(name)
    }

    /// The log has a cookie, or all of them.
    pub(super) fn has_cookie(&self, name: &str) -> bool {
        self.has_field(COOKIE)
            || self.cookies.iter().any(|known| glob(name.as_bytes(), known.as_bytes(), false))
    }

    /// The log has more fields of its requests than nearly every log.
    pub(super) fn tells_fields(&self) -> bool {
        !self.cookies.is_empty() || self.fields.iter().any(|name| !is_usual(name))
    }

    /// Fields by which the response to a request varies. One without `Vary`, such as a 304, varies by those of the
    /// last one for its URL.
    pub(crate) fn varies(&mut self, url: u64, fields: &RequestFields<'_>) -> VariesBy<'_> {
        if !self.has_vary {
            return VariesBy::Fields(&[]);
        }
        if !fields.vary.is_empty() {
            match self.number(fields.vary) {
                Some(number) => self.by_url.insert(url, number),
                None => {
                    self.never += 1;
                    return VariesBy::Everything;
                }
            };
        }
        let Some(number) = self.by_url.get(&url) else { return VariesBy::Fields(&[]) };
        let names = &self.known[*number as usize];
        for name in names.iter().filter(|name| !self.fields.contains(&***name)) {
            match self.blind.get_mut(&**name) {
                Some(times) => *times += 1,
                None => {
                    self.blind.insert(name.to_string(), 1);
                }
            }
        }
        VariesBy::Fields(names)
    }

    /// The number of a `Vary`; none: `*`.
    fn number(&mut self, vary: &[u8]) -> Option<u32> {
        if let Some(number) = self.numbers.get(vary) {
            return *number;
        }
        let names: Option<Vec<Box<str>>> = match Vary::parse([vary].into_iter()) {
            Vary::Everything => None,
            Vary::Nothing => Some(Vec::new()),
            Vary::Fields(names) => Some(names.into_vec()),
        };
        let number = names.map(|mut names| {
            // The variants are told apart by their codings.
            names.retain(|name| !self.has_codings || **name != *ACCEPT_ENCODING);
            self.known.push(names.into());
            (self.known.len() - 1) as u32
        });
        self.numbers.insert(vary.to_vec(), number);
        number
    }

    pub(crate) fn notes(&self) -> Vec<String> {
        let count = assay_base::settings::show::count;
        let mut notes = Vec::new();
        if self.has_vary {
            notes.push(
                "Variants of a response follow from Vary of the log, and are objects of their own.".into(),
            );
        }
        if self.never > 0 {
            notes.push(format!("{} responses serve no other request (Vary: *).", count(self.never)));
        }
        let mut blind: Vec<_> = self.blind.iter().collect();
        blind.sort_by(|a, b| b.1.cmp(a.1).then(a.0.cmp(b.0)));
        for (name, times) in blind.into_iter().take(MAX_NAMED) {
            notes.push(format!(
                "{} responses vary by {}, which the log does not have: their variants count as one object. Log it: {}.",
                count(*times),
                canonical_field_name(name),
                logging_hint(name)
            ));
        }
        notes
    }
}

/// A field that nearly every log has.
pub(super) fn is_usual(name: &str) -> bool {
    matches!(name, "user-agent" | "referer" | "host")
}

#[cfg(test)]
mod tests {
    use crate::access::Access;

    use super::*;

    fn names(varies: VariesBy<'_>) -> Option<Vec<&str>> {
        match varies {
            VariesBy::Fields(names) => Some(names.iter().map(|name| &**name).collect()),
            VariesBy::Everything => None,
        }
    }

    #[test]
    fn a_response_varies_by_what_it_says_or_by_what_the_last_one_for_its_url_said() {
        let format =
            Format::parse("$msec $status $request_uri \"$sent_http_vary\" \"$http_accept_language\"")
                .unwrap();
        let mut logged = LoggedFields::default();
        logged.begin(&format, true, false);
        let mut varies = |url, vary: &str| {
            let line = format!("1 200 /a \"{vary}\" \"en\"");
            let mut access = Access::default();
            format.read(line.as_bytes(), &mut access).unwrap();
            names(logged.varies(url, &RequestFields::of(&access, &format)))
                .map(|names| names.into_iter().map(str::to_owned).collect::<Vec<_>>())
        };
        assert_eq!(varies(1, "-"), Some(vec![]));
        let both = Some(vec!["accept-language".to_owned(), "cookie".to_owned()]);
        assert_eq!(varies(1, "Cookie, Accept-Language"), both);
        assert_eq!(varies(1, "-"), both);
        assert_eq!(varies(2, "-"), Some(vec![]));
        assert_eq!(varies(1, "*"), None);
        assert_eq!(varies(1, "Accept-Language"), Some(vec!["accept-language".to_owned()]));
        let notes = logged.notes().join(" ");
        assert!(notes.contains("2 responses vary by Cookie, which the log does not have"), "{notes}");
        assert!(notes.contains("$http_cookie") && notes.contains("1 responses serve no other"), "{notes}");
        assert!(!notes.contains("by Accept-Language"), "{notes}");
    }

    #[test]
    fn where_codings_are_logged_nothing_varies_by_accept_encoding() {
        let format = Format::parse("$msec $status $request_uri \"$sent_http_vary\"").unwrap();
        let line = b"1 200 /a \"Accept-Encoding\"";
        let mut access = Access::default();
        format.read(line, &mut access).unwrap();
        for (has_codings, expected) in [(true, vec![]), (false, vec!["accept-encoding"])] {
            let mut logged = LoggedFields::default();
            logged.begin(&format, true, has_codings);
            assert_eq!(names(logged.varies(1, &RequestFields::of(&access, &format))), Some(expected));
        }
        let mut ignoring = LoggedFields::default();
        ignoring.begin(&format, false, false);
        assert_eq!(names(ignoring.varies(1, &RequestFields::of(&access, &format))), Some(vec![]));
    }
}
