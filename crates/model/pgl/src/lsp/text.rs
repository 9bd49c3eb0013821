//! Places of a text as an editor counts them: lines from 0, and in a line units of UTF-16.

use serde::{Deserialize, Serialize};

/// A place between two characters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(crate) struct Position {
    pub line: u32,
    pub character: u32,
}

/// From a place to another, which it does not include.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Range {
    pub start: Position,
    pub end: Position,
}

/// Where the lines of a text begin.
#[derive(Debug, Clone)]
pub(crate) struct Lines {
    starts: Vec<usize>,
}

impl Lines {
    pub fn of(text: &str) -> Self {
        let ends = text.bytes().enumerate().filter(|(_, byte)| *byte == b'\n');
        Self { starts: std::iter::once(0).chain(ends.map(|(at, _)| at + 1)).collect() }
    }

    /// The place of a byte; one within a character is where that begins.
    pub fn position(&self, text: &str, offset: usize) -> Position {
        let mut offset = offset.min(text.len());
        while !text.is_char_boundary(offset) {
            offset -= 1;
        }
        let line = self.starts.partition_point(|start| *start <= offset).saturating_sub(1);
        let start = self.starts.get(line).copied().unwrap_or(0);
        let character = text[start..offset].encode_utf16().count();
        Position { line: number(line), character: number(character) }
    }

    /// The byte at a place; one behind the end of its line is that end.
    pub fn offset(&self, text: &str, position: Position) -> usize {
        let line = position.line as usize;
        let Some(start) = self.starts.get(line).copied() else { return text.len() };
        let end = self.starts.get(line + 1).map_or(text.len(), |next| next - 1);
        let content = text[start..end].trim_end_matches('\r');
        let mut units = 0;
        for (at, c) in content.char_indices() {
            // A place within a pair of surrogates is before it.
            if units + c.len_utf16() > position.character as usize {
                return start + at;
            }
            units += c.len_utf16();
        }
        start + content.len()
    }

    /// A stretch of bytes.
    pub fn range(&self, text: &str, start: usize, end: usize) -> Range {
        Range { start: self.position(text, start), end: self.position(text, end.max(start)) }
    }
}

fn number(count: usize) -> u32 {
    u32::try_from(count).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn at(line: u32, character: u32) -> Position {
        Position { line, character }
    }

    #[test]
    fn places_are_counted_in_units_of_utf_16() {
        let text = "aé\u{1f600}b\r\nc";
        let lines = Lines::of(text);
        assert_eq!(lines.position(text, 3), at(0, 2));
        assert_eq!(lines.position(text, 7), at(0, 4));
        assert_eq!(lines.position(text, 10), at(1, 0));
        assert_eq!(lines.offset(text, at(0, 4)), 7);
        // Within a pair of surrogates, behind the line, behind the text.
        assert_eq!(lines.offset(text, at(0, 3)), 3);
        assert_eq!(lines.offset(text, at(0, 99)), 8);
        assert_eq!(lines.offset(text, at(9, 0)), text.len());
    }

    proptest! {
        #[test]
        fn every_place_leads_back_to_its_byte(text in "[a-c\u{e9}\u{1f600}\n\r]{0,40}") {
            let lines = Lines::of(&text);
            for (offset, c) in text.char_indices() {
                // A line end of two bytes is one place.
                let in_line_end = c == '\n' || c == '\r';
                if !in_line_end {
                    prop_assert_eq!(lines.offset(&text, lines.position(&text, offset)), offset);
                }
            }
        }

        #[test]
        fn any_place_is_in_the_text(text in "\\PC{0,20}\n\\PC{0,20}", line in 0_u32..4, character in 0_u32..60) {
            let lines = Lines::of(&text);
            let offset = lines.offset(&text, at(line, character));
            prop_assert!(text.is_char_boundary(offset));
        }
    }
}
