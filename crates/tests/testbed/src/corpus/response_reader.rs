//! A client that reads a response and knows nothing but this crate.

use assay_http::framing::BodyFraming;
use assay_http::head::ResponseHead;

use crate::corpus::ending::Ending;
use crate::corpus::reader::unchunk;

/// The first response of a stream, which ends with it: its status, its body, and how many bytes it takes.
pub fn take_response(bytes: &[u8], method: &str) -> Result<(u16, Vec<u8>, usize), Ending> {
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
