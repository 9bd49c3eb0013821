//! The change that makes one text of another, as small as lines allow: so that an editor keeps its place.

use crate::lsp::text::{Lines, Range};

/// What is replaced, and by what; none if the texts are the same.
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
    Some((Lines::of(old).range(old, start, end), new[start..new_end].to_owned()))
}

fn lines(text: &str) -> Vec<&str> {
    text.split_inclusive('\n').collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn applied(old: &str, edit: Option<(Range, String)>) -> String {
        let Some((range, text)) = edit else { return old.to_owned() };
        let lines = Lines::of(old);
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
    }
}
