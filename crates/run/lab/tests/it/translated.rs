//! A request of HTTP/1.1, valid or not, as what says the same over HTTP/2, and whether RFC 9113 calls that malformed.

use assay_conform::http2::frame::Field;
use assay_http::field::{decimal, is_token_byte};
use assay_http::target;

/// Fields that belong to a connection of HTTP/1.1 (RFC 9113, 8.2.2).
const CONNECTION_SPECIFIC: [&[u8]; 5] =
    [b"connection", b"proxy-connection", b"keep-alive", b"transfer-encoding", b"upgrade"];

/// A request over HTTP/2.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Translated {
    pub method: Vec<u8>,
    pub path: Vec<u8>,
    pub authority: Option<Vec<u8>>,
    /// Names in lower case.
    pub regular: Vec<Field>,
    pub body: Vec<u8>,
}

impl Translated {
    /// The request that the bytes begin with. All that follows its head is its body: in HTTP/2, nothing else can be behind it. The lines of the
    /// head end with CR LF; whatever else is in them is part of a method, a path, a name or a value. None: there is no such head, or it is for a tunnel.
    pub fn of(bytes: &[u8]) -> Option<Self> {
        let end = bytes.windows(4).position(|four| four == b"\r\n\r\n")?;
        let mut lines = lines(&bytes[..end]).into_iter();
        let (method, rest) = halves(lines.next()?, b' ')?;
        let path = [&b" HTTP/1.1"[..], b" HTTP/1.0"].iter().find_map(|version| rest.strip_suffix(*version));
        if method.is_empty() || method.eq_ignore_ascii_case(b"CONNECT") {
            return None;
        }
        let (mut authority, mut regular) = (None, Vec::new());
        for line in lines {
            let (name, value) = halves(line, b':').unwrap_or((line, b""));
            let name = name.to_ascii_lowercase();
            let value = value.strip_prefix(b" ").unwrap_or(value).to_vec();
            match authority {
                None if name == b"host" => authority = Some(value),
                _ => regular.push((name, value)),
            }
        }
        let (method, path, body) =
            (method.to_vec(), path.unwrap_or(rest).to_vec(), bytes[end + 4..].to_vec());
        Some(Self { method, path, authority, regular, body })
    }

    /// Whether RFC 9113 calls it malformed (8.1.1), so that it must not go on.
    pub fn is_malformed(&self) -> bool {
        !is_token(&self.method)
            || !self.has_path()
            || !self.has_one_host()
            || self.regular.iter().any(|(name, value)| !is_field(name, value))
            || !self.is_as_long_as_said()
    }

    /// 8.3.1: a path as a URL has it, or the asterisk of OPTIONS.
    fn has_path(&self) -> bool {
        let is_of_url = |byte: &u8| (b'!'..=b'~').contains(byte) && *byte != b'#';
        (self.path.starts_with(b"/") && self.path.iter().all(is_of_url))
            || (self.path == b"*" && self.method == b"OPTIONS")
    }

    /// 8.3.1: one that is one, in `:authority` or in `host`, or the same in both.
    fn has_one_host(&self) -> bool {
        let others = self.regular.iter().filter(|(name, _)| name == b"host").map(|(_, value)| value);
        let mut all = self.authority.iter().chain(others);
        let Some(first) = all.next() else { return false };
        target::authority(first).is_ok_and(|host| !host.is_empty()) && all.all(|other| other == first)
    }

    /// 8.1.1: `content-length`, if any, is the sum of the DATA.
    fn is_as_long_as_said(&self) -> bool {
        let lengths = self.regular.iter().filter(|(name, _)| name == b"content-length");
        let mut members = lengths.flat_map(|(_, value)| value.split(|&byte| byte == b','));
        members.all(|member| decimal(member.trim_ascii()) == Some(self.body.len() as u64))
    }
}

fn is_token(name: &[u8]) -> bool {
    !name.is_empty() && name.iter().all(|byte| is_token_byte(*byte))
}

/// 8.2.1 and 8.2.2.
fn is_field(name: &[u8], value: &[u8]) -> bool {
    let has_space_around = value.trim_ascii().len() != value.len();
    let has_controls = value.iter().any(|byte| byte.is_ascii_control() && *byte != b'\t');
    let is_of_connection = CONNECTION_SPECIFIC.contains(&name) || (name == b"te" && value != b"trailers");
    is_token(name) && !has_space_around && !has_controls && !is_of_connection
}

/// What stands between CR LF.
fn lines(mut text: &[u8]) -> Vec<&[u8]> {
    let mut lines = Vec::new();
    while let Some(end) = text.windows(2).position(|two| two == b"\r\n") {
        lines.push(&text[..end]);
        text = &text[end + 2..];
    }
    lines.push(text);
    lines
}

/// What stands before and behind the first of these bytes.
fn halves(text: &[u8], at: u8) -> Option<(&[u8], &[u8])> {
    let at = text.iter().position(|byte| *byte == at)?;
    Some((&text[..at], &text[at + 1..]))
}
