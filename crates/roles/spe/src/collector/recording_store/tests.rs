//! What is held is never lost: the store against a list of everything that it was given.

use assay_http::head::RequestHead;
use assay_net::body::Chunk;
use proptest::prelude::*;

use super::*;
use crate::collector::recording::{FetchTimings, RecordingOutcome};
use crate::collector::response::tests::response_to;

const S: u64 = 1_000_000_000;
const LIMITS: RecordingLimits = RecordingLimits { minimum_freshness_ns: 180 * S, maximum_age_ns: 3600 * S };
const MEMORY: u64 = 24_000;
/// Direct and two proxies.
const LISTENERS: usize = 3;

#[derive(Debug, Clone)]
enum Step {
    /// The next client requests this key, and gets so many bytes of its own; the room for them is known beforehand or not.
    Client { key: usize, bytes: usize, is_known: bool },
    /// A proxy requests what some client got.
    Proxy { listener: u16, which: prop::sample::Index },
    /// Somebody's body takes room, and gives it back.
    Upload(u64),
    /// Milliseconds pass.
    Time(u64),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        4 => (0usize..3, 0usize..6000, any::<bool>())
            .prop_map(|(key, bytes, is_known)| Step::Client { key, bytes, is_known }),
        6 => (1u16..3, any::<prop::sample::Index>()).prop_map(|(listener, which)| Step::Proxy { listener, which }),
        1 => (0u64..5000).prop_map(Step::Upload),
        1 => (0u64..100).prop_map(Step::Time),
    ]
}

/// What a client got.
struct Given {
    key: RecordingKey,
    recording: Rc<Recording>,
    /// It was there when it was complete.
    is_kept: bool,
    /// Proxies that have requested it.
    seen: Vec<u16>,
}

struct Bed {
    store: RecordingStore,
    given: Vec<Given>,
    now_ns: u64,
}

impl Bed {
    fn new() -> Self {
        Self { store: RecordingStore::new(MEMORY, LIMITS, LISTENERS, None), given: Vec::new(), now_ns: S }
    }

    fn find(&mut self, key: &[u8], listener: u16, number: Option<u64>) -> RecordingLookup {
        let text = b"GET / HTTP/1.1\r\nHost: a\r\n\r\n";
        let (head, _) = RequestHead::parse(text).unwrap().unwrap();
        let requester = Requester {
            listener,
            is_direct: listener == 0,
            fields: &head.headers(),
            conditions: &Conditions::default(),
            control: &RequestControl::default(),
            wants_new: false,
            number,
            claimed: None,
            now_ns: self.now_ns,
            now_ms: 1_000_000_000,
        };
        self.store.find(key, &requester)
    }

    /// A client sends a request, and its response comes whole.
    fn client(&mut self, key: usize, bytes: usize, is_known: bool) -> Result<(), TestCaseError> {
        let key: RecordingKey = format!("GET http://a/{key}").into_bytes().into();
        let number = self.given.len() as u64;
        prop_assert!(
            matches!(self.find(&key, 0, Some(number)), RecordingLookup::Nothing),
            "each client gets its own"
        );
        let recording = Recording::begin(self.now_ns, 0, false, Some(number));
        self.store.add(&key, &recording, self.now_ns);
        let first = if is_known { bytes } else { bytes / 2 };
        let mut reserved = 0;
        let mut fits = true;
        for more in [first, bytes - first] {
            fits = fits && self.store.reserve(reserved, more as u64, self.now_ns);
            reserved += if fits { more as u64 } else { 0 };
        }
        let response = response_to("", "HTTP/1.1 200 OK\r\nCache-Control: no-store\r\n\r\n");
        recording.settle(FetchTimings::default(), RecordingOutcome::Response(Rc::new(response)));
        recording.append(1, Chunk::from(vec![0; bytes]));
        self.store.note_shared(&key, false);
        if !fits {
            self.store.release(reserved);
            recording.stop_keeping();
            self.store.drop_recording(&key, &recording, false, self.now_ns);
        }
        recording.finish(1, BodyEnd::Complete);
        if fits {
            self.store.complete(&key, &recording, reserved, self.now_ns);
        }
        let is_kept = self.store.entries.peek(&key).is_some_and(|entry| entry.position(&recording).is_some());
        self.given.push(Given { key, recording, is_kept, seen: Vec::new() });
        Ok(())
    }

