//! Reordering of lines that are a little out of order, in memory of a fixed size.
//!
//! A proxy writes a line when a request ends, so a request that began early and took long stands behind others. The lines
//! at hand are kept in a heap, and the earliest goes on when there are too many.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// A request of a log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogEntry {
    /// Beginning of the request, in microseconds on any scale.
    pub at_us: i64,
    pub client: Box<str>,
    pub request: crate::replay::request::ReplayRequest,
    pub logged_outcome: super::LoggedOutcome,
}

struct HeldEntry {
    at_us: i64,
    /// Equal times keep the order of lines.
    number: u64,
    entry: LogEntry,
}

impl PartialEq for HeldEntry {
    fn eq(&self, other: &Self) -> bool {
        (self.at_us, self.number) == (other.at_us, other.number)
    }
}

impl Eq for HeldEntry {}

impl PartialOrd for HeldEntry {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for HeldEntry {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        (self.at_us, self.number).cmp(&(other.at_us, other.number))
    }
}

/// Puts entries into the order of their times.
pub(super) struct ReorderBuffer {
    held: BinaryHeap<Reverse<HeldEntry>>,
    most: usize,
    number: u64,
}

impl ReorderBuffer {
    /// Holds at most `most` entries.
    pub(super) fn new(most: usize) -> Self {
        Self { held: BinaryHeap::new(), most, number: 0 }
    }

    /// Takes an entry; returns the earliest when there are too many.
    pub(super) fn push(&mut self, entry: LogEntry) -> Option<LogEntry> {
        self.number += 1;
        self.held.push(Reverse(HeldEntry { at_us: entry.at_us, number: self.number, entry }));
        if self.held.len() > self.most { self.pop() } else { None }
    }

    /// Takes the earliest of those at hand.
    pub(super) fn pop(&mut self) -> Option<LogEntry> {
        self.held.pop().map(|Reverse(held)| held.entry)
    }
}
