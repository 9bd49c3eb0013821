//! Store of recordings, and of which listener has received which.
//!
//! Recordings under one key are evicted together: to disk, if there is one. Fetches under way, and a client's own response that a
//! listener has yet to request, are *held*. Eviction takes keys that are not held, least recently requested first; then held ones
//! that a listener has not requested for a long time. The rest stays, and new recordings are not kept; like every evicted
//! recording, they leave a note ([`super::lost`]). Requests that are being served from an evicted recording still get all of it.

use std::cell::{Cell, RefCell};
use std::hash::{BuildHasher, RandomState};
use std::rc::Rc;

use assay_cache::conditional::Conditions;
use assay_cache::freshness::RequestControl;
use assay_http::field::Fields;

use crate::collector::choice::{
    self, Ownership, RecordingChoice, RecordingLimits, RecordingStage, RecordingView,
};
use crate::collector::disk::Disk;
use crate::collector::lost::{LossKind, LostResponses};
use crate::collector::lru_store::LruStore;
use crate::collector::recording::{Recording, RecordingClaim, listener_bit};
use crate::collector::timeline::BodyEnd;

/// Key of equivalent requests ([`CollectorRequest::write_key`](super::client_request::CollectorRequest::write_key)).
pub type RecordingKey = Rc<[u8]>;

/// Inverse of the share of the memory that one body may take.
const LARGEST_SHARE: u64 = 4;
/// All recordings under a key are examined for each request: 4,096 take half a millisecond.
const RECORDINGS_MAX: usize = if cfg!(test) { 64 } else { 4096 };
/// Slots of the table of changed resources; a collision causes a needless fetch, at worst.
const CHANGED_SLOTS: usize = 1 << 14;
/// Overhead of an allocation in bytes.
const ALLOCATION_OVERHEAD: u64 = 16;

/// A request, as far as lookups depend on it.
#[derive(Debug, Clone, Copy)]
pub struct Requester<'a> {
    pub listener: u16,
    /// From the Multiplier, for a client.
    pub is_direct: bool,
    pub fields: &'a Fields<'a>,
    pub conditions: &'a Conditions<'a>,
    pub control: &'a RequestControl,
    pub wants_new: bool,
    /// Number of the client's request.
    pub number: Option<u64>,
    /// Claim made while waiting.
    pub claimed: Option<&'a RecordingClaim>,
    /// Monotonic clock.
    pub now_ns: u64,
    /// Unix time.
    pub now_ms: i64,
}

/// Result of a lookup.
#[derive(Debug)]
pub enum RecordingLookup {
    /// Replay this one; true: the client's own request got it, as far as is known.
    Replay(Rc<Recording>, bool),
    /// Wait for its head, and look up again.
    Wait(Rc<Recording>, Option<RecordingClaim>),
    /// Revalidate it at the origin.
    Confirm(Rc<Recording>),
    Nothing,
}

#[derive(Debug, Default)]
struct RecordingEntry {
    recordings: RefCell<Vec<Rc<Recording>>>,
    /// Whether the last response could be shared, if known.
    is_shared: Cell<Option<bool>>,
}

impl RecordingEntry {
    fn position(&self, recording: &Rc<Recording>) -> Option<usize> {
        self.recordings.borrow().iter().position(|one| Rc::ptr_eq(one, recording))
    }

    fn remove(&self, recording: &Rc<Recording>) {
        self.recordings.borrow_mut().retain(|one| !Rc::ptr_eq(one, recording));
    }
}

/// Parameters of how long recordings are kept.
#[derive(Debug, Clone, Copy)]
struct RetentionPolicy {
    limits: RecordingLimits,
    /// A bit for each listener.
    all_listeners: u64,
    has_disk: bool,
}

impl RetentionPolicy {
    fn is_waited_for(&self, recording: &Recording, now_ns: u64) -> bool {
        let age_ns = now_ns.saturating_sub(recording.requested_ns);
        let is_under_way = recording.end().is_none();
        is_under_way || choice::is_waited_for(age_ns, &self.limits, recording.is_done_for(self.all_listeners))
    }

