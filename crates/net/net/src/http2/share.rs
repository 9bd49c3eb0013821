//! How much the streams of a connection keep together of what cannot be sent yet.
//!
//! A client may open many streams and no window. What handlers have written lies in the pipes then; beyond [`MOST_TOGETHER`] a stream
//! keeps [`LEAST`] at most, and the rest stays where it comes from: the handler waits, and so does who sends to it.

use std::cell::Cell;
use std::rc::Rc;

/// What a stream keeps at most.
pub(super) const MOST: usize = 64 * 1024;
/// What it may keep however much the others do, so that none waits for another: of all streams of a client, 1 MiB.
pub(super) const LEAST: usize = 8 * 1024;
/// What all streams of a connection keep, beside that.
pub(super) const MOST_TOGETHER: usize = 1024 * 1024;

/// What one stream keeps, as a part of that of its connection.
pub(super) struct Share {
    together: Rc<Cell<usize>>,
    own: usize,
}

impl Share {
    /// Of one that keeps nothing.
    pub(super) fn of(together: &Rc<Cell<usize>>) -> Self {
        Self { together: Rc::clone(together), own: 0 }
    }

    /// So many bytes it keeps now; how many fewer than before.
    pub(super) fn set(&mut self, bytes: usize) -> usize {
        self.together.set(self.together.get() - self.own + bytes);
        std::mem::replace(&mut self.own, bytes).saturating_sub(bytes)
    }

    /// So many more it may keep.
    pub(super) fn room(&self) -> usize {
        let most = if self.together.get() < MOST_TOGETHER { MOST } else { LEAST };
        most.saturating_sub(self.own)
    }
}

impl Drop for Share {
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
        let mut shares: Vec<Share> = (0..128).map(|_| Share::of(&together)).collect();
        for share in &mut shares {
            let room = share.room();
            assert!((LEAST..=MOST).contains(&room));
            share.set(room);
            assert_eq!(share.room(), 0);
        }
        let most = MOST_TOGETHER + MOST + 128 * LEAST;
        assert!((MOST_TOGETHER..most).contains(&together.get()), "{}", together.get());
        assert_eq!(shares[0].set(1000), MOST - 1000);
        shares.truncate(1);
        assert_eq!((together.get(), shares[0].room()), (1000, MOST - 1000));
        drop(shares);
        assert_eq!(together.get(), 0);
    }
}
