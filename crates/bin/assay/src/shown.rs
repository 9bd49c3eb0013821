//! Text on a terminal: what others have named or sent can be seen in it, and does nothing to the terminal.
//!
//! Names of files, lines of settings, titles of workloads, URLs, and the last words of proxies are printed in messages and results.
//! An escape sequence among them could clear the screen, change the title of the window, or make a message look like another one.

use std::borrow::Cow;

use assay_base::quote::visible::{is_active, picture};

/// Text for a terminal: control characters are shown as their pictures (`␛`), one column each, and characters that turn the
/// direction of text as `�`. Line ends and tabs stay. There are no colours and styles in it.
pub fn on_terminal(text: &str) -> Cow<'_, str> {
    if !text.contains(is_active) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        out.push(if is_active(c) { picture(c) } else { c });
    }
    Cow::Owned(out)
}

/// The text of which `plain` is the form without our styles. If a terminal would obey something in that, it is others', and could not be
/// told from ours: then there are no styles.
pub fn with_styles(plain: &str, styled: impl FnOnce() -> String) -> String {
    match on_terminal(plain) {
        Cow::Borrowed(_) => styled(),
        Cow::Owned(shown) => shown,
    }
}

#[cfg(test)]
mod tests {
    use assay_base::quote::HOSTILE;

    use super::*;

    #[test]
    fn nothing_that_a_terminal_obeys_is_left() {
        for (text, shown) in [
            ("plain\n\ttext é 漢", "plain\n\ttext é 漢"),
            ("\u{1b}[31mred\u{1b}[0m", "␛[31mred␛[0m"),
            ("\u{1b}[8mhidden", "␛[8mhidden"),
            ("\u{1b}[2Jgone", "␛[2Jgone"),
            ("\u{1b}]0;title\u{7}", "␛]0;title␇"),
            ("one\r\ntwo\rthree", "one␍\ntwo␍three"),
            ("a\u{8}b\0\u{7f}\u{9b}2J", "a␈b␀␡\u{fffd}2J"),
            ("user\u{202e}txt.exe", "user\u{fffd}txt.exe"),
        ] {
            assert_eq!(on_terminal(text), shown, "{text:?}");
        }
    }

    #[test]
    fn what_is_shown_is_left_alone_the_second_time_and_as_wide_as_before() {
        for text in HOSTILE {
            let once = on_terminal(text).into_owned();
            assert_eq!(once.chars().count(), text.chars().count(), "{text:?}");
            assert_eq!(on_terminal(&once), once, "{text:?}");
        }
    }

    #[test]
    fn there_are_our_styles_only_where_others_have_none() {
        let styled = |text: &str| with_styles(text, || format!("\u{1b}[1m{text}\u{1b}[0m"));
        assert_eq!(styled("title"), "\u{1b}[1mtitle\u{1b}[0m");
        assert_eq!(styled("ti\u{1b}[31mtle"), "ti␛[31mtle");
    }
}
