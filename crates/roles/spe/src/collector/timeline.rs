//! Arrival times of the parts of a body, and the parts that are due.
//!
//! Pure: instants are arguments, as offsets from the request of the body. The fetch appends; readers take what is due at their
//! own offset, which may be far behind. While the body is *kept* (to be replayed to others) nothing is dropped and the fetch
//! never waits; otherwise parts are dropped once every reader has them.

use std::collections::VecDeque;

use assay_net::body::Chunk;
use slab::Slab;

/// Parts that a reader takes at once: far below the system's limit on slices, with what is written around them.
pub const BATCH_PARTS: usize = 64;
/// Bytes that a reader takes at once, unless one part has more.
const BATCH_BYTES: usize = 256 * 1024;
/// Memory of a part in addition to its bytes: the entry, two counters, and the allocator's share.
const PART_OVERHEAD: u64 = (size_of::<TimelinePart>() + 16 + 16) as u64;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BodyEnd {
    Complete,
    Broken,
}

#[derive(Debug, Clone)]
struct TimelinePart {
    at_ns: u64,
    /// Empty while the body is on disk.
    bytes: Chunk,
    length: usize,
}

/// A body with the arrival times of its parts.
#[derive(Debug)]
pub struct Timeline {
    parts: VecDeque<TimelinePart>,
    /// Parts dropped before the first of `parts`.
    dropped: u64,
    /// Bytes in `parts`.
    held_bytes: u64,
    is_kept: bool,
    /// The bytes are in memory, and not on disk.
    is_loaded: bool,
    end: Option<(u64, BodyEnd)>,
    readers: Slab<ReaderPosition>,
}

#[derive(Debug, Clone, Copy)]
struct ReaderPosition {
    /// Number of the next part.
    next: u64,
    /// Never waits for readers that do not go first.
    goes_first: bool,
}

/// Parts due for a reader.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DueParts {
    /// Parts were added to the batch; the end may be due too.
    Parts {
        /// Offset of the first part.
        first_ns: u64,
        end: Option<BodyEnd>,
    },
    /// Nothing before this offset.
    At(u64),
    /// The next part has not arrived.
    Unknown,
    End {
        at_ns: u64,
        end: BodyEnd,
    },
}

impl Default for Timeline {
    fn default() -> Self {
        Self {
            parts: VecDeque::new(),
            dropped: 0,
            held_bytes: 0,
            is_kept: true,
            is_loaded: true,
            end: None,
            readers: Slab::new(),
        }
    }
}

impl Timeline {
    /// Appends a part. Offsets never decrease: an earlier one counts as the last one.
    pub fn append(&mut self, at_ns: u64, bytes: Chunk) {
        let at_ns = at_ns.max(self.parts.back().map_or(0, |last| last.at_ns));
        let length = bytes.len();
        self.held_bytes += length as u64;
        self.parts.push_back(TimelinePart { at_ns, bytes, length });
    }

    /// Ends the body; only the first end counts.
    pub fn finish(&mut self, at_ns: u64, end: BodyEnd) {
        let at_ns = at_ns.max(self.parts.back().map_or(0, |last| last.at_ns));
        self.end.get_or_insert((at_ns, end));
    }

    /// From now on parts are dropped once every reader has them, and no new reader can start.
    pub fn stop_keeping(&mut self) {
        self.is_kept = false;
        self.drop_taken();
    }

    /// All parts are present, and stay.
    pub fn is_kept(&self) -> bool {
        self.is_kept
    }

    pub fn end(&self) -> Option<BodyEnd> {
        self.end.map(|(_, end)| end)
    }

    /// Bytes that wait for readers, or are kept.
    pub fn held_bytes(&self) -> u64 {
        self.held_bytes
    }

    /// Memory used.
    pub fn weight_bytes(&self) -> u64 {
        self.held_bytes + self.parts.len() as u64 * PART_OVERHEAD
    }

    /// All bytes are in memory, and nobody reads them.
    pub fn can_be_unloaded(&self) -> bool {
        self.is_kept && self.is_loaded && self.end() == Some(BodyEnd::Complete) && self.readers.is_empty()
    }

