//! When did an answer come, was it whole, and if not, why?

use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use assay_http::head::{HeadError, ResponseHead};
use assay_plane::body::BodyError;
use assay_plane::clock::monotonic_ns;
use assay_plane::upstream::{Patience, Upstream, UpstreamError};
use assay_plane::wire::Scratch;
use assay_record::spe::AnswerError;

use super::board::Measured;

/// Most words on the way (1xx) before an answer.
const MOST_INTERIM: u32 = 16;

/// Opens a connection and writes down how long it took.
pub async fn connect(
    address: SocketAddr,
    patience: Patience,
    measured: &mut Measured,
) -> Result<Upstream, AnswerError> {
    let began_ns = monotonic_ns();
    let connected = Upstream::connect(address, patience).await;
    measured.connect_ns = Some(monotonic_ns() - began_ns);
    connected.map_err(|error| match error {
        UpstreamError::TimedOut(_) => AnswerError::TimedOut,
        _ => AnswerError::Refused,
    })
}

/// Waits until a head is in the input: its length and status. `first_ns` is when its first byte came.
pub async fn any_head(
    upstream: &mut Upstream,
    scratch: &Scratch,
    limit: Duration,
    first_ns: &mut Option<u64>,
) -> Result<(usize, u16), AnswerError> {
    loop {
        if !upstream.input.unread().is_empty() {
            first_ns.get_or_insert_with(monotonic_ns);
        }
        match ResponseHead::parse(upstream.input.unread()) {
            Err(HeadError::TooLong | HeadError::TooManyHeaders) => return Err(AnswerError::TooLong),
            Err(_) => return Err(AnswerError::Garbage),
            Ok(Some((head, length))) => return Ok((length, head.status)),
            Ok(None) => {}
        }
        match upstream.input.fill(&mut upstream.stream, scratch, limit).await {
            Ok(0) => return Err(AnswerError::Reset),
            Ok(_) => {}
            Err(error) => return Err(of_io(&error)),
        }
    }
}

/// Waits for the head of the final answer and passes over words on the way: its length and status.
pub async fn final_head(
    upstream: &mut Upstream,
    scratch: &Scratch,
    limit: Duration,
    first_ns: &mut Option<u64>,
) -> Result<(usize, u16), AnswerError> {
    for _ in 0..MOST_INTERIM {
        match any_head(upstream, scratch, limit, first_ns).await? {
            (length, 100 | 102..=199) => {
                upstream.input.consume(length);
                *first_ns = None;
            }
            (_, 101) => return Err(AnswerError::Garbage),
            found => return Ok(found),
        }
    }
    Err(AnswerError::TooLong)
}

/// Why a body is not whole.
pub fn of_body(error: &BodyError) -> AnswerError {
    match error {
        BodyError::Truncated => AnswerError::Truncated,
        BodyError::Io(error) => of_io(error),
        BodyError::Coding(_) => AnswerError::Garbage,
    }
}

/// Why a connection is of no use.
pub fn of_io(error: &io::Error) -> AnswerError {
    match error.kind() {
        io::ErrorKind::TimedOut => AnswerError::TimedOut,
        _ => AnswerError::Reset,
    }
}