    /// Cannot be fetched again: under way, or one client's own response that a listener may still request.
    fn is_held(&self, recording: &Recording, now_ns: u64) -> bool {
        let is_for_all = || recording.response().is_some_and(|response| response.is_for_all());
        recording.end().is_none() || (self.is_waited_for(recording, now_ns) && !is_for_all())
    }

    fn is_too_old(&self, recording: &Recording, now_ns: u64) -> bool {
        now_ns.saturating_sub(recording.requested_ns) > self.limits.minimum_freshness_ns
            || now_ns.saturating_sub(recording.timed_ns) > self.limits.maximum_age_ns
    }

    fn holds_some(&self, entry: &RecordingEntry, now_ns: u64) -> bool {
        entry.recordings.borrow().iter().any(|recording| self.is_held(recording, now_ns))
    }

    /// Whether the recordings of a key may leave the memory.
    fn may_be_evicted(&self, entry: &RecordingEntry, now_ns: u64) -> bool {
        entry.recordings.borrow().iter().all(|recording| {
            choice::may_be_evicted(now_ns.saturating_sub(recording.requested_ns))
                || (self.has_disk && recording.can_be_unloaded())
                || !self.is_held(recording, now_ns)
        })
    }
}

#[derive(Debug)]
pub struct RecordingStore {
    entries: LruStore<RecordingKey, RecordingEntry>,
    disk: Option<Disk>,
    retention: RetentionPolicy,
    lost: LostResponses,
    not_kept: u64,
    /// Instants of changes of resources by requests through this Collector, by hash of the URL.
    changed_ns: Box<[u64]>,
    hasher: RandomState,
    peak_bytes: u64,
}

impl RecordingStore {
    pub fn new(memory_bytes: u64, limits: RecordingLimits, listeners: usize, disk: Option<Disk>) -> Self {
        let all_listeners = (0..listeners).fold(0, |all, listener| all | listener_bit(listener as u16));
        Self {
            entries: LruStore::new(memory_bytes),
            retention: RetentionPolicy { limits, all_listeners, has_disk: disk.is_some() },
            disk,
            lost: LostResponses::default(),
            not_kept: 0,
            changed_ns: vec![0; CHANGED_SLOTS].into_boxed_slice(),
            hasher: RandomState::new(),
            peak_bytes: 0,
        }
    }

    /// Looks up a recording, and records which listener gets it.
    pub fn find(&mut self, key: &[u8], requester: &Requester<'_>) -> RecordingLookup {
        let changed_ns = self.changed_ns(key);
        self.fetch_from_disk(key, requester.now_ns);
        let Some(entry) = self.entries.get(key) else { return RecordingLookup::Nothing };
        let mut dropped = Vec::new();
        let found = lookup(entry, requester, &self.retention, changed_ns, &mut dropped);
        let is_held = self.retention.holds_some(entry, requester.now_ns);
        if !dropped.is_empty() || is_held != self.entries.is_held(key) {
            let key: RecordingKey = key.into();
            for recording in &dropped {
                // Recordings past their age are fetched anew for everybody.
                let is_for_all = self.retention.is_too_old(recording, requester.now_ns)
                    || recording.response().is_some_and(|response| response.is_for_all());
                self.note(&key, recording, is_for_all, requester.now_ns);
            }
            if let Some(entry) = self.entries.remove(&key) {
                self.put(&key, entry, None, requester.now_ns);
            }
        }
        found
    }

    /// Knowledge about a lost response to a client's request; `None` if it is not lost.
    pub fn loss(&self, key: &[u8], number: u64) -> Option<LossKind> {
        match self.lost.find(self.hasher.hash_one(key), number)? {
            LossKind::Forgotten => Some(if is_safe(key) { LossKind::Shareable } else { LossKind::Own }),
            known => Some(known),
        }
    }

    /// Adds a recording that begins; its listener counts as having received it.
    pub fn add(&mut self, key: &RecordingKey, recording: &Rc<Recording>, now_ns: u64) {
        let entry = self.entries.remove(key).unwrap_or_default();
        self.push(key, &entry, recording, now_ns);
        self.put(key, entry, Some(recording), now_ns);
    }

