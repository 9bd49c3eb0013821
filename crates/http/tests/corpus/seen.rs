//! What whoever sends a case sees, held against what the case says. As many answers as requests, the right refusal, and the
//! right end.

use std::net::SocketAddr;

use crate::client::Client;
use crate::ending::Ending;
use crate::format::Case;
use crate::strict::Message;

/// Asked behind what must leave the connection usable.
pub const AFTER: &[u8] = b"GET /after HTTP/1.1\r\nHost: a\r\n\r\n";

/// Sends a case, and judges what comes back; `is_right` judges answers to requests that must be answered.
pub fn front(
    front: SocketAddr,
    case: &Case,
    is_right: impl Fn(&Message, &str, &str) -> Result<(), String>,
) -> Result<(), String> {
    let mut client = Client::connect(front);
    client.send(&case.bytes);
    for pass in &case.passes {
        answered(&mut client, (&pass.method, &pass.target), &is_right)?;
    }
    match case.end {
        Ending::Open => {
            client.send(AFTER);
            return answered(&mut client, ("GET", "/after"), &is_right);
        }
        Ending::Closes => {}
        Ending::Refused { status, .. } => {
            let method = if case.bytes.starts_with(b"HEAD ") { "HEAD" } else { "GET" };
            let answer = client.answer(method)?.ok_or("it closed without a word")?;
            if answer.start[1] != status.to_string() {
                return Err(format!("refused with {}, not {status}", answer.start[1]));
            }
        }
        Ending::Waits { .. } => {
            client.end();
            let refused = client.answer("GET")?;
            if let Some(answer) = refused.filter(|answer| !["400", "408"].contains(&answer.start[1].as_str()))
            {
                return Err(format!("{} to a request that is not whole", answer.start[1]));
            }
        }
    }
    match client.rest()? {
        [] => Ok(()),
        more => Err(format!("more answers than requests: {}", more.escape_ascii())),
    }
}

/// The next answer is there, and is right.
pub fn answered(
    client: &mut Client,
    (method, target): (&str, &str),
    is_right: impl Fn(&Message, &str, &str) -> Result<(), String>,
) -> Result<(), String> {
    let answer = client.answer(method)?.ok_or_else(|| format!("{method} {target} was not answered"))?;
    is_right(&answer, method, target)
}
