//! Hits of an ideal cache on the requests of all workers. Feeds [`IdealCache`] in the order of sending.

use assay_cache::ideal::{IdealCache, Lookup};
use assay_measurement::counts::RobotCounts;
use foldhash::HashMap;

use assay_cache::behaviour::CacheBehaviour;
use assay_workload::XactId;

/// A note of a worker for the ideal cache.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IdealEvent {
    /// A request other than a POST or PUT was sent.
    Sent { lookup: Lookup, xact: XactId },
    /// A POST or PUT was sent.
    PostSent {
        xact: XactId,
        /// Microseconds since the start of the run.
        at_us: u64,
    },
    /// It got a response that is no error.
    Posted { lookup: Lookup, xact: XactId },
    /// An xact that was noted as sent is over.
    Ended {
        xact: XactId,
        /// Microseconds since the start of the run.
        at_us: u64,
        /// None: it is not basic, or did not get the object.
        counted: Option<ReceivedBody>,
    },
    /// The response to a request that was noted as sent is there for others. Of no interest where requests are collapsed.
    Arrived {
        request: SentLookup,
        /// Arrival, in microseconds since the start of the run.
        at_us: u64,
    },
    /// A request that was noted as sent has failed, or got something else than the object.
    Failed {
        request: SentLookup,
        /// Failure, in microseconds since the start of the run.
        at_us: u64,
    },
}

/// A request that was noted as sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SentLookup {
    /// The response that it selects ([`Lookup::key`]).
    pub key: u64,
    /// Instant of sending, in microseconds since the start of the run.
    pub sent_us: u64,
}

/// Body of a basic xact that got its object, as the measured hit ratio counts it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReceivedBody {
    pub phase: u16,
    /// Body bytes received, as they were sent: coded, where the body was.
    pub body_bytes: u64,
    /// Instant by which the origin had made a response that the target served from its store, in microseconds since the start of the
    /// run; none: it was not stored.
    pub stored_us: Option<u64>,
}

impl IdealEvent {
    fn at_us(&self) -> u64 {
        match self {
            IdealEvent::Sent { lookup, .. } | IdealEvent::Posted { lookup, .. } => lookup.at_us,
            IdealEvent::PostSent { at_us, .. }
            | IdealEvent::Arrived { at_us, .. }
            | IdealEvent::Failed { at_us, .. }
            | IdealEvent::Ended { at_us, .. } => *at_us,
        }
    }
}

/// The ideal cache, and the notes that it has not yet been shown.
#[derive(Debug)]
pub struct IdealFeed {
    cache: IdealCache,
    waiting: Vec<IdealEvent>,
    /// The target is to drop what it has stored when a POST succeeds.
    invalidates: bool,
    /// Xacts that are under way.
    under_way: HashMap<XactId, SentRequest>,
    /// End of what the cache has been shown, in microseconds since the start of the run.
    fed_until_us: u64,
    /// POSTs under way, and the instant before which every xact that had been sent when they were sent had ended.
    posts: HashMap<XactId, u64>,
    /// The last POST of each object that had one, where the target drops what is stored (RFC 9111, 4.4).
    invalidations: HashMap<u64, Invalidation>,
}

/// A request under way.
#[derive(Debug, Clone, Copy)]
struct SentRequest {
    object: u64,
    sent_us: u64,
    /// The ideal cache would have hit.
    is_hit: bool,
}

/// A POST after which no response that an origin made before `made_until_us` may come from the store. One that was on its way to
/// the target when the POST was sent can have been stored after it.
#[derive(Debug, Clone, Copy)]
struct Invalidation {
    made_until_us: u64,
    /// Instant of the response to the POST.
    at_us: u64,
}

impl IdealFeed {
    /// A feed to an empty cache.
    pub fn new(behaviour: CacheBehaviour) -> Self {
        Self {
            cache: IdealCache::new(behaviour),
            waiting: Vec::new(),
            invalidates: behaviour.post_invalidates,
            under_way: HashMap::default(),
            fed_until_us: 0,
            posts: HashMap::default(),
            invalidations: HashMap::default(),
        }
    }

    /// Takes a worker's notes.
    pub fn add(&mut self, ideal_events: &mut Vec<IdealEvent>) {
        self.waiting.append(ideal_events);
    }

