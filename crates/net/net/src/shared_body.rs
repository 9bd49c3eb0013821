//! A body that is still arriving, shared by all its readers.
//!
//! The fetch appends chunks, readers take them at their own pace. While the body is *retained* (it is going to be stored) nothing is
//! dropped and the fetch never waits: its size is bounded by what may be stored. Otherwise chunks are dropped once every reader has taken
//! them, and the fetch waits for the slowest reader, so that a slow client cannot make it pile up memory. A reader that takes nothing while
//! another has taken all is dropped: for it, the body ends as broken.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::rc::Rc;

use slab::Slab;
use tokio::sync::Notify;
use tokio::time::timeout;

use crate::body::Chunk;
use crate::limits::{BATCH_CHUNKS, EVICTION_GRACE};

/// Bytes by which the fetch of a body that is not retained may be ahead of its slowest reader.
const WINDOW_BYTES: u64 = 256 * 1024;
/// Bytes that a reader takes at once, unless one chunk has more.
const BATCH_BYTES: usize = 256 * 1024;

/// A body that is arriving.
#[derive(Default)]
pub struct SharedBody {
    state: RefCell<SharedBodyState>,
    /// Notified when a chunk was appended, or the body ended.
    grown: Notify,
    /// Notified when a reader has taken chunks, or was dropped.
    drained: Notify,
}

#[derive(Default)]
struct SharedBodyState {
    chunks: VecDeque<Chunk>,
    /// Number of chunks that were dropped before these.
    dropped: u64,
    bytes: u64,
    is_retained: bool,
    end: Option<BodyEnd>,
    /// Position of each reader: the number of its next chunk; none: the reader was too slow.
    readers: Slab<Option<u64>>,
}

/// End of a body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BodyEnd {
    Complete,
    Broken,
}

/// Result of a read.
#[derive(Debug, PartialEq, Eq)]
pub enum BodyRead {
    /// Chunks were added to the batch.
    Chunks,
    End(BodyEnd),
}

impl SharedBody {
    /// A body that has not begun, and its first reader.
    pub fn new() -> (Rc<Self>, SharedBodyReader) {
        let flow = Rc::new(Self::default());
        let reader = SharedBodyReader::at_start(&flow);
        (flow, reader)
    }

    /// Sets whether all chunks are retained. To be set before the first chunk, and cleared at most once.
    pub fn set_retained(&self, is_retained: bool) {
        let mut state = self.state.borrow_mut();
        state.is_retained = is_retained;
        state.drop_taken();
    }

    pub fn append(&self, chunk: Chunk) {
        let mut state = self.state.borrow_mut();
        state.bytes += chunk.len() as u64;
        state.chunks.push_back(chunk);
        self.grown.notify_waiters();
    }

    pub fn finish(&self, end: BodyEnd) {
        self.state.borrow_mut().end.get_or_insert(end);
        self.grown.notify_waiters();
    }

    /// Waits until the readers are close enough to the fetch; false: there is no reader, and nothing is retained.
    pub async fn wait_for_room(&self) -> bool {
        loop {
            let drained = self.drained.notified();
            let holding_up = {
                let state = self.state.borrow();
                if state.is_retained {
                    return true;
                }
                if state.is_unread() {
                    return false;
                }
                if state.bytes < WINDOW_BYTES {
                    return true;
                }
                state.blocking_position()
            };
            match holding_up {
                None => drained.await,
                Some(next) => {
                    if timeout(EVICTION_GRACE, self.wait_progress(next)).await.is_err() {
                        self.drop_slow_readers(next);
                    }
                }
            }
        }
    }

    /// Waits until the readers at this chunk block nobody any more.
    async fn wait_progress(&self, next: u64) {
        loop {
            let drained = self.drained.notified();
            if self.state.borrow().blocking_position() != Some(next) {
                return;
            }
            drained.await;
        }
    }

    /// Drops the readers that have not taken this chunk.
    fn drop_slow_readers(&self, next: u64) {
        let mut state = self.state.borrow_mut();
        for (_, reader) in state.readers.iter_mut().filter(|(_, at)| at.is_some_and(|at| at <= next)) {
            *reader = None;
        }
        state.drop_taken();
    }

