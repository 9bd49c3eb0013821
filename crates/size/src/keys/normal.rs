//! How a cache makes a key of a URL: which parameters it drops, whether their order and the case of the host matter.

use assay_logs::hash::{hash, hash_on};

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
}

impl KeyRules {
    /// Reads `drop utm_*, fbclid; sort query; ignore cookie; lower host`.
    ///
    /// # Errors
    /// A message that names the part which is not understood, and what there is.
    pub fn parse(text: &str) -> Result<Self, String> {
        let mut rules = Self::default();
        for part in text.split(';').map(str::trim).filter(|part| !part.is_empty()) {
            let (verb, rest) = part.split_once(' ').unwrap_or((part, ""));
            match (verb, rest.trim()) {
                ("drop", names) if !names.is_empty() => {
                    let names = names.split(',').map(str::trim).filter(|name| !name.is_empty());
                    rules.drop.extend(names.map(str::to_owned));
                }
                ("sort", "query") => rules.sorts = true,
                ("ignore", "query") => rules.ignores_query = true,
                ("ignore", "host") => rules.ignores_host = true,
                // No key of a log has cookies in it.
                ("ignore", "cookie") => {}
                ("lower", "host") => rules.lowers_host = true,
                ("lower", "path") => rules.lowers_path = true,
                _ => {
                    return Err(format!(
                        "`{part}` is not a rule of a key; there are `drop NAME,…`, `sort query`, `ignore query`, `ignore host`, \
                         `ignore cookie`, `lower host` and `lower path`"
                    ));
                }
            }
        }
        Ok(rules)
    }

    /// The same, with keys that are equal to those of rules which leave a URL as it is.
    pub(super) fn by_parameter(&self) -> Self {
        Self { splits: true, ..self.clone() }
    }

    /// The same, and parameters with this name are left out.
    pub(super) fn and_drop(&self, name: &str) -> Self {
        let mut rules = self.clone();
        rules.drop.push(name.to_owned());
        rules
    }

    /// The same, and the order of parameters does not matter.
    pub(super) fn and_sort(&self) -> Self {
        Self { sorts: true, ..self.clone() }
    }

    /// Stands for the object.
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
        self.drop.iter().any(|form| glob(form.as_bytes(), name, false))
    }
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
        for text in ["drop", "sort host", "keep x", "lower query"] {
            let said = KeyRules::parse(text).unwrap_err();
            assert!(said.contains(text) && said.contains("sort query"), "{said}");
        }
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
