//! Where are the recordings, how much room do they take, and who has had which?
//!
//! What lies under one key lies together and goes together when room is needed, the key first that was asked for longest
//! ago. A recording that goes lives on for those who are being sent it.

use std::cell::{Cell, RefCell};
use std::hash::{BuildHasher, RandomState};
use std::rc::Rc;

use assay_cache::conditional::Conditions;
use assay_cache::freshness::RequestControl;
use assay_cache::lru::Lru;
use assay_http::field::Fields;

use crate::collector::choice::{self, Choice, Limits, Stage, View};
use crate::collector::recording::Recording;

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
    pub claimed: Option<&'a Rc<Recording>>,
    /// Monotonic, in nanoseconds.
    pub now_ns: u64,
    /// Unix time, in milliseconds.
    pub now_ms: i64,
}

/// What the shelf says to who asks.
#[derive(Debug, Clone)]
pub enum Found {
    /// Replay this one.
    Replay(Rc<Recording>),
    /// Wait for its head, and ask again; `true`: it is claimed.
    Wait(Rc<Recording>, bool),
    /// Ask the origin if it still holds.
    Confirm(Rc<Recording>),
    /// Fetch.
    Nothing,
}

#[derive(Debug)]
struct Slot {
    recording: Rc<Recording>,
    /// A bit for each door.
    seen: Cell<u64>,
}

#[derive(Debug, Default)]
struct Entry {
    /// The oldest first.
    slots: RefCell<Vec<Slot>>,
    /// What was last answered could be shared.
    is_shared: Cell<Option<bool>>,
}

/// All recordings.
#[derive(Debug)]
pub struct Shelf {
    lru: Lru<Key, Entry>,
    limits: Limits,
    /// When resources were changed by way of this Collector, by hash of their URL.
    changed_ns: Box<[u64]>,
    hasher: RandomState,
    peak_bytes: u64,
}

impl Shelf {
    /// An empty one of so many bytes.
    pub fn new(memory_bytes: u64, limits: Limits) -> Self {
        Self {
            lru: Lru::new(memory_bytes),
            limits,
            changed_ns: vec![0; CHANGED_SLOTS].into_boxed_slice(),
            hasher: RandomState::new(),
            peak_bytes: 0,
        }
    }

