//! What stands in a body beside what it is cut from. Links of pages, injected lines, the request's path.

use super::pool::{CircleIndex, Pool};

/// Pieces that replace what a body would hold at their places. In order, none on top of another.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Overlay {
    pieces: Vec<Piece>,
    /// Bytes of pieces that are made for this body.
    made: Vec<u8>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Piece {
    begin: u64,
    end: u64,
    source: Source,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Source {
    /// From here in `made`.
    Made(usize),
    /// From here in a circle.
    Circle(CircleIndex, u64),
}

/// What is at a position.
pub(crate) enum At<'a> {
    /// Bytes of a piece.
    Piece(&'a [u8]),
    /// The body itself, for so many bytes.
    Body(u64),
}

impl Overlay {
    /// Adds bytes that end at a position. Pieces come in order.
    pub(crate) fn end_at(&mut self, end: u64, write: impl FnOnce(&mut Vec<u8>)) {
        let from = self.made.len();
        write(&mut self.made);
        let length = (self.made.len() - from) as u64;
        self.pieces.push(Piece { begin: end.saturating_sub(length), end, source: Source::Made(from) });
    }

    /// Adds `length` bytes of a circle at a position. Pieces come in order.
    pub(crate) fn put(&mut self, begin: u64, (circle, from): (CircleIndex, u64), length: u32) {
        let source = Source::Circle(circle, from);
        self.pieces.push(Piece { begin, end: begin + u64::from(length), source });
    }

    /// Begin and end of the pieces.
    pub(crate) fn places(&self) -> impl Iterator<Item = (u64, u64)> + '_ {
        self.pieces.iter().map(|piece| (piece.begin, piece.end))
    }

    /// Puts the pieces of both into order.
    pub(crate) fn merge(&mut self, other: Self) {
        let base = self.made.len();
        self.made.extend_from_slice(&other.made);
        self.pieces.extend(other.pieces.into_iter().map(|piece| match piece.source {
            Source::Made(from) => Piece { source: Source::Made(base + from), ..piece },
            Source::Circle(..) => piece,
        }));
        self.pieces.sort_by_key(|piece| piece.begin);
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.pieces.is_empty()
    }

    /// What is at a position, up to `max` bytes of it.
    pub(crate) fn at<'a>(&'a self, pool: &'a Pool, from: u64, max: usize) -> At<'a> {
        let next = self.pieces.partition_point(|piece| piece.end <= from);
        let Some(piece) = self.pieces.get(next) else { return At::Body(u64::MAX) };
        if from < piece.begin {
            return At::Body(piece.begin - from);
        }
        let (skip, left) = (from - piece.begin, (piece.end - from) as usize);
        let length = left.min(max);
        At::Piece(match piece.source {
            Source::Made(at) => &self.made[at + skip as usize..][..length],
            Source::Circle(circle, at) => pool.slice(circle, at + skip, length),
        })
    }
}
