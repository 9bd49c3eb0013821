//! Frames of a case: as bytes, and as a line that can be read.

use assay_http2::ErrorCode;
use assay_http2::frame::{FrameHead, flag, kind};

use crate::case::{Frame, Payload};
use crate::template::{Values, with_values};

/// Names of frame types, by number (RFC 9113, 6).
const KINDS: [&str; 10] = [
    "DATA",
    "HEADERS",
    "PRIORITY",
    "RST_STREAM",
    "SETTINGS",
    "PUSH_PROMISE",
    "PING",
    "GOAWAY",
    "WINDOW_UPDATE",
    "CONTINUATION",
];
/// Names of flags that a case can set.
pub const FLAGS: [(&str, u8); 6] = [
    ("END_STREAM", flag::END_STREAM),
    ("ACK", flag::ACK),
    ("END_HEADERS", flag::END_HEADERS),
    ("PADDED", flag::PADDED),
    ("PRIORITY", flag::PRIORITY),
    ("UNKNOWN", 0xc2),
];
/// Names of settings, by number (RFC 9113, 6.5.2, and RFC 8441).
const SETTINGS: [(u16, &str); 7] = [
    (1, "HEADER_TABLE_SIZE"),
    (2, "ENABLE_PUSH"),
    (3, "MAX_CONCURRENT_STREAMS"),
    (4, "INITIAL_WINDOW_SIZE"),
    (5, "MAX_FRAME_SIZE"),
    (6, "MAX_HEADER_LIST_SIZE"),
    (8, "ENABLE_CONNECT_PROTOCOL"),
];
/// Most bytes of a payload that are written out in a line.
const MAX_SHOWN: usize = 200;

/// The number of a frame type, from its name or its number.
pub fn kind_of(name: &str) -> Option<u8> {
    let named = KINDS.iter().position(|known| *known == name).map(|number| number as u8);
    named.or_else(|| name.parse().ok())
}

/// The name of a frame type.
pub fn kind_name(kind: u8) -> String {
    KINDS.get(usize::from(kind)).map_or_else(|| format!("frame of type {kind}"), |name| (*name).to_owned())
}

/// A field of a message, as bytes.
pub type Field = (Vec<u8>, Vec<u8>);

/// A field line of a case, `name: value` or `:name: value`, as it is sent.
pub fn field(line: &str) -> Field {
    let (colon, rest) = if let Some(rest) = line.strip_prefix(':') { (":", rest) } else { ("", line) };
    let (name, value) = rest.split_once(':').unwrap_or((rest, ""));
    let value = value.strip_prefix(' ').unwrap_or(value);
    (format!("{colon}{name}").into_bytes(), value.as_bytes().to_vec())
}

/// A header block of literals that are in no table and not coded (RFC 7541, 6.2.2).
pub fn block(fields: &[Field]) -> Vec<u8> {
    let mut out = Vec::new();
    for (name, value) in fields {
        out.push(0);
        for text in [name, value] {
            length(text.len(), &mut out);
            out.extend_from_slice(text);
        }
    }
    out
}

/// The length of a string literal (RFC 7541, 5.1 and 5.2).
fn length(bytes: usize, out: &mut Vec<u8>) {
    if bytes < 127 {
        return out.push(bytes as u8);
    }
    out.push(127);
    let mut rest = bytes - 127;
    while rest >= 128 {
        out.push((rest % 128 + 128) as u8);
        rest /= 128;
    }
    out.push(rest as u8);
}

/// The payload of a frame.
pub fn payload(frame: &Frame, values: &Values) -> Vec<u8> {
    match &frame.payload {
        Payload::Fields(lines) => {
            block(&lines.iter().map(|line| field(&with_values(line, values))).collect::<Vec<_>>())
        }
        Payload::Text(text) => with_values(text, values).into_bytes(),
        Payload::Bytes(bytes) => bytes.clone(),
    }
}

