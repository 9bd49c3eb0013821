//! The differences between two responses that are none.

use std::collections::HashMap;
use std::path::Path;

use thiserror::Error;

use super::body::BodyRule;
use super::read::read;
use crate::number;

/// How the values of a field are compared.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum How {
    /// Not at all.
    Ignore,
    /// Byte for byte, and both must have it.
    Exact,
    /// Byte for byte where both have it.
    IfPresent,
    /// As dates, this far apart at most; what is no date byte for byte.
    Date {
        /// In seconds.
        tolerance_s: u64,
    },
    /// As comma-separated lists in any order, whatever the case.
    List {
        /// Members that count for nothing, in lower case.
        without: Vec<String>,
    },
    /// As entity tags, weak or not.
    Weak,
    /// Byte for byte where there is no body that shows its length, both have it, and the coding is the same.
    Length,
}

/// What says a proxy about itself or about one connection.
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
    // Of one connection.
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

/// How dates that a cache hands on may differ, in seconds: a response may be made anew between two that are compared.
const TOLERANCE_S: u64 = 2;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rules {
    by_name: HashMap<Vec<u8>, How>,
    /// Beginnings of names, in lower case; a later one wins.
    by_prefix: Vec<(Vec<u8>, How)>,
    /// How bodies are compared, by type; a later one wins.
    pub bodies: Vec<BodyRule>,
}

/// Why rules cannot be had.
#[derive(Debug, Error)]
pub enum RulesError {
    /// The file cannot be read.
    #[error("cannot read the rules in {file}: {cause}")]
    Read {
        file: String,
        /// What the system said. It is part of the message, and so no `source` of this error.
        cause: std::io::Error,
    },
    /// It says something that is not understood.
    #[error(transparent)]
    Mistake(#[from] assay_base::settings::Mistake),
}

impl Rules {
    /// Every field counts, byte for byte, but the Collector's own mark.
    pub fn strict() -> Self {
        let mut rules = Self { by_name: HashMap::new(), by_prefix: Vec::new(), bodies: Vec::new() };
        rules.set(number::LOST, How::Ignore);
        rules
    }

    /// What proxies do by right, and say about themselves, is no difference.
    pub fn usual() -> Self {
        let mut rules = Self::strict();
        IGNORED.iter().for_each(|name| rules.set(name, How::Ignore));
        rules.set("x-cache*", How::Ignore);
        rules.set("vary", How::List { without: vec!["accept-encoding".into()] });
        for name in ["cache-control", "allow"] {
            rules.set(name, How::List { without: Vec::new() });
        }
        rules.set("etag", How::Weak);
        rules.set("expires", How::Date { tolerance_s: TOLERANCE_S });
        rules.set("last-modified", How::Date { tolerance_s: 0 });
        rules.set("content-length", How::Length);
        rules
    }

    /// The rules of a file; none: the usual ones.
    pub fn load(file: Option<&Path>) -> Result<Self, RulesError> {
        let Some(path) = file else { return Ok(Self::usual()) };
        let file = path.display().to_string();
        let text = assay_base::files::text(path, assay_base::files::SETTINGS_MAX)
            .map_err(|cause| RulesError::Read { file: file.clone(), cause })?;
        Ok(read(&file, &text)?)
    }

    /// Says how a field is compared. A name that ends in `*` means all that begin so.
    pub fn set(&mut self, name: &str, how: How) {
        let name = name.to_ascii_lowercase().into_bytes();
        match name.strip_suffix(b"*") {
            Some(prefix) => self.by_prefix.push((prefix.to_vec(), how)),
            None => {
                self.by_name.insert(name, how);
            }
        }
    }

    /// How a field is compared: by its name, else by the last beginning that fits, else exactly.
    pub fn how(&self, name: &[u8]) -> &How {
        let name = name.to_ascii_lowercase();
        if let Some(how) = self.by_name.get(&name) {
            return how;
        }
        let fits = |(prefix, _): &&(Vec<u8>, How)| name.starts_with(prefix);
        self.by_prefix.iter().rev().find(fits).map_or(&How::Exact, |(_, how)| how)
    }

    /// True for a field that is not compared.
    pub fn is_ignored(&self, name: &str) -> bool {
        *self.how(name.as_bytes()) == How::Ignore
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_wins_over_its_beginning_and_a_later_beginning_over_an_earlier() {
        let mut rules = Rules::usual();
        assert!(rules.is_ignored("X-Cache-Lookup") && rules.is_ignored("Via"));
        assert_eq!(*rules.how(b"x-unknown"), How::Exact);
        rules.set("X-*", How::IfPresent);
        rules.set("X-Cache", How::Exact);
        assert_eq!((rules.how(b"X-CACHE"), rules.how(b"x-cache-lookup")), (&How::Exact, &How::IfPresent));
    }

    #[test]
    fn a_file_that_is_not_there_is_an_error_that_names_it() {
        let error = Rules::load(Some(Path::new("/nowhere/rules.toml"))).unwrap_err();
        assert!(error.to_string().contains("/nowhere/rules.toml"), "{error}");
    }
}
