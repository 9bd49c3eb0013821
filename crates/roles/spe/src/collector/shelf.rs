//! Where the recordings are, how much room they take, and who has had which.
//!
//! What lies under one key lies together and goes together when room is needed: to disk, if there is one. What is under way,
//! and what was one client's own response and a listener has yet to request, is *held*. First goes what is not held, the key that
//! was requested longest ago before the others; then what a listener has not requested in a long while. The rest stays, and what
//! arrives then is not kept: a note is left of it, as of everything that goes ([`super::lost`]). A recording that goes lives on
//! for those who are being sent it.

use std::cell::{Cell, RefCell};
use std::hash::{BuildHasher, RandomState};
use std::rc::Rc;

use assay_cache::conditional::Conditions;
use assay_cache::freshness::RequestControl;
use assay_http::field::Fields;

use crate::collector::choice::{self, Bond, Choice, Limits, Stage, View};
use crate::collector::disk::Disk;
use crate::collector::lost::{Gone, Lost};
use crate::collector::recording::{Claim, Recording, listener_bit};
use crate::collector::stock::Stock;
use crate::collector::timeline::End;

/// The name of a need.
pub type Key = Rc<[u8]>;

/// Largest share of the memory that one body may take.
const LARGEST_SHARE: u64 = 4;
/// Most recordings under one key, all of which are looked at for each request: 4,096 take half a millisecond.
const MOST_RECORDINGS: usize = if cfg!(test) { 64 } else { 4096 };
/// Slots of the table of resources that were changed; one that is shared makes a fetch more than needed, at worst.
const CHANGED_SLOTS: usize = 1 << 14;
/// Bytes of memory of an allocation beside its size.
const ALLOCATION_OVERHEAD: u64 = 16;

/// A request: its listener, and its kind.
#[derive(Debug, Clone, Copy)]
pub struct Requester<'a> {
    pub listener: u16,
    /// It is the Multiplier, for a client.
    pub is_direct: bool,
    /// Fields of the request.
    pub fields: &'a Fields<'a>,
    pub conditions: &'a Conditions<'a>,
    pub control: &'a RequestControl,
    pub wants_new: bool,
    /// The number of the client's request.
    pub number: Option<u64>,
    /// What it has claimed while it waited.
    pub claimed: Option<&'a Claim>,
    /// Monotonic, in nanoseconds.
    pub now_ns: u64,
    /// Unix time, in milliseconds.
    pub now_ms: i64,
}

/// What to do with a request.
#[derive(Debug)]
pub enum Found {
    /// Replay this one; true: it is what the client's own request got, as far as that is known.
    Replay(Rc<Recording>, bool),
    /// Wait for its head, and look again; perhaps with a claim.
    Wait(Rc<Recording>, Option<Claim>),
    /// Validate it at the origin.
    Confirm(Rc<Recording>),
    Nothing,
}

#[derive(Debug, Default)]
struct Entry {
    recordings: RefCell<Vec<Rc<Recording>>>,
    /// The last response could be shared.
    is_shared: Cell<Option<bool>>,
}

impl Entry {
    /// Where it is, if it is here.
    fn position(&self, recording: &Rc<Recording>) -> Option<usize> {
        self.recordings.borrow().iter().position(|one| Rc::ptr_eq(one, recording))
    }

    fn remove(&self, recording: &Rc<Recording>) {
        self.recordings.borrow_mut().retain(|one| !Rc::ptr_eq(one, recording));
    }
}

/// For whom, and for how long, recordings are kept.
#[derive(Debug, Clone, Copy)]
struct Keeping {
    limits: Limits,
    /// A bit for each listener.
    all_listeners: u64,
    has_disk: bool,
}

impl Keeping {
    fn is_waited_for(&self, recording: &Recording, now_ns: u64) -> bool {
        let age_ns = now_ns.saturating_sub(recording.requested_ns);
        let is_under_way = recording.end().is_none();
        is_under_way || choice::is_waited_for(age_ns, &self.limits, recording.is_done_for(self.all_listeners))
    }

    /// It cannot be had again: it is under way, or it is one client's own response that a listener may still request.
    fn is_held(&self, recording: &Recording, now_ns: u64) -> bool {
        let is_for_all = || recording.response().is_some_and(|response| response.is_for_all());
        recording.end().is_none() || (self.is_waited_for(recording, now_ns) && !is_for_all())
    }

    fn is_too_old(&self, recording: &Recording, now_ns: u64) -> bool {
        now_ns.saturating_sub(recording.requested_ns) > self.limits.minimum_freshness_ns
            || now_ns.saturating_sub(recording.timed_ns) > self.limits.maximum_age_ns
    }

    fn holds_some(&self, entry: &Entry, now_ns: u64) -> bool {
        entry.recordings.borrow().iter().any(|recording| self.is_held(recording, now_ns))
    }