    /// Shows the cache, in order, the events before `until_us` (all workers have sent theirs up to there), and adds the
    /// results to the counts of each request's phase when it is over.
    pub fn feed(&mut self, until_us: u64, mut counts_of: impl FnMut(u16, &mut dyn FnMut(&mut RobotCounts))) {
        // Stable: events of one instant keep the order in which their worker made them.
        self.waiting.sort_by_key(IdealEvent::at_us);
        let ready = self.waiting.partition_point(|note| note.at_us() < until_us);
        let oldest_us = self.under_way.values().map(|request| request.sent_us).min();
        let settled_us = oldest_us.unwrap_or(u64::MAX).min(self.fed_until_us);
        self.fed_until_us = until_us;
        for note in self.waiting.drain(..ready) {
            match note {
                IdealEvent::Failed { request, .. } => self.cache.undo_fill(request.key, request.sent_us),
                IdealEvent::Arrived { request, at_us } => {
                    self.cache.complete_fetch(request.key, request.sent_us, at_us);
                }
                IdealEvent::Sent { lookup, xact } => {
                    let is_hit = self.cache.lookup(lookup);
                    let request = SentRequest { object: lookup.object, sent_us: lookup.at_us, is_hit };
                    // One that was redirected sends another request: its last response counts.
                    self.under_way.insert(xact, request);
                }
                IdealEvent::PostSent { xact, .. } => _ = self.posts.insert(xact, settled_us),
                IdealEvent::Posted { lookup, xact } => {
                    self.cache.lookup(lookup);
                    if self.invalidates
                        && let Some(made_until_us) = self.posts.remove(&xact)
                    {
                        let invalidation = Invalidation { made_until_us, at_us: lookup.at_us };
                        self.invalidations.insert(lookup.object, invalidation);
                    }
                }
                IdealEvent::Ended { xact, counted, .. } => {
                    self.posts.remove(&xact);
                    let Some((request, body)) = self.under_way.remove(&xact).zip(counted) else { continue };
                    let is_kept = self.invalidations.get(&request.object).is_some_and(|post| {
                        post.at_us < request.sent_us
                            && body.stored_us.is_some_and(|stored_us| stored_us < post.made_until_us)
                    });
                    counts_of(body.phase, &mut |counts| {
                        counts.ideal_basic += 1;
                        counts.ideal_basic_bytes += body.body_bytes;
                        counts.ideal_hits += u64::from(request.is_hit);
                        counts.ideal_hit_bytes += if request.is_hit { body.body_bytes } else { 0 };
                        counts.kept_after_post += u64::from(is_kept);
                    });
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use assay_cache::ideal::{FOREVER, RequestClass};

    use super::*;

    fn id(number: u64) -> XactId {
        XactId { robot: 0, number, place: 0 }
    }

    /// A basic request that was sent then; its number is that instant.
    fn sent(key: u64, at_us: u64) -> IdealEvent {
        let (object, request, fresh_until_ms) = (key, RequestClass::Get, FOREVER);
        let lookup = Lookup { key, object, request, cachable: true, at_us, fresh_until_ms };
        IdealEvent::Sent { lookup, xact: id(at_us) }
    }

    /// An xact that ended with so many bytes.
    fn ended(number: u64, at_us: u64, body_bytes: u64) -> IdealEvent {
        let counted = Some(ReceivedBody { phase: 0, body_bytes, stored_us: None });
        IdealEvent::Ended { xact: id(number), at_us, counted }
    }

    fn until(feed: &mut IdealFeed, until_us: u64) -> RobotCounts {
        let mut total = RobotCounts::default();
        feed.feed(until_us, |_, add| add(&mut total));
        total
    }

    fn hits_until(feed: &mut IdealFeed, until_us: u64) -> (u64, u64) {
        let total = until(feed, until_us);
        (total.ideal_hits, total.ideal_basic)
    }

    #[test]
    fn notes_of_several_workers_are_fed_in_the_order_of_sending() {
        let mut feed = IdealFeed::new(CacheBehaviour::default());
        feed.add(&mut vec![
            sent(1, 10),
            IdealEvent::Failed { request: SentLookup { key: 1, sent_us: 10 }, at_us: 20 },
        ]);
        feed.add(&mut vec![sent(1, 15), sent(1, 25), sent(1, 30)]);
        feed.add(&mut vec![ended(30, 31, 10), ended(15, 40, 10), ended(25, 41, 10)]);
        // 15 joins the fetch of 10, which fails at 20 and does not count; 25 fetches again.
        assert_eq!(hits_until(&mut feed, 100), (2, 3));
    }

    #[test]
    fn without_collapsing_a_request_hits_what_had_arrived_when_it_was_sent() {
        let mut feed = IdealFeed::new(CacheBehaviour { collapses: false, ..CacheBehaviour::default() });
        feed.add(&mut vec![
            sent(1, 10),
            IdealEvent::Arrived { request: SentLookup { key: 1, sent_us: 10 }, at_us: 20 },
        ]);
        feed.add(&mut vec![
            sent(1, 15),
            sent(1, 25),
            IdealEvent::Arrived { request: SentLookup { key: 1, sent_us: 15 }, at_us: 30 },
        ]);
        feed.add(&mut vec![ended(10, 20, 10), ended(15, 30, 10), ended(25, 35, 10)]);
        assert_eq!(hits_until(&mut feed, 100), (1, 3));
    }

    #[test]
    fn what_lies_beyond_the_cut_waits_for_the_next() {
        let mut feed = IdealFeed::new(CacheBehaviour::default());
        feed.add(&mut vec![sent(1, 10), ended(10, 11, 10), sent(1, 120)]);
        assert_eq!(hits_until(&mut feed, 100), (0, 1));
        feed.add(&mut vec![sent(1, 110), ended(110, 130, 10), ended(120, 130, 10)]);
        assert_eq!(hits_until(&mut feed, 200), (2, 2));
    }

    #[test]
    fn bytes_are_those_that_came_and_only_of_xacts_that_got_their_object() {
        let mut feed = IdealFeed::new(CacheBehaviour::default());
        // The same object, coded for one and not for another; a third gets no response, a fourth gives up.
        feed.add(&mut vec![sent(1, 10), sent(1, 20), sent(1, 30), sent(1, 40)]);
        feed.add(&mut vec![ended(10, 50, 390), ended(20, 60, 1000)]);
        feed.add(&mut vec![IdealEvent::Ended { xact: id(30), at_us: 70, counted: None }]);
        let total = until(&mut feed, u64::MAX);
        assert_eq!((total.ideal_basic, total.ideal_basic_bytes), (2, 1390));
        assert_eq!((total.ideal_hits, total.ideal_hit_bytes), (1, 1000));
    }

    #[test]
    fn one_that_was_led_elsewhere_counts_for_what_it_got_in_the_end() {
        let mut feed = IdealFeed::new(CacheBehaviour::default());
        let again = |key, at_us| match sent(key, at_us) {
            IdealEvent::Sent { lookup, .. } => IdealEvent::Sent { lookup, xact: id(20) },
            other => other,
        };
        feed.add(&mut vec![sent(7, 10), ended(10, 15, 1), sent(1, 20), again(7, 30), ended(20, 40, 5)]);
        let total = until(&mut feed, u64::MAX);
        assert_eq!((total.ideal_basic, total.ideal_hits, total.ideal_hit_bytes), (2, 1, 5));
    }

    /// What is counted of a response from the store to a request of 5 s for an object with a POST that took from 3 s to 4 s, made
    /// at `stored_us`.
    fn kept(behaviour: CacheBehaviour, stored_us: u64, sent_us: u64) -> u64 {
        let mut feed = IdealFeed::new(behaviour);
        let second = 1_000_000;
        // Another object's request, on its way all the time since 2 s.
        feed.add(&mut vec![sent(1, second), ended(second, second + 1, 10), sent(2, 2 * second)]);
        until(&mut feed, 3 * second);
        let (object, request, fresh_until_ms) = (1, RequestClass::Post, FOREVER);
        let lookup = Lookup { key: 1, object, request, cachable: true, at_us: 4 * second, fresh_until_ms };
        let body = ReceivedBody { phase: 0, body_bytes: 10, stored_us: Some(stored_us) };
        feed.add(&mut vec![
            IdealEvent::PostSent { xact: id(3), at_us: 3 * second },
            IdealEvent::Posted { lookup, xact: id(3) },
            sent(1, sent_us),
            IdealEvent::Ended { xact: id(sent_us), at_us: 6 * second, counted: Some(body) },
        ]);
        until(&mut feed, u64::MAX).kept_after_post
    }

    #[test]
    fn what_was_stored_before_a_post_and_is_served_after_it_is_counted_where_posts_drop_it() {
        let plain = CacheBehaviour::PLAIN;
        assert_eq!(kept(plain, 1_500_000, 5_000_000), 1);
        assert_eq!(kept(CacheBehaviour { post_invalidates: false, ..plain }, 1_500_000, 5_000_000), 0);
        assert_eq!(
            kept(plain, 2_500_000, 5_000_000),
            0,
            "it can have been on its way when the POST was sent"
        );
        assert_eq!(kept(plain, 1_500_000, 3_500_000), 0, "the POST had no response yet");
    }
}
