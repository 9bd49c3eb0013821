//! How a cache makes a key of a request: which parameters of its URL it drops, whether their order and the case of the host matter, and
//! which fields and cookies are part of it.

use crate::hash::{hash, hash_on};
use crate::size::error::ArgumentError;

use super::fields::{COOKIE, RequestFields};
use super::pattern::glob;

/// The rules of a key; by default, host, path and query as they were written.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct KeyRules {
    /// Names of parameters that are left out, with `*`.
    drop: Vec<String>,
    sorts: bool,
    /// A query is a list of parameters, even if nothing is to be done with them.
    splits: bool,
    ignores_query: bool,
    lowers_host: bool,
    ignores_host: bool,
    lowers_path: bool,
    /// Header fields (in lower case) whose values are part of the key.
    vary: Vec<String>,
    /// Cookies whose values are, with `*`.
    cookies: Vec<String>,
    /// Header fields that are not part of it, whatever responses say, with `*`.
    ignored_fields: Vec<String>,
    /// Cookies that are not, with `*`.
    ignored_cookies: Vec<String>,
}

/// A rule for a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum NameRule {
    /// A parameter is not part of the key.
    Drop,
    /// A header field is.
    Vary,
    Cookie,
    /// A header field is not, whatever responses say.
    IgnoreField,
    /// A cookie is not.
    IgnoreCookie,
}

impl NameRule {
    pub(super) const ALL: [Self; 5] =
        [Self::Drop, Self::Vary, Self::Cookie, Self::IgnoreField, Self::IgnoreCookie];

    /// As it is written, in front of the name.
    pub(super) fn verb(self) -> &'static str {
        match self {
            Self::Drop => "drop",
            Self::Vary => "vary",
            Self::Cookie => "cookie",
            Self::IgnoreField => "ignore field",
            Self::IgnoreCookie => "ignore cookie",
        }
    }
}

impl KeyRules {
    /// Reads `drop utm_*, fbclid; sort query; ignore cookie; lower host`.
    ///
    /// # Errors
    /// A message that names the part which is not understood, and what there is.
    pub fn parse(text: &str) -> Result<Self, ArgumentError> {
        let mut rules = Self::default();
        for part in text.split(';').map(str::trim).filter(|part| !part.is_empty()) {
            match part {
                "sort query" => rules.sorts = true,
                "ignore query" => rules.ignores_query = true,
                "ignore host" => rules.ignores_host = true,
                "ignore cookie" => rules.ignored_cookies.push("*".into()),
                "lower host" => rules.lowers_host = true,
                "lower path" => rules.lowers_path = true,
                _ if rules.add_names(part) => {}
                _ => return Err(ArgumentError::KeyRule { part: part.to_owned() }),
            }
        }
        Ok(rules)
    }

    /// Adds `drop a, b`, or another rule for names; false: it is none.
    fn add_names(&mut self, part: &str) -> bool {
        let rule = NameRule::ALL.into_iter().find_map(|rule| {
            let names = part.strip_prefix(rule.verb())?.strip_prefix(' ')?;
            Some((rule, names))
        });
        let Some((rule, names)) = rule else { return false };
        let names = names.split(',').map(str::trim).filter(|name| !name.is_empty());
        let before = self.names(rule).len();
        for name in names {
            self.add(rule, name);
        }
        self.names(rule).len() > before
    }

    fn add(&mut self, rule: NameRule, name: &str) {
        let name = match rule {
            NameRule::Vary | NameRule::IgnoreField => name.to_ascii_lowercase(),
            _ => name.to_owned(),
        };
        match rule {
            NameRule::Drop => self.drop.push(name),
            NameRule::Vary => self.vary.push(name),
            NameRule::Cookie => self.cookies.push(name),
            NameRule::IgnoreField => self.ignored_fields.push(name),
            NameRule::IgnoreCookie => self.ignored_cookies.push(name),
        }
    }

    /// The names of a rule, as they were written; those of fields in lower case.
    pub(super) fn names(&self, rule: NameRule) -> &[String] {
        match rule {
            NameRule::Drop => &self.drop,
            NameRule::Vary => &self.vary,
            NameRule::Cookie => &self.cookies,
            NameRule::IgnoreField => &self.ignored_fields,
            NameRule::IgnoreCookie => &self.ignored_cookies,
        }
    }

