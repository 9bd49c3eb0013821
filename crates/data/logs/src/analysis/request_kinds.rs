//! What requests have in common. Most lines of a log are of a few hundred *kinds*: the same words for outcome and hierarchy,
//! the same status, method and content type. A line is counted once, with its kind; kinds are added to the groups that they
//! belong to at the end, or when there are too many of them.

use crate::access::Access;
use crate::class::Class;
use crate::hash::{hash, hash_on};
use crate::replay::Cacheability;
use crate::sketch::durations::DurationHistogram;
use crate::sketch::prehashed_map::PrehashedMap;

/// Kinds that are kept apart before they are added up: 9 KB each.
const MAX_KINDS: usize = 2048;

/// Requests of one kind.
#[derive(Debug)]
pub(super) struct RequestKind {
    pub class: Class,
    pub cacheability: Cacheability,
    /// Places of their groups.
    pub outcome: usize,
    pub hierarchy: usize,
    pub content_type: usize,
    pub method: usize,
    pub status: u16,
    pub status_class: u8,
    /// GETs with a 200 response.
    pub is_plain: bool,
    pub requests: u64,
    pub bytes: u64,
    pub times: Option<Box<DurationHistogram>>,
}

impl RequestKind {
    #[inline]
    pub(super) fn count(&mut self, bytes: u64, duration_us: Option<u64>) {
        self.requests += 1;
        self.bytes += bytes;
        if let Some(us) = duration_us {
            self.times.get_or_insert_default().record(us);
        }
    }
}

/// All kinds since they were last added up.
#[derive(Debug, Default)]
pub(super) struct RequestKinds {
    places: PrehashedMap<u32>,
    list: Vec<RequestKind>,
}

impl RequestKinds {
    /// Hash of everything that requests of one kind have in common.
    #[inline]
    pub(super) fn hash(access: &Access<'_>) -> u64 {
        let ended = access.termination.first().copied().unwrap_or_default();
        let has_url = !access.url.is_empty();
        let marks = (access.kind as u64) << 25 | u64::from(has_url) << 24 | u64::from(ended) << 16;
        let mut state = hash(access.outcome) ^ (marks | u64::from(access.status));
        for text in [access.hierarchy, access.content_type, access.method] {
            state = hash_on(state, text);
        }
        state
    }

    /// The kind that a hash stands for, if it is known.
    #[inline]
    pub(super) fn find(&mut self, hash: u64) -> Option<&mut RequestKind> {
        self.places.get(hash).map(|at| &mut self.list[at as usize])
    }

    /// True when they must be added up before another one comes.
    pub(super) fn is_full(&self) -> bool {
        self.list.len() >= MAX_KINDS
    }

    pub(super) fn insert(&mut self, hash: u64, kind: RequestKind) {
        self.places.insert(hash, self.list.len() as u32);
        self.list.push(kind);
    }

    /// All of them; none are left.
    pub(super) fn drain(&mut self) -> Vec<RequestKind> {
        self.places.clear();
        std::mem::take(&mut self.list)
    }
}
