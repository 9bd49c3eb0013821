//! Checks of the responses to a case: as many as requests, the right refusal, and the right end.

use std::net::SocketAddr;

use crate::corpus::client::Client;
use crate::corpus::ending::Ending;
use crate::corpus::format::Case;
use crate::corpus::strict::Message;

/// Sent after a case that must leave the connection usable.
pub const AFTER: &[u8] = b"GET /after HTTP/1.1\r\nHost: a\r\n\r\n";

/// Sends a case, and judges what comes back; `is_right` judges responses to requests that must get one, and `after` is sent where the
/// connection must stay usable.
pub fn front(
    front: SocketAddr,
    case: &Case,
    after: &[u8],
    is_right: impl Fn(&Message, &str, &str) -> Result<(), String>,
) -> Result<(), String> {
    let mut client = Client::connect(front);
    client.send(&case.bytes);
    for pass in &case.passes {
        responded(&mut client, &pass.method, &pass.target, &is_right)?;
    }
    match case.end {
        Ending::Open => {
            client.send(after);
            return responded(&mut client, "GET", "/after", &is_right);
        }
        Ending::Closes => {}
        Ending::Refused { status, .. } => {
            let is_head = case.passes.is_empty() && case.bytes.starts_with(b"HEAD ");
            let mut response = client.response(if is_head { "HEAD" } else { "GET" })?;
            if response.is_none() && !case.passes.is_empty() {
                // A later HEAD: what comes has no body.
                response = client.response("HEAD")?;
            }
            let response = response.ok_or("it closed without a word")?;
            if response.start[1] != status.to_string() {
                return Err(format!("refused with {}, not {status}", response.start[1]));
            }
        }
        Ending::Waits { .. } => {
            client.end();
            let refused = client.response("GET")?;
            if let Some(response) =
                refused.filter(|response| !["400", "408"].contains(&response.start[1].as_str()))
            {
                return Err(format!("{} to a request that is not whole", response.start[1]));
            }
        }
    }
    match client.rest()? {
        [] => Ok(()),
        more => Err(format!("more responses than requests: {}", more.escape_ascii())),
    }
}

/// The next response is there, and is right.
pub fn responded(
    client: &mut Client,
    method: &str,
    target: &str,
    is_right: impl Fn(&Message, &str, &str) -> Result<(), String>,
) -> Result<(), String> {
    let response = client.response(method)?.ok_or_else(|| format!("{method} {target} was not answered"))?;
    is_right(&response, method, target)
}
