//! What runtimes of containers and syslog put before each line of a log.

use std::ops::Range;

use super::trim;

/// The head of a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LinePrefix {
    /// `2026-01-02T03:04:05.678901234Z stdout F `, as Kubernetes keeps logs (CRI).
    Cri,
    /// `{"log":"…\n","stream":"stdout","time":"…"}`, as Docker keeps logs.
    Docker,
    /// `nginx-1  | `, as `docker compose logs` shows them.
    Compose,
    /// `2026-01-02T03:04:05.678901234Z `, as `docker logs -t` and `kubectl logs --timestamps` show them.
    Time,
    /// `Jan  2 03:04:05 host nginx[12]: ` or `<190>1 2026-01-02T03:04:05Z host nginx 12 - - ` (RFC 3164, RFC 5424, journald).
    Syslog,
}

/// Rest of a line behind its prefix.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PrefixedLine {
    pub range: Range<usize>,
    /// The text continues in the next line of the same stream.
    pub is_part: bool,
    /// Written to the standard error.
    pub is_error: bool,
}

/// Lines out of ten that must have the prefix of the log.
const NEARLY_ALL_OF_10: usize = 9;

impl LinePrefix {
    const ALL: [Self; 5] = [Self::Cri, Self::Docker, Self::Compose, Self::Syslog, Self::Time];

    /// The head of nearly all of these lines.
    pub fn of(lines: &[&[u8]]) -> Option<Self> {
        let lines: Vec<&&[u8]> = lines.iter().filter(|line| !line.is_empty()).collect();
        let has = |prefix: &Self| lines.iter().filter(|line| prefix.body(line).is_some()).count();
        Self::ALL
            .into_iter()
            .find(|prefix| !lines.is_empty() && has(prefix) * 10 >= lines.len() * NEARLY_ALL_OF_10)
    }

    /// Origin of the prefix, for people.
    pub fn product(self) -> &'static str {
        match self {
            Self::Cri => "a container runtime (`… stdout F`)",
            Self::Docker => "a container runtime (Docker's `json-file`)",
            Self::Compose => "Docker Compose (`name | `)",
            Self::Time => "a container runtime (a time)",
            Self::Syslog => "a syslog message",
        }
    }

    /// Rest of a line behind the prefix; none: it has no such prefix.
    pub fn body(self, line: &[u8]) -> Option<PrefixedLine> {
        let text = trim(line);
        let begin = line.len() - line.strip_suffix(b"\r").map_or(0, |_| 1) - text.len();
        let end = begin + text.len();
        let behind =
            |rest: &[u8]| PrefixedLine { range: end - rest.len()..end, is_part: false, is_error: false };
        match self {
            Self::Cri => {
                let rest = behind_iso_time(text)?;
                let (stream, rest) = word(rest)?;
                let is_error = match stream {
                    b"stdout" => false,
                    b"stderr" => true,
                    _ => return None,
                };
                // A line without text ends behind its tag.
                let (tags, rest) = word(rest).unwrap_or((rest, b""));
                let is_part = match tags.first()? {
                    b'F' => false,
                    b'P' => true,
                    _ => return None,
                };
                Some(PrefixedLine { is_part, is_error, ..behind(rest) })
            }
            Self::Docker => {
                let log = text.strip_prefix(b"{\"log\":\"")?;
                let length = text_length(log)?;
                let rest = &log[length..];
                let is_error = memchr::memmem::find(rest, b"\"stream\":\"stderr\"").is_some();
                if !(is_error || memchr::memmem::find(rest, b"\"stream\":\"stdout\"").is_some())
                    || !rest.ends_with(b"}")
                {
                    return None;
                }
                let from = end - log.len();
                let is_whole = ends_with_line_end(&log[..length]);
                // `\n` is two bytes in a string of JSON.
                let to = from + length - if is_whole { 2 } else { 0 };
                Some(PrefixedLine { range: from..to, is_part: !is_whole, is_error })
            }
            Self::Compose => {
                let (name, rest) = word(text)?;
                let is_name = |byte: &u8| byte.is_ascii_alphanumeric() || b"._-".contains(byte);
                let rest = rest.trim_ascii_start().strip_prefix(b"| ")?;
                (name.iter().all(is_name) && name.iter().any(u8::is_ascii_alphabetic)).then(|| behind(rest))
            }
            Self::Time => behind_iso_time(text).map(behind),
            Self::Syslog => behind_syslog(text).map(behind),
        }
    }
}

/// The first word of a text, and what is behind the blank after it.
fn word(text: &[u8]) -> Option<(&[u8], &[u8])> {
    let end = memchr::memchr(b' ', text).filter(|end| *end > 0)?;
    Some((&text[..end], &text[end + 1..]))
}

/// Rest behind a time as in RFC 3339 and a blank.
fn behind_iso_time(text: &[u8]) -> Option<&[u8]> {
    word(text).filter(|(time, _)| is_iso_time(time)).map(|(_, rest)| rest)
}

