//! Text on a terminal: what others have named or sent can be seen in it, and does nothing to the terminal.
//!
//! Names of files, lines of settings, titles of workloads, URLs, and the last words of proxies are printed in messages and results.
//! An escape sequence among them could clear the screen, change the title of the window, or make a message look like another one.

use std::borrow::Cow;

/// Text for a terminal: control characters are shown as their pictures (`␛`), one column each, and characters that turn the
/// direction of text as `�`. Line ends and tabs stay, and so do colours, which our own texts have, and which harm nobody.
pub fn on_terminal(text: &str) -> Cow<'_, str> {
    if !text.contains(is_active) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find(is_active) {
        out.push_str(&rest[..at]);
        rest = &rest[at..];
        if let Some(length) = colour(rest) {
            out.push_str(&rest[..length]);
            rest = &rest[length..];
            continue;
        }
        let mut chars = rest.chars();
        out.extend(chars.next().map(picture));
        rest = chars.as_str();
    }
    out.push_str(rest);
    Cow::Owned(out)
}

/// Whether a terminal does something else with it than to show it, or end a line.
fn is_active(c: char) -> bool {
    let turns = matches!(c, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    (c.is_control() && !matches!(c, '\n' | '\t')) || turns
}

/// The length of the sequence of a colour or a style at the beginning.
fn colour(text: &str) -> Option<usize> {
    let numbers = text.strip_prefix("\u{1b}[")?;
    let end = numbers.find(|c: char| !c.is_ascii_digit() && c != ';')?;
    numbers[end..].starts_with('m').then_some(2 + end + 1)
}

fn picture(c: char) -> char {
    match u32::from(c) {
        code @ 0..=0x1f => char::from_u32(0x2400 + code).unwrap_or('\u{fffd}'),
        0x7f => '\u{2421}',
        _ => '\u{fffd}',
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_that_a_terminal_obeys_is_left_but_colours() {
        for (text, shown) in [
            ("plain\n\ttext é 漢", "plain\n\ttext é 漢"),
            ("\u{1b}[31mred\u{1b}[0m", "\u{1b}[31mred\u{1b}[0m"),
            ("\u{1b}[2Jgone", "␛[2Jgone"),
            ("\u{1b}]0;title\u{7}", "␛]0;title␇"),
            ("one\r\ntwo\rthree", "one␍\ntwo␍three"),
            ("\u{1b}[1;31", "␛[1;31"),
            ("a\u{8}b\0\u{7f}\u{9b}2J", "a␈b␀␡\u{fffd}2J"),
            ("user\u{202e}txt.exe", "user\u{fffd}txt.exe"),
        ] {
            assert_eq!(on_terminal(text), shown, "{text:?}");
        }
    }

    #[test]
    fn what_is_shown_is_left_alone_the_second_time_and_as_wide_as_before() {
        for text in ["\u{1b}[2J\u{1b}[31m", "a\0b\u{202e}", "\u{1b}\u{1b}[m\u{1b}["] {
            let once = on_terminal(text).into_owned();
            assert_eq!(once.chars().count(), text.chars().count(), "{text:?}");
            assert_eq!(on_terminal(&once), once, "{text:?}");
        }
    }
}
