//! A reader of a stream of messages that knows the RFC and forgives nothing.
//!
//! A reader of its own, which shares no code with what it judges: what it takes for a message, every recipient does.

/// A message, whole.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Message {
    /// The start line, as three words; the third of a response may be empty or several.
    pub start: [String; 3],
    /// Names in lower case, values without white space around them.
    pub fields: Vec<(String, Vec<u8>)>,
    pub body: Vec<u8>,
    /// Bytes that it takes.
    pub length: usize,
}

/// Result of reading the start of a stream.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Read {
    Whole(Message),
    /// The bytes may be the start of a message.
    Partial,
    /// Nobody can say what this is.
    Bad(String),
}

impl Message {
    pub fn values<'m>(&'m self, name: &'m str) -> impl Iterator<Item = &'m [u8]> {
        self.fields.iter().filter(move |field| field.0 == name).map(|field| &field.1[..])
    }
}

enum Stop {
    Short,
    Bad(String),
}

fn bad<T>(what: &str) -> Result<T, Stop> {
    Err(Stop::Bad(what.to_owned()))
}

/// Reads the request that a stream begins with.
pub fn request(bytes: &[u8]) -> Read {
    read(bytes, request_line, |message| {
        if message.start[2] == "HTTP/1.1" && message.values("host").count() != 1 {
            return bad("no Host, or more than one");
        }
        Ok(framing(message)?.unwrap_or(Framing::Length(0)))
    })
}

/// Reads the response to a request of `method` that a stream begins with; `is_ended`: nothing comes behind it.
pub fn response(bytes: &[u8], method: &str, is_ended: bool) -> Read {
    read(bytes, status_line, |message| {
        let status = message.start[1].as_str();
        let framing = framing(message)?;
        if method == "HEAD" || status.starts_with('1') || status == "204" || status == "304" {
            return Ok(Framing::Length(0));
        }
        match framing {
            Some(framing) => Ok(framing),
            None if is_ended => Ok(Framing::Rest),
            None => Err(Stop::Short),
        }
    })
}

enum Framing {
    Length(usize),
    Chunked,
    Rest,
}

fn read(
    bytes: &[u8],
    start_line: impl Fn(&[u8]) -> Result<[String; 3], Stop>,
    framing: impl Fn(&Message) -> Result<Framing, Stop>,
) -> Read {
    let whole = || -> Result<Message, Stop> {
        let mut at = 0;
        let start = start_line(line(bytes, &mut at)?)?;
        let mut message = Message { start, fields: Vec::new(), body: Vec::new(), length: 0 };
        loop {
            match line(bytes, &mut at)? {
                [] => break,
                text => message.fields.push(field(text)?),
            }
        }
        // A reason may be any text, this one too: the version of a response comes first, that of a request last.
        let ends = [message.start.first(), message.start.last()];
        let version = ends.into_iter().flatten().find(|word| word.starts_with("HTTP/"));
        let is_1_0 = version.is_some_and(|word| word == "HTTP/1.0");
        if is_1_0 && message.values("transfer-encoding").next().is_some() {
            return bad("a coding in HTTP/1.0");
        }
        match framing(&message)? {
            Framing::Rest => {
                message.body = bytes[at..].to_vec();
                at = bytes.len();
            }
            Framing::Length(length) => {
                let end = at.checked_add(length).filter(|end| *end <= bytes.len()).ok_or(Stop::Short)?;
                message.body = bytes[at..end].to_vec();
                at = end;
            }
            Framing::Chunked => message.body = chunks(bytes, &mut at)?,
        }
        message.length = at;
        Ok(message)
    };
    match whole() {
        Ok(message) => Read::Whole(message),
        Err(Stop::Short) => Read::Partial,
        Err(Stop::Bad(what)) => Read::Bad(what),
    }
}

/// The next line, without its CR LF. Neither byte stands anywhere else.
fn line<'b>(bytes: &'b [u8], at: &mut usize) -> Result<&'b [u8], Stop> {
    let rest = &bytes[*at..];
    let end = rest.iter().position(|byte| b"\r\n".contains(byte)).ok_or(Stop::Short)?;
    match (rest[end], rest.get(end + 1)) {
        (b'\r', Some(b'\n')) => {
            *at += end + 2;
            Ok(&rest[..end])
        }
        (b'\r', None) => Err(Stop::Short),
        _ => bad("a line that does not end with CR LF"),
    }
}