    /// The key depends on fields or cookies, whatever responses say.
    pub(crate) fn reads_fields(&self) -> bool {
        NameRule::ALL[1..].iter().any(|rule| !self.names(*rule).is_empty())
    }

    /// The same, with keys that are equal to those of rules which leave a URL as it is.
    pub(super) fn by_parameter(&self) -> Self {
        Self { splits: true, ..self.clone() }
    }

    /// The same, with one more rule.
    pub(super) fn and(&self, rule: NameRule, name: &str) -> Self {
        let mut rules = self.clone();
        rules.add(rule, name);
        rules
    }

    /// The same, and the order of parameters does not matter.
    pub(super) fn and_sort(&self) -> Self {
        Self { sorts: true, ..self.clone() }
    }

    /// Stands for what the URL names.
    pub fn key(&self, host: &[u8], path: &[u8], query: &[u8]) -> u64 {
        let of_host = match (self.ignores_host, self.lowers_host) {
            (true, _) => hash(b""),
            (false, true) => hash(&host.to_ascii_lowercase()),
            (false, false) => hash(host),
        };
        let of_path = if self.lowers_path {
            hash_on(of_host, &path.to_ascii_lowercase())
        } else {
            hash_on(of_host, path)
        };
        if query.is_empty() || self.ignores_query {
            return of_path;
        }
        if self.drop.is_empty() && !self.sorts && !self.splits {
            return hash_on(of_path, query);
        }
        let mut kept: Vec<&[u8]> =
            parameters(query).filter(|parameter| !self.drops(name(parameter))).collect();
        if self.sorts {
            kept.sort_unstable();
        }
        // The separator keeps `a`, `b` apart from `ab`.
        kept.iter().fold(of_path, |before, parameter| hash_on(hash_on(before, parameter), b"&"))
    }

    fn drops(&self, name: &[u8]) -> bool {
        matches_one(&self.drop, name)
    }

    /// A header field is part of the key of a request whose response varies by these fields.
    pub(super) fn has_field(&self, name: &str, varies: &[Box<str>]) -> bool {
        let is_named =
            self.vary.iter().any(|known| known == name) || varies.iter().any(|known| **known == *name);
        is_named && !matches_one(&self.ignored_fields, name.as_bytes())
    }

    /// The same of a cookie.
    pub(super) fn has_cookie(&self, name: &[u8], varies: &[Box<str>]) -> bool {
        let is_named = matches_one(&self.cookies, name) || self.has_field(COOKIE, varies);
        is_named && !matches_one(&self.ignored_cookies, name)
    }

    /// Stands for the object: what the URL names (`url`), for requests with these fields. What a request does not have adds nothing.
    pub fn variant(&self, url: u64, fields: &RequestFields<'_>, varies: &[Box<str>]) -> u64 {
        if self.vary.is_empty() && self.cookies.is_empty() && varies.is_empty() {
            return url;
        }
        let in_key = fields.fields.iter().filter(|(name, _)| *name != COOKIE && self.has_field(name, varies));
        let key = in_key.fold(url, |key, (name, value)| hash_on(hash_on(key, name.as_bytes()), value));
        let cookies = fields.cookies.iter().filter(|(name, _)| self.has_cookie(name, varies));
        if self.has_field(COOKIE, varies) {
            // The field as a whole: the order of its cookies matters.
            return cookies.fold(key, |key, (name, value)| hash_on(hash_on(key, name), value));
        }
        let mut cookies: Vec<_> = cookies.collect();
        cookies.sort_unstable();
        cookies.into_iter().fold(key, |key, (name, value)| hash_on(hash_on(key, name), value))
    }
}

/// Whether a name is of one of these forms.
pub(super) fn matches_one(forms: &[String], name: &[u8]) -> bool {
    forms.iter().any(|form| glob(form.as_bytes(), name, false))
}

/// The parameters of a query.
pub(super) fn parameters(query: &[u8]) -> impl Iterator<Item = &[u8]> {
    query.split(|byte| matches!(byte, b'&' | b';')).filter(|parameter| !parameter.is_empty())
}