    /// Looks for an answer, and notes who gets it.
    pub fn find(&mut self, key: &[u8], asker: &Asker<'_>) -> Found {
        let changed_ns = self.changed_ns(key);
        let Some(entry) = self.lru.get(key) else { return Found::Nothing };
        let mut slots = entry.slots.borrow_mut();
        slots.retain(|slot| choice::is_of_use(&view(slot, asker, changed_ns), &self.limits));
        let views: Vec<View> = slots.iter().map(|slot| view(slot, asker, changed_ns)).collect();
        let see = |index: usize| {
            let slot: &Slot = &slots[index];
            slot.seen.set(slot.seen.get() | door_bit(asker.door));
            Rc::clone(&slot.recording)
        };
        match choice::choose(&views, &self.limits, entry.is_shared.get(), asker.wants_new) {
            Choice::Replay(index) => Found::Replay(see(index)),
            Choice::Wait { index, claims: true } => Found::Wait(see(index), true),
            Choice::Wait { index, claims: false } => Found::Wait(Rc::clone(&slots[index].recording), false),
            Choice::Confirm(index) => Found::Confirm(Rc::clone(&slots[index].recording)),
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
        let mut seen = door_bit(renewed.door);
        entry.slots.borrow_mut().retain(|slot| {
            if Rc::ptr_eq(&slot.recording, fetch) {
                seen |= slot.seen.get();
            }
            !Rc::ptr_eq(&slot.recording, old) && !Rc::ptr_eq(&slot.recording, fetch)
        });
        entry.slots.borrow_mut().push(Slot { recording: Rc::clone(renewed), seen: Cell::new(seen) });
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
        let is_there = entry.slots.borrow().iter().any(|slot| Rc::ptr_eq(&slot.recording, recording));
        if !is_there {
            // It had to go while it was under way.
            push(&entry, recording);
        }
        self.put(key, entry);
    }

    /// A recording is not going to be complete, and nobody else gets it.
    pub fn drop_recording(&mut self, key: &[u8], recording: &Rc<Recording>) {
        if let Some(entry) = self.lru.peek(key) {
            entry.slots.borrow_mut().retain(|slot| !Rc::ptr_eq(&slot.recording, recording));
        }
    }

    /// A request has changed what is under this URL: what was recorded before is no longer fresh.
    pub fn change(&mut self, url: &[u8], now_ns: u64) {
        let slot = self.changed_slot(url);
        self.changed_ns[slot] = now_ns;
    }

    /// Takes room for bytes that arrive. False: there is none, even if all others go, or it would take too much of it.
    pub fn reserve(&mut self, reserved: u64, more: u64) -> bool {
        let is_small = reserved + more <= self.lru.bound_bytes() / LARGEST_SHARE;
        let fits = is_small && self.lru.reserve(more).is_ok();
        self.note_peak();
        fits
    }

    /// Gives room back.
    pub fn release(&mut self, bytes: u64) {
        self.lru.release(bytes);
    }

    /// Recordings that are kept.
    pub fn recordings(&self) -> u64 {
        self.lru.iter().map(|(_, entry)| entry.slots.borrow().len() as u64).sum()
    }

    /// Bytes that they take, those under way among them.
    pub fn stored_bytes(&self) -> u64 {
        self.lru.used_bytes() + self.lru.reserved_bytes()
    }

    /// Most that they took.
    pub fn peak_bytes(&self) -> u64 {
        self.peak_bytes
    }

    /// Keys that had to go.
    pub fn evictions(&self) -> u64 {
        self.lru.evictions()
    }

    /// Stores an entry with what it weighs now; without its oldest recordings, if it is too much.
    fn put(&mut self, key: &Key, entry: Entry) {
        let limit = self.lru.bound_bytes() - self.lru.reserved_bytes();
        loop {
            let weight = entry_weight(key, &entry);
            let is_bare = entry.slots.borrow().is_empty();
            if weight + Lru::<Key, Entry>::ENTRY_OVERHEAD <= limit || is_bare {
                // What has no room even alone is not kept.
                let _ = self.lru.insert(Rc::clone(key), entry, weight);
                self.note_peak();
                return;
            }
            entry.slots.borrow_mut().remove(0);
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
    let mut slots = entry.slots.borrow_mut();
    if slots.len() >= MOST_RECORDINGS {
        slots.remove(0);
    }
    slots.push(Slot { recording: Rc::clone(recording), seen: Cell::new(door_bit(recording.door)) });
}

fn door_bit(door: u16) -> u64 {
    1 << (door % 64)
}

fn entry_weight(key: &Key, entry: &Entry) -> u64 {
    let slots = entry.slots.borrow();
    // A body that is under way has its room reserved.
    let recordings = slots.iter().map(|slot| {
        let body = slot.recording.end().map_or(0, |_| slot.recording.weight_bytes());
        body.max(size_of::<Recording>() as u64) + size_of::<Slot>() as u64 + 4 * ALLOCATION_OVERHEAD
    });
    key.len() as u64 + 2 * ALLOCATION_OVERHEAD + recordings.sum::<u64>()
}

fn view(slot: &Slot, asker: &Asker<'_>, changed_ns: u64) -> View {
    let recording = &slot.recording;
    let is_claimed = asker.claimed.is_some_and(|claimed| Rc::ptr_eq(claimed, recording));
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
            let is_complete = recording.end() == Some(crate::collector::timeline::End::Complete);
            let is_broken = recording.end() == Some(crate::collector::timeline::End::Broken);
            Stage::Answered {
                suits,
                is_fresh: is_current && !is_broken && answer.is_fresh(asker.control, asker.now_ms),
                can_be_confirmed: is_current && is_complete && answer.can_be_confirmed(),
            }
        }
    };
    View {
        is_seen: slot.seen.get() & door_bit(asker.door) != 0 && !is_claimed,
        age_ns: asker.now_ns.saturating_sub(recording.asked_ns),
        timed_ns: asker.now_ns.saturating_sub(recording.timed_ns),
        stage,
    }
}