pub fn write(out: &mut Vec<u8>, kind: u8, flags: u8, stream: u32, payload: &[u8]) {
    out.extend_from_slice(&FrameHead { length: payload.len() as u32, kind, flags, stream }.bytes());
    out.extend_from_slice(payload);
}

/// Names of the flags that are set, and mean something in a frame of this type.
pub fn flag_names(kind: u8, flags: u8) -> Vec<&'static str> {
    let means = |name: &str| match name {
        "ACK" => matches!(kind, kind::SETTINGS | kind::PING),
        "END_STREAM" => matches!(kind, kind::DATA | kind::HEADERS),
        "END_HEADERS" => matches!(kind, kind::HEADERS | kind::CONTINUATION | kind::PUSH_PROMISE),
        "PADDED" => matches!(kind, kind::DATA | kind::HEADERS | kind::PUSH_PROMISE),
        "PRIORITY" => kind == kind::HEADERS,
        _ => false,
    };
    FLAGS.into_iter().filter(|(name, bit)| flags & bit != 0 && means(name)).map(|(name, _)| name).collect()
}

/// A frame in words: `HEADERS stream 1 END_STREAM END_HEADERS`, with what its payload says.
pub fn line(head: FrameHead, payload: &[u8]) -> String {
    let mut line = kind_name(head.kind);
    if head.stream != 0 {
        line.push_str(&format!(" stream {}", head.stream));
    }
    for name in flag_names(head.kind, head.flags) {
        line.push_str(&format!(" {name}"));
    }
    let number =
        |at: usize| payload.get(at..at + 4).and_then(|four| Some(u32::from_be_bytes(four.try_into().ok()?)));
    match head.kind {
        kind::DATA => line.push_str(&format!(" {} bytes: {}", payload.len(), text(payload))),
        kind::RST_STREAM => {
            line.push_str(&number(0).map_or_else(String::new, |code| format!(" {}", ErrorCode(code))))
        }
        kind::GOAWAY => {
            line.push_str(&number(4).map_or_else(String::new, |code| format!(" {}", ErrorCode(code))));
            line.push_str(&number(0).map_or_else(String::new, |last| format!(" after stream {last}")));
        }
        kind::WINDOW_UPDATE => {
            line.push_str(&number(0).map_or_else(String::new, |more| format!(" by {more}")))
        }
        kind::HEADERS | kind::CONTINUATION => {}
        kind::SETTINGS if payload.len().is_multiple_of(6) => {
            payload
                .chunks_exact(6)
                .for_each(|setting| line.push_str(&format!(" {}", setting_shown(setting))));
        }
        _ if payload.is_empty() => {}
        _ => {
            let hex: String = payload.iter().take(MAX_SHOWN).map(|byte| format!("{byte:02x}")).collect();
            line.push_str(&format!(" {hex}"));
        }
    }
    line
}

/// One setting of six bytes (RFC 9113, 6.5.1): `MAX_CONCURRENT_STREAMS=100`.
fn setting_shown(setting: &[u8]) -> String {
    let number = setting.iter().fold(0_u64, |number, byte| number << 8 | u64::from(*byte));
    let (name, value) = (number >> 32, number & 0xffff_ffff);
    match SETTINGS.iter().find(|(known, _)| u64::from(*known) == name) {
        Some((_, name)) => format!("{name}={value}"),
        None => format!("{name}={value}"),
    }
}

/// Bytes in one line.
pub fn text(bytes: &[u8]) -> String {
    crate::message::shown(bytes, MAX_SHOWN).replace('\n', "")
}

/// Fields of a message, each on a line of its own below its frame.
pub fn field_lines<'f>(fields: impl IntoIterator<Item = &'f Field>) -> String {
    fields.into_iter().map(|(name, value)| format!("\n  {}: {}", text(name), text(value))).collect()
}

