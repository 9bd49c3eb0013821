//! Which parameters split objects: for each, the hits that a cache without bounds would gain if its key left it out, and whether
//! what it would then take for one object has one length.

use std::collections::HashMap;

use super::normal::{KeyRules, name, parameters};

/// Parameters that are watched; further ones are counted and not examined.
const MOST_NAMES: usize = 64;
/// Longer names are not examined: they are no names.
const LONGEST_NAME: usize = 64;
/// Requests that a change must turn into hits to be worth a word, as a share of all: a tenth of a point.
const WORTH: f64 = 0.001;
/// Of the requests that would be hits, the share whose object must have the same length.
const ALIKE: f64 = 0.99;

/// A change of the key.
#[derive(Debug)]
struct Change {
    rules: KeyRules,
    /// Length of the object that was requested last under each key.
    lengths: HashMap<u64, u64>,
    requests: u64,
    alike: u64,
    different: u64,
}

/// A change of the key that would gain hits.
#[derive(Debug, Clone, PartialEq)]
pub struct Suggestion {
    /// What the key would do: `drop utm_source`, `sort query`.
    pub rule: String,
    /// Requests that have the parameter, or a query.
    pub requests: u64,
    /// Misses of a cache without bounds that would be hits, of an object with the same length.
    pub gained: u64,
    /// Those that would be hits by key, of an object with another length: it may be another one.
    pub different: u64,
}

impl Suggestion {
    /// What would be taken for one object has the same length, nearly always.
    pub fn is_safe(&self) -> bool {
        self.gained as f64 >= ALIKE * (self.gained + self.different) as f64
    }
}

/// Collects what requests show.
#[derive(Debug)]
pub struct Suggest {
    own: KeyRules,
    /// Lengths under the key as it is.
    lengths: HashMap<u64, u64>,
    by_name: HashMap<Vec<u8>, Change>,
    sorted: Change,
    requests: u64,
    /// Names that came when there were enough.
    unexamined: u64,
}

impl Change {
    fn new(rules: KeyRules) -> Self {
        Self { rules, lengths: HashMap::new(), requests: 0, alike: 0, different: 0 }
    }

    /// A request that the change is for. `known` has lengths under the key as it is, which is the same for a URL that the change
    /// does not concern.
    fn take(&mut self, url: (&[u8], &[u8], &[u8]), bytes: u64, is_miss: bool, known: &HashMap<u64, u64>) {
        let key = self.rules.key(url.0, url.1, url.2);
        let before = self.lengths.insert(key, bytes).or_else(|| known.get(&key).copied());
        self.requests += 1;
        match before.filter(|_| is_miss) {
            Some(length) if length == bytes => self.alike += 1,
            Some(_) => self.different += 1,
            None => {}
        }
    }

    fn suggestion(&self, rule: String) -> Suggestion {
        Suggestion { rule, requests: self.requests, gained: self.alike, different: self.different }
    }
}

impl Suggest {
    /// Nothing yet; `own` are the rules that the key has already.
    pub fn new(own: KeyRules) -> Self {
        let own = own.by_parameter();
        let sorted = Change::new(own.and_sort());
        Self { own, lengths: HashMap::new(), by_name: HashMap::new(), sorted, requests: 0, unexamined: 0 }
    }

    /// A request for a whole object.
    pub fn take(&mut self, host: &[u8], path: &[u8], query: &[u8], bytes: u64) {
        self.requests += 1;
        let url = (host, path, query);
        let key = self.own.key(host, path, query);
        let is_miss = self.lengths.get(&key) != Some(&bytes);
        let mut names: Vec<&[u8]> = parameters(query).map(name).collect();
        names.sort_unstable();
        names.dedup();
        for one in &names {
            if !self.by_name.contains_key(*one) && !self.watch(one) {
                self.unexamined += 1;
            } else if let Some(change) = self.by_name.get_mut(*one) {
                change.take(url, bytes, is_miss, &self.lengths);
            }
        }
        if names.len() > 1 {
            self.sorted.take(url, bytes, is_miss, &self.lengths);
        }
        self.lengths.insert(key, bytes);
    }