    /// Replaces a confirmed recording, and the fetch that confirmed it, by the renewed one.
    pub fn renew(
        &mut self,
        key: &RecordingKey,
        old: &Rc<Recording>,
        fetch: &Rc<Recording>,
        renewed: &Rc<Recording>,
        now_ns: u64,
    ) {
        let entry = self.entries.remove(key).unwrap_or_default();
        [old, fetch].into_iter().for_each(|one| entry.remove(one));
        self.push(key, &entry, renewed, now_ns);
        self.put(key, entry, Some(renewed), now_ns);
    }

    /// Records whether responses under this key may be shared.
    pub fn note_shared(&mut self, key: &[u8], is_shared: bool) {
        if let Some(entry) = self.entries.peek(key) {
            entry.is_shared.set(Some(is_shared));
        }
    }

    /// Turns the reservation of a recording, now complete, into its place in the store.
    pub fn complete(&mut self, key: &RecordingKey, recording: &Rc<Recording>, reserved: u64, now_ns: u64) {
        self.entries.release(reserved);
        let entry = self.entries.remove(key).unwrap_or_default();
        if entry.position(recording).is_none() {
            // Evicted while it was under way.
            self.push(key, &entry, recording, now_ns);
        }
        self.put(key, entry, Some(recording), now_ns);
    }

    /// Drops a recording for which there is no room; `is_for_all`: caches may store it.
    pub fn drop_recording(&mut self, key: &[u8], recording: &Rc<Recording>, is_for_all: bool, now_ns: u64) {
        if let Some(entry) = self.entries.peek(key) {
            entry.remove(recording);
        }
        self.note(key, recording, is_for_all, now_ns);
    }

    /// Records a change of a resource: earlier recordings are no longer fresh.
    pub fn change(&mut self, url: &[u8], now_ns: u64) {
        let slot = self.changed_slot(url);
        self.changed_ns[slot] = now_ns;
    }

    /// Reserves memory for arriving bytes of a response. False if there is none, although all that may be evicted was, or the
    /// body would take too large a share.
    pub fn reserve(&mut self, reserved: u64, more: u64, now_ns: u64) -> bool {
        let fits = !self.is_too_large(reserved + more)
            && self.make_room(more, Some(now_ns))
            && self.entries.reserve(more);
        self.note_peak();
        fits
    }

    /// Reserves memory for a client's request, for which everything else is evicted if necessary.
    pub fn reserve_for_request(&mut self, reserved: u64, more: u64) -> bool {
        let fits =
            !self.is_too_large(reserved + more) && self.make_room(more, None) && self.entries.reserve(more);
        self.note_peak();
        fits
    }

    pub fn is_too_large(&self, bytes: u64) -> bool {
        bytes > self.entries.bound_bytes() / LARGEST_SHARE
    }

    pub fn release(&mut self, bytes: u64) {
        self.entries.release(bytes);
    }

    /// Recordings evicted before all listeners had requested them.
    pub fn not_kept(&self) -> u64 {
        self.not_kept
    }

    /// Keys with recordings, in memory or on disk. (Counting recordings would take too long.)
    pub fn keys(&self) -> u64 {
        self.entries.len() as u64 + self.disk.as_ref().map_or(0, Disk::keys)
    }

    /// Memory used, including recordings under way.
    pub fn stored_bytes(&self) -> u64 {
        self.entries.taken_bytes()
    }

    pub fn disk_bytes(&self) -> u64 {
        self.disk.as_ref().map_or(0, Disk::bytes)
    }

    pub fn peak_bytes(&self) -> u64 {
        self.peak_bytes
    }

    /// Keys evicted: from disk, or from memory where there is no disk.
    pub fn evictions(&self) -> u64 {
        self.disk.as_ref().map_or(self.entries.evictions(), Disk::dropped)
    }

    /// Brings the recordings of a key back from disk.
    fn fetch_from_disk(&mut self, key: &[u8], now_ns: u64) {
        let Some(disk) = self.disk.as_mut().filter(|_| self.entries.peek(key).is_none()) else { return };
        let back = disk.take(key);
        if !back.is_empty() {
            let entry = RecordingEntry { recordings: RefCell::new(back), ..RecordingEntry::default() };
            self.put(&key.into(), entry, None, now_ns);
        }
    }

