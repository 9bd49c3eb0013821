//! Text of others in Markdown, as GitHub shows it: on one line, and no markup, link or mention.
//!
//! GitHub finds mentions (`@name`), references (`#1`) and URLs in what a page shows, whatever stood in the source: neither a backslash nor
//! an entity keeps it from that. Code is left alone, so a word with any of these is code.

use crate::quote::line::line;

/// A text within a line, or in a cell of a table.
pub fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for part in parts(&line(text)) {
        match part {
            Part::Active(word) => out.extend(["`", word, "`"]),
            Part::Plain(text) => plain(&mut out, text),
        }
    }
    out
}

/// A text within an element of HTML, where Markdown means nothing.
pub fn in_element(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for part in parts(&line(text)) {
        match part {
            Part::Active(word) => {
                out.push_str("<code>");
                word.chars().for_each(|c| entity(&mut out, c));
                out.push_str("</code>");
            }
            Part::Plain(text) => text.chars().for_each(|c| entity(&mut out, c)),
        }
    }
    out
}

/// A piece of a text.
enum Part<'a> {
    /// A word that would become a link or a mention. It has no space, bar or backtick.
    Active(&'a str),
    Plain(&'a str),
}

/// Ends of words: code holds none of these.
const ENDS: [char; 4] = [' ', '|', '`', '\u{a0}'];

fn parts(text: &str) -> Vec<Part<'_>> {
    let words = text.split_inclusive(ENDS).flat_map(|word| {
        let end =
            word.len() - word.chars().next_back().filter(|c| ENDS.contains(c)).map_or(0, char::len_utf8);
        [&word[..end], &word[end..]]
    });
    words
        .filter(|word| !word.is_empty())
        .map(|word| if is_active(word) { Part::Active(word) } else { Part::Plain(word) })
        .collect()
}

/// Whether a link, a mention or a reference may be found in a word.
fn is_active(word: &str) -> bool {
    let lower = word.to_ascii_lowercase();
    let after_hash = lower.split('#').skip(1).any(|rest| rest.starts_with(|c: char| c.is_ascii_digit()));
    lower.contains(['@'])
        || lower.contains("://")
        || lower.contains("www.")
        || lower.contains("gh-")
        || after_hash
}

fn plain(out: &mut String, text: &str) {
    for (at, c) in text.char_indices() {
        // At the beginning of a line, these make a list or a heading of it.
        let begins =
            at == 0 && matches!(c, '-' | '+' | '=') && !text[1..].starts_with(|c: char| c.is_ascii_digit());
        match c {
            '\\' | '`' | '*' | '_' | '[' | ']' | '|' | '#' | '~' | '$' => out.extend(['\\', c]),
            c if begins && out.is_empty() => out.extend(['\\', c]),
            c => entity(out, c),
        }
    }
}

fn entity(out: &mut String, c: char) {
    match c {
        '<' => out.push_str("&lt;"),
        '>' => out.push_str("&gt;"),
        '&' => out.push_str("&amp;"),
        '"' => out.push_str("&quot;"),
        c => out.push(c),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::quote::HOSTILE;

    /// The text without its code.
    fn outside_code(text: &str) -> String {
        let mut outside = String::new();
        let (mut inside, mut escapes) = (false, false);
        for c in text.chars() {
            match c {
                '`' if inside || !escapes => inside = !inside,
                c if !inside => outside.push(c),
                _ => {}
            }
            escapes = !inside && !escapes && c == '\\';
        }
        assert!(!inside, "{text:?}: code that does not end");
        outside
    }

    #[test]
    fn names_cannot_become_markup() {
        assert_eq!(escaped("<b>|a_b\n"), "&lt;b&gt;\\|a\\_b␊");
        assert_eq!(escaped("~~~ a\u{202e}b\u{1b}c"), "\\~\\~\\~ a\u{fffd}b␛c");
        assert_eq!(
            (escaped("- a"), escaped("-1.5 %"), escaped("a - b")),
            ("\\- a".into(), "-1.5 %".into(), "a - b".into())
        );
    }

    #[test]
    fn what_would_become_a_link_or_a_mention_is_code() {
        assert_eq!(escaped("by @name, see www.a.example"), "by `@name,` see `www.a.example`");
        assert_eq!(escaped("http://a|@b`#1"), "`http://a`\\|`@b`\\``#1`");
        assert_eq!(
            in_element("@a <b> https://c?d&e"),
            "<code>@a</code> &lt;b&gt; <code>https://c?d&amp;e</code>"
        );
    }

    #[test]
    fn hostile_text_is_one_line_of_plain_text() {
        for text in HOSTILE {
            let shown = escaped(text);
            assert!(!shown.contains(char::is_control), "{shown:?}");
            let outside = outside_code(&shown);
            assert!(
                !outside.contains(['<', '>', '@']) && !outside.contains("://") && !outside.contains("www."),
                "{shown:?}"
            );
            for markup in ['|', '[', ']', '*', '#', '~'] {
                let bare = outside.replace("\\\\", "").replace(&format!("\\{markup}"), "");
                assert!(!bare.contains(markup), "{shown:?}");
            }
            let element = in_element(text);
            assert!(
                !element.replace("<code>", "").replace("</code>", "").contains(['<', '>', '"']),
                "{element:?}"
            );
        }
    }
}
