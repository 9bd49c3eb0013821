//! An intermediary, held against what a case says.

use std::net::SocketAddr;

use crate::client::Client;
use crate::ending::Ending;
use crate::format::{Case, Pass};
use crate::recorder::{Record, Recorder, answer_to};
use crate::replies::{Answered, Seen};
use crate::seen::{self, AFTER};
use crate::strict::Message;

/// Sends a case to an intermediary whose server answers with `recorder::answer_to`, and judges what the client sees.
pub fn front(front: SocketAddr, case: &Case) -> Result<(), String> {
    seen::front(front, case, is_answer_to)
}

/// Whether this is what the server answers to that.
fn is_answer_to(answer: &Message, method: &str, target: &str) -> Result<(), String> {
    let seen = answer.values("x-seen").next().map(String::from_utf8_lossy).unwrap_or_default();
    let meant = format!("{method} {target}");
    if answer.start[1] != "200" || seen != meant {
        return Err(format!("{meant:.60} was answered with {} ({seen:.60})", answer.start[1]));
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
                let pass = meant.next().ok_or_else(|| format!("nobody asked for this: {message:?}"))?;
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

/// A server that answers what is asked for as `/x` as the case says, and everything else as it should be.
pub fn misbehaving(case: &Answered) -> Recorder {
    let (bytes, ends) = (case.bytes.clone(), case.ends);
    Recorder::answering(move |message, _| match message.start[1].as_str() {
        "/x" => (bytes.clone(), ends),
        _ => (answer_to(message), false),
    })
}

/// Asks an intermediary for what its server answers as the case says, and for other things after it.
pub fn answered(front: SocketAddr, case: &Answered, method: &str) -> Result<(), String> {
    let mut client = Client::connect(front);
    client.send(format!("{method} /x HTTP/1.1\r\nHost: a\r\n\r\n").as_bytes());
    let answer = client.answer(method);
    let is_usable = match (&case.seen, &answer) {
        (Seen::Whole(status, body), Ok(Some(answer))) => {
            let is_right = answer.start[1] == status.to_string();
            if !is_right || body.as_ref().is_some_and(|body| *body != answer.body) {
                return Err(format!("the client got {answer:?}"));
            }
            if let Some(name) = case.lacks.iter().find(|name| answer.values(name).next().is_some()) {
                return Err(format!("with {name} in {answer:?}"));
            }
            !answer.values("connection").any(|value| value.eq_ignore_ascii_case(b"close"))
        }
        (Seen::Broken, Ok(None)) => false,
        (Seen::Broken, Ok(Some(answer))) if answer.start[1].starts_with('5') => false,
        _ => return Err(format!("the client got {answer:?}")),
    };
    if is_usable {
        client.send(AFTER);
        seen::answered(&mut client, ("GET", "/after"), is_answer_to)?;
    }
    let mut next = Client::connect(front);
    next.send(b"GET /next HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
    seen::answered(&mut next, ("GET", "/next"), is_answer_to)?;
    match next.rest()? {
        [] => Ok(()),
        more => Err(format!("more answers than requests: {}", more.escape_ascii())),
    }
}
