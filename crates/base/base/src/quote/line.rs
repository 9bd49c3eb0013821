//! Text of others within a line of ours: a message, a row of a table, a line of a log.

use std::borrow::Cow;
use std::path::Path;

use crate::quote::visible::{is_active, picture};

/// Ends a line, or moves to another column of it.
fn breaks(c: char) -> bool {
    matches!(c, '\n' | '\t' | '\u{2028}' | '\u{2029}')
}

/// A text in which line ends and tabs are shown as their pictures (`␊`), as all other control characters are. It begins no line, and
/// colours nothing.
pub fn line(text: &str) -> Cow<'_, str> {
    if !text.contains(|c| is_active(c) || breaks(c)) {
        return Cow::Borrowed(text);
    }
    Cow::Owned(text.chars().map(|c| if is_active(c) || breaks(c) { picture(c) } else { c }).collect())
}

/// A path, like a [line](line()).
pub fn path(path: &Path) -> String {
    line(&path.to_string_lossy()).into_owned()
}

/// A text of several lines: lines after the first stand further in, so that none of them looks like the beginning of a message of ours.
/// Control characters but line ends and tabs are shown as their pictures.
pub fn lines(text: &str) -> String {
    let mut lines = text.split('\n').map(|one| one.strip_suffix('\r').unwrap_or(one));
    let mut all = within(lines.next().unwrap_or_default());
    for one in lines {
        all.push('\n');
        if !one.is_empty() {
            all.push_str("  ");
            all.push_str(&within(one));
        }
    }
    all
}

/// A line in which tabs stay.
fn within(text: &str) -> String {
    text.split('\t').map(line).collect::<Vec<_>>().join("\t")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::quote::HOSTILE;

    #[test]
    fn no_text_ends_a_line_or_steers_a_terminal() {
        for text in HOSTILE {
            let shown = line(text);
            assert!(!shown.contains(|c: char| c.is_control() || breaks(c)), "{shown:?}");
            assert_eq!(shown.chars().count(), text.chars().count(), "{shown:?}");
            assert_eq!(line(&shown), shown);
        }
        assert_eq!(line("é 漢 a\nb\tc\u{1b}[31m"), "é 漢 a␊b␉c␛[31m");
        assert_eq!(path(Path::new("runs/a\nerror: b")), "runs/a␊error: b");
    }

    #[test]
    fn of_several_lines_only_the_first_begins_where_ours_do() {
        assert_eq!(lines("one\nerror: two\r\n\n  |\tx\u{1b}[31m"), "one\n  error: two\n\n    |\tx␛[31m");
        for text in HOSTILE {
            assert!(
                lines(text).split('\n').skip(1).all(|one| one.is_empty() || one.starts_with("  ")),
                "{text:?}"
            );
        }
    }
}
