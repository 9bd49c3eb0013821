//! Where are the recordings, how much room do they take, and who has had which?
//!
//! What lies under one key lies together and goes together when room is needed, the key first that was asked for longest
//! ago: to disk, if there is one. A recording that goes lives on for those who are being sent it.

use std::cell::{Cell, RefCell};
use std::hash::{BuildHasher, RandomState};
use std::rc::Rc;

use assay_cache::conditional::Conditions;
use assay_cache::freshness::RequestControl;
use assay_cache::lru::Lru;
use assay_http::field::Fields;

use crate::collector::choice::{self, Choice, Limits, Stage, View};
use crate::collector::disk::Disk;
use crate::collector::recording::{Claim, Recording, door_bit};
use crate::collector::timeline::End;

/// The name of a need.
pub type Key = Rc<[u8]>;

/// Largest share of the memory that one body may take.
const LARGEST_SHARE: u64 = 4;
/// Most recordings under one key; the oldest goes first.
const MOST_RECORDINGS: usize = 256;
/// Slots of the table of resources that were changed; one that is shared makes a fetch more than needed, at worst.
const CHANGED_SLOTS: usize = 1 << 14;
/// Bytes of memory of an allocation beside what was asked for.
const ALLOCATION_OVERHEAD: u64 = 16;

/// Who asks, and how.
#[derive(Debug, Clone, Copy)]
pub struct Asker<'a> {
    /// Through which door.
    pub door: u16,
    /// It is the Multiplier, for a client.
    pub is_direct: bool,
    /// Fields of the request.
    pub fields: &'a Fields<'a>,
    /// Its conditions.
    pub conditions: &'a Conditions<'a>,
    /// Its directives.
    pub control: &'a RequestControl,
    /// It reloads.
    pub wants_new: bool,
    /// What it has claimed while it waited.
    pub claimed: Option<&'a Claim>,
    /// Monotonic, in nanoseconds.
    pub now_ns: u64,
    /// Unix time, in milliseconds.
    pub now_ms: i64,
}

/// What the shelf says to who asks.
#[derive(Debug)]
pub enum Found {
    /// Replay this one.
    Replay(Rc<Recording>),
    /// Wait for its head, and ask again; perhaps with a claim.
    Wait(Rc<Recording>, Option<Claim>),
    /// Ask the origin if it still holds.
    Confirm(Rc<Recording>),
    /// Fetch.
    Nothing,
}

#[derive(Debug, Default)]
struct Entry {
    /// The oldest first.
    recordings: RefCell<Vec<Rc<Recording>>>,
    /// What was last answered could be shared.
    is_shared: Cell<Option<bool>>,
}

/// All recordings.
#[derive(Debug)]
pub struct Shelf {
    lru: Lru<Key, Entry>,
    disk: Option<Disk>,
    limits: Limits,
    /// A bit for each door.
    all_doors: u64,
    /// When resources were changed by way of this Collector, by hash of their URL.
    changed_ns: Box<[u64]>,
    hasher: RandomState,
    peak_bytes: u64,
}

impl Shelf {
    /// An empty one of so many bytes, for so many doors.
    pub fn new(memory_bytes: u64, limits: Limits, doors: usize, disk: Option<Disk>) -> Self {
        Self {
            lru: Lru::new(memory_bytes),
            disk,
            limits,
            all_doors: (0..doors).fold(0, |all, door| all | door_bit(door as u16)),
            changed_ns: vec![0; CHANGED_SLOTS].into_boxed_slice(),
            hasher: RandomState::new(),
            peak_bytes: 0,
        }
    }

    /// Looks for an answer, and notes who gets it.
    pub fn find(&mut self, key: &[u8], asker: &Asker<'_>) -> Found {
        let changed_ns = self.changed_ns(key);
        self.fetch_from_disk(key);
        let Some(entry) = self.lru.get(key) else { return Found::Nothing };
        let mut recordings = entry.recordings.borrow_mut();
        // What this request does not take may be good for the next.
        let anybody = Asker { control: &RequestControl::default(), ..*asker };
        recordings.retain(|recording| {
            let is_done = recording.is_done_for(self.all_doors);
            choice::is_of_use(&view(recording, &anybody, changed_ns), &self.limits, is_done)
        });
        let views: Vec<View> = recordings.iter().map(|one| view(one, asker, changed_ns)).collect();
        let see = |index: usize| {
            let recording: &Rc<Recording> = &recordings[index];
            recording.seen.set(recording.seen.get() | door_bit(asker.door));
            Rc::clone(recording)
        };
        match choice::choose(&views, &self.limits, entry.is_shared.get(), asker.wants_new) {
            Choice::Replay(index) => Found::Replay(see(index)),
            Choice::Wait { index, claims: true } => {
                let recording = see(index);
                Found::Wait(Rc::clone(&recording), Some(Claim::new(recording)))
            }
            Choice::Wait { index, claims: false } => Found::Wait(Rc::clone(&recordings[index]), None),
            Choice::Confirm(index) => Found::Confirm(Rc::clone(&recordings[index])),
            Choice::Fetch => Found::Nothing,
        }
    }

