//! Messages as they were on the wire, taken apart without judging them.
//!
//! What a target sends is evidence, however wrong it is: a parser that refuses a message could not show it. `assay_http::head` is for
//! messages that are acted on; this is for messages that are looked at.

use assay_http::framing::{BodyDecoder, BodyFraming};

/// Longest message that is read, in bytes; more is cut off.
pub const MAX_BYTES: usize = 4 << 20;

/// A message: its head, and its body without the transfer coding.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Message {
    /// Request line or status line.
    pub start: String,
    /// Names and values of the fields, in order; bytes that are not ASCII are replaced.
    pub fields: Vec<(String, String)>,
    /// Body as far as it came.
    pub body: Vec<u8>,
    /// True if the body has the length that the head says.
    pub is_complete: bool,
    /// Statuses of interim responses before it.
    pub interim: Vec<u16>,
}

impl Message {
    /// The head at the beginning of `bytes`, with its length; none while it is incomplete.
    pub fn head(bytes: &[u8]) -> Option<(Self, usize)> {
        let end = bytes.windows(4).position(|four| four == b"\r\n\r\n")?;
        let text: String =
            bytes[..end].iter().map(|&byte| if byte < 128 { byte as char } else { '\u{fffd}' }).collect();
        let mut lines = text.split("\r\n");
        let start = lines.next().unwrap_or_default().to_owned();
        let fields = lines.map(|line| match line.split_once(':') {
            Some((name, value)) => (name.to_owned(), value.trim().to_owned()),
            None => (line.to_owned(), String::new()),
        });
        Some((Self { start, fields: fields.collect(), ..Self::default() }, end + 4))
    }

    /// Status of a response; 0: the status line has none.
    pub fn status(&self) -> u16 {
        self.start.split(' ').nth(1).and_then(|status| status.parse().ok()).unwrap_or(0)
    }

    /// Method of a request.
    pub fn method(&self) -> &str {
        self.start.split(' ').next().unwrap_or_default()
    }

    /// Target of a request.
    pub fn target(&self) -> &str {
        self.start.split(' ').nth(1).unwrap_or_default()
    }

    /// Values of all fields of this name.
    pub fn values<'m>(&'m self, name: &'m str) -> impl Iterator<Item = &'m str> {
        self.fields
            .iter()
            .filter(move |(own, _)| own.eq_ignore_ascii_case(name))
            .map(|(_, value)| value.as_str())
    }

    /// Value of the first field of this name.
    pub fn value(&self, name: &str) -> Option<&str> {
        self.fields.iter().find(|(own, _)| own.eq_ignore_ascii_case(name)).map(|(_, value)| value.as_str())
    }

    /// True if a request has a condition that a 304 is a response to.
    pub fn is_conditional(&self) -> bool {
        ["If-None-Match", "If-Modified-Since"].iter().any(|name| self.value(name).is_some())
    }

    /// Framing of the body of a request.
    pub fn request_framing(&self) -> BodyFraming {
        self.stated_framing().unwrap_or(BodyFraming::None)
    }

    /// Framing of the body of a response to a request with this method.
    pub fn response_framing(&self, method: &str) -> BodyFraming {
        let status = self.status();
        if method == "HEAD" || status < 200 || status == 204 || status == 304 {
            return BodyFraming::None;
        }
        self.stated_framing().unwrap_or(BodyFraming::UntilClose)
    }

    fn stated_framing(&self) -> Option<BodyFraming> {
        let coding = self.values("Transfer-Encoding").last().map(str::to_ascii_lowercase);
        if coding.is_some_and(|coding| coding.ends_with("chunked")) {
            return Some(BodyFraming::Chunked);
        }
        self.value("Content-Length")?.split(',').next()?.trim().parse().ok().map(BodyFraming::Length)
    }

    /// Takes the body from `bytes`, and says how many of them belong to it; none while more can come.
    /// `ended`: nothing more comes.
    pub fn take_body(&mut self, bytes: &[u8], framing: BodyFraming, ended: bool) -> Option<usize> {
        let (mut decoder, mut body) = (BodyDecoder::new(framing), Vec::new());
        let decoded = decoder.decode_into(bytes, &mut body);
        let is_complete = decoded.is_ok() && (decoder.is_done() || (ended && decoder.end()));
        if !is_complete && !ended && bytes.len() < MAX_BYTES {
            return None;
        }
        self.body = body;
        self.is_complete = is_complete;
        // What is broken, or breaks off, is all of what came.
        Some(decoded.unwrap_or(bytes.len()))
    }
}

/// Bytes as text: what is printed on a line is shown, everything else as `\r`, `\n` or `\x00`; lines end after `\n`.
pub fn shown(bytes: &[u8], most: usize) -> String {
    let mut out = String::new();
    for &byte in bytes.iter().take(most) {
        match byte {
            b'\r' => out.push_str("\\r"),
            b'\n' => out.push_str("\\n\n"),
            b'\t' => out.push_str("\\t"),
            0x20..=0x7e => out.push(byte as char),
            other => out.push_str(&format!("\\x{other:02x}")),
        }
    }
    if bytes.len() > most {
        out.push_str(&format!("… ({} bytes more)", bytes.len() - most));
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn response(bytes: &[u8], ended: bool) -> Option<Message> {
        let (mut message, length) = Message::head(bytes)?;
        let framing = message.response_framing("GET");
        message.take_body(&bytes[length..], framing, ended).map(|_| message)
    }

    #[test]
    fn a_body_ends_where_its_head_says() {
        let whole = response(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nabc", false).unwrap();
        assert_eq!((whole.body.as_slice(), whole.is_complete, whole.status()), (&b"ab"[..], true, 200));
        let chunked = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab\r\n0\r\n\r\n";
        assert_eq!(response(chunked, false).unwrap().body, b"ab");
        assert_eq!(response(b"HTTP/1.0 200 OK\r\n\r\nab", false), None);
        assert_eq!(response(b"HTTP/1.0 200 OK\r\n\r\nab", true).unwrap().body, b"ab");
    }

    #[test]
    fn a_body_that_is_cut_off_is_incomplete() {
        let cut = response(b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nab", true).unwrap();
        assert!(!cut.is_complete && cut.body == b"ab");
    }

    #[test]
    fn what_is_wrong_is_kept_and_not_refused() {
        let (odd, _) = Message::head(b"nonsense\r\nno colon\r\nA : b\r\n\r\n").unwrap();
        assert_eq!((odd.start.as_str(), odd.status()), ("nonsense", 0));
        assert_eq!(odd.fields, [("no colon".into(), String::new()), ("A ".into(), "b".into())]);
    }

    #[test]
    fn bytes_are_shown_on_lines() {
        assert_eq!(shown(b"a\r\n\x00b", 99), "a\\r\\n\n\\x00b");
        assert_eq!(shown(b"abc", 1), "a… (2 bytes more)");
    }
}
