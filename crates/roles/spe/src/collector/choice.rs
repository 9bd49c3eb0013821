//! Choice of the recording that serves a request, or of a fetch.
//!
//! Pure. A recording that a cache may use is replayed for all requests while it is fresh. Any other one (uncacheable, stale, an
//! error) is replayed, for a while, once to each listener: a repeated request needs another one. Several may be waiting under one
//! key: a listener that lags behind gets the next one in order, so that each need is fetched once however far the proxies lag
//! behind each other.
//!
//! Where requests are numbered ([`crate::number`]), a proxy's request gets what the client's own request got, and never what only
//! others got: order does not matter then.

use std::time::Duration;

/// A listener that has not requested a recording older than this is not lagging behind: it never requested it, and starts with
/// the newest.
const BEHIND_NS: u64 = Duration::from_secs(10).as_nanos() as u64;
/// Clients join a fetch that a proxy began less than this ago: their own request for the same object has lost a race. They do not
/// wait for older fetches without a response.
const RACE_NS: u64 = Duration::from_millis(250).as_nanos() as u64;

/// Limits on the use of recordings.
#[derive(Debug, Clone, Copy)]
pub struct RecordingLimits {
    /// For listeners that have not received them.
    pub minimum_freshness_ns: u64,
    /// For any listener: older timings are no longer representative.
    pub maximum_age_ns: u64,
}

/// Relation of a recording to the request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ownership {
    /// The client's request that is being served.
    Own,
    /// Other requests only.
    Others,
    /// Unknown, as the request or the recording has no number.
    Unknown,
}

/// Properties of a recording that matter to a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RecordingView {
    pub ownership: Ownership,
    /// The listener has received it.
    pub is_received: bool,
    /// Time since it was requested.
    pub age_ns: u64,
    /// Time since its timings were taken: as long, or longer.
    pub timed_ns: u64,
    pub stage: RecordingStage,
}

/// Progress of a recording.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RecordingStage {
    /// The origin has not responded.
    Requested {
        /// The recorded request had a condition, and this one has none: a 304 would be of no use.
        is_conditional: bool,
        /// A proxy requested it, and the current request is a client's.
        is_of_a_proxy: bool,
    },
    /// The head has arrived, the body perhaps.
    Responded {
        /// The response matches the request (`Vary`, conditions).
        suits: bool,
        /// A cache may serve the request with it.
        is_fresh: bool,
        /// Complete, and the origin can confirm it.
        can_be_confirmed: bool,
    },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RecordingChoice {
    Replay(usize),
    /// Wait for the head of this one, and choose again.
    Wait {
        index: usize,
        /// Counts as received by this listener from now on, so that the listener's next request does not wait for it as well.
        claims: bool,
    },
    /// Revalidate this one at the origin.
    Confirm(usize),
    Fetch,
}