    /// Adds a recording that begins; its door has seen it. Instead of another one, if it confirms that.
    pub fn add(&mut self, key: &Key, recording: &Rc<Recording>) {
        let entry = self.lru.remove(key).unwrap_or_default();
        push(&entry, recording);
        self.put(key, entry);
    }

    /// What a confirmation has made of one, in place of what it confirms and of the fetch that confirmed it.
    pub fn renew(&mut self, key: &Key, old: &Rc<Recording>, fetch: &Rc<Recording>, renewed: &Rc<Recording>) {
        let entry = self.lru.remove(key).unwrap_or_default();
        entry.recordings.borrow_mut().retain(|one| !Rc::ptr_eq(one, old) && !Rc::ptr_eq(one, fetch));
        push(&entry, renewed);
        self.put(key, entry);
    }

    /// Notes that what is answered under this key may be shared, or may not.
    pub fn note_shared(&mut self, key: &[u8], is_shared: bool) {
        if let Some(entry) = self.lru.peek(key) {
            entry.is_shared.set(Some(is_shared));
        }
    }

    /// A recording is complete: it takes its room for good, `reserved` bytes of which it has.
    pub fn complete(&mut self, key: &Key, recording: &Rc<Recording>, reserved: u64) {
        self.lru.release(reserved);
        let entry = self.lru.remove(key).unwrap_or_default();
        let is_there = entry.recordings.borrow().iter().any(|one| Rc::ptr_eq(one, recording));
        if !is_there {
            // It had to go while it was under way.
            push(&entry, recording);
        }
        self.put(key, entry);
    }

    /// A recording is not going to be complete, and nobody else gets it.
    pub fn drop_recording(&mut self, key: &[u8], recording: &Rc<Recording>) {
        if let Some(entry) = self.lru.peek(key) {
            entry.recordings.borrow_mut().retain(|one| !Rc::ptr_eq(one, recording));
        }
    }

    /// A request has changed what is under this URL: what was recorded before is no longer fresh.
    pub fn change(&mut self, url: &[u8], now_ns: u64) {
        let slot = self.changed_slot(url);
        self.changed_ns[slot] = now_ns;
    }

    /// Takes room for bytes that arrive. False: there is none, even if all others go, or it would take too much of it.
    pub fn reserve(&mut self, reserved: u64, more: u64) -> bool {
        let is_small = !self.is_too_large(reserved + more);
        if is_small {
            self.make_room(more);
        }
        let fits = is_small && self.lru.reserve(more).is_ok();
        self.note_peak();
        fits
    }

    /// True for a body that would take too much of the room.
    pub fn is_too_large(&self, bytes: u64) -> bool {
        bytes > self.lru.bound_bytes() / LARGEST_SHARE
    }

    /// Gives room back.
    pub fn release(&mut self, bytes: u64) {
        self.lru.release(bytes);
    }

    /// Keys under which something is kept, here or on disk: to count what is under each would take its time.
    pub fn keys(&self) -> u64 {
        self.lru.len() as u64 + self.disk.as_ref().map_or(0, Disk::keys)
    }

    /// Bytes that they take, those under way among them.
    pub fn stored_bytes(&self) -> u64 {
        self.lru.used_bytes() + self.lru.reserved_bytes()
    }

    /// Bytes of bodies on disk.
    pub fn disk_bytes(&self) -> u64 {
        self.disk.as_ref().map_or(0, Disk::bytes)
    }

    /// Most that they took in memory.
    pub fn peak_bytes(&self) -> u64 {
        self.peak_bytes
    }

    /// Keys that had to go, from memory where there is no disk.
    pub fn evictions(&self) -> u64 {
        self.disk.as_ref().map_or(self.lru.evictions(), Disk::dropped)
    }