    /// Evicts entries until so many bytes fit: those that may be evicted by `now_ns`, or any (`None`). False: there is no such
    /// room.
    fn make_room(&mut self, bytes: u64, now_ns: Option<u64>) -> bool {
        let retention = self.retention;
        let may_be_evicted =
            |entry: &RecordingEntry| now_ns.is_none_or(|now_ns| retention.may_be_evicted(entry, now_ns));
        if !self.entries.could_fit(bytes) {
            return false;
        }
        while !self.entries.fits(bytes) {
            let Some((key, entry)) = self.entries.pop(may_be_evicted) else { return false };
            let recordings = entry.recordings.into_inner();
            let dropped = match &mut self.disk {
                Some(disk) => disk.put(key, recordings),
                None => recordings.into_iter().map(|recording| (Rc::clone(&key), recording)).collect(),
            };
            for (key, recording) in dropped {
                let is_for_all = recording.response().is_some_and(|response| response.is_for_all());
                self.note(&key, &recording, is_for_all, now_ns.unwrap_or(recording.requested_ns));
            }
        }
        true
    }

    /// Notes that a recording is lost for listeners that have not requested it.
    fn note(&mut self, key: &[u8], recording: &Recording, is_for_all: bool, now_ns: u64) {
        if let Some(requests) = recording.requests() {
            // A recording under way may find room in the end.
            let is_over = recording.end().is_some() || !recording.is_kept();
            self.not_kept += u64::from(is_over && self.retention.is_waited_for(recording, now_ns));
            let loss = if is_for_all && is_safe(key) { LossKind::Shareable } else { LossKind::Own };
            self.lost.note(self.hasher.hash_one(key), requests, loss);
        }
    }

    /// Adds a recording to its key, in place of one that is not held if there are too many.
    fn push(&mut self, key: &[u8], entry: &RecordingEntry, recording: &Rc<Recording>, now_ns: u64) {
        let dropped = {
            let mut recordings = entry.recordings.borrow_mut();
            recordings.push(Rc::clone(recording));
            if recordings.len() <= RECORDINGS_MAX {
                return;
            }
            let free = recordings.iter().position(|one| !self.retention.is_held(one, now_ns));
            free.map(|at| recordings.remove(at)).or_else(|| recordings.pop())
        };
        if let Some(dropped) = dropped {
            let is_for_all = dropped.response().is_some_and(|response| response.is_for_all());
            self.note(key, &dropped, is_for_all, now_ns);
        }
    }