/// Chooses among the recordings under a key, oldest first.
///
/// `is_shared`: whether the last response under the key could be shared, if known; `wants_new`: the client reloads.
pub fn choose(
    views: &[RecordingView],
    limits: &RecordingLimits,
    is_shared: Option<bool>,
    wants_new: bool,
) -> RecordingChoice {
    let all = || views.iter().enumerate().filter(|(_, view)| view.timed_ns <= limits.maximum_age_ns);
    let own =
        all().rev().filter(|(_, view)| view.ownership == Ownership::Own).find_map(|(index, view)| match view
            .stage
        {
            RecordingStage::Responded { suits: true, .. } => Some(RecordingChoice::Replay(index)),
            RecordingStage::Requested { .. } if may_be_awaited(view) => {
                Some(RecordingChoice::Wait { index, claims: !view.is_received })
            }
            _ => None,
        });
    if let Some(own) = own {
        return own;
    }
    let fresh = all().rev().find(|(_, view)| {
        matches!(view.stage, RecordingStage::Responded { suits: true, is_fresh: true, .. })
    });
    if let Some((index, _)) = fresh {
        return RecordingChoice::Replay(index);
    }
    let longest_ns =
        if wants_new { BEHIND_NS.min(limits.minimum_freshness_ns) } else { limits.minimum_freshness_ns };
    let unseen = || {
        let is_new = |view: &RecordingView| is_open(view) && view.age_ns <= longest_ns;
        all().filter(move |(_, view)| {
            is_new(view) && matches!(view.stage, RecordingStage::Responded { suits: true, .. })
        })
    };
    let next = unseen().find(|(_, view)| view.age_ns <= BEHIND_NS).or_else(|| unseen().next_back());
    if let Some((index, _)) = next {
        return RecordingChoice::Replay(index);
    }
    let mut waiting = all().filter_map(|(index, view)| {
        // A recording that this listener has received, or that belongs to others, is of use only if it may be shared.
        let may_be_of_use = is_open(view) || is_shared != Some(false);
        (may_be_awaited(view) && may_be_of_use).then_some((index, is_open(view)))
    });
    if let Some((index, claims)) = waiting.next() {
        return RecordingChoice::Wait { index, claims };
    }
    let confirmable = |view: &RecordingView| {
        matches!(view.stage, RecordingStage::Responded { suits: true, can_be_confirmed: true, .. })
            && !wants_new
    };
    match all().rev().find(|(_, view)| confirmable(view)) {
        Some((index, _)) => RecordingChoice::Confirm(index),
        None => RecordingChoice::Fetch,
    }
}

/// Not received by the listener, and not for others only.
fn is_open(view: &RecordingView) -> bool {
    !view.is_received && view.ownership != Ownership::Others
}

/// Whether the head of a fetch is worth waiting for.
fn may_be_awaited(view: &RecordingView) -> bool {
    match view.stage {
        RecordingStage::Requested { is_conditional, is_of_a_proxy } => {
            let loses = is_of_a_proxy && view.age_ns > RACE_NS;
            !is_conditional && !loses
        }
        RecordingStage::Responded { .. } => false,
    }
}

/// Whether a listener may still request a recording, so that it is kept as long as there is room; `is_done`: complete, and
/// received by all listeners.
pub fn is_waited_for(age_ns: u64, limits: &RecordingLimits, is_done: bool) -> bool {
    !is_done && age_ns <= limits.minimum_freshness_ns
}

/// Whether a recording that a listener may still request can be evicted: the listener lags too far behind.
pub fn may_be_evicted(age_ns: u64) -> bool {
    age_ns > BEHIND_NS
}

