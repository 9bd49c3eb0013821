//! Which parameters, fields and cookies split objects: for each, the hits that a cache without bounds would gain if its key left it out,
//! and whether what it would then take for one object is one; and what it would lose or gain with those that are not in its key.

use std::collections::HashMap;

use crate::hash::hash_on;

use super::fields::RequestFields;
use super::logged_fields::is_usual;
use super::rules::{KeyRules, NameRule, name, parameters};

/// Names that are watched for each rule; further ones are counted and not examined.
const MAX_NAMES: usize = 64;
/// Longer names are not examined: they are no names.
const MAX_NAME_BYTES: usize = 64;
/// Requests that a change must turn into hits to be worth a word, as a share of all: a tenth of a point.
const MIN_GAIN: f64 = 0.001;
/// Of the requests that would be hits, the share whose object must have the same length and validator.
const MIN_ALIKE: f64 = 0.99;

/// A change of the key.
#[derive(Debug)]
struct KeyVariant {
    rules: KeyRules,
    /// Response to the last request under each key.
    last: HashMap<u64, u64>,
    requests: u64,
    gained: u64,
    lost: u64,
    different: u64,
}

/// A change of the key that matters.
#[derive(Debug, Clone, PartialEq)]
pub struct KeySuggestion {
    /// Rule of the key: `drop utm_source`, `sort query`, `vary accept-language`.
    pub rule: String,
    /// The rule leaves something out of the key; false: it adds something.
    pub leaves_out: bool,
    /// Requests that have the parameter, field or cookie, or several parameters.
    pub requests: u64,
    /// Misses of a cache without bounds that would be hits, of an object with the same length and validator.
    pub gained: u64,
    /// Hits that would be misses.
    pub lost: u64,
    /// Misses that would be hits by key, of an object with another length or validator: it may be another one.
    pub different: u64,
}

impl KeySuggestion {
    /// True if requests that would share a key nearly always have the same length and validator.
    pub fn is_safe(&self) -> bool {
        let apart = if self.leaves_out { self.different + self.lost } else { 0 };
        self.gained as f64 >= MIN_ALIKE * (self.gained + apart) as f64
    }
}

/// A request for a whole object.
#[derive(Debug, Clone, Copy)]
pub struct WholeRequest<'a> {
    /// Host, path and query of its URL.
    pub url: (&'a [u8], &'a [u8], &'a [u8]),
    pub fields: &'a RequestFields<'a>,
    /// Fields by which the response varies.
    pub varies: &'a [Box<str>],
    /// Bytes of the response.
    pub bytes: u64,
}

impl WholeRequest<'_> {
    fn key(&self, rules: &KeyRules) -> u64 {
        let (host, path, query) = self.url;
        rules.variant(rules.key(host, path, query), self.fields, self.varies)
    }

    /// Stands for the response: its length, and its validator if the log has it.
    fn response(&self) -> u64 {
        let validator = self.fields.validator;
        if validator.is_empty() { self.bytes } else { hash_on(self.bytes, validator) }
    }
}

/// Lookup under the current key, in a cache without bounds.
#[derive(Debug, Clone, Copy)]
struct CurrentKey<'k> {
    is_hit: bool,
    /// Responses under that key, which is the same for a request that a change does not concern.
    last: &'k HashMap<u64, u64>,
}

impl KeyVariant {
    fn new(rules: KeyRules) -> Self {
        Self { rules, last: HashMap::new(), requests: 0, gained: 0, lost: 0, different: 0 }
    }

    /// A request that the change is for.
    fn take(&mut self, request: &WholeRequest<'_>, own: CurrentKey<'_>) {
        let (key, response) = (request.key(&self.rules), request.response());
        let before = self.last.insert(key, response).or_else(|| own.last.get(&key).copied());
        self.requests += 1;
        match (own.is_hit, before) {
            (false, Some(before)) if before == response => self.gained += 1,
            (false, Some(_)) => self.different += 1,
            (true, before) if before != Some(response) => self.lost += 1,
            _ => {}
        }
    }

    fn suggestion(&self, rule: String, leaves_out: bool) -> KeySuggestion {
        let Self { requests, gained, lost, different, .. } = *self;
        KeySuggestion { rule, leaves_out, requests, gained, lost, different }
    }
}

/// Collects what requests show.
#[derive(Debug)]
pub struct KeySuggester {
    own: KeyRules,
    /// Responses under the key as it is.
    last: HashMap<u64, u64>,
    by_name: HashMap<NameRule, HashMap<Vec<u8>, KeyVariant>>,
    sorted: KeyVariant,
    requests: u64,
    /// Names that came when there were enough.
    unexamined: u64,
}