    /// Inserts an entry with its current weight. If it is too large, recordings are dropped from it: first those that are not
    /// held, then `newcomer`, then the newest, as older ones had their room.
    fn put(
        &mut self,
        key: &RecordingKey,
        entry: RecordingEntry,
        newcomer: Option<&Rc<Recording>>,
        now_ns: u64,
    ) {
        let mut entry = entry;
        loop {
            let weight = entry_weight(key, &entry);
            let is_held = self.retention.holds_some(&entry, now_ns);
            self.make_room(weight + LruStore::<RecordingKey, RecordingEntry>::ENTRY_OVERHEAD, Some(now_ns));
            match self.entries.insert(Rc::clone(key), entry, weight, is_held) {
                Ok(()) => return self.note_peak(),
                Err(back) => entry = back,
            }
            let is_free = |one: &Rc<Recording>| !self.retention.is_held(one, now_ns);
            let free = entry.recordings.borrow().iter().position(is_free);
            let at = free.or_else(|| entry.position(newcomer?));
            let mut recordings = entry.recordings.borrow_mut();
            let dropped = at.map(|at| recordings.remove(at)).or_else(|| recordings.pop());
            drop(recordings);
            let Some(dropped) = dropped else { return };
            let is_for_all = dropped.response().is_some_and(|response| response.is_for_all());
            self.note(key, &dropped, is_for_all, now_ns);
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

/// Whether the method is safe: another request changes nothing.
fn is_safe(key: &[u8]) -> bool {
    key.starts_with(b"GET ") || key.starts_with(b"HEAD ")
}

/// Looks up a recording under one key; recordings of no further use are moved to `dropped`.
fn lookup(
    entry: &RecordingEntry,
    requester: &Requester<'_>,
    retention: &RetentionPolicy,
    changed_ns: u64,
    dropped: &mut Vec<Rc<Recording>>,
) -> RecordingLookup {
    let mut recordings = entry.recordings.borrow_mut();
    // Judged without this request's directives: the next request may accept what this one does not.
    let anybody = Requester { control: &RequestControl::default(), ..*requester };
    recordings.retain(|recording| {
        let is_done = recording.is_done_for(retention.all_listeners);
        let is_of_use = choice::is_of_use(&view(recording, &anybody, changed_ns), &retention.limits, is_done);
        if !is_of_use {
            dropped.push(Rc::clone(recording));
        }
        is_of_use
    });
    let views: Vec<RecordingView> = recordings.iter().map(|one| view(one, requester, changed_ns)).collect();
    let mark_received = |index: usize| {
        let recording: &Rc<Recording> = &recordings[index];
        recording.received_by.set(recording.received_by.get() | listener_bit(requester.listener));
        Rc::clone(recording)
    };
    match choice::choose(&views, &retention.limits, entry.is_shared.get(), requester.wants_new) {
        RecordingChoice::Replay(index) => {
            let recording = mark_received(index);
            if let Some(number) = requester.number.filter(|_| requester.is_direct) {
                recording.give(number);
            }
            RecordingLookup::Replay(recording, views[index].ownership == Ownership::Own)
        }
        RecordingChoice::Wait { index, claims: true } => {
            let recording = mark_received(index);
            RecordingLookup::Wait(Rc::clone(&recording), Some(RecordingClaim::new(recording)))
        }
        RecordingChoice::Wait { index, claims: false } => {
            RecordingLookup::Wait(Rc::clone(&recordings[index]), None)
        }
        RecordingChoice::Confirm(index) => RecordingLookup::Confirm(Rc::clone(&recordings[index])),
        RecordingChoice::Fetch => RecordingLookup::Nothing,
    }
}

fn entry_weight(key: &RecordingKey, entry: &RecordingEntry) -> u64 {
    let recordings = entry.recordings.borrow();
    // The body of a recording under way is covered by its reservation.
    let weights = recordings.iter().map(|recording| {
        let body = recording.end().map_or(0, |_| recording.weight_bytes());
        body.max(size_of::<Recording>() as u64) + 4 * ALLOCATION_OVERHEAD
    });
    key.len() as u64 + 2 * ALLOCATION_OVERHEAD + weights.sum::<u64>()
}

fn view(recording: &Rc<Recording>, requester: &Requester<'_>, changed_ns: u64) -> RecordingView {
    let is_claimed = requester.claimed.is_some_and(|claim| claim.is_of(recording));
    let stage = match recording.response() {
        None => RecordingStage::Requested {
            is_conditional: recording.is_conditional && *requester.conditions == Conditions::default(),
            is_of_a_proxy: requester.is_direct && recording.listener != requester.listener,
        },
        Some(response) => {
            let is_confirmation = response.status == 304;
            let suits = recording.is_kept()
                && response.suits(requester.fields.clone())
                && (!is_confirmation || response.is_not_modified_for(requester.conditions));
            let is_current = recording.requested_ns >= changed_ns;
            let is_complete = recording.end() == Some(BodyEnd::Complete);
            let is_broken = recording.end() == Some(BodyEnd::Broken);
            RecordingStage::Responded {
                suits,
                is_fresh: is_current && !is_broken && response.is_fresh(requester.control, requester.now_ms),
                can_be_confirmed: is_current && is_complete && response.can_be_confirmed(),
            }
        }
    };
    let ownership = match (requester.number, recording.requests()) {
        (Some(number), Some(requests)) if requests.contains(number) => Ownership::Own,
        (Some(_), Some(_)) => Ownership::Others,
        _ => Ownership::Unknown,
    };
    RecordingView {
        ownership,
        is_received: recording.received_by.get() & listener_bit(requester.listener) != 0 && !is_claimed,
        age_ns: requester.now_ns.saturating_sub(recording.requested_ns),
        timed_ns: requester.now_ns.saturating_sub(recording.timed_ns),
        stage,
    }
}

#[cfg(test)]
mod tests;