/// Whether a recording can still be used; `is_done`: complete, and received by all listeners.
pub fn is_of_use(view: &RecordingView, limits: &RecordingLimits, is_done: bool) -> bool {
    let is_kept = match view.stage {
        RecordingStage::Requested { .. } => true,
        RecordingStage::Responded { is_fresh, can_be_confirmed, .. } => is_fresh || can_be_confirmed,
    };
    view.timed_ns <= limits.maximum_age_ns
        && (is_kept || (view.age_ns <= limits.minimum_freshness_ns && !is_done))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const S: u64 = 1_000_000_000;
    const LIMITS: RecordingLimits =
        RecordingLimits { minimum_freshness_ns: 180 * S, maximum_age_ns: 3600 * S };

    fn responded(is_received: bool, age_s: u64, is_fresh: bool, can_be_confirmed: bool) -> RecordingView {
        let stage = RecordingStage::Responded { suits: true, is_fresh, can_be_confirmed };
        RecordingView {
            ownership: Ownership::Unknown,
            is_received,
            age_ns: age_s * S,
            timed_ns: age_s * S,
            stage,
        }
    }

    fn requested(is_received: bool, age_ns: u64, is_conditional: bool, is_of_a_proxy: bool) -> RecordingView {
        let stage = RecordingStage::Requested { is_conditional, is_of_a_proxy };
        RecordingView { ownership: Ownership::Unknown, is_received, age_ns, timed_ns: age_ns, stage }
    }

    fn plain(views: &[RecordingView]) -> RecordingChoice {
        choose(views, &LIMITS, None, false)
    }

    #[test]
    fn what_is_fresh_is_replayed_to_everybody() {
        assert_eq!(plain(&[responded(true, 1000, true, false)]), RecordingChoice::Replay(0));
        assert_eq!(
            plain(&[responded(true, 9, true, true), responded(true, 1, true, true)]),
            RecordingChoice::Replay(1)
        );
        assert_eq!(
            plain(&[responded(false, 3601, true, true)]),
            RecordingChoice::Fetch,
            "its timings are too old"
        );
    }

    #[test]
    fn what_is_not_is_replayed_once_to_each_listener_for_a_while() {
        assert_eq!(plain(&[responded(false, 180, false, false)]), RecordingChoice::Replay(0));
        assert_eq!(plain(&[responded(true, 1, false, false)]), RecordingChoice::Fetch);
        assert_eq!(plain(&[responded(false, 181, false, false)]), RecordingChoice::Fetch);
        assert_eq!(plain(&[responded(true, 181, false, true)]), RecordingChoice::Confirm(0));
    }

    #[test]
    fn a_listener_that_is_behind_gets_the_next_one_and_a_new_listener_the_newest() {
        let views = [
            responded(true, 9, false, false),
            responded(false, 8, false, false),
            responded(false, 2, false, false),
        ];
        assert_eq!(plain(&views), RecordingChoice::Replay(1));
        let old = [responded(false, 50, false, false), responded(false, 40, false, false)];
        assert_eq!(plain(&old), RecordingChoice::Replay(1));
        assert_eq!(plain(&[old[0], views[2]]), RecordingChoice::Replay(1));
    }

    #[test]
    fn a_reload_gets_nothing_old() {
        let choice = |view| choose(&[view], &LIMITS, None, true);
        assert_eq!(
            choice(responded(false, 9, false, false)),
            RecordingChoice::Replay(0),
            "the others requested it just now"
        );
        assert_eq!(choice(responded(false, 11, false, true)), RecordingChoice::Fetch);
    }

    #[test]
    fn a_fetch_under_way_is_waited_for_by_each_listener_once_unless_it_may_be_shared() {
        let under_way = |is_received| [requested(is_received, 5 * S, false, false)];
        assert_eq!(plain(&under_way(false)), RecordingChoice::Wait { index: 0, claims: true });
        assert_eq!(plain(&under_way(true)), RecordingChoice::Wait { index: 0, claims: false });
        let known = |is_received| choose(&under_way(is_received), &LIMITS, Some(false), false);
        assert_eq!(known(false), RecordingChoice::Wait { index: 0, claims: true });
        assert_eq!(known(true), RecordingChoice::Fetch);
        assert_eq!(
            plain(&[requested(false, 0, true, false)]),
            RecordingChoice::Fetch,
            "a 304 would be of no use"
        );
    }

    #[test]
    fn clients_do_not_wait_for_what_a_proxy_began_unless_they_lost_a_race() {
        assert_eq!(
            plain(&[requested(false, RACE_NS, false, true)]),
            RecordingChoice::Wait { index: 0, claims: true }
        );
        assert_eq!(plain(&[requested(false, RACE_NS + 1, false, true)]), RecordingChoice::Fetch);
    }

    #[test]
    fn a_numbered_request_gets_what_its_own_client_got_and_nothing_of_others() {
        let of = |ownership, view| RecordingView { ownership, ..view };
        let others = of(Ownership::Others, responded(false, 3, false, false));
        let own = of(Ownership::Own, responded(false, 2, false, false));
        assert_eq!(
            plain(&[others, own, others]),
            RecordingChoice::Replay(1),
            "in whatever order they are requested"
        );
        assert_eq!(
            plain(&[others, of(Ownership::Own, responded(true, 2, false, false))]),
            RecordingChoice::Replay(1),
            "twice"
        );
        assert_eq!(plain(&[others]), RecordingChoice::Fetch);
        let newer = of(Ownership::Others, responded(false, 1, true, true));
        assert_eq!(
            plain(&[own, newer]),
            RecordingChoice::Replay(0),
            "what the client got, though there is a newer one"
        );
        assert_eq!(plain(&[newer]), RecordingChoice::Replay(0), "what is fresh is everybody's");
        let under_way = |ownership, is_received| [of(ownership, requested(is_received, 0, false, false))];
        assert_eq!(
            plain(&under_way(Ownership::Own, false)),
            RecordingChoice::Wait { index: 0, claims: true }
        );
        assert_eq!(
            plain(&under_way(Ownership::Others, false)),
            RecordingChoice::Wait { index: 0, claims: false }
        );
        let known = choose(&under_way(Ownership::Others, false), &LIMITS, Some(false), false);
        assert_eq!(known, RecordingChoice::Fetch, "it is not going to be shared");
    }

    #[test]
    fn what_a_listener_waits_for_is_kept_for_a_while_and_then_as_long_as_there_is_room() {
        assert!(is_waited_for(180 * S, &LIMITS, false) && !is_waited_for(180 * S + 1, &LIMITS, false));
        assert!(!is_waited_for(0, &LIMITS, true));
        assert!(!may_be_evicted(10 * S) && may_be_evicted(10 * S + 1));
    }

    fn view() -> impl Strategy<Value = RecordingView> {
        let stage = prop_oneof![
            (any::<bool>(), any::<bool>()).prop_map(|(is_conditional, is_of_a_proxy)| {
                RecordingStage::Requested { is_conditional, is_of_a_proxy }
            }),
            (any::<bool>(), any::<bool>(), any::<bool>()).prop_map(|(suits, is_fresh, can_be_confirmed)| {
                RecordingStage::Responded { suits, is_fresh, can_be_confirmed }
            }),
        ];
        let ownership = prop_oneof![Just(Ownership::Own), Just(Ownership::Others), Just(Ownership::Unknown)];
        (ownership, any::<bool>(), 0u64..5000, 0u64..1000, stage).prop_map(
            |(ownership, is_received, age_s, more_s, stage)| RecordingView {
                ownership,
                is_received,
                age_ns: age_s * S,
                timed_ns: (age_s + more_s) * S,
                stage,
            },
        )
    }

    proptest! {
        #[test]
        fn nothing_is_replayed_that_does_not_suit_is_too_old_or_was_had_already(
            views in prop::collection::vec(view(), 0..6), is_shared in any::<Option<bool>>(), wants_new in any::<bool>(),
        ) {
            match choose(&views, &LIMITS, is_shared, wants_new) {
                RecordingChoice::Replay(index) => {
                    let view = views[index];
                    let RecordingStage::Responded { suits, is_fresh, .. } = view.stage else { panic!("not answered") };
                    prop_assert!(suits && view.timed_ns <= LIMITS.maximum_age_ns);
                    let is_next = !view.is_received
                        && view.ownership == Ownership::Unknown
                        && view.age_ns <= LIMITS.minimum_freshness_ns;
                    prop_assert!(is_fresh || view.ownership == Ownership::Own || is_next);
                    prop_assert!(view.ownership == Ownership::Own || is_of_use(&view, &LIMITS, false));
                }
                RecordingChoice::Wait { index, claims } => {
                    let is_right = matches!(views[index].stage, RecordingStage::Requested { is_conditional: false, .. });
                    let is_its = !views[index].is_received && views[index].ownership != Ownership::Others;
                    prop_assert!(is_right && claims == is_its);
                }
                RecordingChoice::Confirm(index) => {
                    let is_right = matches!(views[index].stage, RecordingStage::Responded { can_be_confirmed: true, suits: true, .. });
                    prop_assert!(is_right && is_of_use(&views[index], &LIMITS, false));
                }
                RecordingChoice::Fetch => {
                    let is_response = |view: &RecordingView| {
                        let RecordingStage::Responded { suits: true, is_fresh, .. } = view.stage else { return false };
                        let is_next = !view.is_received && view.ownership != Ownership::Others && view.age_ns <= BEHIND_NS;
                        view.timed_ns <= LIMITS.maximum_age_ns && (is_fresh || is_next || view.ownership == Ownership::Own)
                    };
                    prop_assert!(!views.iter().any(is_response));
                }
            }
        }
    }
}
