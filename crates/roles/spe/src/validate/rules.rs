//! Rules by which responses are compared: the differences that do not count.

use std::collections::HashMap;
use std::path::Path;

use thiserror::Error;

use super::body::BodyRule;
use super::read::read;
use crate::number;

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FieldComparison {
    /// Not compared.
    Ignore,
    /// Byte for byte, and both must have the field.
    Exact,
    /// Byte for byte if both have the field.
    IfPresent,
    /// As dates, at most this far apart; byte for byte if one is not a date.
    Date { tolerance_s: u64 },
    /// As comma-separated lists, ignoring order and case.
    List {
        /// Members to ignore, in lower case.
        without: Vec<String>,
    },
    /// As entity tags, ignoring weakness.
    Weak,
    /// Byte for byte if there is no body that shows the length, both have the field, and the coding is the same.
    Length,
}

/// Fields in which proxies describe themselves, or a single connection.
const IGNORED: [&str; 26] = [
    "age",
    "via",
    "date",
    "server",
    "warning",
    "cache-status",
    "x-varnish",
    "x-served-by",
    "x-timer",
    "x-squid-error",
    "x-hits",
    "accept-ranges",
    // Hop-by-hop fields.
    "connection",
    "keep-alive",
    "proxy-connection",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
    // Bodies are compared after decoding.
    "content-encoding",
    "cdn-cache-control",
    "cdn-loop",
    "surrogate-control",
    "proxy-status",
    "proxy-support",
    "x-proxy-cache",
];

/// Tolerance for `Expires`, in seconds: a response may be generated anew between two that are compared.
const TOLERANCE_S: u64 = 2;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rules {
    by_name: HashMap<Vec<u8>, FieldComparison>,
    /// Prefixes of names, in lower case; a later one wins.
    by_prefix: Vec<(Vec<u8>, FieldComparison)>,
    /// By media type; a later one wins.
    pub bodies: Vec<BodyRule>,
}

#[derive(Debug, Error)]
pub enum RulesError {
    #[error("cannot read the rules in {file}: {cause}")]
    Read {
        file: String,
        /// Part of the message, and so no `source` of this error.
        cause: std::io::Error,
    },
    #[error(transparent)]
    Mistake(#[from] assay_base::settings::Mistake),
}

impl Rules {
    /// Compares every field byte for byte, except for the Collector's own mark.
    pub fn strict() -> Self {
        let mut rules = Self { by_name: HashMap::new(), by_prefix: Vec::new(), bodies: Vec::new() };
        rules.set(number::LOST, FieldComparison::Ignore);
        rules
    }

    /// Ignores what proxies may change, or state about themselves.
    pub fn with_defaults() -> Self {
        let mut rules = Self::strict();
        IGNORED.iter().for_each(|name| rules.set(name, FieldComparison::Ignore));
        rules.set("x-cache*", FieldComparison::Ignore);
        rules.set("vary", FieldComparison::List { without: vec!["accept-encoding".into()] });
        for name in ["cache-control", "allow"] {
            rules.set(name, FieldComparison::List { without: Vec::new() });
        }
        rules.set("etag", FieldComparison::Weak);
        rules.set("expires", FieldComparison::Date { tolerance_s: TOLERANCE_S });
        rules.set("last-modified", FieldComparison::Date { tolerance_s: 0 });
        rules.set("content-length", FieldComparison::Length);
        rules
    }

    /// Reads the rules of a file; the default ones without a file.
    pub fn load(file: Option<&Path>) -> Result<Self, RulesError> {
        let Some(path) = file else { return Ok(Self::with_defaults()) };
        let file = path.display().to_string();
        let text = assay_base::files::text(path, assay_base::files::SETTINGS_MAX)
            .map_err(|cause| RulesError::Read { file: file.clone(), cause })?;
        Ok(read(&file, &text)?)
    }

    /// Sets the comparison of a field. A name that ends in `*` is a prefix.
    pub fn set(&mut self, name: &str, comparison: FieldComparison) {
        let name = name.to_ascii_lowercase().into_bytes();
        match name.strip_suffix(b"*") {
            Some(prefix) => self.by_prefix.push((prefix.to_vec(), comparison)),
            None => {
                self.by_name.insert(name, comparison);
            }
        }
    }

    /// Comparison of a field: by name, else by the last prefix that matches, else exact.
    pub fn comparison_for(&self, name: &[u8]) -> &FieldComparison {
        let name = name.to_ascii_lowercase();
        if let Some(comparison) = self.by_name.get(&name) {
            return comparison;
        }
        let fits = |(prefix, _): &&(Vec<u8>, FieldComparison)| name.starts_with(prefix);
        self.by_prefix.iter().rev().find(fits).map_or(&FieldComparison::Exact, |(_, comparison)| comparison)
    }

    pub fn is_ignored(&self, name: &str) -> bool {
        *self.comparison_for(name.as_bytes()) == FieldComparison::Ignore
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_wins_over_its_beginning_and_a_later_beginning_over_an_earlier() {
        let mut rules = Rules::with_defaults();
        assert!(rules.is_ignored("X-Cache-Lookup") && rules.is_ignored("Via"));
        assert_eq!(*rules.comparison_for(b"x-unknown"), FieldComparison::Exact);
        rules.set("X-*", FieldComparison::IfPresent);
        rules.set("X-Cache", FieldComparison::Exact);
        assert_eq!(
            (rules.comparison_for(b"X-CACHE"), rules.comparison_for(b"x-cache-lookup")),
            (&FieldComparison::Exact, &FieldComparison::IfPresent)
        );
    }

    #[test]
    fn a_file_that_is_not_there_is_an_error_that_names_it() {
        let error = Rules::load(Some(Path::new("/nowhere/rules.toml"))).unwrap_err();
        assert!(error.to_string().contains("/nowhere/rules.toml"), "{error}");
    }
}
