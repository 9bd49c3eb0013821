//! Text of others as a field of CSV.

use std::borrow::Cow;

/// A text as a field: never a formula, and with quotes where it needs them. Where a comma is in numbers, spreadsheets part fields at
/// semicolons.
pub fn quoted(text: &str) -> String {
    let text = defused(text);
    if text.contains([',', ';', '\t', '"', '\n', '\r']) || text.starts_with(' ') || text.ends_with(' ') {
        format!("\"{}\"", text.replace('"', "\"\""))
    } else {
        text.into_owned()
    }
}

/// Text that a spreadsheet takes for text: one that begins like a formula gets the `'` before it that says so. URLs and names are
/// chosen by others, and a formula may run programs.
fn defused(text: &str) -> Cow<'_, str> {
    let is_number = text.starts_with('-') && text.parse::<f64>().is_ok();
    match text.starts_with(['=', '+', '-', '@', '\t', '\r']) && !is_number {
        true => Cow::Owned(format!("'{text}")),
        false => Cow::Borrowed(text),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::quote::HOSTILE;

    /// Reads one field as a reader of CSV does.
    fn read(field: &str) -> String {
        match field.strip_prefix('"').and_then(|rest| rest.strip_suffix('"')) {
            Some(inner) => {
                assert!(!inner.replace("\"\"", "").contains('"'), "{field:?} ends early");
                inner.replace("\"\"", "\"")
            }
            None => {
                assert!(!field.contains([',', ';', '"', '\n', '\r', '\t']), "{field:?} is several fields");
                field.to_owned()
            }
        }
    }

    #[test]
    fn every_text_is_one_field_and_no_formula() {
        for text in HOSTILE {
            let read = read(&quoted(text));
            assert!(!read.starts_with(['=', '+', '-', '@', '\t', '\r']), "{read:?}");
            assert_eq!(read.strip_prefix('\'').unwrap_or(&read), text);
        }
    }

    #[test]
    fn text_that_begins_like_a_formula_is_text_and_a_number_is_a_number() {
        assert_eq!((quoted("-1.5"), quoted("=1;=2")), ("-1.5".into(), "\"'=1;=2\"".into()));
        assert_eq!(quoted("a;=cmd"), "\"a;=cmd\"", "one field where semicolons part them, too");
        assert_eq!((quoted("/a=b"), quoted(" a")), ("/a=b".into(), "\" a\"".into()));
    }
}