/// True if a line begins with the type of a frame, and has the other words of a pattern.
pub fn matches(line: &str, pattern: &str) -> bool {
    let first = line.lines().next().unwrap_or_default();
    let mut wanted = pattern.split_whitespace();
    let mut words = first.split_whitespace();
    words.next() == wanted.next()
        && wanted.all(|word| first.split_whitespace().skip(1).any(|own| own == word || is_within(own, word)))
}

/// True if a word is `NAME=5`, and the pattern `NAME<=7`.
fn is_within(word: &str, pattern: &str) -> bool {
    let bound = pattern.split_once("<=").and_then(|(name, most)| Some((name, most.parse::<u64>().ok()?)));
    let value = word.split_once('=').and_then(|(name, value)| Some((name, value.parse::<u64>().ok()?)));
    bound.zip(value).is_some_and(|((wanted, most), (name, value))| wanted == name && value <= most)
}

#[cfg(test)]
mod tests {
    use assay_http2::hpack::Decoder;

    use super::*;

    #[test]
    fn a_block_says_what_the_lines_say_whatever_is_in_them() {
        let long = format!("x-long: {}", "v".repeat(500));
        let lines = [":path: /a:b", "X-Upper:  two spaces", "x odd: a\r\nb\0", long.as_str()];
        let fields: Vec<Field> = lines.iter().map(|line| field(line)).collect();
        let mut decoded: Vec<Field> = Vec::new();
        Decoder::default()
            .decode(&block(&fields), |field| decoded.push((field.name.to_vec(), field.value.to_vec())))
            .unwrap();
        assert_eq!(decoded, fields);
        assert_eq!(decoded[0], (b":path".to_vec(), b"/a:b".to_vec()));
        assert_eq!(decoded[1].1, b" two spaces");
    }

    #[test]
    fn a_frame_is_shown_with_what_it_says_and_found_by_its_words() {
        let shown = |kind, flags, stream, payload: &[u8]| {
            line(FrameHead { length: payload.len() as u32, kind, flags, stream }, payload)
        };
        let goaway = shown(kind::GOAWAY, 0, 0, b"\0\0\0\x03\0\0\0\x01why");
        assert_eq!(goaway, "GOAWAY PROTOCOL_ERROR after stream 3");
        assert!(matches(&goaway, "GOAWAY PROTOCOL_ERROR") && matches(&goaway, "GOAWAY"));
        assert!(!matches(&goaway, "GOAWAY NO_ERROR") && !matches(&goaway, "PROTOCOL_ERROR"));
        assert_eq!(shown(kind::SETTINGS, flag::ACK, 0, b""), "SETTINGS ACK");
        let settings = shown(kind::SETTINGS, 0, 0, b"\0\x03\0\0\0\x64\0\x42\0\0\0\x01");
        assert_eq!(settings, "SETTINGS MAX_CONCURRENT_STREAMS=100 66=1");
        assert!(matches(&settings, "SETTINGS MAX_CONCURRENT_STREAMS=100"));
        assert!(matches(&settings, "SETTINGS MAX_CONCURRENT_STREAMS<=100"));
        assert!(
            !matches(&settings, "SETTINGS MAX_CONCURRENT_STREAMS<=99")
                && !matches(&settings, "SETTINGS 66<=0")
        );
        assert_eq!(shown(kind::SETTINGS, 0, 0, b"\0\x03\0"), "SETTINGS 000300");
        assert_eq!(shown(kind::PING, flag::ACK, 0, b"abcdefgh"), "PING ACK 6162636465666768");
        assert_eq!(shown(kind::DATA, flag::END_STREAM, 1, b"a\n"), "DATA stream 1 END_STREAM 2 bytes: a\\n");
        assert_eq!(shown(66, 0xff, 1, b""), "frame of type 66 stream 1");
        assert_eq!((kind_of("PING"), kind_of("66"), kind_of("PONG")), (Some(6), Some(66), None));
    }
}