    /// Whether what lies under a key may leave the memory.
    fn may_go(&self, entry: &Entry, now_ns: u64) -> bool {
        entry.recordings.borrow().iter().all(|recording| {
            choice::may_go(now_ns.saturating_sub(recording.requested_ns))
                || (self.has_disk && recording.can_be_unloaded())
                || !self.is_held(recording, now_ns)
        })
    }
}

#[derive(Debug)]
pub struct Shelf {
    stock: Stock<Key, Entry>,
    disk: Option<Disk>,
    keeping: Keeping,
    lost: Lost,
    not_kept: u64,
    /// When resources were changed by way of this Collector, by hash of their URL.
    changed_ns: Box<[u64]>,
    hasher: RandomState,
    peak_bytes: u64,
}

impl Shelf {
    /// An empty one of so many bytes, for so many listeners.
    pub fn new(memory_bytes: u64, limits: Limits, listeners: usize, disk: Option<Disk>) -> Self {
        let all_listeners = (0..listeners).fold(0, |all, listener| all | listener_bit(listener as u16));
        Self {
            stock: Stock::new(memory_bytes),
            keeping: Keeping { limits, all_listeners, has_disk: disk.is_some() },
            disk,
            lost: Lost::default(),
            not_kept: 0,
            changed_ns: vec![0; CHANGED_SLOTS].into_boxed_slice(),
            hasher: RandomState::new(),
            peak_bytes: 0,
        }
    }

    /// Looks for a response, and notes which listener gets it.
    pub fn find(&mut self, key: &[u8], requester: &Requester<'_>) -> Found {
        let changed_ns = self.changed_ns(key);
        self.fetch_from_disk(key, requester.now_ns);
        let Some(entry) = self.stock.get(key) else { return Found::Nothing };
        let mut gone = Vec::new();
        let found = look(entry, requester, &self.keeping, changed_ns, &mut gone);
        let is_held = self.keeping.holds_some(entry, requester.now_ns);
        if !gone.is_empty() || is_held != self.stock.is_held(key) {
            let key: Key = key.into();
            for recording in &gone {
                // What is too old is made anew for everybody.
                let is_for_all = self.keeping.is_too_old(recording, requester.now_ns)
                    || recording.response().is_some_and(|response| response.is_for_all());
                self.note(&key, recording, is_for_all, requester.now_ns);
            }
            if let Some(entry) = self.stock.remove(&key) {
                self.put(&key, entry, None, requester.now_ns);
            }
        }
        found
    }

    /// What became of the response to a client's request; none: it is not known to be gone.
    pub fn gone(&self, key: &[u8], number: u64) -> Option<Gone> {
        match self.lost.find(self.hasher.hash_one(key), number)? {
            Gone::Forgotten => Some(if is_safe(key) { Gone::Shared } else { Gone::Own }),
            known => Some(known),
        }
    }

    /// Adds a recording that begins; its listener has seen it.
    pub fn add(&mut self, key: &Key, recording: &Rc<Recording>, now_ns: u64) {
        let entry = self.stock.remove(key).unwrap_or_default();
        self.push(key, &entry, recording, now_ns);
        self.put(key, entry, Some(recording), now_ns);
    }

    /// What a confirmation has made of one, in place of what it confirms and of the fetch that confirmed it.
    pub fn renew(
        &mut self,
        key: &Key,
        (old, fetch): (&Rc<Recording>, &Rc<Recording>),
        renewed: &Rc<Recording>,
        now_ns: u64,
    ) {
        let entry = self.stock.remove(key).unwrap_or_default();
        [old, fetch].into_iter().for_each(|one| entry.remove(one));
        self.push(key, &entry, renewed, now_ns);
        self.put(key, entry, Some(renewed), now_ns);
    }

    /// Notes whether responses under this key may be shared.
    pub fn note_shared(&mut self, key: &[u8], is_shared: bool) {
        if let Some(entry) = self.stock.peek(key) {
            entry.is_shared.set(Some(is_shared));
        }
    }

    /// A recording is complete: it takes its room for good, `reserved` bytes of which it has.
    pub fn complete(&mut self, key: &Key, recording: &Rc<Recording>, reserved: u64, now_ns: u64) {
        self.stock.release(reserved);
        let entry = self.stock.remove(key).unwrap_or_default();
        if entry.position(recording).is_none() {
            // It had to go while it was under way.
            self.push(key, &entry, recording, now_ns);
        }
        self.put(key, entry, Some(recording), now_ns);
    }

    /// There is no room for a recording, which was let go, and nobody else gets it; `is_for_all`: caches may have it.
    pub fn drop_recording(&mut self, key: &[u8], recording: &Rc<Recording>, is_for_all: bool, now_ns: u64) {
        if let Some(entry) = self.stock.peek(key) {
            entry.remove(recording);
        }
        self.note(key, recording, is_for_all, now_ns);
    }