    /// Begins to examine a parameter; false: there are enough, or its name cannot be written into a rule.
    fn watch(&mut self, name: &[u8]) -> bool {
        let text = std::str::from_utf8(name).ok().filter(|text| text.len() <= LONGEST_NAME && is_plain(text));
        let Some(text) = text.filter(|_| self.by_name.len() < MOST_NAMES) else { return false };
        self.by_name.insert(name.to_vec(), Change::new(self.own.and_drop(text)));
        true
    }

    /// What is worth a word, the most hits first; and how often a name was not examined.
    pub fn finish(self) -> (Vec<Suggestion>, u64) {
        let least = (self.requests as f64 * WORTH).max(1.0);
        let of_names = self
            .by_name
            .iter()
            .map(|(name, change)| change.suggestion(format!("drop {}", String::from_utf8_lossy(name))));
        let mut found: Vec<Suggestion> =
            of_names.chain([self.sorted.suggestion("sort query".into())]).collect();
        found.retain(|suggestion| suggestion.gained as f64 >= least);
        found.sort_by(|a, b| b.gained.cmp(&a.gained).then(a.rule.cmp(&b.rule)));
        (found, self.unexamined)
    }
}

/// A name that can be written into a rule.
fn is_plain(text: &str) -> bool {
    !text.is_empty() && text.chars().all(|c| c.is_ascii_graphic() && !matches!(c, ',' | ';' | '*'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_parameter_that_changes_nothing_is_found_with_what_it_costs_and_one_that_matters_is_not_safe() {
        let mut suggest = Suggest::new(KeyRules::default());
        for number in 0..200u64 {
            let (page, source) = (number % 10, number / 10);
            let query = format!("page={page}&utm_source={source}");
            suggest.take(b"h", b"/list", query.as_bytes(), 1000 + page);
        }
        let (found, unexamined) = suggest.finish();
        assert_eq!(unexamined, 0);
        let by_rule = |rule: &str| found.iter().find(|suggestion| suggestion.rule == rule);
        let source = by_rule("drop utm_source").unwrap();
        // Ten pages are missed once each; the other 190 requests would be hits.
        assert_eq!((source.requests, source.gained, source.different), (200, 190, 0));
        assert!(source.is_safe() && by_rule("drop page").is_none_or(|page| !page.is_safe()));
    }

    #[test]
    fn the_order_of_parameters_is_found_and_a_key_that_has_a_rule_already_gains_nothing_by_it() {
        let list = ["a=1&b=2", "b=2&a=1", "a=1&b=2", "b=2&a=1"];
        let found = |rules: &str| {
            let mut suggest = Suggest::new(KeyRules::parse(rules).unwrap());
            list.iter().for_each(|query| suggest.take(b"h", b"/", query.as_bytes(), 9));
            suggest.finish().0
        };
        let sorted: Vec<_> =
            found("").into_iter().filter(|s| s.rule == "sort query").map(|s| s.gained).collect();
        assert_eq!(sorted, [1]);
        assert_eq!(found("sort query"), []);
    }

    proptest::proptest! {
        #[test]
        fn the_same_url_twice_suggests_no_other_key(
            rules in "(drop [a-c*]{1,3}|sort query|lower host)?", host in ".{0,5}", path in ".{0,9}", query in "[a-c=&;]{0,20}"
        ) {
            let mut suggest = Suggest::new(KeyRules::parse(&rules).unwrap());
            for _ in 0..2 {
                suggest.take(host.as_bytes(), path.as_bytes(), query.as_bytes(), 9);
            }
            proptest::prop_assert_eq!(suggest.finish().0, []);
        }
    }

    #[test]
    fn names_beyond_those_that_are_watched_are_counted() {
        let mut suggest = Suggest::new(KeyRules::default());
        for number in 0..MOST_NAMES + 5 {
            suggest.take(b"h", b"/", format!("p{number}=1").as_bytes(), 9);
        }
        assert_eq!(suggest.finish().1, 5);
    }
}