    /// Waits until there is no reader, and nothing is retained.
    pub async fn wait_unwanted(&self) {
        loop {
            let drained = self.drained.notified();
            {
                let state = self.state.borrow();
                if state.is_unread() && !state.is_retained {
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

impl SharedBodyState {
    /// Positions of the readers that are not too slow.
    fn positions(&self) -> impl Iterator<Item = u64> {
        self.readers.iter().filter_map(|(_, next)| *next)
    }

    fn is_unread(&self) -> bool {
        self.positions().next().is_none()
    }

    /// Position of the slowest reader, if another has taken all and waits for more.
    fn blocking_position(&self) -> Option<u64> {
        let end = self.dropped + self.chunks.len() as u64;
        let slowest = self.positions().min().filter(|&slowest| slowest < end)?;
        self.positions().any(|next| next == end).then_some(slowest)
    }

    /// Drops what every reader has taken.
    fn drop_taken(&mut self) {
        if self.is_retained {
            return;
        }
        let Some(slowest) = self.positions().min() else { return };
        while self.dropped < slowest {
            let Some(chunk) = self.chunks.pop_front() else { return };
            self.bytes -= chunk.len() as u64;
            self.dropped += 1;
        }
    }
}

/// A reader of a body as it arrives, from its beginning.
pub struct SharedBodyReader {
    flow: Rc<SharedBody>,
    key: usize,
}

impl SharedBodyReader {
    /// A reader of a body; none: a chunk was dropped already.
    pub fn new(flow: &Rc<SharedBody>) -> Option<Self> {
        let is_whole = flow.state.borrow().dropped == 0;
        is_whole.then(|| Self::at_start(flow))
    }

    fn at_start(flow: &Rc<SharedBody>) -> Self {
        let key = flow.state.borrow_mut().readers.insert(Some(0));
        Self { flow: Rc::clone(flow), key }
    }

    /// Appends available chunks to `batch`, and waits for one if there is none.
    pub async fn read(&mut self, batch: &mut Vec<Chunk>) -> BodyRead {
        loop {
            let flow = Rc::clone(&self.flow);
            let grown = flow.grown.notified();
            if let Some(taken) = self.try_read(batch) {
                return taken;
            }
            grown.await;
        }
    }

    /// Appends available chunks to `batch`; none: there is nothing yet.
    pub fn try_read(&mut self, batch: &mut Vec<Chunk>) -> Option<BodyRead> {
        let mut state = self.flow.state.borrow_mut();
        let Some(next) = state.readers[self.key] else { return Some(BodyRead::End(BodyEnd::Broken)) };
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
            return state.end.map(BodyRead::End);
        }
        state.readers[self.key] = Some(next + count);
        state.drop_taken();
        self.flow.drained.notify_waiters();
        Some(BodyRead::Chunks)
    }

    /// The end, once everything before it was taken.
    pub fn end(&self) -> Option<BodyEnd> {
        let state = self.flow.state.borrow();
        let all_taken = state.readers[self.key] == Some(state.dropped + state.chunks.len() as u64);
        state.end.filter(|_| all_taken)
    }
}

impl Drop for SharedBodyReader {
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

    fn flow(is_retained: bool) -> Rc<SharedBody> {
        let flow = Rc::new(SharedBody::default());
        flow.set_retained(is_retained);
        flow
    }

    fn drain(reader: &mut SharedBodyReader) -> (String, Option<BodyEnd>) {
        let mut batch = Vec::new();
        let end = loop {
            match reader.try_read(&mut batch) {
                Some(BodyRead::Chunks) => {}
                Some(BodyRead::End(end)) => break Some(end),
                None => break None,
            }
        };
        (batch.iter().map(|c| String::from_utf8_lossy(c)).collect(), end)
    }

    #[test]
    fn a_reader_that_joins_late_gets_everything_that_was_kept() {
        let flow = flow(true);
        let mut early = SharedBodyReader::new(&flow).unwrap();
        flow.append(Chunk::from(*b"ab"));
        assert_eq!(drain(&mut early), ("ab".into(), None));
        let mut late = SharedBodyReader::new(&flow).unwrap();
        flow.append(Chunk::from(*b"cd"));
        flow.finish(BodyEnd::Complete);
        assert_eq!(drain(&mut late), ("abcd".into(), Some(BodyEnd::Complete)));
        assert_eq!(drain(&mut early), ("cd".into(), Some(BodyEnd::Complete)));
        assert_eq!(flow.all_chunks().unwrap().len(), 2);
    }

    #[test]
    fn what_is_not_kept_goes_when_the_slowest_reader_has_it() {
        let flow = flow(false);
        let (mut fast, mut slow) =
            (SharedBodyReader::new(&flow).unwrap(), SharedBodyReader::new(&flow).unwrap());
        flow.append(Chunk::from(*b"ab"));
        drain(&mut fast);
        assert_eq!(flow.state.borrow().bytes, 2);
        drain(&mut slow);
        assert_eq!(flow.state.borrow().bytes, 0);
        assert!(SharedBodyReader::new(&flow).is_none());
        assert!(flow.all_chunks().is_none());
    }

    #[test]
    fn a_reader_that_goes_away_holds_nothing_back() {
        let flow = flow(false);
        let (mut fast, slow) = (SharedBodyReader::new(&flow).unwrap(), SharedBodyReader::new(&flow).unwrap());
        flow.append(Chunk::from(*b"ab"));
        drain(&mut fast);
        drop(slow);
        assert_eq!(flow.state.borrow().bytes, 0);
    }

    #[tokio::test]
    async fn a_reader_that_takes_nothing_is_left_behind_once_others_have_taken_all() {
        let flow = flow(false);
        let (mut one, mut other) =
            (SharedBodyReader::new(&flow).unwrap(), SharedBodyReader::new(&flow).unwrap());
        flow.append(vec![0; WINDOW_BYTES as usize].into());
        flow.append(Chunk::from(*b"ab"));
        // Both are as far: none waits for the other.
        assert_eq!(flow.state.borrow().blocking_position(), None);
        drain(&mut one);
        assert!(flow.wait_for_room().await);
        assert_eq!((drain(&mut other).1, flow.state.borrow().bytes), (Some(BodyEnd::Broken), 0));
        drop(other);
        flow.append(Chunk::from(*b"cd"));
        assert_eq!(drain(&mut one), ("cd".into(), None));
    }

    #[test]
    fn a_broken_body_ends_as_broken_whatever_is_said_later() {
        let flow = flow(true);
        let mut reader = SharedBodyReader::new(&flow).unwrap();
        flow.append(Chunk::from(*b"ab"));
        flow.finish(BodyEnd::Broken);
        flow.finish(BodyEnd::Complete);
        assert_eq!(reader.end(), None);
        assert_eq!(drain(&mut reader), ("ab".into(), Some(BodyEnd::Broken)));
        assert_eq!(reader.end(), Some(BodyEnd::Broken));
    }
}
