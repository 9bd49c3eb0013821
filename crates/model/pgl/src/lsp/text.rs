//! Positions in a text as the protocol counts them (lines from 0, and UTF-16 code units in a line), and edits.

use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(crate) struct Position {
    pub line: u32,
    pub character: u32,
}

/// From `start` up to, not including, `end`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Range {
    pub start: Position,
    pub end: Position,
}

/// Index of the lines of a text.
#[derive(Debug, Clone)]
pub(crate) struct Lines {
    starts: Vec<usize>,
}

impl Lines {
    pub fn new(text: &str) -> Self {
        let ends = text.bytes().enumerate().filter(|(_, byte)| *byte == b'\n');
        Self { starts: std::iter::once(0).chain(ends.map(|(at, _)| at + 1)).collect() }
    }

    /// Position of a byte offset; an offset within a character counts as its start.
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

    /// Byte offset of a position; one beyond the end of its line counts as that end.
    pub fn offset(&self, text: &str, position: Position) -> usize {
        let line = position.line as usize;
        let Some(start) = self.starts.get(line).copied() else { return text.len() };
        let end = self.starts.get(line + 1).map_or(text.len(), |next| next - 1);
        let content = text[start..end].trim_end_matches('\r');
        let mut units = 0;
        for (at, c) in content.char_indices() {
            // A position within a pair of surrogates counts as before it.
            if units + c.len_utf16() > position.character as usize {
                return start + at;
            }
            units += c.len_utf16();
        }
        start + content.len()
    }

    pub fn range(&self, text: &str, start: usize, end: usize) -> Range {
        Range { start: self.position(text, start), end: self.position(text, end.max(start)) }
    }
}

fn number(count: usize) -> u32 {
    u32::try_from(count).unwrap_or(u32::MAX)
}

/// The smallest replacement of whole lines that turns one text into another; none if they are equal. After a small edit, an
/// editor keeps its cursor and folds.
pub(crate) fn edit(old: &str, new: &str) -> Option<(Range, String)> {
    if old == new {
        return None;
    }
    let (old_lines, new_lines) = (lines(old), lines(new));
    let most = old_lines.len().min(new_lines.len());
    let before = old_lines.iter().zip(&new_lines).take_while(|(a, b)| a == b).count();
    let after = old_lines.iter().rev().zip(new_lines.iter().rev()).take(most - before);
    let after = after.take_while(|(a, b)| a == b).count();
    let length = |lines: &[&str]| lines.iter().map(|line| line.len()).sum::<usize>();
    let start = length(&old_lines[..before]);
    let end = old.len() - length(&old_lines[old_lines.len() - after..]);
    let new_end = new.len() - length(&new_lines[new_lines.len() - after..]);
    Some((Lines::new(old).range(old, start, end), new[start..new_end].to_owned()))
}

fn lines(text: &str) -> Vec<&str> {
    text.split_inclusive('\n').collect()
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
        let lines = Lines::new(text);
        assert_eq!(lines.position(text, 3), at(0, 2));
        assert_eq!(lines.position(text, 7), at(0, 4));
        assert_eq!(lines.position(text, 10), at(1, 0));
        assert_eq!(lines.offset(text, at(0, 4)), 7);
        // Within a pair of surrogates, behind the line, behind the text.
        assert_eq!(lines.offset(text, at(0, 3)), 3);
        assert_eq!(lines.offset(text, at(0, 99)), 8);
        assert_eq!(lines.offset(text, at(9, 0)), text.len());
    }

    fn applied(old: &str, edit: Option<(Range, String)>) -> String {
        let Some((range, text)) = edit else { return old.to_owned() };
        let lines = Lines::new(old);
        let (start, end) = (lines.offset(old, range.start), lines.offset(old, range.end));
        format!("{}{text}{}", &old[..start], &old[end..])
    }

    #[test]
    fn only_lines_that_differ_are_replaced() {
        let (range, text) = edit("a\nb\nc\n", "a\nB\nB\nc\n").unwrap();
        assert_eq!((range.start.line, range.end.line, text.as_str()), (1, 2, "B\nB\n"));
        assert_eq!(edit("a", "a"), None);
    }

    proptest! {
        #[test]
        fn the_change_makes_the_new_text(old in "[ab\n]{0,20}", new in "[ab\n]{0,20}") {
            prop_assert_eq!(applied(&old, edit(&old, &new)), new);
        }

        #[test]
        fn every_place_leads_back_to_its_byte(text in "[a-c\u{e9}\u{1f600}\n\r]{0,40}") {
            let lines = Lines::new(&text);
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
            let lines = Lines::new(&text);
            let offset = lines.offset(&text, at(line, character));
            prop_assert!(text.is_char_boundary(offset));
        }
    }
}
