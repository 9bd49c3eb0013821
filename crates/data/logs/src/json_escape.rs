//! Escapes in texts of JSON. A character is the same however it is spelt: `/` or `\/`, `é` or `\u00e9`.

/// Decodes the escapes in lines of JSON in place; the length of what remains. Quotes, backslashes and control characters stay escaped: they
/// would end a text or a line, or be taken for an escape.
pub(crate) fn decode(text: &mut [u8]) -> usize {
    let (mut from, mut to) = (0, 0);
    while let Some(plain) = memchr::memchr(b'\\', &text[from..]) {
        text.copy_within(from..from + plain, to);
        (from, to) = (from + plain, to + plain);
        let escape = Escape::at_beginning_of(&text[from..]);
        match escape.character {
            None => {
                text.copy_within(from..from + escape.length, to);
                to += escape.length;
            }
            Some(character) => {
                if matches!(character, '"' | '\\') {
                    text[to] = b'\\';
                    to += 1;
                }
                to += character.encode_utf8(&mut text[to..]).len();
            }
        }
        from += escape.length;
    }
    text.copy_within(from.., to);
    to + text.len() - from
}

/// A line without its escapes.
pub(crate) fn decoded(line: &[u8]) -> Vec<u8> {
    let mut line = line.to_vec();
    let length = decode(&mut line);
    line.truncate(length);
    line
}

struct Escape {
    /// The character it stands for; none: it stays as it is.
    character: Option<char>,
    length: usize,
}

impl Escape {
    fn at_beginning_of(text: &[u8]) -> Self {
        let Some(unit) = code_unit(text) else {
            let character = text.starts_with(br"\/").then_some('/');
            return Self { character, length: text.len().min(2) };
        };
        // A character beyond the first 65,536 is two.
        let low = code_unit(&text[UNIT_BYTES..]).filter(|_| (0xd800..0xdc00).contains(&unit));
        let character = char::decode_utf16([unit].into_iter().chain(low)).next().and_then(Result::ok);
        let length = if character.is_some() && low.is_some() { 2 * UNIT_BYTES } else { UNIT_BYTES };
        Self { character: character.filter(|character| !character.is_control()), length }
    }
}

/// Bytes of `\u00e9`.
const UNIT_BYTES: usize = 6;

/// The code unit of UTF-16 that `\u00e9` stands for.
fn code_unit(text: &[u8]) -> Option<u16> {
    let digits = text.strip_prefix(br"\u")?.get(..4)?;
    digits.iter().try_fold(0, |unit, digit| Some(unit << 4 | char::from(*digit).to_digit(16)? as u16))
}

#[cfg(test)]
mod tests {
    fn decoded(text: &str) -> String {
        String::from_utf8(super::decoded(text.as_bytes())).unwrap()
    }

    #[test]
    fn a_character_is_the_same_however_it_is_spelt() {
        for (written, expected) in [
            (r#"{"url":"\/a\u0026b\u003c"}"#, r#"{"url":"/a&b<"}"#),
            (r"caf\u00e9 \u20AC \ud83d\ude00 end", "café € 😀 end"),
            (r#"\u0022\u005c\"\\"#, r#"\"\\\"\\"#),
            (r"\n\u0001\u007f\u0085", r"\n\u0001\u007f\u0085"),
            // A backslash before a letter, half of a pair, and what breaks off.
            (r"\\u0041\u005cu0041", r"\\u0041\\u0041"),
            (r"\ud83d\u0041 \ude00", r"\ud83dA \ude00"),
            (r"\u00", r"\u00"),
            (r"\", r"\"),
            ("plain", "plain"),
        ] {
            assert_eq!(decoded(written), expected, "{written}");
            assert_eq!(decoded(expected), expected, "{written} twice");
        }
    }

    proptest::proptest! {
        #[test]
        fn what_an_encoder_escapes_is_decoded(text in "[a-zé€😀/]{0,20}") {
            let escaped: String = text.encode_utf16().map(|unit| format!("\\u{unit:04x}")).collect();
            proptest::prop_assert_eq!(decoded(&escaped), text);
        }

        #[test]
        fn no_text_becomes_longer(text in "[\\\\ud80/\"x]{0,40}") {
            proptest::prop_assert!(decoded(&text).len() <= text.len());
        }
    }
}
