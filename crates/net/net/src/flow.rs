//! One body that is still arriving, for everyone who wants it.
//!
//! The fetch appends chunks, readers take them at their own pace. While the body is *kept* (it is going to be
//! stored) nothing is dropped and the fetch never waits: its size is bounded by what may be stored. Otherwise
//! chunks go once every reader has taken them, and the fetch waits for the slowest reader, so that a slow
//! client cannot make it pile up memory. A reader that takes nothing while another has taken all is left behind: for it, the
//! body breaks off.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::rc::Rc;

use slab::Slab;
use tokio::sync::Notify;
use tokio::time::timeout;

use crate::body::Chunk;
use crate::limits::{BATCH_CHUNKS, SPARED};

/// How far a fetch of a body that is not kept may be ahead of its slowest reader, in bytes.
const WINDOW_BYTES: u64 = 256 * 1024;
/// Most bytes that a reader takes at once, unless one chunk has more.
const BATCH_BYTES: usize = 256 * 1024;

/// A body that is arriving.
#[derive(Default)]
pub struct Flow {
    state: RefCell<State>,
    /// Something was appended, or it ended.
    grown: Notify,
    /// A reader went on, or went away.
    drained: Notify,
}

#[derive(Default)]
struct State {
    chunks: VecDeque<Chunk>,
    /// How many chunks were dropped before those.
    dropped: u64,
    /// Bytes in `chunks`.
    bytes: u64,
    kept: bool,
    end: Option<End>,
    /// Number of the next chunk of each reader; none: it was left behind.
    readers: Slab<Option<u64>>,
}

/// How a body ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// All of it came.
    Complete,
    Broken,
}

/// What a reader gets.
#[derive(Debug, PartialEq, Eq)]
pub enum Taken {
    /// Chunks were added to the batch.
    Chunks,
    End(End),
}

impl Flow {
    /// A body that has not begun, and its first reader.
    pub fn new() -> (Rc<Self>, Reader) {
        let flow = Rc::new(Self::default());
        let reader = Reader::at_start(&flow);
        (flow, reader)
    }

    /// Says whether everything is to be kept from now on. To be said before the first chunk, and taken back
    /// at most once.
    pub fn keep(&self, kept: bool) {
        let mut state = self.state.borrow_mut();
        state.kept = kept;
        state.drop_taken();
    }

    pub fn append(&self, chunk: Chunk) {
        let mut state = self.state.borrow_mut();
        state.bytes += chunk.len() as u64;
        state.chunks.push_back(chunk);
        self.grown.notify_waiters();
    }

    pub fn finish(&self, end: End) {
        self.state.borrow_mut().end.get_or_insert(end);
        self.grown.notify_waiters();
    }

    /// Waits until the readers are near enough. False: there is no reader, and nothing is kept.
    pub async fn is_wanted(&self) -> bool {
        loop {
            let drained = self.drained.notified();
            let holding_up = {
                let state = self.state.borrow();
                if state.kept {
                    return true;
                }
                if state.is_unread() {
                    return false;
                }
                if state.bytes < WINDOW_BYTES {
                    return true;
                }
                state.holding_up()
            };
            match holding_up {
                None => drained.await,
                Some(next) => {
                    if timeout(SPARED, self.until_not(next)).await.is_err() {
                        self.leave_behind(next);
                    }
                }
            }
        }
    }

    /// Waits until the readers that are about to take this chunk hold nobody up any more.
    async fn until_not(&self, next: u64) {
        loop {
            let drained = self.drained.notified();
            if self.state.borrow().holding_up() != Some(next) {
                return;
            }
            drained.await;
        }
    }

    /// Goes on without the readers that have not taken this chunk.
    fn leave_behind(&self, next: u64) {
        let mut state = self.state.borrow_mut();
        for (_, reader) in state.readers.iter_mut().filter(|(_, at)| at.is_some_and(|at| at <= next)) {
            *reader = None;
        }
        state.drop_taken();
    }

    /// Waits until there is no reader, and nothing is kept.
    pub async fn until_unwanted(&self) {
        loop {
            let drained = self.drained.notified();
            {
                let state = self.state.borrow();
                if state.is_unread() && !state.kept {
                    return;
                }
            }
            drained.await;
        }
    }

    /// A copy of the list of all chunks, if none was dropped.
    pub fn all_chunks(&self) -> Option<Vec<Chunk>> {
        let state = self.state.borrow();
        (state.dropped == 0).then(|| state.chunks.iter().cloned().collect())
    }
}

impl State {
    /// Where readers are that were not left behind.
    fn places(&self) -> impl Iterator<Item = u64> {
        self.readers.iter().filter_map(|(_, next)| *next)
    }

    fn is_unread(&self) -> bool {
        self.places().next().is_none()
    }

    /// The number of the chunk that the slowest reader takes next, if another has taken all and waits for more.
    fn holding_up(&self) -> Option<u64> {
        let end = self.dropped + self.chunks.len() as u64;
        let slowest = self.places().min().filter(|&slowest| slowest < end)?;
        self.places().any(|next| next == end).then_some(slowest)
    }

    /// Drops what every reader has taken.
    fn drop_taken(&mut self) {
        if self.kept {
            return;
        }
        let Some(slowest) = self.places().min() else { return };
        while self.dropped < slowest {
            let Some(chunk) = self.chunks.pop_front() else { return };
            self.bytes -= chunk.len() as u64;
            self.dropped += 1;
        }
    }
}

/// One who takes a body as it arrives, from its beginning.
pub struct Reader {
    flow: Rc<Flow>,
    key: usize,
}

