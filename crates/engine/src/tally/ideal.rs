//! What would an ideal cache have hit of what all workers sent? Feeds [`IdealCache`] in the order of sending.

use assay_cache::ideal::{Ask, Behaviour, IdealCache};
use assay_record::counts::RobotCounts;

use crate::spec::CacheBehaviour;

/// A note of a worker for the ideal cache.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IdealNote {
    /// A request was sent.
    Sent {
        /// What it asks.
        ask: Ask,
        /// Its phase.
        phase: u16,
        /// It is basic: it counts.
        basic: bool,
        /// Size of the object in bytes.
        bytes: u64,
    },
    /// The answer to a request that was noted as sent is there for others. Of no interest where requests are collapsed.
    Arrived {
        /// The object.
        key: u64,
        /// When it was sent, as noted.
        sent_us: u64,
        /// When it arrived, in microseconds since the start of the run.
        at_us: u64,
    },
    /// A request that was noted as sent has failed, or got something else than the object.
    Failed {
        /// The object.
        key: u64,
        /// When it was sent, as noted.
        sent_us: u64,
        /// When it failed, in microseconds since the start of the run.
        at_us: u64,
    },
}

impl IdealNote {
    fn at_us(&self) -> u64 {
        match self {
            IdealNote::Sent { ask, .. } => ask.at_us,
            IdealNote::Arrived { at_us, .. } | IdealNote::Failed { at_us, .. } => *at_us,
        }
    }
}

/// The ideal cache, and the notes that it has not yet been shown.
#[derive(Debug)]
pub struct IdealFeed {
    cache: IdealCache,
    waiting: Vec<IdealNote>,
}

impl IdealFeed {
    /// A feed to an empty cache.
    pub fn new(behaviour: CacheBehaviour) -> Self {
        let CacheBehaviour {
            caches,
            head_fills,
            conditional_fills,
            reload_fills,
            range_fills,
            post_invalidates,
            collapses,
            // When it is shared, workers know: they note the arrival.
            shares_arriving: _,
            // Whether a validation shows in the reply makes no difference to what is stored.
            validation_updates: _,
        } = behaviour;
        let behaviour = Behaviour {
            caches,
            head_fills,
            conditional_fills,
            reload_fills,
            range_fills,
            post_invalidates,
            collapses,
        };
        Self { cache: IdealCache::new(behaviour), waiting: Vec::new() }
    }

    /// Takes a worker's notes.
    pub fn take(&mut self, notes: &mut Vec<IdealNote>) {
        self.waiting.append(notes);
    }

    /// Shows the cache, in order, what happened before `until_us` (all workers have handed over their notes
    /// up to there), and adds the results to the counts of each request's phase.
    pub fn feed(&mut self, until_us: u64, mut counts_of: impl FnMut(u16, &mut dyn FnMut(&mut RobotCounts))) {
        self.waiting.sort_by_key(IdealNote::at_us);
        let ready = self.waiting.partition_point(|note| note.at_us() < until_us);
        for note in self.waiting.drain(..ready) {
            match note {
                IdealNote::Failed { key, sent_us, .. } => self.cache.undo(key, sent_us),
                IdealNote::Arrived { key, sent_us, at_us } => self.cache.arrive(key, sent_us, at_us),
                IdealNote::Sent { ask, phase, basic, bytes } => {
                    let hit = self.cache.ask(ask);
                    if basic {
                        counts_of(phase, &mut |counts| {
                            counts.ideal_basic += 1;
                            counts.ideal_basic_bytes += bytes;
                            counts.ideal_hits += u64::from(hit);
                            counts.ideal_hit_bytes += if hit { bytes } else { 0 };
                        });
                    }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use assay_cache::ideal::{FOREVER, Request};

    use super::*;

    fn sent(key: u64, at_us: u64) -> IdealNote {
        let ask = Ask { key, request: Request::Get, cachable: true, at_us, fresh_until_ms: FOREVER };
        IdealNote::Sent { ask, phase: 0, basic: true, bytes: 10 }
    }

    fn hits_until(feed: &mut IdealFeed, until_us: u64) -> (u64, u64) {
        let mut total = RobotCounts::default();
        feed.feed(until_us, |_, add| add(&mut total));
        (total.ideal_hits, total.ideal_basic)
    }

    #[test]
    fn notes_of_several_workers_are_fed_in_the_order_of_sending() {
        let mut feed = IdealFeed::new(CacheBehaviour::default());
        feed.take(&mut vec![sent(1, 10), IdealNote::Failed { key: 1, sent_us: 10, at_us: 20 }]);
        feed.take(&mut vec![sent(1, 15), sent(1, 25), sent(1, 30)]);
        // 15 joins the fetch of 10, which fails at 20; 25 fetches again.
        assert_eq!(hits_until(&mut feed, 100), (2, 4));
    }

    #[test]
    fn without_collapsing_a_request_hits_what_had_arrived_when_it_was_sent() {
        let mut feed = IdealFeed::new(CacheBehaviour { collapses: false, ..CacheBehaviour::default() });
        feed.take(&mut vec![sent(1, 10), IdealNote::Arrived { key: 1, sent_us: 10, at_us: 20 }]);
        feed.take(&mut vec![sent(1, 15), sent(1, 25), IdealNote::Arrived { key: 1, sent_us: 15, at_us: 30 }]);
        assert_eq!(hits_until(&mut feed, 100), (1, 3));
    }

    #[test]
    fn what_lies_beyond_the_cut_waits_for_the_next() {
        let mut feed = IdealFeed::new(CacheBehaviour::default());
        feed.take(&mut vec![sent(1, 10), sent(1, 120)]);
        assert_eq!(hits_until(&mut feed, 100), (0, 1));
        feed.take(&mut vec![sent(1, 110)]);
        assert_eq!(hits_until(&mut feed, 200), (2, 2));
    }
}