    /// Brings back what is on disk under this key.
    fn fetch_from_disk(&mut self, key: &[u8]) {
        let Some(disk) = self.disk.as_mut().filter(|_| self.lru.peek(key).is_none()) else { return };
        let back = disk.take(key);
        if !back.is_empty() {
            let entry = Entry { recordings: RefCell::new(back), ..Entry::default() };
            self.put(&key.into(), entry);
        }
    }

    /// Has others go, to disk if there is one, until so many bytes fit.
    fn make_room(&mut self, bytes: u64) {
        let Some(disk) = &mut self.disk else { return };
        while self.lru.used_bytes() + self.lru.reserved_bytes() + bytes > self.lru.bound_bytes() {
            let Some((key, entry)) = self.lru.pop_oldest() else { return };
            disk.put(key, entry.recordings.into_inner());
        }
    }

    /// Stores an entry with what it weighs now; without its oldest recordings, if it is too much.
    fn put(&mut self, key: &Key, entry: Entry) {
        let limit = self.lru.bound_bytes() - self.lru.reserved_bytes();
        loop {
            let weight = entry_weight(key, &entry);
            let is_bare = entry.recordings.borrow().is_empty();
            if weight + Lru::<Key, Entry>::ENTRY_OVERHEAD <= limit || is_bare {
                self.make_room(weight + Lru::<Key, Entry>::ENTRY_OVERHEAD);
                // What has no room even alone is not kept.
                let _ = self.lru.insert(Rc::clone(key), entry, weight);
                self.note_peak();
                return;
            }
            entry.recordings.borrow_mut().remove(0);
        }
    }

    fn note_peak(&mut self) {
        self.peak_bytes = self.peak_bytes.max(self.stored_bytes());
    }

    fn changed_ns(&self, key: &[u8]) -> u64 {
        self.changed_ns[self.changed_slot(url_of(key))]
    }

    fn changed_slot(&self, url: &[u8]) -> usize {
        self.hasher.hash_one(url) as usize % CHANGED_SLOTS
    }
}

/// The URL within a key.
pub fn url_of(key: &[u8]) -> &[u8] {
    let line = memchr::memchr(b'\n', key).map_or(key, |end| &key[..end]);
    memchr::memchr(b' ', line).map_or(line, |at| &line[at + 1..])
}

fn push(entry: &Entry, recording: &Rc<Recording>) {
    let mut recordings = entry.recordings.borrow_mut();
    if recordings.len() >= MOST_RECORDINGS {
        recordings.remove(0);
    }
    recordings.push(Rc::clone(recording));
}

fn entry_weight(key: &Key, entry: &Entry) -> u64 {
    let recordings = entry.recordings.borrow();
    // A body that is under way has its room reserved.
    let weights = recordings.iter().map(|recording| {
        let body = recording.end().map_or(0, |_| recording.weight_bytes());
        body.max(size_of::<Recording>() as u64) + 4 * ALLOCATION_OVERHEAD
    });
    key.len() as u64 + 2 * ALLOCATION_OVERHEAD + weights.sum::<u64>()
}

fn view(recording: &Rc<Recording>, asker: &Asker<'_>, changed_ns: u64) -> View {
    let is_claimed = asker.claimed.is_some_and(|claim| claim.is_of(recording));
    let stage = match recording.answer() {
        None => Stage::Asked {
            is_conditional: recording.is_conditional && *asker.conditions == Conditions::default(),
            is_of_a_proxy: asker.is_direct && recording.door != asker.door,
        },
        Some(answer) => {
            let is_confirmation = answer.status == 304;
            let suits = recording.is_kept()
                && answer.suits(asker.fields.clone())
                && (!is_confirmation || answer.is_not_modified_for(asker.conditions));
            let is_current = recording.asked_ns >= changed_ns;
            let is_complete = recording.end() == Some(End::Complete);
            let is_broken = recording.end() == Some(End::Broken);
            Stage::Answered {
                suits,
                is_fresh: is_current && !is_broken && answer.is_fresh(asker.control, asker.now_ms),
                can_be_confirmed: is_current && is_complete && answer.can_be_confirmed(),
            }
        }
    };
    View {
        is_seen: recording.seen.get() & door_bit(asker.door) != 0 && !is_claimed,
        age_ns: asker.now_ns.saturating_sub(recording.asked_ns),
        timed_ns: asker.now_ns.saturating_sub(recording.timed_ns),
        stage,
    }
}