    /// Takes the bytes out, to be put back later; the times stay. `None` if they are in use or incomplete.
    pub fn unload(&mut self) -> Option<Vec<u8>> {
        if !self.can_be_unloaded() {
            return None;
        }
        let mut whole = Vec::with_capacity(usize::try_from(self.held_bytes).ok()?);
        let nothing = Chunk::from([]);
        for part in &mut self.parts {
            whole.extend_from_slice(&part.bytes);
            part.bytes = Chunk::clone(&nothing);
        }
        self.is_loaded = false;
        Some(whole)
    }

    /// Puts the bytes back. If they are missing or too few, they are lost, and the body breaks off at its beginning.
    pub fn load(&mut self, whole: Option<&[u8]>) {
        self.is_loaded = true;
        let mut rest = whole.filter(|whole| whole.len() as u64 == self.held_bytes).unwrap_or_default();
        if rest.len() as u64 != self.held_bytes {
            let first_ns = self.parts.front().map_or(0, |part| part.at_ns);
            (self.parts, self.held_bytes) = (VecDeque::new(), 0);
            self.end = Some((first_ns, BodyEnd::Broken));
            return;
        }
        for part in &mut self.parts {
            let (bytes, after) = rest.split_at(part.length);
            part.bytes = Chunk::from(bytes);
            rest = after;
        }
    }

    /// Whether the next part for a reader has arrived, due or not.
    pub fn is_known_to(&self, reader: usize) -> bool {
        let Some(position) = self.readers.get(reader) else { return true };
        let has_more = position.next < self.dropped + self.parts.len() as u64;
        self.is_loaded && (self.end.is_some() || has_more)
    }

    /// Whether there are readers, or the body is kept for some.
    pub fn is_wanted(&self) -> bool {
        self.is_kept || !self.readers.is_empty()
    }

    /// Adds a reader; `None` if the beginning is gone.
    pub fn join(&mut self, goes_first: bool) -> Option<usize> {
        let may_join = self.dropped == 0 && (self.is_kept || self.end.is_none());
        may_join.then(|| self.readers.insert(ReaderPosition { next: 0, goes_first }))
    }

    /// Drops the readers that hold up one that goes first, and returns how many. For them the body breaks off.
    pub fn shed(&mut self) -> usize {
        let going_first = self.readers.iter().filter(|(_, position)| position.goes_first);
        let Some(first) = going_first.map(|(_, position)| position.next).min() else { return 0 };
        let before = self.readers.len();
        self.readers.retain(|_, position| position.goes_first || position.next >= first);
        self.drop_taken();
        before - self.readers.len()
    }

    pub fn leave(&mut self, reader: usize) {
        self.readers.try_remove(reader);
        self.drop_taken();
    }

    /// Adds to `batch` the parts due for a reader at this offset of its own.
    pub fn take(&mut self, reader: usize, now_ns: u64, batch: &mut Vec<Chunk>) -> DueParts {
        if !self.is_loaded {
            return DueParts::Unknown;
        }
        // A reader that was dropped.
        let Some(&ReaderPosition { next, .. }) = self.readers.get(reader) else {
            return DueParts::End { at_ns: now_ns, end: BodyEnd::Broken };
        };
        let from = usize::try_from(next - self.dropped).unwrap_or(usize::MAX);
        let (mut count, mut bytes, mut first_ns) = (0, 0, 0);
        for part in self.parts.iter().skip(from).take(BATCH_PARTS) {
            if part.at_ns > now_ns || (count > 0 && bytes + part.bytes.len() > BATCH_BYTES) {
                break;
            }
            if count == 0 {
                first_ns = part.at_ns;
            }
            (count, bytes) = (count + 1, bytes + part.bytes.len());
            batch.push(Chunk::clone(&part.bytes));
        }
        let is_last = from + count == self.parts.len();
        if count == 0 {
            return match (self.parts.get(from), self.end) {
                (Some(part), _) => DueParts::At(part.at_ns),
                (None, Some((at_ns, end))) if at_ns <= now_ns => DueParts::End { at_ns, end },
                (None, Some((at_ns, _))) => DueParts::At(at_ns),
                (None, None) => DueParts::Unknown,
            };
        }
        let end = self.end.filter(|(at_ns, _)| is_last && *at_ns <= now_ns).map(|(_, end)| end);
        self.readers[reader].next = next + count as u64;
        self.drop_taken();
        DueParts::Parts { first_ns, end }
    }

