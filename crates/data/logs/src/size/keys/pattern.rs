//! Which requests a rule is for: a pattern of the host, the path, or the content type.

use crate::size::error::ArgumentError;

/// Part of a request that a pattern is matched with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum PatternField {
    Path,
    Host,
    Type,
}

/// A pattern: `*` stands for any number of bytes, anything else for itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pattern {
    of: PatternField,
    text: String,
}

/// Parts of a request that patterns are matched with.
#[derive(Debug, Clone, Copy)]
pub struct RuleSubject<'a> {
    /// Host, as it was logged.
    pub host: &'a [u8],
    /// Path without its query.
    pub path: &'a [u8],
    /// Content type of the response; empty: the log has none.
    pub content_type: &'a [u8],
}

impl Pattern {
    /// Reads `*.jpg`, `path:/api/*`, `host:img.example`, `type:image/*`.
    ///
    /// # Errors
    /// If there is no pattern, or what stands before the colon is unknown.
    pub fn parse(text: &str) -> Result<Self, ArgumentError> {
        let (of, pattern) = match text.split_once(':') {
            Some(("path", pattern)) => (PatternField::Path, pattern),
            Some(("host", pattern)) => (PatternField::Host, pattern),
            Some(("type", pattern)) => (PatternField::Type, pattern),
            Some((other, _)) if !other.contains(['/', '*', '.']) => {
                return Err(ArgumentError::PatternField { field: other.to_owned() });
            }
            _ => (PatternField::Path, text),
        };
        if pattern.is_empty() {
            return Err(ArgumentError::EmptyPattern { text: text.to_owned() });
        }
        Ok(Self { of, text: pattern.to_owned() })
    }

    /// True for requests that the rule is for. Hosts and types are compared without regard to case.
    pub fn matches(&self, shown: &RuleSubject<'_>) -> bool {
        match self.of {
            PatternField::Path => glob(self.text.as_bytes(), shown.path, false),
            PatternField::Host => glob(self.text.as_bytes(), shown.host, true),
            PatternField::Type => glob(self.text.as_bytes(), shown.content_type, true),
        }
    }
}

/// Whether a text is of a form, in a time of at most their product.
pub(super) fn glob(form: &[u8], text: &[u8], ignores_case: bool) -> bool {
    let (mut at_form, mut at_text) = (0, 0);
    // Where the last star was, and what it stands for up to now.
    let mut star: Option<(usize, usize)> = None;
    while at_text < text.len() {
        let is_same = form.get(at_form).is_some_and(|byte| {
            *byte == text[at_text] || (ignores_case && byte.eq_ignore_ascii_case(&text[at_text]))
        });
        if form.get(at_form) == Some(&b'*') {
            star = Some((at_form, at_text));
            at_form += 1;
        } else if is_same {
            (at_form, at_text) = (at_form + 1, at_text + 1);
        } else if let Some((form_star, text_star)) = star {
            (at_form, at_text) = (form_star + 1, text_star + 1);
            star = Some((form_star, text_star + 1));
        } else {
            return false;
        }
    }
    form[at_form..].iter().all(|byte| *byte == b'*')
}

#[cfg(test)]
mod tests {
    use super::*;

    const SHOWN: RuleSubject<'static> =
        RuleSubject { host: b"IMG.example", path: b"/api/v1/a.jpg", content_type: b"image/jpeg; q=1" };

    #[test]
    fn a_pattern_is_of_the_path_unless_it_says_otherwise() {
        let matches = |text| Pattern::parse(text).unwrap().matches(&SHOWN);
        assert!(
            ["*.jpg", "path:/api/*", "host:img.*", "type:Image/*", "*", "/api/v1/a.jpg"]
                .iter()
                .all(|t| matches(t))
        );
        assert!(!["*.JPG", "path:/api", "host:img", "type:text/*", "jpg"].iter().any(|t| matches(t)));
        assert!(Pattern::parse("cookie:x").unwrap_err().to_string().contains("path:, host: or type:"));
        assert!(Pattern::parse("path:").is_err() && Pattern::parse("").is_err());
    }

    proptest::proptest! {
        #[test]
        fn a_text_matches_what_was_made_of_it_by_stars(text in "[ab]{0,12}", from in 0usize..12, to in 0usize..12) {
            let (from, to) = (from.min(text.len()), to.min(text.len()));
            let (from, to) = (from.min(to), from.max(to));
            let form = format!("{}*{}", &text[..from], &text[to..]);
            proptest::prop_assert!(glob(form.as_bytes(), text.as_bytes(), false), "{form} {text}");
            let longer = format!("{form}c");
            proptest::prop_assert!(!glob(longer.as_bytes(), text.as_bytes(), false));
        }
    }
}