    /// A proxy requests what the client's request of this number got.
    fn proxy(&mut self, listener: u16, number: usize) -> Result<(), TestCaseError> {
        let (key, is_kept) = (Rc::clone(&self.given[number].key), self.given[number].is_kept);
        let found = self.find(&key, listener, Some(number as u64));
        let given = &mut self.given[number];
        let is_new = !given.seen.contains(&listener);
        given.seen.push(listener);
        match found {
            RecordingLookup::Replay(recording, is_own) => {
                prop_assert!(is_own && Rc::ptr_eq(&recording, &given.recording), "another client's response");
            }
            RecordingLookup::Nothing => {
                prop_assert!(!(is_kept && is_new), "it was held for this listener");
                prop_assert_eq!(self.store.loss(&key, number as u64), Some(LossKind::Own));
            }
            other => prop_assert!(false, "{:?}", other),
        }
        Ok(())
    }
}

proptest! {
    #[test]
    fn what_was_kept_once_is_there_until_every_listener_has_had_it(timings in prop::collection::vec(step(), 0..120)) {
        let mut bed = Bed::new();
        for step in timings {
            match step {
                Step::Client { key, bytes, is_known } => bed.client(key, bytes, is_known)?,
                Step::Proxy { listener, which } if !bed.given.is_empty() => {
                    let number = which.index(bed.given.len());
                    bed.proxy(listener, number)?;
                }
                Step::Proxy { .. } => {}
                Step::Upload(bytes) => {
                    // A response's, which throws nothing out that is held.
                    if bed.store.reserve(0, bytes, bed.now_ns) {
                        bed.store.release(bytes);
                    }
                }
                // Less than ten seconds in all.
                Step::Time(ms) => bed.now_ns += ms * 1_000_000 / 2,
            }
            prop_assert!(bed.store.stored_bytes() <= MEMORY);
        }
        // Whatever is left, in any order.
        for number in (0..bed.given.len()).rev() {
            bed.proxy(1, number)?;
            bed.proxy(2, number)?;
        }
        let not_kept = bed.given.iter().filter(|given| !given.is_kept).count() as u64;
        prop_assert_eq!(bed.store.not_kept(), not_kept);
    }
}

#[test]
fn there_is_room_for_many_at_one_url_and_then_for_no_more() {
    let mut bed = Bed { store: RecordingStore::new(100_000_000, LIMITS, LISTENERS, None), ..Bed::new() };
    (0..RECORDINGS_MAX + 2).for_each(|_| bed.client(0, 10, true).unwrap());
    assert_eq!(bed.given.iter().filter(|given| given.is_kept).count(), RECORDINGS_MAX);
    assert!(bed.given[0].is_kept && !bed.given[RECORDINGS_MAX].is_kept, "the newest are not kept");
    for number in [0, RECORDINGS_MAX - 1, RECORDINGS_MAX, RECORDINGS_MAX + 1] {
        bed.proxy(1, number).unwrap();
    }
    assert_eq!(bed.store.not_kept(), 2);
}

#[test]
fn a_listener_that_is_far_behind_is_not_waited_for_where_room_is_needed() {
    let mut bed = Bed::new();
    (0..3).for_each(|_| bed.client(0, 4000, true).unwrap());
    bed.client(1, 4900, true).unwrap();
    let kept = |bed: &Bed| bed.given.iter().map(|given| given.is_kept).collect::<Vec<_>>();
    assert_eq!(kept(&bed), [true, true, true, true]);
    bed.client(2, 4900, true).unwrap();
    assert!(!kept(&bed)[4], "all of it is held");
    bed.now_ns += 11 * S;
    bed.client(2, 4900, true).unwrap();
    assert!(kept(&bed)[5]);
    assert!(matches!(bed.find(&bed.given[0].key.clone(), 1, Some(0)), RecordingLookup::Nothing));
    assert_eq!(bed.store.loss(&bed.given[0].key, 0), Some(LossKind::Own));
    assert!(matches!(bed.find(&bed.given[3].key.clone(), 1, Some(3)), RecordingLookup::Replay(_, true)));
}