    /// A request has changed what is under this URL: what was recorded before is no longer fresh.
    pub fn change(&mut self, url: &[u8], now_ns: u64) {
        let slot = self.changed_slot(url);
        self.changed_ns[slot] = now_ns;
    }

    /// Takes room for bytes of a response that arrive. False: there is none, though all went that may go, or it would take too
    /// much of it.
    pub fn reserve(&mut self, reserved: u64, more: u64, now_ns: u64) -> bool {
        let fits = !self.is_too_large(reserved + more)
            && self.make_room(more, Some(now_ns))
            && self.stock.reserve(more);
        self.note_peak();
        fits
    }

    /// The same for a client's request, for which everything else goes if it has to.
    pub fn reserve_for_request(&mut self, reserved: u64, more: u64) -> bool {
        let fits =
            !self.is_too_large(reserved + more) && self.make_room(more, None) && self.stock.reserve(more);
        self.note_peak();
        fits
    }

    /// True for a body that would take too much of the room.
    pub fn is_too_large(&self, bytes: u64) -> bool {
        bytes > self.stock.bound_bytes() / LARGEST_SHARE
    }

    pub fn release(&mut self, bytes: u64) {
        self.stock.release(bytes);
    }

    /// Recordings that went before all listeners had requested them.
    pub fn not_kept(&self) -> u64 {
        self.not_kept
    }

    /// Keys under which something is kept, here or on disk: to count what is under each would take its time.
    pub fn keys(&self) -> u64 {
        self.stock.len() as u64 + self.disk.as_ref().map_or(0, Disk::keys)
    }

    /// Bytes that they take, those under way among them.
    pub fn stored_bytes(&self) -> u64 {
        self.stock.taken_bytes()
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
        self.disk.as_ref().map_or(self.stock.evictions(), Disk::dropped)
    }

    /// Brings back what is on disk under this key.
    fn fetch_from_disk(&mut self, key: &[u8], now_ns: u64) {
        let Some(disk) = self.disk.as_mut().filter(|_| self.stock.peek(key).is_none()) else { return };
        let back = disk.take(key);
        if !back.is_empty() {
            let entry = Entry { recordings: RefCell::new(back), ..Entry::default() };
            self.put(&key.into(), entry, None, now_ns);
        }
    }

    /// Has others go until so many bytes fit: those that may go by now, or any (`None`). False: there is no such room.
    fn make_room(&mut self, bytes: u64, now_ns: Option<u64>) -> bool {
        let keeping = self.keeping;
        let may_go = |entry: &Entry| now_ns.is_none_or(|now_ns| keeping.may_go(entry, now_ns));
        if !self.stock.could_fit(bytes) {
            return false;
        }
        while !self.stock.fits(bytes) {
            let Some((key, entry)) = self.stock.pop(may_go) else { return false };
            let recordings = entry.recordings.into_inner();
            let gone = match &mut self.disk {
                Some(disk) => disk.put(key, recordings),
                None => recordings.into_iter().map(|recording| (Rc::clone(&key), recording)).collect(),
            };
            for (key, recording) in gone {
                let is_for_all = recording.response().is_some_and(|response| response.is_for_all());
                self.note(&key, &recording, is_for_all, now_ns.unwrap_or(recording.requested_ns));
            }
        }
        true
    }

    /// Notes that a recording is gone for listeners that have not requested it.
    fn note(&mut self, key: &[u8], recording: &Recording, is_for_all: bool, now_ns: u64) {
        if let Some(requests) = recording.requests() {
            // What is under way may find room in the end.
            let is_over = recording.end().is_some() || !recording.is_kept();
            self.not_kept += u64::from(is_over && self.keeping.is_waited_for(recording, now_ns));
            let gone = if is_for_all && is_safe(key) { Gone::Shared } else { Gone::Own };
            self.lost.note(self.hasher.hash_one(key), requests, gone);
        }
    }

    /// Puts a recording beside the others under its key, in place of one that is not held if there are too many.
    fn push(&mut self, key: &[u8], entry: &Entry, recording: &Rc<Recording>, now_ns: u64) {
        let gone = {
            let mut recordings = entry.recordings.borrow_mut();
            recordings.push(Rc::clone(recording));
            if recordings.len() <= MOST_RECORDINGS {
                return;
            }
            let free = recordings.iter().position(|one| !self.keeping.is_held(one, now_ns));
            free.map(|at| recordings.remove(at)).or_else(|| recordings.pop())
        };
        if let Some(gone) = gone {
            let is_for_all = gone.response().is_some_and(|response| response.is_for_all());
            self.note(key, &gone, is_for_all, now_ns);
        }
    }

