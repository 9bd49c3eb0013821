//! Classification of requests.
//!
//! Classes are tried in order; the first whose conditions all hold takes the request. A condition holds if any of its
//! alternatives does. Comparisons are made on the bytes as the client sent them: nothing is decoded, so `%2e` is not a dot.

use assay_cluster::dispatch::ClassId;
use assay_http::field::list_has;
use assay_http::head::RequestHead;
use regex::bytes::{Regex, RegexBuilder};
use thiserror::Error;

/// Size limit of a compiled regular expression.
const PATTERN_MAX_BYTES: usize = 1 << 20;

/// Condition on a request; each holds if one of its alternatives matches.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Condition {
    /// Exact path.
    Path(Vec<String>),
    /// Beginning of the path.
    Prefix(Vec<String>),
    /// End of the path.
    Suffix(Vec<String>),
    /// Regular expression found in the path.
    Regex(Vec<Pattern>),
    Method(Vec<String>),
    /// Field of the head.
    Header(Vec<HeaderCondition>),
    /// Parameter of the query.
    Query(Vec<QueryCondition>),
}

/// Mistake in a regular expression.
#[derive(Debug, Error)]
pub enum PatternError {
    #[error("it takes more than {PATTERN_MAX_BYTES} bytes when compiled")]
    TooBig,
    // Only the last line of the message names the mistake; the lines before it draw where it is.
    #[error("{}", .0.to_string().lines().last().unwrap_or_default().trim_start_matches("error: "))]
    Syntax(regex::Error),
}

/// Regular expression over the bytes of a path. Matching takes time linear in the length of the path, whatever the expression.
#[derive(Debug, Clone)]
pub struct Pattern(Regex);

impl Pattern {
    pub fn new(text: &str) -> Result<Self, PatternError> {
        let compiled = RegexBuilder::new(text).unicode(false).size_limit(PATTERN_MAX_BYTES).build();
        compiled.map(Self).map_err(|error| match error {
            regex::Error::CompiledTooBig(_) => PatternError::TooBig,
            error => PatternError::Syntax(error),
        })
    }

    /// Source text of the expression.
    pub fn text(&self) -> &str {
        self.0.as_str()
    }
}

impl PartialEq for Pattern {
    fn eq(&self, other: &Self) -> bool {
        self.text() == other.text()
    }
}

impl Eq for Pattern {}

/// Condition on a field of the head, and on its value if one is given.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HeaderCondition {
    /// Case-insensitive.
    pub name: String,
    /// The whole value, or one member of a list; case-insensitive.
    pub value: Option<String>,
}

/// Condition on a parameter of a query (`a=1&b`), and on its value if one is given.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QueryCondition {
    pub name: String,
    pub value: Option<String>,
}

/// Conditions of all classes, in the order in which they are tried.
#[derive(Debug, Clone, Default)]
pub struct Classes {
    all: Vec<Vec<Condition>>,
}

impl Classes {
    /// Creates a classifier; the last class takes every request that no other class does, whatever its conditions.
    pub fn new(all: Vec<Vec<Condition>>) -> Self {
        Self { all }
    }

    /// Class of a request with `target` in origin form.
    pub fn classify(&self, head: &RequestHead<'_>, target: &[u8]) -> ClassId {
        let last = self.all.len().saturating_sub(1);
        let (path, query) = split(target);
        let index = self.all[..last]
            .iter()
            .position(|conditions| conditions.iter().all(|c| c.holds(head, path, query)))
            .unwrap_or(last);
        ClassId(index as u16)
    }
}

/// Path and query of a target in origin form.
fn split(target: &[u8]) -> (&[u8], &[u8]) {
    match memchr::memchr(b'?', target) {
        Some(at) => (&target[..at], &target[at + 1..]),
        None => (target, b""),
    }
}

impl Condition {
    fn holds(&self, head: &RequestHead<'_>, path: &[u8], query: &[u8]) -> bool {
        match self {
            Condition::Path(all) => all.iter().any(|one| one.as_bytes() == path),
            Condition::Prefix(all) => all.iter().any(|one| path.starts_with(one.as_bytes())),
            Condition::Suffix(all) => all.iter().any(|one| path.ends_with(one.as_bytes())),
            Condition::Regex(all) => all.iter().any(|one| one.0.is_match(path)),
            Condition::Method(all) => all.iter().any(|one| one == head.method),
            Condition::Header(all) => all.iter().any(|one| one.holds(head)),
            Condition::Query(all) => all.iter().any(|one| one.holds(query)),
        }
    }
}

