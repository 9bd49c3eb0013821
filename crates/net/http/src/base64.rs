//! Bytes as text in HTTP fields (RFC 4648, section 4): with padding, and read strictly, so there is one text for each sequence
//! of bytes.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

/// Appends the text of these bytes.
pub fn encode(bytes: &[u8], out: &mut Vec<u8>) {
    let start = out.len();
    // Four digits for every three bytes that are begun.
    out.resize(start + bytes.len().div_ceil(3) * 4, 0);
    STANDARD.encode_slice(bytes, &mut out[start..]).expect("there is room for all digits");
}

/// The bytes of a text; none when it is not such a text.
pub fn decode(text: &[u8]) -> Option<Vec<u8>> {
    STANDARD.decode(text).ok()
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
