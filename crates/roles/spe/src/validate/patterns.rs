//! Removal of the parts of a text that match patterns.
//!
//! A pattern is text in which `*` stands for any run of bytes, as short as possible.

use memchr::memmem;
use thiserror::Error;

/// A pattern that begins or ends with `*`, or is empty.
#[derive(Debug, Error)]
#[error(
    "`{text}` must begin and end with something other than `*`; write what stands around the part that may differ"
)]
pub struct TextPatternError {
    text: String,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TextPattern {
    /// Text between the stars; none is empty.
    pieces: Vec<Vec<u8>>,
}

impl TextPattern {
    /// Parses a pattern. It must begin and end with something other than `*`, or it would match everything.
    pub fn parse(text: &str) -> Result<Self, TextPatternError> {
        let pieces: Vec<Vec<u8>> = text.split('*').map(|piece| piece.as_bytes().to_vec()).collect();
        if text.is_empty()
            || pieces.first().is_none_or(Vec::is_empty)
            || pieces.last().is_none_or(Vec::is_empty)
        {
            return Err(TextPatternError { text: text.to_owned() });
        }
        Ok(Self { pieces: pieces.into_iter().filter(|piece| !piece.is_empty()).collect() })
    }

    /// Range of the first match at or after `from`.
    fn find(&self, text: &[u8], from: usize) -> Option<(usize, usize)> {
        let mut at = from;
        let mut begin = None;
        for piece in &self.pieces {
            at += memmem::find(text.get(at..)?, piece)?;
            begin.get_or_insert(at);
            at += piece.len();
        }
        begin.map(|begin| (begin, at))
    }

    /// Returns the text without the matches.
    pub fn strip(&self, text: &[u8]) -> Vec<u8> {
        let (mut out, mut from) = (Vec::with_capacity(text.len()), 0);
        while let Some((begin, end)) = self.find(text, from) {
            out.extend_from_slice(&text[from..begin]);
            from = end;
        }
        out.extend_from_slice(&text[from..]);
        out
    }
}

/// Returns the text without the matches of any pattern.
pub fn strip_all(patterns: &[TextPattern], text: &[u8]) -> Vec<u8> {
    patterns.iter().fold(text.to_vec(), |text, pattern| pattern.strip(&text))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn stripped(pattern: &str, text: &str) -> String {
        String::from_utf8(TextPattern::parse(pattern).unwrap().strip(text.as_bytes())).unwrap()
    }

    #[test]
    fn everything_that_fits_is_taken_out() {
        assert_eq!(stripped("token=\"*\"", "<a token=\"x1\"> <b token=\"y\">"), "<a > <b >");
        assert_eq!(stripped("<!--*-->", "a<!-- b --><!-->c<!-- d"), "a<!-->c<!-- d");
        assert_eq!(stripped("abc", "xabcabcy"), "xy");
        assert_eq!(stripped("a*b*c", "a1b2c a b"), " a b");
    }

    #[test]
    fn a_pattern_that_fits_everything_is_refused() {
        for text in ["", "*", "a*", "*a"] {
            assert!(TextPattern::parse(text).is_err(), "{text}");
        }
    }

    proptest! {
        #[test]
        fn nothing_is_left_that_was_not_there(text in "[abc\"]{0,60}", begin in "[abc]{1,2}", end in "[abc\"]{1,2}") {
            let pattern = format!("{begin}*{end}");
            let left = stripped(&pattern, &text);
            prop_assert!(left.len() <= text.len());
            // What is left is what was there, in order.
            let mut all = text.chars();
            prop_assert!(left.chars().all(|c| all.any(|other| other == c)));
        }
    }
}
