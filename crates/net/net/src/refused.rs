//! Requests of HTTP/2 that were refused before a handler had seen them, counted by reason.

use std::cell::Cell;

use assay_http2::{ConnectionError, Malformed, StreamError};

/// How many there were, by reason. One that breaks the rules of the connection, which ends it, counts as well.
#[derive(Debug, Default)]
pub struct Refused {
    /// Malformed, or against the rules of the connection.
    pub malformed: Cell<u64>,
    /// With a head that is too long.
    pub too_long: Cell<u64>,
    /// Of a kind that is not served.
    pub not_served: Cell<u64>,
    /// More at once, or with more work for this side, than may be.
    pub too_many: Cell<u64>,
}

impl Refused {
    pub fn all(&self) -> u64 {
        [&self.malformed, &self.too_long, &self.not_served, &self.too_many].map(Cell::get).iter().sum()
    }

    /// One that ends the connection.
    pub(crate) fn ends(&self, error: ConnectionError) {
        add(match error {
            ConnectionError::BlockTooLong => &self.too_long,
            ConnectionError::Flood(_) => &self.too_many,
            _ => &self.malformed,
        });
    }

    /// One whose stream has failed.
    pub(crate) fn fails(&self, error: StreamError) {
        add(match error {
            StreamError::Malformed(Malformed::TooLarge(_)) => &self.too_long,
            _ => &self.malformed,
        });
    }

    /// One of a kind that is not served.
    pub(crate) fn is_not_served(&self) {
        add(&self.not_served);
    }

    /// One more than may be.
    pub(crate) fn is_too_many(&self) {
        add(&self.too_many);
    }
}

fn add(counter: &Cell<u64>) {
    counter.set(counter.get() + 1);
}
