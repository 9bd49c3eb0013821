//! How do bytes travel as text (RFC 4648, chapter 4)?
//!
//! With padding, as HTTP writes it; read strictly: one text for each sequence of bytes.

const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/// Appends the text of these bytes.
pub fn encode(bytes: &[u8], out: &mut Vec<u8>) {
    for group in bytes.chunks(3) {
        let word =
            group.iter().fold(0u32, |word, byte| (word << 8) | u32::from(*byte)) << (8 * (3 - group.len()));
        for at in 0..4 {
            let digit = DIGITS[(word >> (18 - 6 * at)) as usize & 0x3f];
            out.push(if at <= group.len() { digit } else { b'=' });
        }
    }
}

/// The bytes of a text; none when it is not such a text.
pub fn decode(text: &[u8]) -> Option<Vec<u8>> {
    if !text.len().is_multiple_of(4) {
        return None;
    }
    let digits = text.strip_suffix(b"==").or_else(|| text.strip_suffix(b"=")).unwrap_or(text);
    let mut out = Vec::with_capacity(digits.len() * 3 / 4);
    for group in digits.chunks(4) {
        let mut word = 0u32;
        for digit in group {
            word = (word << 6) | value(*digit)?;
        }
        word <<= 6 * (4 - group.len());
        let bytes = group.len() * 6 / 8;
        // Bits that are left over must be zero, or two texts would mean the same.
        if bytes == 0 || word & (0xff_ffff >> (8 * bytes)) != 0 {
            return None;
        }
        out.extend_from_slice(&word.to_be_bytes()[1..=bytes]);
    }
    Some(out)
}

fn value(digit: u8) -> Option<u32> {
    let value = match digit {
        b'A'..=b'Z' => digit - b'A',
        b'a'..=b'z' => digit - b'a' + 26,
        b'0'..=b'9' => digit - b'0' + 52,
        b'+' => 62,
        b'/' => 63,
        _ => return None,
    };
    Some(u32::from(value))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn encoded(bytes: &[u8]) -> String {
        let mut out = Vec::new();
        encode(bytes, &mut out);
        String::from_utf8(out).expect("is ASCII")
    }

    #[test]
    fn known_texts_are_written() {
        for (bytes, text) in
            [("", ""), ("f", "Zg=="), ("fo", "Zm8="), ("foo", "Zm9v"), ("foobar", "Zm9vYmFy")]
        {
            assert_eq!(encoded(bytes.as_bytes()), text);
        }
    }

    #[test]
    fn what_is_no_such_text_is_refused() {
        for bad in ["Z", "Zg", "Zg=", "Zg=a", "Zh==", "Zm9=", "====", "Z===", "Zm9v\n", "Zm-v", "Zg==Zg=="] {
            assert_eq!(decode(bad.as_bytes()), None, "{bad}");
        }
    }

    proptest! {
        #[test]
        fn bytes_come_back(bytes in prop::collection::vec(any::<u8>(), 0..100)) {
            prop_assert_eq!(decode(encoded(&bytes).as_bytes()), Some(bytes));
        }

        #[test]
        fn one_text_for_each_sequence_of_bytes(text in "[A-D+/=]{0,12}") {
            if let Some(bytes) = decode(text.as_bytes()) {
                prop_assert_eq!(encoded(&bytes), text);
            }
        }
    }
}