    /// Stores an entry with what it weighs now. Where that is too much, first goes what is not held, then `newcomer`, then
    /// the newest: what was there before had its room.
    fn put(&mut self, key: &Key, entry: Entry, newcomer: Option<&Rc<Recording>>, now_ns: u64) {
        let mut entry = entry;
        loop {
            let weight = entry_weight(key, &entry);
            let is_held = self.keeping.holds_some(&entry, now_ns);
            self.make_room(weight + Stock::<Key, Entry>::ENTRY_OVERHEAD, Some(now_ns));
            match self.stock.insert(Rc::clone(key), entry, weight, is_held) {
                Ok(()) => return self.note_peak(),
                Err(back) => entry = back,
            }
            let is_free = |one: &Rc<Recording>| !self.keeping.is_held(one, now_ns);
            let free = entry.recordings.borrow().iter().position(is_free);
            let at = free.or_else(|| entry.position(newcomer?));
            let mut recordings = entry.recordings.borrow_mut();
            let gone = at.map(|at| recordings.remove(at)).or_else(|| recordings.pop());
            drop(recordings);
            let Some(gone) = gone else { return };
            let is_for_all = gone.response().is_some_and(|response| response.is_for_all());
            self.note(key, &gone, is_for_all, now_ns);
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

/// True for safe methods: another request changes nothing.
fn is_safe(key: &[u8]) -> bool {
    key.starts_with(b"GET ") || key.starts_with(b"HEAD ")
}

/// Looks for a response under one key; recordings of no further use are moved from there to `gone`.
fn look(
    entry: &Entry,
    requester: &Requester<'_>,
    keeping: &Keeping,
    changed_ns: u64,
    gone: &mut Vec<Rc<Recording>>,
) -> Found {
    let mut recordings = entry.recordings.borrow_mut();
    // What this request does not take may be good for the next.
    let anybody = Requester { control: &RequestControl::default(), ..*requester };
    recordings.retain(|recording| {
        let is_done = recording.is_done_for(keeping.all_listeners);
        let is_of_use = choice::is_of_use(&view(recording, &anybody, changed_ns), &keeping.limits, is_done);
        if !is_of_use {
            gone.push(Rc::clone(recording));
        }
        is_of_use
    });
    let views: Vec<View> = recordings.iter().map(|one| view(one, requester, changed_ns)).collect();
    let see = |index: usize| {
        let recording: &Rc<Recording> = &recordings[index];
        recording.seen.set(recording.seen.get() | listener_bit(requester.listener));
        Rc::clone(recording)
    };
    match choice::choose(&views, &keeping.limits, entry.is_shared.get(), requester.wants_new) {
        Choice::Replay(index) => {
            let recording = see(index);
            if let Some(number) = requester.number.filter(|_| requester.is_direct) {
                recording.give(number);
            }
            Found::Replay(recording, views[index].bond == Bond::Own)
        }
        Choice::Wait { index, claims: true } => {
            let recording = see(index);
            Found::Wait(Rc::clone(&recording), Some(Claim::new(recording)))
        }
        Choice::Wait { index, claims: false } => Found::Wait(Rc::clone(&recordings[index]), None),
        Choice::Confirm(index) => Found::Confirm(Rc::clone(&recordings[index])),
        Choice::Fetch => Found::Nothing,
    }
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

fn view(recording: &Rc<Recording>, requester: &Requester<'_>, changed_ns: u64) -> View {
    let is_claimed = requester.claimed.is_some_and(|claim| claim.is_of(recording));
    let stage = match recording.response() {
        None => Stage::Requested {
            is_conditional: recording.is_conditional && *requester.conditions == Conditions::default(),
            is_of_a_proxy: requester.is_direct && recording.listener != requester.listener,
        },
        Some(response) => {
            let is_confirmation = response.status == 304;
            let suits = recording.is_kept()
                && response.suits(requester.fields.clone())
                && (!is_confirmation || response.is_not_modified_for(requester.conditions));
            let is_current = recording.requested_ns >= changed_ns;
            let is_complete = recording.end() == Some(End::Complete);
            let is_broken = recording.end() == Some(End::Broken);
            Stage::Responded {
                suits,
                is_fresh: is_current && !is_broken && response.is_fresh(requester.control, requester.now_ms),
                can_be_confirmed: is_current && is_complete && response.can_be_confirmed(),
            }
        }
    };
    let bond = match (requester.number, recording.requests()) {
        (Some(number), Some(requests)) if requests.holds(number) => Bond::Own,
        (Some(_), Some(_)) => Bond::Others,
        _ => Bond::Unknown,
    };
    View {
        bond,
        is_seen: recording.seen.get() & listener_bit(requester.listener) != 0 && !is_claimed,
        age_ns: requester.now_ns.saturating_sub(recording.requested_ns),
        timed_ns: requester.now_ns.saturating_sub(recording.timed_ns),
        stage,
    }
}

#[cfg(test)]
mod tests;