fn is_token(bytes: &[u8]) -> bool {
    let is_one = |byte: &u8| matches!(byte, b'!'..=b'~') && !b"\"(),/:;<=>?@[\\]{}".contains(byte);
    !bytes.is_empty() && bytes.iter().all(is_one)
}

fn request_line(line: &[u8]) -> Result<[String; 3], Stop> {
    let words: Vec<&[u8]> = line.split(|byte| *byte == b' ').collect();
    let [method, target, version] = words[..] else { return bad("a request line without three words") };
    if !is_token(method) {
        return bad("a method that is no token");
    }
    if target.is_empty() || !target.iter().all(|byte| matches!(byte, b'!'..=b'~')) || target.contains(&b'#') {
        return bad("a target with bytes that it may not have");
    }
    if version != b"HTTP/1.1" && version != b"HTTP/1.0" {
        return bad("a version that is neither 1.0 nor 1.1");
    }
    Ok([method, target, version].map(text))
}

fn status_line(line: &[u8]) -> Result<[String; 3], Stop> {
    let mut words = line.splitn(3, |byte| *byte == b' ');
    let (version, status) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
    let is_status = status.len() == 3 && status.iter().all(u8::is_ascii_digit) && status[0] != b'0';
    let reason = words.next().unwrap_or_default();
    if !(version == b"HTTP/1.1" || version == b"HTTP/1.0") || !is_status || !is_text(reason) {
        return bad("a line that is no status line");
    }
    Ok([version, status, reason].map(text))
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn is_text(bytes: &[u8]) -> bool {
    bytes.iter().all(|byte| *byte == b'\t' || !byte.is_ascii_control())
}

fn field(line: &[u8]) -> Result<(String, Vec<u8>), Stop> {
    let Some(colon) = line.iter().position(|byte| *byte == b':') else {
        return bad("a field without a colon");
    };
    let (name, value) = (&line[..colon], &line[colon + 1..]);
    if !is_token(name) {
        return bad("a name that is no token");
    }
    if !is_text(value) {
        return bad("a value with a control character");
    }
    Ok((text(name).to_ascii_lowercase(), value.trim_ascii().to_vec()))
}

/// Framing of a message: one length, or `chunked` and nothing else.
fn framing(message: &Message) -> Result<Option<Framing>, Stop> {
    let lengths: Vec<&[u8]> = message.values("content-length").collect();
    let codings: Vec<&[u8]> = message.values("transfer-encoding").collect();
    match (&lengths[..], &codings[..]) {
        ([], []) => Ok(None),
        ([length], []) => {
            let is_number = !length.is_empty() && length.iter().all(u8::is_ascii_digit);
            match text(length).parse() {
                Ok(length) if is_number => Ok(Some(Framing::Length(length))),
                _ => bad("a length that is no number"),
            }
        }
        ([], [coding]) if coding.eq_ignore_ascii_case(b"chunked") => Ok(Some(Framing::Chunked)),
        _ => bad("a length and a coding, or more than one of either, or another coding"),
    }
}

/// A chunked body without extensions and trailers.
fn chunks(bytes: &[u8], at: &mut usize) -> Result<Vec<u8>, Stop> {
    let mut body = Vec::new();
    loop {
        let digits = line(bytes, at)?;
        let is_number = !digits.is_empty() && digits.iter().all(u8::is_ascii_hexdigit);
        let size = usize::from_str_radix(&text(digits), 16).ok().filter(|_| is_number);
        let Some(size) = size else { return bad("a chunk size that is no hexadecimal number") };
        if size == 0 {
            return if line(bytes, at)?.is_empty() { Ok(body) } else { bad("a trailer") };
        }
        let end = at.checked_add(size).filter(|end| *end <= bytes.len()).ok_or(Stop::Short)?;
        body.extend(&bytes[*at..end]);
        *at = end;
        if !line(bytes, at)?.is_empty() {
            return bad("a chunk that is longer than its size");
        }
    }
}
