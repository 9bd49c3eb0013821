//! Requests in the form of those to a forward proxy.

use assay_testbed::corpus::reader::take;
use assay_testbed::corpus::recorder::{Record, Recorder, response_to};
use assay_testbed::corpus::strict::Message;

/// Sent after a case that must leave the connection usable.
pub const AFTER: &[u8] = b"GET http://a/after HTTP/1.1\r\nHost: a\r\n\r\n";

/// The same requests, each with its path as a whole URL.
pub fn requests(bytes: &[u8]) -> Vec<u8> {
    let (mut out, mut at) = (Vec::new(), 0);
    loop {
        let rest = &bytes[at..];
        let taken = take(rest);
        let host = taken.as_ref().ok().and_then(|taken| taken.authority.as_deref()).unwrap_or("a");
        let length = taken.as_ref().map_or(rest.len(), |taken| taken.length);
        out.extend(request(&rest[..length], host));
        at += length;
        if taken.is_err() {
            return out;
        }
    }
}

/// Of one request, whatever else it is.
fn request(bytes: &[u8], host: &str) -> Vec<u8> {
    if let Some(after) = bytes.strip_prefix(b"OPTIONS * ") {
        return [b"OPTIONS http://", host.as_bytes(), b" ", after].concat();
    }
    // Empty lines may come before the request line; nothing behind it is a target.
    let begin = bytes.iter().position(|byte| !b"\r\n".contains(byte)).unwrap_or(bytes.len());
    let length = bytes[begin..].iter().position(|byte| b"\r\n".contains(byte)).unwrap_or(bytes.len() - begin);
    let space = bytes[begin..begin + length].windows(2).position(|two| two == b" /");
    match space.map(|space| begin + space) {
        Some(space) => {
            let (before, after) = bytes.split_at(space + 1);
            [before, b"http://", host.as_bytes(), after].concat()
        }
        None => bytes.to_vec(),
    }
}

/// A server that responds as if it had been sent a path.
pub fn recorder() -> Recorder {
    Recorder::responding(|message, _| {
        let [method, target, version] = message.start.clone();
        let target = path(&message.start[0], &target).map_or(target.clone(), |(_, path)| path);
        (response_to(&Message { start: [method, target, version], ..message.clone() }), false)
    })
}

/// What came, with paths in place of whole URLs; bad where a URL names another host than `Host`.
pub fn in_origin_form(records: Vec<Record>) -> Vec<Record> {
    let each = records.into_iter().map(|record| match record {
        Record::Message(mut message) => {
            let [method, target, _] = &message.start;
            match path(method, target) {
                Some((host, path)) if message.values("host").eq([host.as_bytes()]) => {
                    message.start[1] = path;
                    Record::Message(message)
                }
                _ => Record::Bad("a URL and a Host that differ".into(), format!("{message:?}").into()),
            }
        }
        other => other,
    });
    each.collect()
}

/// Host and path of a whole URL.
fn path<'t>(method: &str, target: &'t str) -> Option<(&'t str, String)> {
    let (scheme, rest) = target.split_once("://")?;
    let end = rest.find(['/', '?']).unwrap_or(rest.len());
    let (host, path) = rest.split_at(end);
    let path = match path {
        "" if method == "OPTIONS" => "*".to_owned(),
        path if path.starts_with('/') => path.to_owned(),
        path => format!("/{path}"),
    };
    scheme.eq_ignore_ascii_case("http").then_some((host, path))
}
