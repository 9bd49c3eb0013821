//! Bounds on the unsent bytes of the streams of a connection.
//!
//! A client may open many streams and no window. What handlers have written lies in the pipes then; beyond [`MAX_CONNECTION_BYTES`] a stream
//! keeps [`MIN_STREAM_BYTES`] at most, and the rest stays where it comes from: the handler waits, and so does who sends to it.

use std::cell::Cell;
use std::rc::Rc;

/// Upper bound on the unsent bytes of a stream.
pub(super) const MAX_STREAM_BYTES: usize = 64 * 1024;
/// Unsent bytes that a stream may always have, so that none waits for another: of all streams of a client, 1 MiB.
pub(super) const MIN_STREAM_BYTES: usize = 8 * 1024;
/// Upper bound on the unsent bytes of all streams of a connection, beside that.
pub(super) const MAX_CONNECTION_BYTES: usize = 1024 * 1024;

/// The unsent bytes of one stream, as a part of those of its connection.
pub(super) struct BufferShare {
    together: Rc<Cell<usize>>,
    own: usize,
}

impl BufferShare {
    pub(super) fn new(together: &Rc<Cell<usize>>) -> Self {
        Self { together: Rc::clone(together), own: 0 }
    }

    /// Sets the unsent bytes, and returns by how much they fell.
    pub(super) fn set(&mut self, bytes: usize) -> usize {
        self.together.set(self.together.get() - self.own + bytes);
        std::mem::replace(&mut self.own, bytes).saturating_sub(bytes)
    }

    /// Bytes that the stream may still add.
    pub(super) fn room(&self) -> usize {
        let most =
            if self.together.get() < MAX_CONNECTION_BYTES { MAX_STREAM_BYTES } else { MIN_STREAM_BYTES };
        most.saturating_sub(self.own)
    }
}

impl Drop for BufferShare {
    fn drop(&mut self) {
        self.set(0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn streams_keep_little_where_they_keep_much_together_and_each_keeps_some() {
        let together = Rc::default();
        let mut shares: Vec<BufferShare> = (0..128).map(|_| BufferShare::new(&together)).collect();
        for share in &mut shares {
            let room = share.room();
            assert!((MIN_STREAM_BYTES..=MAX_STREAM_BYTES).contains(&room));
            share.set(room);
            assert_eq!(share.room(), 0);
        }
        let most = MAX_CONNECTION_BYTES + MAX_STREAM_BYTES + 128 * MIN_STREAM_BYTES;
        assert!((MAX_CONNECTION_BYTES..most).contains(&together.get()), "{}", together.get());
        assert_eq!(shares[0].set(1000), MAX_STREAM_BYTES - 1000);
        shares.truncate(1);
        assert_eq!((together.get(), shares[0].room()), (1000, MAX_STREAM_BYTES - 1000));
        drop(shares);
        assert_eq!(together.get(), 0);
    }
}