impl Reader {
    /// A reader of a body none of which was dropped yet; none when it is too late.
    pub fn new(flow: &Rc<Flow>) -> Option<Self> {
        let is_whole = flow.state.borrow().dropped == 0;
        is_whole.then(|| Self::at_start(flow))
    }

    fn at_start(flow: &Rc<Flow>) -> Self {
        let key = flow.state.borrow_mut().readers.insert(Some(0));
        Self { flow: Rc::clone(flow), key }
    }

    /// Adds what has come to `batch`, and waits for it if there is nothing.
    pub async fn take(&mut self, batch: &mut Vec<Chunk>) -> Taken {
        loop {
            let flow = Rc::clone(&self.flow);
            let grown = flow.grown.notified();
            if let Some(taken) = self.try_take(batch) {
                return taken;
            }
            grown.await;
        }
    }

    /// Adds what has come to `batch`; none when there is nothing yet.
    pub fn try_take(&mut self, batch: &mut Vec<Chunk>) -> Option<Taken> {
        let mut state = self.flow.state.borrow_mut();
        let Some(next) = state.readers[self.key] else { return Some(Taken::End(End::Broken)) };
        let from = usize::try_from(next - state.dropped).unwrap_or(usize::MAX);
        let (mut count, mut bytes) = (0, 0);
        for chunk in state.chunks.iter().skip(from).take(BATCH_CHUNKS) {
            if count > 0 && bytes + chunk.len() > BATCH_BYTES {
                break;
            }
            (count, bytes) = (count + 1, bytes + chunk.len());
            batch.push(Rc::clone(chunk));
        }
        if count == 0 {
            return state.end.map(Taken::End);
        }
        state.readers[self.key] = Some(next + count);
        state.drop_taken();
        self.flow.drained.notify_waiters();
        Some(Taken::Chunks)
    }

    /// The end, when everything before it was taken.
    pub fn end(&self) -> Option<End> {
        let state = self.flow.state.borrow();
        let all_taken = state.readers[self.key] == Some(state.dropped + state.chunks.len() as u64);
        state.end.filter(|_| all_taken)
    }
}

impl Drop for Reader {
    fn drop(&mut self) {
        let mut state = self.flow.state.borrow_mut();
        state.readers.remove(self.key);
        state.drop_taken();
        self.flow.drained.notify_waiters();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn flow(kept: bool) -> Rc<Flow> {
        let flow = Rc::new(Flow::default());
        flow.keep(kept);
        flow
    }

    fn drain(reader: &mut Reader) -> (String, Option<End>) {
        let mut batch = Vec::new();
        let end = loop {
            match reader.try_take(&mut batch) {
                Some(Taken::Chunks) => {}
                Some(Taken::End(end)) => break Some(end),
                None => break None,
            }
        };
        (batch.iter().map(|c| String::from_utf8_lossy(c)).collect(), end)
    }

    #[test]
    fn a_reader_that_joins_late_gets_everything_that_was_kept() {
        let flow = flow(true);
        let mut early = Reader::new(&flow).unwrap();
        flow.append(Chunk::from(*b"ab"));
        assert_eq!(drain(&mut early), ("ab".into(), None));
        let mut late = Reader::new(&flow).unwrap();
        flow.append(Chunk::from(*b"cd"));
        flow.finish(End::Complete);
        assert_eq!(drain(&mut late), ("abcd".into(), Some(End::Complete)));
        assert_eq!(drain(&mut early), ("cd".into(), Some(End::Complete)));
        assert_eq!(flow.all_chunks().unwrap().len(), 2);
    }

    #[test]
    fn what_is_not_kept_goes_when_the_slowest_reader_has_it() {
        let flow = flow(false);
        let (mut fast, mut slow) = (Reader::new(&flow).unwrap(), Reader::new(&flow).unwrap());
        flow.append(Chunk::from(*b"ab"));
        drain(&mut fast);
        assert_eq!(flow.state.borrow().bytes, 2);
        drain(&mut slow);
        assert_eq!(flow.state.borrow().bytes, 0);
        assert!(Reader::new(&flow).is_none());
        assert!(flow.all_chunks().is_none());
    }

    #[test]
    fn a_reader_that_goes_away_holds_nothing_back() {
        let flow = flow(false);
        let (mut fast, slow) = (Reader::new(&flow).unwrap(), Reader::new(&flow).unwrap());
        flow.append(Chunk::from(*b"ab"));
        drain(&mut fast);
        drop(slow);
        assert_eq!(flow.state.borrow().bytes, 0);
    }

    #[tokio::test]
    async fn a_reader_that_takes_nothing_is_left_behind_once_others_have_taken_all() {
        let flow = flow(false);
        let (mut one, mut other) = (Reader::new(&flow).unwrap(), Reader::new(&flow).unwrap());
        flow.append(vec![0; WINDOW_BYTES as usize].into());
        flow.append(Chunk::from(*b"ab"));
        // Both are as far: none waits for the other.
        assert_eq!(flow.state.borrow().holding_up(), None);
        drain(&mut one);
        assert!(flow.is_wanted().await);
        assert_eq!((drain(&mut other).1, flow.state.borrow().bytes), (Some(End::Broken), 0));
        drop(other);
        flow.append(Chunk::from(*b"cd"));
        assert_eq!(drain(&mut one), ("cd".into(), None));
    }

    #[test]
    fn a_broken_body_ends_as_broken_whatever_is_said_later() {
        let flow = flow(true);
        let mut reader = Reader::new(&flow).unwrap();
        flow.append(Chunk::from(*b"ab"));
        flow.finish(End::Broken);
        flow.finish(End::Complete);
        assert_eq!(reader.end(), None);
        assert_eq!(drain(&mut reader), ("ab".into(), Some(End::Broken)));
        assert_eq!(reader.end(), Some(End::Broken));
    }
}
