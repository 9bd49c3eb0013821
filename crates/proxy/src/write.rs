//! How do the pieces of an answer go out: in as few writes as there can be, each within its time?

use std::io::{self, IoSlice};
use std::rc::Rc;
use std::time::Duration;

use assay_http::chunked::{CHUNK_END, CHUNK_HEAD_BYTES, LAST_CHUNK, chunk_head};
use assay_plane::flow::BATCH_CHUNKS;
use assay_plane::socket::write_in_steps;
use assay_plane::watch::Deadline;
use assay_plane::wire::Chunk;
use tokio::net::TcpStream;

use crate::respond::Framing;

/// Most chunks in one write.
pub const WRITE_CHUNKS: usize = BATCH_CHUNKS;

/// How long each step of sending an answer may take.
pub struct Limit {
    /// The client's.
    pub deadline: Rc<Deadline>,
    /// So long.
    pub step: Duration,
}

/// Writes parts of a body, delimited as this client needs it.
pub async fn write_body(
    stream: &mut TcpStream,
    limit: &Limit,
    head: &[&[u8]],
    chunks: &[Chunk],
    framing: Framing,
    is_last: bool,
) -> io::Result<()> {
    if framing != Framing::Chunked {
        return write_parts(stream, limit, head, chunks, &[]).await;
    }
    let bytes: usize = chunks.iter().map(|chunk| chunk.len()).sum();
    let mut room = [0; CHUNK_HEAD_BYTES];
    let (size_line, line_end): (&[u8], &[u8]) =
        if bytes > 0 { (chunk_head(bytes as u64, &mut room), CHUNK_END) } else { (&[], &[]) };
    let last = if is_last { LAST_CHUNK } else { &[] };
    let (first, second) = (head.first().copied().unwrap_or(&[]), head.get(1).copied().unwrap_or(&[]));
    write_parts(stream, limit, &[first, second, size_line], chunks, &[line_end, last]).await
}

/// Writes a head and the pieces of a body.
pub async fn write_pieces(
    stream: &mut TcpStream,
    limit: &Limit,
    head: &[&[u8]],
    pieces: &[&[u8]],
) -> io::Result<()> {
    let (first, rest) = pieces.split_at(pieces.len().min(WRITE_CHUNKS));
    write_parts(stream, limit, head, &[], first).await?;
    for pieces in rest.chunks(WRITE_CHUNKS) {
        write_parts(stream, limit, &[], &[], pieces).await?;
    }
    Ok(())
}

/// Writes parts, chunks and parts, in one go where the socket takes it.
pub async fn write_parts(
    stream: &mut TcpStream,
    limit: &Limit,
    before: &[&[u8]],
    chunks: &[Chunk],
    after: &[&[u8]],
) -> io::Result<()> {
    let mut slices = [IoSlice::new(&[]); WRITE_CHUNKS + 5];
    let chunks = chunks.iter().map(|chunk| &chunk[..]);
    let parts = before.iter().copied().chain(chunks).chain(after.iter().copied());
    let mut count = 0;
    for (slot, part) in slices.iter_mut().zip(parts.filter(|part| !part.is_empty())) {
        *slot = IoSlice::new(part);
        count += 1;
    }
    write_in_steps(stream, (&limit.deadline, limit.step), &mut slices[..count]).await
}