/// The name of a parameter.
pub(super) fn name(parameter: &[u8]) -> &[u8] {
    parameter.split(|byte| *byte == b'=').next().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_make_one_key_of_what_they_ignore_and_of_nothing_else() {
        let same = |rules: &str, a: (&str, &str, &str), b: (&str, &str, &str)| {
            let rules = KeyRules::parse(rules).unwrap();
            let key = |(host, path, query): (&str, &str, &str)| {
                rules.key(host.as_bytes(), path.as_bytes(), query.as_bytes())
            };
            key(a) == key(b)
        };
        let drop = "drop utm_*, fbclid";
        assert!(same(drop, ("h", "/a", "x=1&utm_source=b"), ("h", "/a", "fbclid=9&x=1")));
        assert!(same(drop, ("h", "/a", "utm_source=b"), ("h", "/a", "")), "a query of nothing is no query");
        assert!(!same(drop, ("h", "/a", "x=1"), ("h", "/a", "x=2")));
        assert!(!same(drop, ("h", "/a", "x=1&y=2"), ("h", "/a", "y=2&x=1")));
        assert!(same("sort query", ("h", "/a", "x=1&y=2"), ("h", "/a", "y=2&x=1")));
        assert!(same("lower host; lower path", ("H", "/A", ""), ("h", "/a", "")));
        assert!(same("ignore host; ignore query; ignore cookie", ("H", "/a", "x"), ("h", "/a", "y")));
        assert!(!same("", ("h", "/a", ""), ("H", "/a", "")));
        assert!(!same("drop z", ("h", "/a", "ab"), ("h", "/a", "a&b")));
    }

    #[test]
    fn what_is_not_understood_is_named() {
        for text in [
            "drop",
            "drop ,",
            "sort host",
            "keep x",
            "lower query",
            "vary",
            "cookie",
            "ignore field",
            "ignore x",
        ] {
            let said = KeyRules::parse(text).unwrap_err().to_string();
            assert!(said.contains(text) && said.contains("sort query"), "{said}");
        }
    }

    #[test]
    fn fields_and_cookies_split_what_the_rules_or_the_response_say_and_nothing_else() {
        let fields = |list: &'static [(&str, &str)]| {
            let mut fields = RequestFields::default();
            for (name, value) in list {
                if let Some(cookie) = name.strip_prefix("cookie ") {
                    fields.cookies.push((cookie.as_bytes(), value.as_bytes()));
                } else {
                    fields.fields.push((name, value.as_bytes()));
                }
            }
            fields
        };
        let by = |names: &[&str]| names.iter().map(|name| (*name).into()).collect::<Vec<Box<str>>>();
        let same = |rules: &str, varies: &[&str], a: &'static [(&str, &str)], b: &'static [(&str, &str)]| {
            let rules = KeyRules::parse(rules).unwrap();
            let key = |list| rules.variant(7, &fields(list), &by(varies));
            key(a) == key(b)
        };
        let (en, de) = (&[("accept-language", "en")], &[("accept-language", "de")]);
        assert!(same("", &[], en, de) && same("vary accept", &[], en, de));
        assert!(!same("vary Accept-Language", &[], en, de) && !same("", &["accept-language"], en, de));
        assert!(!same("vary accept-language", &[], en, &[]));
        assert!(same("ignore field accept-*", &["accept-language"], en, de));
        let (one, other) =
            (&[("cookie sid", "1"), ("cookie lang", "en")], &[("cookie sid", "2"), ("cookie lang", "en")]);
        assert!(same("", &[], one, other) && same("cookie lang", &[], one, other));
        assert!(!same("cookie sid", &[], one, other) && !same("vary cookie", &[], one, other));
        assert!(!same("", &["cookie"], one, other) && same("ignore cookie s*", &["cookie"], one, other));
        assert!(
            same("ignore cookie", &["cookie"], one, &[])
                && same("ignore field cookie", &["cookie"], one, other)
        );
        let turned = &[("cookie lang", "en"), ("cookie sid", "1")];
        assert!(same("cookie *", &[], one, turned) && !same("vary cookie", &[], one, turned));
    }

    proptest::proptest! {
        #[test]
        fn no_rule_and_no_url_panics(rules in ".{0,40}", host in ".{0,9}", path in ".{0,20}", query in ".{0,30}") {
            if let Ok(rules) = KeyRules::parse(&rules) {
                rules.key(host.as_bytes(), path.as_bytes(), query.as_bytes());
            }
        }
    }
}
