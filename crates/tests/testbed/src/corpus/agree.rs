//! Comparison of this project's reader with one that forgives nothing, on the start of a stream.

use crate::corpus::ending::Ending;
use crate::corpus::reader::{Taken, take};
use crate::corpus::response_reader::take_response;
use crate::corpus::strict::{Read, request, response};

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