impl KeySuggester {
    /// Nothing yet; `own` are the rules that the key has already.
    pub fn new(own: KeyRules) -> Self {
        let own = own.by_parameter();
        let sorted = KeyVariant::new(own.and_sort());
        let by_name = NameRule::ALL.into_iter().map(|rule| (rule, HashMap::new())).collect();
        Self { own, last: HashMap::new(), by_name, sorted, requests: 0, unexamined: 0 }
    }

    /// A request for a whole object.
    pub fn take(&mut self, request: &WholeRequest<'_>) {
        self.requests += 1;
        let key = request.key(&self.own);
        let is_hit = self.last.get(&key) == Some(&request.response());
        let names = deduplicated(parameters(request.url.2).map(name));
        for one in &names {
            self.change(NameRule::Drop, one, request, is_hit);
        }
        if names.len() > 1 {
            self.sorted.take(request, CurrentKey { is_hit, last: &self.last });
        }
        for name in deduplicated(request.fields.fields.iter().map(|(name, _)| *name)) {
            if self.own.has_field(name, request.varies) {
                self.change(NameRule::IgnoreField, name.as_bytes(), request, is_hit);
            } else if !is_usual(name) {
                self.change(NameRule::Vary, name.as_bytes(), request, is_hit);
            }
        }
        for name in deduplicated(request.fields.cookies.iter().map(|(name, _)| *name)) {
            let is_in = self.own.has_cookie(name, request.varies);
            self.change(if is_in { NameRule::IgnoreCookie } else { NameRule::Cookie }, name, request, is_hit);
        }
        self.last.insert(key, request.response());
    }

    /// Counts the effect of a changed key on a request.
    fn change(&mut self, rule: NameRule, name: &[u8], request: &WholeRequest<'_>, is_hit: bool) {
        let Some(changes) = self.by_name.get_mut(&rule) else { return };
        if !changes.contains_key(name) {
            let text = std::str::from_utf8(name).ok().filter(|text| is_plain(text));
            let Some(text) = text.filter(|_| changes.len() < MAX_NAMES) else {
                self.unexamined += 1;
                return;
            };
            changes.insert(name.to_vec(), KeyVariant::new(self.own.and(rule, text)));
        }
        if let Some(change) = changes.get_mut(name) {
            change.take(request, CurrentKey { is_hit, last: &self.last });
        }
    }

    /// Suggestions, those with the most hits first; and how often a name was not examined.
    pub fn finish(self) -> (Vec<KeySuggestion>, u64) {
        let least = (self.requests as f64 * MIN_GAIN).max(1.0);
        let of_names = self.by_name.iter().flat_map(|(rule, changes)| {
            let leaves_out = !matches!(rule, NameRule::Vary | NameRule::Cookie);
            changes.iter().map(move |(name, change)| {
                let name = String::from_utf8_lossy(name);
                change.suggestion(format!("{} {name}", rule.verb()), leaves_out)
            })
        });
        let mut found: Vec<KeySuggestion> =
            of_names.chain([self.sorted.suggestion("sort query".into(), true)]).collect();
        // What would be lost is of interest where the log cannot say whether the key has it.
        let worth = |found: &KeySuggestion| {
            if found.leaves_out { found.gained } else { found.gained.max(found.lost) }
        };
        found.retain(|suggestion| worth(suggestion) as f64 >= least);
        found.sort_by(|a, b| worth(b).cmp(&worth(a)).then(a.rule.cmp(&b.rule)));
        (found, self.unexamined)
    }
}

/// Names, of which a request may have some twice.
fn deduplicated<N: Ord>(names: impl Iterator<Item = N>) -> Vec<N> {
    let mut names: Vec<N> = names.collect();
    names.sort_unstable();
    names.dedup();
    names
}