    /// Drops parts that every reader has.
    fn drop_taken(&mut self) {
        if self.is_kept {
            return;
        }
        let Some(slowest) = self.readers.iter().map(|(_, position)| position.next).min() else { return };
        while self.dropped < slowest {
            let Some(part) = self.parts.pop_front() else { return };
            self.held_bytes -= part.bytes.len() as u64;
            self.dropped += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn timeline(parts: &[(u64, &str)]) -> Timeline {
        let mut timeline = Timeline::default();
        parts.iter().for_each(|(at_ns, text)| timeline.append(*at_ns, Chunk::from(text.as_bytes())));
        timeline
    }

    fn text(batch: &mut Vec<Chunk>) -> String {
        batch.drain(..).map(|chunk| String::from_utf8_lossy(&chunk).into_owned()).collect()
    }

    #[test]
    fn parts_are_due_at_their_own_offset_and_never_before() {
        let mut timeline = timeline(&[(10, "a"), (20, "b"), (20, "c")]);
        let (reader, mut batch) = (timeline.join(false).unwrap(), Vec::new());
        assert_eq!(timeline.take(reader, 9, &mut batch), DueParts::At(10));
        assert_eq!(timeline.take(reader, 10, &mut batch), DueParts::Parts { first_ns: 10, end: None });
        assert_eq!(timeline.take(reader, 19, &mut batch), DueParts::At(20));
        assert_eq!(timeline.take(reader, 25, &mut batch), DueParts::Parts { first_ns: 20, end: None });
        assert_eq!(text(&mut batch), "abc");
        assert_eq!(timeline.take(reader, 30, &mut batch), DueParts::Unknown);
        timeline.finish(40, BodyEnd::Broken);
        timeline.finish(41, BodyEnd::Complete);
        assert_eq!(timeline.take(reader, 39, &mut batch), DueParts::At(40));
        assert_eq!(timeline.take(reader, 40, &mut batch), DueParts::End { at_ns: 40, end: BodyEnd::Broken });
    }

    #[test]
    fn an_end_that_is_due_comes_with_the_last_parts() {
        let mut timeline = timeline(&[(10, "a"), (20, "b")]);
        timeline.finish(20, BodyEnd::Complete);
        let (reader, mut batch) = (timeline.join(false).unwrap(), Vec::new());
        assert_eq!(
            timeline.take(reader, 20, &mut batch),
            DueParts::Parts { first_ns: 10, end: Some(BodyEnd::Complete) }
        );
    }

    #[test]
    fn what_is_let_go_is_held_for_the_slowest_reader_alone() {
        let mut timeline = timeline(&[(10, "a"), (20, "b")]);
        let (fast, slow, mut batch) =
            (timeline.join(false).unwrap(), timeline.join(false).unwrap(), Vec::new());
        timeline.take(fast, 20, &mut batch);
        timeline.stop_keeping();
        assert_eq!(timeline.held_bytes(), 2);
        timeline.take(slow, 10, &mut batch);
        assert_eq!(timeline.held_bytes(), 1);
        assert_eq!(timeline.join(false), None);
        timeline.leave(slow);
        assert_eq!(timeline.held_bytes(), 0);
        timeline.leave(fast);
        assert!(!timeline.is_wanted());
    }

    #[test]
    fn a_reader_that_holds_up_one_that_goes_first_is_given_up_and_no_other() {
        let mut timeline = timeline(&[(10, "a"), (20, "b"), (30, "c")]);
        let (first, slow, fast) = (timeline.join(true), timeline.join(false), timeline.join(false));
        let [first, slow, fast] = [first, slow, fast].map(Option::unwrap);
        let mut batch = Vec::new();
        timeline.stop_keeping();
        timeline.take(first, 20, &mut batch);
        timeline.take(fast, 30, &mut batch);
        assert_eq!((timeline.held_bytes(), timeline.shed()), (3, 1));
        assert_eq!((timeline.held_bytes(), timeline.shed()), (1, 0));
        assert!(timeline.is_known_to(slow));
        assert_eq!(timeline.take(slow, 40, &mut batch), DueParts::End { at_ns: 40, end: BodyEnd::Broken });
        assert!(matches!(timeline.take(first, 40, &mut batch), DueParts::Parts { first_ns: 30, end: None }));
        timeline.leave(slow);
        timeline.leave(first);
        assert_eq!(timeline.shed(), 0, "nobody goes first");
    }

    #[test]
    fn bytes_that_are_elsewhere_are_waited_for_and_come_back_as_they_were() {
        let mut timeline = timeline(&[(10, "ab"), (20, "c")]);
        assert_eq!(timeline.unload(), None, "it goes on");
        timeline.finish(20, BodyEnd::Complete);
        let (weight, bytes) = (timeline.weight_bytes(), timeline.unload().unwrap());
        assert_eq!((timeline.unload(), &bytes[..]), (None, &b"abc"[..]));
        let (reader, mut batch) = (timeline.join(false).unwrap(), Vec::new());
        assert_eq!(timeline.take(reader, 50, &mut batch), DueParts::Unknown);
        assert!(!timeline.is_known_to(reader));
        timeline.load(Some(&bytes));
        assert_eq!(timeline.take(reader, 10, &mut batch), DueParts::Parts { first_ns: 10, end: None });
        assert_eq!((text(&mut batch), timeline.weight_bytes()), ("ab".into(), weight));
        assert_eq!(timeline.unload(), None, "somebody reads it");
        timeline.leave(reader);
        timeline.unload().unwrap();
        timeline.load(None);
        let reader = timeline.join(false).unwrap();
        assert_eq!(timeline.take(reader, 50, &mut batch), DueParts::End { at_ns: 10, end: BodyEnd::Broken });
    }

    proptest! {
        #[test]
        fn every_reader_gets_every_byte_once_in_order_and_never_early(
            timings in prop::collection::vec((0u64..50, 0usize..300), 0..200),
            starts in prop::collection::vec(0u64..2000, 1..4),
            lets_go in any::<bool>(),
        ) {
            let mut timeline = Timeline::default();
            let readers: Vec<(usize, u64)> = starts.iter().map(|late| (timeline.join(false).unwrap(), *late)).collect();
            let mut got = vec![(Vec::<u8>::new(), None); readers.len()];
            if lets_go {
                timeline.stop_keeping();
            }
            let (mut whole, mut came) = (Vec::<u8>::new(), Vec::<u64>::new());
            let mut now = 0;
            let mut timings = timings.into_iter();
            while got.iter().any(|(_, end)| end.is_none()) {
                match timings.next() {
                    Some((after, size)) => {
                        now += after;
                        let bytes = vec![whole.len() as u8; size + 1];
                        came.extend(std::iter::repeat_n(now, bytes.len()));
                        whole.extend(&bytes);
                        timeline.append(now, Chunk::from(bytes));
                    }
                    None => { now += 50; timeline.finish(now, BodyEnd::Complete); }
                }
                for (&(reader, late), (bytes, ended)) in readers.iter().zip(&mut got) {
                    let Some(offset) = now.checked_sub(late).filter(|_| ended.is_none()) else { continue };
                    let mut batch = Vec::new();
                    loop {
                        match timeline.take(reader, offset, &mut batch) {
                            DueParts::Parts { end, .. } => {
                                batch.drain(..).for_each(|chunk| bytes.extend_from_slice(&chunk));
                                prop_assert!(came[bytes.len() - 1] <= offset, "early");
                                *ended = end;
                            }
                            DueParts::End { end, .. } => *ended = Some(end),
                            DueParts::At(at) => { prop_assert!(at > offset); break }
                            DueParts::Unknown => break,
                        }
                        if ended.is_some() { break }
                    }
                }
            }
            for (bytes, _) in &got {
                prop_assert_eq!(bytes, &whole);
            }
        }
    }
}
