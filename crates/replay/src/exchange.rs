//! How is one request put, and what came back when?

use std::io::{self, IoSlice};
use std::time::Duration;

use assay_http::head::ResponseHead;
use assay_plane::body::{BodyError, BodyReader};
use assay_plane::clock::monotonic_ns;
use assay_plane::upstream::{Patience, Upstream, UpstreamError};
use assay_plane::wire::Scratch;
use assay_record::spe::AnswerError;

use crate::drive::Options;
use crate::request::Call;

/// What became of a request. Instants are `CLOCK_MONOTONIC`, in nanoseconds.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Seen {
    /// Connect begun, or first byte written on a connection that was there.
    pub sent_ns: u64,
    /// Connection made; none: it was there.
    pub connected_ns: Option<u64>,
    /// First byte of the answer.
    pub first_ns: Option<u64>,
    /// Last byte of the answer; none: it never came.
    pub last_ns: Option<u64>,
    pub status: Option<u16>,
    pub head_bytes: u64,
    pub body_bytes: u64,
    pub error: Option<AnswerError>,
    /// Sent again on a new connection, because the old one turned out to be closed.
    pub retried: bool,
}

/// Puts a request, over `connection` if there is one. Gives the connection back when it can be used again.
pub(crate) async fn exchange(
    call: &Call,
    connection: Option<Upstream>,
    options: &Options,
    scratch: &Scratch,
) -> (Seen, Option<Upstream>) {
    let mut request = Vec::with_capacity(256);
    call.write(&mut request, options.forward, &options.fields);
    let mut seen = Seen { sent_ns: monotonic_ns(), ..Seen::default() };
    let was_there = connection.is_some();
    let first = attempt(call, &request, connection, options, scratch, &mut seen);
    let mut left = bounded(first, options.patience).await;
    // A connection that the other side closed just then says nothing about the request.
    if was_there && matches!(left, Err(AnswerError::Reset)) && seen.first_ns.is_none() {
        seen.retried = true;
        let second = attempt(call, &request, None, options, scratch, &mut seen);
        left = bounded(second, options.patience).await;
    }
    match left {
        Ok(connection) => (seen, connection),
        Err(error) => {
            seen.error = Some(error);
            (seen, None)
        }
    }
}

/// An answer that takes too long as a whole, however it comes, is given up.
async fn bounded<T>(
    attempt: impl Future<Output = Result<T, AnswerError>>,
    patience: Duration,
) -> Result<T, AnswerError> {
    tokio::time::timeout(patience, attempt).await.unwrap_or(Err(AnswerError::TimedOut))
}

async fn attempt(
    call: &Call,
    request: &[u8],
    connection: Option<Upstream>,
    options: &Options,
    scratch: &Scratch,
    seen: &mut Seen,
) -> Result<Option<Upstream>, AnswerError> {
    let patience = Patience { connect: options.patience, reply: options.patience };
    let mut upstream = match connection {
        Some(upstream) => upstream,
        None => {
            let made = Upstream::connect(options.to, patience).await.map_err(failure)?;
            seen.connected_ns = Some(monotonic_ns());
            made
        }
    };
    upstream.send(&mut [IoSlice::new(request)], patience).await.map_err(failure)?;
    if upstream.input.unread().is_empty() {
        let came =
            upstream.input.fill(&mut upstream.stream, scratch, patience.reply).await.map_err(broken)?;
        if came == 0 {
            return Err(AnswerError::Reset);
        }
    }
    seen.first_ns = Some(monotonic_ns());
    let length = upstream.final_head(scratch, patience).await.map_err(failure)?;
    let method = call.method();
    let (status, framing, persists) = match ResponseHead::parse(upstream.input.unread()) {
        Ok(Some((head, _))) => (head.status, head.body(method), head.persists(method)),
        Ok(None) | Err(_) => return Err(AnswerError::Garbage),
    };
    upstream.input.consume(length);
    seen.status = Some(status);
    seen.head_bytes += length as u64;
    let mut body = BodyReader::new(framing);
    let Upstream { stream, input, .. } = &mut upstream;
    while let Some(chunk) = body.next(stream, input, scratch, patience.reply).await.map_err(body_failure)? {
        seen.body_bytes += chunk.len() as u64;
    }
    seen.last_ns = Some(monotonic_ns());
    Ok((persists && upstream.input.unread().is_empty()).then_some(upstream))
}

fn failure(error: UpstreamError) -> AnswerError {
    match error {
        UpstreamError::Unknown(_) | UpstreamError::Unreachable(..) => AnswerError::Refused,
        UpstreamError::TimedOut(_) => AnswerError::TimedOut,
        UpstreamError::Lost(_) => AnswerError::Reset,
        UpstreamError::BadReply(..) => AnswerError::Garbage,
    }
}

fn broken(error: io::Error) -> AnswerError {
    match error.kind() {
        io::ErrorKind::TimedOut => AnswerError::TimedOut,
        _ => AnswerError::Reset,
    }
}

fn body_failure(error: BodyError) -> AnswerError {
    match error {
        BodyError::Truncated => AnswerError::Truncated,
        BodyError::Io(error) => broken(error),
        BodyError::Coding(_) => AnswerError::Garbage,
    }
}
