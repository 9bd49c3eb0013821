//! What stands in a body beside what it is cut from. Links of pages, injected lines, the request's path.

use super::pool::{CircleIndex, Pool};

/// Pieces that replace what a body would hold at their places. In order, none on top of another.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Overlay {
    pieces: Vec<OverlayPiece>,
    /// Bytes of pieces that are made for this body.
    made: Vec<u8>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct OverlayPiece {
    begin: u64,
    end: u64,
    source: PieceSource,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum PieceSource {
    /// From here in `made`.
    Made(usize),
    /// From here in a circle.
    Circle(CircleIndex, u64),
}

/// Bytes at a position: those of the overlay, or of the body below.
pub(crate) enum OverlayLookup<'a> {
    /// Bytes of a piece.
    Overlay(&'a [u8]),
    /// The body itself, for so many bytes.
    Body(u64),
}

impl Overlay {
    /// Adds bytes that end at a position. Pieces come in order.
    pub(crate) fn end_at(&mut self, end: u64, write: impl FnOnce(&mut Vec<u8>)) {
        let from = self.made.len();
        write(&mut self.made);
        let length = (self.made.len() - from) as u64;
        self.pieces.push(OverlayPiece {
            begin: end.saturating_sub(length),
            end,
            source: PieceSource::Made(from),
        });
    }

    /// Adds `length` bytes of a circle at a position. Pieces come in order.
    pub(crate) fn put(&mut self, begin: u64, circle: CircleIndex, from: u64, length: u32) {
        let source = PieceSource::Circle(circle, from);
        self.pieces.push(OverlayPiece { begin, end: begin + u64::from(length), source });
    }

    /// Begin and end of the pieces.
    pub(crate) fn ranges(&self) -> impl Iterator<Item = (u64, u64)> + '_ {
        self.pieces.iter().map(|piece| (piece.begin, piece.end))
    }

    /// Puts the pieces of both into order.
    pub(crate) fn merge(&mut self, other: Self) {
        let base = self.made.len();
        self.made.extend_from_slice(&other.made);
        self.pieces.extend(other.pieces.into_iter().map(|piece| match piece.source {
            PieceSource::Made(from) => OverlayPiece { source: PieceSource::Made(base + from), ..piece },
            PieceSource::Circle(..) => piece,
        }));
        self.pieces.sort_by_key(|piece| piece.begin);
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.pieces.is_empty()
    }

    /// Looks up a position, for up to `max` bytes.
    pub(crate) fn at<'a>(&'a self, pool: &'a Pool, from: u64, max: usize) -> OverlayLookup<'a> {
        let next = self.pieces.partition_point(|piece| piece.end <= from);
        let Some(piece) = self.pieces.get(next) else { return OverlayLookup::Body(u64::MAX) };
        if from < piece.begin {
            return OverlayLookup::Body(piece.begin - from);
        }
        let (skip, left) = (from - piece.begin, (piece.end - from) as usize);
        let length = left.min(max);
        OverlayLookup::Overlay(match piece.source {
            PieceSource::Made(at) => &self.made[at + skip as usize..][..length],
            PieceSource::Circle(circle, at) => pool.slice(circle, at + skip, length),
        })
    }
}