fn is_iso_time(word: &[u8]) -> bool {
    let is_part = |byte: &u8| byte.is_ascii_digit() || b".,:+-Z".contains(byte);
    begins_with_day(word) && word.len() >= 19 && word[11..].iter().all(is_part)
}

/// True for what begins like a time as in RFC 3339: `2026-01-02T`.
pub fn begins_with_day(text: &[u8]) -> bool {
    let has_marks = |day: &[u8; 11]| (day[4], day[7], day[10]) == (b'-', b'-', b'T');
    text.first_chunk().is_some_and(|day| day[0].is_ascii_digit() && has_marks(day))
}

fn behind_syslog(text: &[u8]) -> Option<&[u8]> {
    let rest = behind_priority(text);
    if let Some(rest) = rest.and_then(|rest| rest.strip_prefix(b"1 ")) {
        // RFC 5424: time, host, program, its number, the kind of message, data in brackets.
        let rest = rest.strip_prefix(b"- ").or_else(|| behind_iso_time(rest))?;
        let rest = (0..4).try_fold(rest, |rest, _| word(rest).map(|(_, rest)| rest))?;
        let rest = match rest.first()? {
            b'-' => rest.strip_prefix(b"- ")?,
            b'[' => &rest[memchr::memmem::find(rest, b"] ")? + 2..],
            _ => return None,
        };
        // UTF-8 is announced by a byte order mark.
        return Some(rest.strip_prefix(b"\xef\xbb\xbf").unwrap_or(rest));
    }
    let rest = rest.unwrap_or(text);
    let rest = behind_iso_time(rest).or_else(|| {
        // `Jan  2 03:04:05 `
        let (time, rest) = rest.split_first_chunk::<16>()?;
        let marks = [(3, b' '), (6, b' '), (9, b':'), (12, b':'), (15, b' ')];
        let is_time = time[..3].iter().all(u8::is_ascii_alphabetic)
            && marks.iter().all(|(at, mark)| time[*at] == *mark);
        // RFC 3164 has no year and no zone.
        is_time.then_some(rest)
    })?;
    let is_program = |word: &[u8]| {
        let name = word.strip_suffix(b":").unwrap_or_default();
        let is_letter = |byte: &u8| byte.is_ascii_alphanumeric() || b"._-/[]()@".contains(byte);
        !name.is_empty() && name.iter().all(is_letter)
    };
    // Some programs leave the host out.
    let (first, rest) = word(rest)?;
    if is_program(first) {
        return Some(rest);
    }
    let (second, rest) = word(rest)?;
    is_program(second).then_some(rest)
}

/// Rest behind `<190>`.
fn behind_priority(text: &[u8]) -> Option<&[u8]> {
    let inside = text.strip_prefix(b"<")?;
    let digits = inside.iter().take_while(|byte| byte.is_ascii_digit()).count();
    inside[digits..].strip_prefix(b">").filter(|_| (1..=3).contains(&digits))
}

/// Length of a JSON string, up to the first unescaped quote.
fn text_length(text: &[u8]) -> Option<usize> {
    let mut from = 0;
    loop {
        let at = from + memchr::memchr2(b'"', b'\\', &text[from..])?;
        if text[at] == b'"' {
            return Some(at);
        }
        // The byte behind a backslash is escaped, whatever it is.
        from = at + 2;
        text.get(from..)?;
    }
}

/// True for a text of JSON that ends with `\n`; behind an escaped backslash, `n` is a letter.
fn ends_with_line_end(text: &[u8]) -> bool {
    let Some(rest) = text.strip_suffix(b"n") else { return false };
    rest.iter().rev().take_while(|byte| **byte == b'\\').count() % 2 == 1
}

