//! Characters that do something where they are shown: they steer a terminal, or turn the direction of the text around them.
//!
//! Names of files, URLs, titles and fields come from others. A page has one pass over all of it ([`visible`]), and so has a terminal;
//! line ends and tabs stay in both.

/// Whether a character does anything but show itself or end a line.
pub fn is_active(c: char) -> bool {
    let turns =
        matches!(c, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    (c.is_control() && !matches!(c, '\n' | '\t')) || turns
}

/// Replacement of an active character: a picture of a control character (`␛`), one column wide, or `�`.
pub fn picture(c: char) -> char {
    match u32::from(c) {
        code @ 0..=0x1f => char::from_u32(0x2400 + code).unwrap_or('\u{fffd}'),
        0x7f => '\u{2421}',
        _ => '\u{fffd}',
    }
}

/// A whole page, in which all that others have named can be seen, and does nothing else.
pub fn visible(page: String) -> String {
    if !page.contains(is_active) {
        return page;
    }
    page.chars().map(|c| if is_active(c) { picture(c) } else { c }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_steers_a_terminal_or_turns_text_is_seen_and_all_else_is_left() {
        let page = "<p>\n\té 漢 a\u{1b}]0;x\u{7}b\u{202e}c\u{9b}d\u{2067}e</p>".to_owned();
        assert_eq!(visible(page), "<p>\n\té 漢 a␛]0;x␇b\u{fffd}c\u{fffd}d\u{fffd}e</p>");
    }
}