impl HeaderCondition {
    fn holds(&self, head: &RequestHead<'_>) -> bool {
        head.headers().filter(|field| field.is(&self.name)).any(|field| match &self.value {
            None => true,
            Some(value) => field.value.eq_ignore_ascii_case(value.as_bytes()) || list_has(field.value, value),
        })
    }
}

impl QueryCondition {
    fn holds(&self, query: &[u8]) -> bool {
        query.split(|byte| *byte == b'&').any(|part| {
            let (name, value) = match memchr::memchr(b'=', part) {
                Some(at) => (&part[..at], &part[at + 1..]),
                None => (part, &b""[..]),
            };
            !part.is_empty()
                && name == self.name.as_bytes()
                && self.value.as_ref().is_none_or(|wanted| wanted.as_bytes() == value)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(all: &[&str]) -> Vec<String> {
        all.iter().map(|text| (*text).to_owned()).collect()
    }

    fn class_of(classes: &Classes, method: &str, target: &str, fields: &str) -> u16 {
        let text = format!("{method} {target} HTTP/1.1\r\nHost: a\r\n{fields}\r\n");
        let (head, _) = RequestHead::parse(text.as_bytes()).expect("is HTTP").expect("is complete");
        classes.classify(&head, target.as_bytes()).0
    }

    /// The file lists of appendix C and the rules of appendix B of R. M. Jones's thesis.
    #[test]
    fn the_documents_three_classes_are_told_apart() {
        let patterns = |all: &[&str]| all.iter().map(|one| Pattern::new(one).expect("compiles")).collect();
        let classes = Classes::new(vec![
            vec![Condition::Regex(patterns(&[r"load\.cgi"]))],
            vec![Condition::Regex(patterns(&["5m", "500k", r"\.cgi$"]))],
            vec![],
        ]);
        let class = |target: &str| class_of(&classes, "GET", target, "");
        for (number, target) in [
            (0, "/cgi-bin/disk_load.cgi?file=/htdocs/file50k.html"),
            (1, "/cgi-bin/cpu_light.cgi"),
            (1, "/cgi-bin/cpu_med.cgi"),
            (1, "/file500k.html"),
            (1, "/file5m.html"),
            (2, "/file500.html"),
            (2, "/file5k.html"),
            (2, "/file50k.html"),
            (2, "/a?x=.cgi"),
            (2, "*"),
        ] {
            assert_eq!(class(target), number, "{target}");
        }
    }

    #[test]
    fn a_regular_expression_that_is_none_says_what_is_wrong() {
        let message = |text: &str| Pattern::new(text).expect_err("is none").to_string();
        assert_eq!(message("a("), "unclosed group");
        assert!(message("(a{1000}){1000}").contains("when compiled"));
    }

    #[test]
    fn all_conditions_of_a_class_must_hold_and_any_alternative_of_a_condition() {
        let header = |name: &str, value: Option<&str>| HeaderCondition {
            name: name.to_owned(),
            value: value.map(str::to_owned),
        };
        let query = |name: &str, value: Option<&str>| QueryCondition {
            name: name.to_owned(),
            value: value.map(str::to_owned),
        };
        let classes = Classes::new(vec![
            vec![Condition::Method(texts(&["POST", "PUT"])), Condition::Prefix(texts(&["/api/"]))],
            vec![Condition::Header(vec![header("X-Kind", None), header("accept", Some("image/png"))])],
            vec![Condition::Query(vec![query("debug", None), query("v", Some("2"))])],
            vec![Condition::Path(texts(&["/exact"]))],
            vec![],
        ]);
        let class = |method: &str, target: &str, fields: &str| class_of(&classes, method, target, fields);
        assert_eq!(class("POST", "/api/x", ""), 0);
        assert_eq!(class("GET", "/api/x", ""), 4);
        assert_eq!(class("GET", "/", "x-kind: a\r\n"), 1);
        assert_eq!(class("GET", "/", "Accept: text/html, Image/PNG\r\n"), 1);
        assert_eq!(class("GET", "/?a=1&debug", ""), 2);
        assert_eq!(class("GET", "/?debug=0&v=3", ""), 2);
        assert_eq!(class("GET", "/?v=2", ""), 2);
        assert_eq!(class("GET", "/?v=22&", ""), 4);
        assert_eq!(class("GET", "/exact?x", ""), 3);
        assert_eq!(class("GET", "/exact/", ""), 4);
    }
}
