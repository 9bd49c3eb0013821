//! An intermediary, held against what a case says.

use std::net::SocketAddr;

use crate::corpus::client::Client;
use crate::corpus::ending::Ending;
use crate::corpus::format::{Case, Pass};
use crate::corpus::recorder::{Record, Recorder, response_to};
use crate::corpus::responses::{Responded, Seen};
use crate::corpus::seen::{self, AFTER};
use crate::corpus::strict::Message;

/// Sends a case to an intermediary whose server responds with `recorder::response_to`, and judges what the client sees.
pub fn front(front: SocketAddr, case: &Case) -> Result<(), String> {
    seen::front(front, case, AFTER, is_response_to)
}

/// Whether this is the server's response to that request.
pub fn is_response_to(response: &Message, method: &str, target: &str) -> Result<(), String> {
    let seen = response.values("x-seen").next().map(String::from_utf8_lossy).unwrap_or_default();
    let meant = format!("{method} {target}");
    if response.start[1] != "200" || seen != meant {
        return Err(format!("{meant:.60} was answered with {} ({seen:.60})", response.start[1]));
    }
    Ok(())
}

/// Judges what the server behind it got.
pub fn back(records: &[Record], case: &Case) -> Result<(), String> {
    let in_body = matches!(case.end, Ending::Refused { in_body: true, .. } | Ending::Waits { in_body: true });
    let after = Pass { method: "GET".into(), target: "/after".into(), ..Pass::default() };
    let mut meant = case.passes.iter().chain((case.end == Ending::Open).then_some(&after));
    for record in records {
        match record {
            Record::Message(message) => {
                let pass = meant.next().ok_or_else(|| format!("nobody requested this: {message:?}"))?;
                is_meant(message, pass)?;
            }
            Record::Partial(_) if in_body => {}
            Record::Partial(bytes) => return Err(format!("not whole: {}", bytes.escape_ascii())),
            Record::Bad(what, bytes) => return Err(format!("{what}: {}", bytes.escape_ascii())),
        }
    }
    meant.next().map_or(Ok(()), |pass| Err(format!("{} {} did not come out", pass.method, pass.target)))
}

fn is_meant(message: &Message, pass: &Pass) -> Result<(), String> {
    let [method, target, _] = &message.start;
    if (method, target, &message.body) != (&pass.method, &pass.target, &pass.body) {
        return Err(format!("it came out as {message:?}"));
    }
    for (name, value) in &pass.has {
        let begins = value.strip_suffix(b"*");
        let fits = |found: &[u8]| begins.map_or(found == value, |begins| found.starts_with(begins));
        if !message.values(name).any(fits) {
            return Err(format!("without {name}: {} in {message:?}", value.escape_ascii()));
        }
    }
    match pass.lacks.iter().find(|name| message.values(name).next().is_some()) {
        Some(name) => Err(format!("with {name} in {message:?}")),
        None => Ok(()),
    }
}

/// A server that responds to a request for `/x` as the case says, and to all others correctly.
pub fn misbehaving(case: &Responded) -> Recorder {
    let (bytes, ends) = (case.bytes.clone(), case.ends);
    Recorder::responding(move |message, _| match message.start[1].as_str() {
        "/x" => (bytes.clone(), ends),
        _ => (response_to(message), false),
    })
}

/// Requests from an intermediary what its server responds to as the case says, and other objects after it.
pub fn responded(front: SocketAddr, case: &Responded, method: &str) -> Result<(), String> {
    let mut client = Client::connect(front);
    client.send(format!("{method} /x HTTP/1.1\r\nHost: a\r\n\r\n").as_bytes());
    let response = client.response(method);
    let is_usable = match (&case.seen, &response) {
        (Seen::Whole(status, body), Ok(Some(response))) => {
            let is_right = response.start[1] == status.to_string();
            if !is_right || body.as_ref().is_some_and(|body| *body != response.body) {
                return Err(format!("the client got {response:?}"));
            }
            if let Some(name) = case.lacks.iter().find(|name| response.values(name).next().is_some()) {
                return Err(format!("with {name} in {response:?}"));
            }
            !response.values("connection").any(|value| value.eq_ignore_ascii_case(b"close"))
        }
        (Seen::Broken, Ok(None)) => false,
        (Seen::Broken, Ok(Some(response))) if response.start[1].starts_with('5') => false,
        _ => return Err(format!("the client got {response:?}")),
    };
    if is_usable {
        client.send(AFTER);
        seen::responded(&mut client, "GET", "/after", is_response_to)?;
    }
    let mut next = Client::connect(front);
    next.send(b"GET /next HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
    seen::responded(&mut next, "GET", "/next", is_response_to)?;
    match next.rest()? {
        [] => Ok(()),
        more => Err(format!("more responses than requests: {}", more.escape_ascii())),
    }
}
