//! One response as its frames come, and what HTTP/2 forbids in it.

use crate::http2::frame::Field;
use crate::message::Message;

/// Fields that belong to a connection of HTTP/1.1 (RFC 9113, 8.2.2).
const CONNECTION_SPECIFIC: [&str; 5] =
    ["connection", "proxy-connection", "keep-alive", "transfer-encoding", "upgrade"];

/// A response that is on its way.
#[derive(Debug, Default)]
pub struct Incoming {
    /// The response, once its head came.
    pub response: Option<Message>,
    /// Head, body and trailers, as they would be written in HTTP/1.1.
    pub bytes: Vec<u8>,
    /// Statuses of interim responses.
    pub interim: Vec<u16>,
    /// True if its stream was ended by the sender.
    pub is_ended: bool,
    /// The first thing in it that HTTP/2 forbids.
    pub fault: Option<String>,
}

impl Incoming {
    fn wrong(&mut self, what: String) {
        self.fault.get_or_insert(what);
    }

    /// A header section. True if it is the head of the final response.
    pub fn fields(&mut self, fields: &[Field], ends: bool) -> bool {
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let all: Vec<(String, String)> =
            fields.iter().map(|(name, value)| (text(name), text(value))).collect();
        let is_trailer = self.response.is_some();
        if let Some(what) = fields_fault(&all, is_trailer) {
            self.wrong(what);
        }
        let status = all.iter().find(|(name, _)| name == ":status").map_or("", |(_, value)| value);
        let regular = all.iter().filter(|(name, _)| !name.starts_with(':'));
        let status: u16 = status.parse().unwrap_or(0);
        if !is_trailer {
            self.bytes.extend_from_slice(format!("HTTP/2 {status}\r\n").as_bytes());
        }
        for (name, value) in regular.clone() {
            self.bytes.extend_from_slice(format!("{name}: {value}\r\n").as_bytes());
        }
        self.bytes.extend_from_slice(b"\r\n");
        if is_trailer {
            if !ends {
                self.wrong("a trailer section does not end the stream".to_owned());
            }
            return false;
        }
        if (100..200).contains(&status) {
            if status == 101 {
                self.wrong("the response has status 101, which HTTP/2 does not have".to_owned());
            }
            self.interim.push(status);
            return false;
        }
        let fields = regular.cloned().collect();
        self.response = Some(Message { start: format!("HTTP/2 {status}"), fields, ..Message::default() });
        true
    }

    /// A part of the body.
    pub fn data(&mut self, data: &[u8]) {
        self.bytes.extend_from_slice(data);
        match &mut self.response {
            Some(response) => response.body.extend_from_slice(data),
            None => self.wrong("DATA came before the head of the response".to_owned()),
        }
    }

    /// The stream ends; `method` is that of the request.
    pub fn end(&mut self, method: &str) {
        self.is_ended = true;
        let Some(response) = &mut self.response else { return };
        response.is_complete = true;
        let (status, length) = (response.status(), response.body.len());
        let stated = response.value("content-length").map(str::to_owned);
        if method == "HEAD" || matches!(status, 204 | 304) {
            if length > 0 {
                self.wrong(format!("{length} bytes of DATA came in a response that has no content"));
            }
        } else if let Some(stated) = stated.filter(|stated| *stated != length.to_string()) {
            self.wrong(format!("content-length is {stated}, and {length} bytes of DATA came"));
        }
    }
}

/// First violation of HTTP/2 in the fields of a section.
fn fields_fault(all: &[(String, String)], is_trailer: bool) -> Option<String> {
    let mut regular_came = false;
    let mut statuses = 0;
    for (name, value) in all {
        let is_pseudo = name.starts_with(':');
        let name_of_field = name.strip_prefix(':').unwrap_or(name);
        let is_token =
            |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || "!#$%&'*+-.^_`|~".contains(c);
        if name_of_field.is_empty() || !name_of_field.chars().all(is_token) {
            return Some(format!("the name `{name}` has characters that are not allowed"));
        }
        if value.contains(['\r', '\n', '\0']) || value.trim_matches([' ', '\t']) != value {
            return Some(format!("the value of {name} has characters that are not allowed: {value:?}"));
        }
        if CONNECTION_SPECIFIC.contains(&name.as_str()) {
            return Some(format!("{name} belongs to a connection of HTTP/1.1"));
        }
        match (is_pseudo, is_trailer) {
            (true, true) => return Some(format!("{name} is in a trailer section")),
            (true, false) if name != ":status" => return Some(format!("{name} is in a response")),
            (true, false) if regular_came => return Some(format!("{name} comes after other fields")),
            (true, false) => statuses += 1,
            (false, _) => regular_came = true,
        }
    }
    (!is_trailer && statuses != 1).then(|| format!("the head has {statuses} :status fields"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http2::frame::field;

    fn fault(lines: &[&str], method: &str, body: &[u8]) -> Option<String> {
        let mut incoming = Incoming::default();
        incoming.fields(&lines.iter().map(|line| field(line)).collect::<Vec<_>>(), false);
        if !body.is_empty() {
            incoming.data(body);
        }
        incoming.end(method);
        incoming.fault
    }

    #[test]
    fn what_http2_forbids_in_a_response_is_found() {
        assert_eq!(fault(&[":status: 200", "content-length: 2"], "GET", b"ab"), None);
        assert_eq!(fault(&[":status: 200", "content-length: 2"], "HEAD", b""), None);
        for (lines, method, body, words) in [
            (&[":status: 200", "X-Upper: a"][..], "GET", &b"a"[..], "X-Upper"),
            (&[":status: 200", "connection: close"], "GET", b"a", "belongs to a connection"),
            (&[":status: 200", "x: a\r\nb"], "GET", b"a", "not allowed"),
            (&["x: a", ":status: 200"], "GET", b"a", "after other fields"),
            (&["x: a"], "GET", b"a", "0 :status"),
            (&[":status: 200", "content-length: 3"], "GET", b"a", "content-length is 3"),
            (&[":status: 200"], "HEAD", b"a", "has no content"),
        ] {
            let found = fault(lines, method, body);
            assert!(found.as_ref().is_some_and(|found| found.contains(words)), "{lines:?}: {found:?}");
        }
    }
}