/// Writes a text of JSON, which stands in `range`, to `to`, which is not behind it, without its escapes; where it ends then. An escape of a
/// control character stays: it would end the line.
pub fn write_unescaped(buffer: &mut [u8], range: Range<usize>, to: usize) -> usize {
    let (mut from, mut to) = (range.start, to);
    let hex = |digits: &[u8]| {
        let text = std::str::from_utf8(digits).ok().filter(|text| text.len() == 4)?;
        u16::from_str_radix(text, 16).ok()
    };
    while from < range.end {
        let rest = &buffer[from..range.end];
        let (letter, length) = match rest {
            [b'\\', letter @ (b'"' | b'\\' | b'/'), ..] => (Some(char::from(*letter)), 2),
            [b'\\', b't', ..] => (Some('\t'), 2),
            [b'\\', b'u', digits @ ..] => {
                let high = digits.get(..4).and_then(hex);
                let low =
                    digits.get(4..10).filter(|low| low.starts_with(b"\\u")).and_then(|low| hex(&low[2..]));
                let units = high.into_iter().chain(low);
                let decoded = char::decode_utf16(units).next().and_then(Result::ok);
                // A letter beyond the basic plane is two escapes.
                let length = decoded.map_or(2, |letter| letter.len_utf16() * 6);
                (decoded.filter(|letter| !letter.is_control()), length)
            }
            [b'\\', _, ..] => (None, 2),
            _ => (None, 1),
        };
        match letter {
            Some(letter) => to += letter.encode_utf8(&mut buffer[to..]).len(),
            None => {
                buffer.copy_within(from..from + length, to);
                to += length;
            }
        }
        from += length;
    }
    to
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn heads_are_known_and_skipped() {
        let line = "192.0.2.1 - - [01/Jul/2026:10:00:00 +0000] \"GET / HTTP/1.1\" 200 1";
        for (prefix, text) in [
            (LinePrefix::Cri, "2026-01-02T03:04:05.678901234Z stdout F "),
            (LinePrefix::Cri, "2026-01-02T03:04:05.678901234+01:00 stderr F "),
            (LinePrefix::Compose, "nginx-1  | "),
            (LinePrefix::Time, "2026-01-02T03:04:05.678901234Z "),
            (LinePrefix::Syslog, "Jan  2 03:04:05 host nginx[12]: "),
            (LinePrefix::Syslog, "Jan 12 03:04:05 nginx: "),
            (LinePrefix::Syslog, "<190>Jan  2 03:04:05 host nginx: "),
            (LinePrefix::Syslog, "2026-01-02T03:04:05.678901+00:00 host nginx[12]: "),
            (LinePrefix::Syslog, "<190>1 2026-01-02T03:04:05.678Z host nginx 12 - - "),
            (LinePrefix::Syslog, "<190>1 2026-01-02T03:04:05.678Z host nginx 12 ID47 [a@1 b=\"c\"] \u{feff}"),
            (LinePrefix::Syslog, "<14>1 - - - - - - "),
        ] {
            let whole = format!("{text}{line}\r");
            assert_eq!(LinePrefix::of(&[whole.as_bytes()]), Some(prefix), "{text}");
            assert_eq!(whole.get(prefix.body(whole.as_bytes()).unwrap().range), Some(line), "{text}");
        }
        for line in [
            line,
            "",
            "1700000000.250    240 10.0.0.9 TCP_MISS/200 2011 GET http://a/ - HIER_DIRECT/192.0.2.1 text/html",
            "HIT|200|1782900004156|100|1|192.0.2.1|-|http://h/a|DE|curl|1|DE",
            "200 | 12 ms | 127.0.0.1 | GET /a",
            "{\"log\":\"a\\n\",\"status\":200}",
            "{\"log\":\"a\\",
            "<190>",
            "Jan  2 03:04:05 host",
        ] {
            assert_eq!(LinePrefix::of(&[line.as_bytes()]), None, "{line}");
        }
    }

    #[test]
    fn a_stream_without_a_tag_is_no_head_of_a_container_runtime() {
        for text in
            ["2026-01-02T03:04:05Z stdout ", "2026-01-02T03:04:05Z stdout", "2026-01-02T03:04:05Z stderr X a"]
        {
            assert_eq!(LinePrefix::Cri.body(text.as_bytes()), None, "{text}");
        }
    }

    #[test]
    fn a_line_of_docker_is_the_text_in_it() {
        for (log, text, is_part) in [
            (r#"a \"b\" \\x16 \u0026\u00e9\ud83d\ude00\/\n"#, "a \"b\" \\x16 &é😀/", false),
            (r"half", "half", true),
            (r"half \\n", r"half \n", true),
            (r"whole \\\n", r"whole \", false),
            (r"\u0000\n\r\ud83dx\u00\n", r"\u0000\n\r\ud83dx\u00", false),
            (r"\n", "", false),
        ] {
            let mut line =
                format!("{{\"log\":\"{log}\",\"stream\":\"stderr\",\"time\":\"2026-01-02T03:04:05Z\"}}")
                    .into_bytes();
            let body = LinePrefix::Docker.body(&line).unwrap();
            let end = write_unescaped(&mut line, body.range, 0);
            assert_eq!(
                (std::str::from_utf8(&line[..end]), body.is_part, body.is_error),
                (Ok(text), is_part, true),
                "{log}"
            );
        }
    }

    proptest::proptest! {
        #[test]
        fn whatever_a_line_is_its_body_stands_in_it(
            parts in proptest::collection::vec(proptest::sample::select(vec![
                "2026-01-02T03:04:05.6Z", "stdout", "stderr", "F", "P", " ", "<190>", "1 ", "- ", "[a@1 b=\"] ", "Jan  2 03:04:05 ", "nginx: ",
                "nginx-1", "| ", "{\"log\":\"", "\\", "n", "u00e9", "\"", ",\"stream\":\"stdout\"", "}", "\0", "\r", "é",
            ]), 0..12),
        ) {
            let line = parts.concat();
            for prefix in LinePrefix::ALL {
                if let Some(body) = prefix.body(line.as_bytes()) {
                    proptest::prop_assert!(body.range.start <= body.range.end && body.range.end <= line.len());
                }
            }
        }
    }
}