/// A name that can be written into a rule.
fn is_plain(text: &str) -> bool {
    (1..=MAX_NAME_BYTES).contains(&text.len())
        && text.chars().all(|c| c.is_ascii_graphic() && !matches!(c, ',' | ';' | '*'))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn take(suggest: &mut KeySuggester, url: (&str, &str, &str), fields: &RequestFields<'_>, bytes: u64) {
        let url = (url.0.as_bytes(), url.1.as_bytes(), url.2.as_bytes());
        suggest.take(&WholeRequest { url, fields, varies: &[], bytes });
    }

    fn by_rule<'f>(found: &'f [KeySuggestion], rule: &str) -> Option<&'f KeySuggestion> {
        found.iter().find(|suggestion| suggestion.rule == rule)
    }

    #[test]
    fn a_parameter_that_changes_nothing_is_found_with_what_it_costs_and_one_that_matters_is_not_safe() {
        let mut suggest = KeySuggester::new(KeyRules::default());
        for number in 0..200u64 {
            let (page, source) = (number % 10, number / 10);
            let query = format!("page={page}&utm_source={source}");
            take(&mut suggest, ("h", "/list", &query), &RequestFields::default(), 1000 + page);
        }
        let (found, unexamined) = suggest.finish();
        assert_eq!(unexamined, 0);
        let source = by_rule(&found, "drop utm_source").unwrap();
        // Ten pages are missed once each; the other 190 requests would be hits.
        assert_eq!((source.requests, source.gained, source.different), (200, 190, 0));
        assert!(source.is_safe() && by_rule(&found, "drop page").is_none_or(|page| !page.is_safe()));
    }

    #[test]
    fn a_field_or_a_cookie_in_the_key_is_found_with_what_it_costs_and_one_outside_with_what_it_would_cost() {
        // Two pages in two languages, for twenty sessions.
        let requests = |rules: &str, varies: &[Box<str>]| {
            let mut suggest = KeySuggester::new(KeyRules::parse(rules).unwrap());
            for number in 0..200u64 {
                let (page, language, session) = (number % 2, number / 2 % 2, (number / 10).to_string());
                let path = format!("/{page}");
                let fields = RequestFields {
                    fields: vec![("accept-language", if language == 0 { &b"en"[..] } else { b"de" })],
                    cookies: vec![(b"sid", session.as_bytes())],
                    ..RequestFields::default()
                };
                let (url, bytes) = ((&b"h"[..], path.as_bytes(), &b""[..]), 1000 + 10 * page + language);
                suggest.take(&WholeRequest { url, fields: &fields, varies, bytes });
            }
            suggest.finish().0
        };
        // The session alone splits: each of 20 misses its four variants, of which only the first four had to be.
        let found = requests("cookie sid", &["accept-language".into()]);
        let session = by_rule(&found, "ignore cookie sid").unwrap();
        assert_eq!((session.requests, session.gained, session.lost, session.is_safe()), (200, 76, 0, true));
        assert!(by_rule(&found, "ignore field accept-language").is_none_or(|field| !field.is_safe()));
        // Outside the key, the language is seen by the length that changes with it, and the session costs.
        let found = requests("", &[]);
        let language = by_rule(&found, "vary accept-language").unwrap();
        assert_eq!((language.gained, language.lost, language.leaves_out), (196, 0, false), "{found:?}");
        let found = requests("vary accept-language", &[]);
        let session = by_rule(&found, "cookie sid").unwrap();
        assert_eq!((session.gained, session.lost), (0, 76));
        assert_eq!(by_rule(&found, "vary accept-language"), None, "the key has it");
    }

    #[test]
    fn equal_lengths_with_other_validators_are_different_objects() {
        let mut suggest = KeySuggester::new(KeyRules::default());
        for number in 0..40u64 {
            let (query, tag) = (format!("id={number}"), format!("\"{number}\""));
            let fields = RequestFields { validator: tag.as_bytes(), ..RequestFields::default() };
            take(&mut suggest, ("h", "/", &query), &fields, 9);
        }
        assert_eq!(suggest.finish().0, []);
    }

    #[test]
    fn the_order_of_parameters_is_found_and_a_key_that_has_a_rule_already_gains_nothing_by_it() {
        let list = ["a=1&b=2", "b=2&a=1", "a=1&b=2", "b=2&a=1"];
        let found = |rules: &str| {
            let mut suggest = KeySuggester::new(KeyRules::parse(rules).unwrap());
            list.iter().for_each(|query| take(&mut suggest, ("h", "/", query), &RequestFields::default(), 9));
            suggest.finish().0
        };
        let sorted: Vec<_> =
            found("").into_iter().filter(|s| s.rule == "sort query").map(|s| s.gained).collect();
        assert_eq!(sorted, [1]);
        assert_eq!(found("sort query"), []);
    }

    proptest::proptest! {
        #[test]
        fn the_same_request_twice_suggests_no_other_key(
            rules in "(drop [a-c*]{1,3}|sort query|lower host|vary [a-c]|cookie [a-c*]{1,2})?",
            (host, path) in (".{0,5}", ".{0,9}"), query in "[a-c=&;]{0,20}", field in "[a-c]", cookie in "[a-c]",
        ) {
            let mut suggest = KeySuggester::new(KeyRules::parse(&rules).unwrap());
            let fields = RequestFields {
                fields: vec![(&field, b"x")],
                // A client may send one twice.
                cookies: vec![(cookie.as_bytes(), b"y"), (b"a", b"y"), (b"a", b"z")],
                ..RequestFields::default()
            };
            for _ in 0..2 {
                take(&mut suggest, (&host, &path, &query), &fields, 9);
            }
            proptest::prop_assert_eq!(suggest.finish().0, []);
        }
    }

    #[test]
    fn names_beyond_those_that_are_watched_are_counted() {
        let mut suggest = KeySuggester::new(KeyRules::default());
        for number in 0..MAX_NAMES + 5 {
            take(&mut suggest, ("h", "/", &format!("p{number}=1")), &RequestFields::default(), 9);
        }
        assert_eq!(suggest.finish().1, 5);
    }
}
