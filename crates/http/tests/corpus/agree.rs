//! This crate and a reader that forgives nothing, held against each other on what a stream begins with.

use assay_http::framing::BodyFraming;
use assay_http::head::ResponseHead;

use crate::ending::Ending;
use crate::server::{Taken, take, unchunk};
use crate::strict::{Read, request, response};

/// Of a request; an error tells what they disagree on.
pub fn judge(bytes: &[u8]) -> Result<(), String> {
    let ours = take(bytes);
    match (&ours, request(bytes)) {
        (Ok(ours), Read::Whole(strict)) => {
            let is_same =
                (ours.length, &ours.body, &ours.method) == (strict.length, &strict.body, &strict.start[0]);
            if !is_same || ours.fields.len() != strict.fields.len() {
                return Err(format!("two messages: {ours:?}, {strict:?}"));
            }
        }
        (Ok(ours), Read::Partial) => return Err(format!("taken as whole, and more is to come: {ours:?}")),
        (Err(Ending::Waits { .. } | Ending::Open), Read::Whole(strict)) => {
            return Err(format!("whole, and more is waited for: {strict:?}"));
        }
        _ => {}
    }
    let Ok(ours) = ours else { return Ok(()) };
    let again = written(&ours);
    match request(&again) {
        Read::Whole(message) if message.length == again.len() && message.body == ours.body => Ok(()),
        other => Err(format!("written again, it is {other:?}")),
    }
}

/// Of the response to a request of `method`, which ends with its connection.
pub fn judge_response(bytes: &[u8], method: &str) -> Result<(), String> {
    let ours = take_response(bytes, method);
    match (&ours, response(bytes, method, true)) {
        (Ok((status, body, length)), Read::Whole(strict)) => {
            let is_same =
                (status.to_string(), body, length) == (strict.start[1].clone(), &strict.body, &strict.length);
            if is_same { Ok(()) } else { Err(format!("two messages: {ours:?}, {strict:?}")) }
        }
        (Ok(ours), Read::Partial) => Err(format!("taken as whole, and more is to come: {ours:?}")),
        (Err(Ending::Waits { .. }), Read::Whole(strict)) => {
            Err(format!("whole, and more is waited for: {strict:?}"))
        }
        _ => Ok(()),
    }
}

fn take_response(bytes: &[u8], method: &str) -> Result<(u16, Vec<u8>, usize), Ending> {
    let parsed = ResponseHead::parse(bytes).map_err(|_| Ending::Refused { status: 502, in_body: false })?;
    let (head, length) = parsed.ok_or(Ending::Waits { in_body: false })?;
    let rest = &bytes[length..];
    let (body, used) = match head.body(method) {
        BodyFraming::None => (Vec::new(), 0),
        BodyFraming::UntilClose => (rest.to_vec(), rest.len()),
        BodyFraming::Length(bytes) => {
            let size = usize::try_from(bytes).ok().filter(|size| *size <= rest.len());
            let size = size.ok_or(Ending::Waits { in_body: true })?;
            (rest[..size].to_vec(), size)
        }
        BodyFraming::Chunked => unchunk(rest)?,
    };
    Ok((head.status, body, length + used))
}

/// The message as an intermediary would write it.
fn written(taken: &Taken) -> Vec<u8> {
    let mut bytes = format!("{} {} HTTP/1.1\r\n", taken.method, taken.target).into_bytes();
    let own = ["host", "content-length", "transfer-encoding"];
    let host = taken.authority.as_deref().unwrap_or("a");
    bytes.extend(format!("Host: {host}\r\nContent-Length: {}\r\n", taken.body.len()).bytes());
    for (name, value) in &taken.fields {
        if !own.iter().any(|own| name.eq_ignore_ascii_case(own.as_bytes())) {
            bytes.extend([name.as_slice(), b": ", value, b"\r\n"].concat());
        }
    }
    bytes.extend(b"\r\n");
    bytes.extend(&taken.body);
    bytes
}
