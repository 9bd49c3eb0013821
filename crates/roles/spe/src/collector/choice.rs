//! The recording that serves a request, if it needs no fetch of its own.
//!
//! Pure. A recording that HTTP lets a cache use is replayed for all requests as long as it is fresh. Every other one (what may
//! not be cached, what is stale, errors) is replayed, for a while, to each listener that has not seen it yet, and to no listener
//! twice: a repeated request wants another one. Several may wait under one key: a listener that is behind gets the one that
//! comes next for it, so that each need is fetched once however far the proxies lag behind each other.
//!
//! Where requests are numbered ([`crate::number`]), a proxy's request gets what the client's own one got, and
//! never with what only others got: order does not matter then.

use std::time::Duration;

/// A listener that has not seen what is older than this is not behind: it never requested it, and starts with the newest.
const BEHIND_NS: u64 = Duration::from_secs(10).as_nanos() as u64;
/// Clients join a fetch that a proxy began so short a time ago: their own request for the same thing has lost a race.
/// They wait for no older one that has no response yet.
const RACE_NS: u64 = Duration::from_millis(250).as_nanos() as u64;

/// How long recordings are of use.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// To listeners that have not seen them.
    pub minimum_freshness_ns: u64,
    /// At all: then their timings are too old.
    pub maximum_age_ns: u64,
}

/// Whose request got a recording, or caused it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Bond {
    /// The very one that is requested now.
    Own,
    /// Others only.
    Others,
    /// Nobody knows: one of the two has no number.
    Unknown,
}

/// What matters about a recording to a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct View {
    pub bond: Bond,
    /// The listener has had it.
    pub is_seen: bool,
    /// Since it was requested.
    pub age_ns: u64,
    /// Since its timings were taken: as long, or longer.
    pub timed_ns: u64,
    /// How far it is.
    pub stage: Stage,
}

/// How far a recording is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stage {
    /// The origin has not responded.
    Requested {
        /// Its request had a condition, and this one has none: a 304 would be of no use.
        is_conditional: bool,
        /// A proxy requested it, and this request is a client's.
        is_of_a_proxy: bool,
    },
    /// The head is there, the body perhaps.
    Responded {
        /// It suits this request.
        suits: bool,
        /// A cache may serve this request with it.
        is_fresh: bool,
        /// It is complete, and the origin can confirm it.
        can_be_confirmed: bool,
    },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Choice {
    Replay(usize),
    /// Wait for the head of this one, and choose again. `claims`: it counts as seen by this listener from now on, so that
    /// the listener's next request does not wait for it as well.
    Wait {
        index: usize,
        /// It is this listener's.
        claims: bool,
    },
    /// Validate this one at the origin.
    Confirm(usize),
    Fetch,
}

/// Chooses among the recordings under a key, the oldest first.
///
/// `is_shared`: the last response under it could be shared (none: not known); `wants_new`: the client reloads.
pub fn choose(views: &[View], limits: &Limits, is_shared: Option<bool>, wants_new: bool) -> Choice {
    let all = || views.iter().enumerate().filter(|(_, view)| view.timed_ns <= limits.maximum_age_ns);
    let own =
        all().rev().filter(|(_, view)| view.bond == Bond::Own).find_map(|(index, view)| match view.stage {
            Stage::Responded { suits: true, .. } => Some(Choice::Replay(index)),
            Stage::Requested { .. } if may_be_awaited(view) => {
                Some(Choice::Wait { index, claims: !view.is_seen })
            }
            _ => None,
        });
    if let Some(own) = own {
        return own;
    }
    let fresh = all()
        .rev()
        .find(|(_, view)| matches!(view.stage, Stage::Responded { suits: true, is_fresh: true, .. }));
    if let Some((index, _)) = fresh {
        return Choice::Replay(index);
    }
    let longest_ns =
        if wants_new { BEHIND_NS.min(limits.minimum_freshness_ns) } else { limits.minimum_freshness_ns };
    let unseen = || {
        let is_new = |view: &View| is_open(view) && view.age_ns <= longest_ns;
        all().filter(move |(_, view)| {
            is_new(view) && matches!(view.stage, Stage::Responded { suits: true, .. })
        })
    };
    let next = unseen().find(|(_, view)| view.age_ns <= BEHIND_NS).or_else(|| unseen().next_back());
    if let Some((index, _)) = next {
        return Choice::Replay(index);
    }
    let mut waiting = all().filter_map(|(index, view)| {
        // What this listener has had already, or others are to have, is of use only if it may be shared.
        let may_be_of_use = is_open(view) || is_shared != Some(false);
        (may_be_awaited(view) && may_be_of_use).then_some((index, is_open(view)))
    });
    if let Some((index, claims)) = waiting.next() {
        return Choice::Wait { index, claims };
    }
    let confirmable = |view: &View| {
        matches!(view.stage, Stage::Responded { suits: true, can_be_confirmed: true, .. }) && !wants_new
    };
    match all().rev().find(|(_, view)| confirmable(view)) {
        Some((index, _)) => Choice::Confirm(index),
        None => Choice::Fetch,
    }
}

/// The listener has not had it, and it is not another listener's.
fn is_open(view: &View) -> bool {
    !view.is_seen && view.bond != Bond::Others
}

/// Whether the head of a fetch is worth waiting for.
fn may_be_awaited(view: &View) -> bool {
    match view.stage {
        Stage::Requested { is_conditional, is_of_a_proxy } => {
            let loses = is_of_a_proxy && view.age_ns > RACE_NS;
            !is_conditional && !loses
        }
        Stage::Responded { .. } => false,
    }
}

/// Whether a listener may still be going to request a recording, so that it is kept as long as there is room; `is_done`: it is
/// complete, and all listeners have had it.
pub fn is_waited_for(age_ns: u64, limits: &Limits, is_done: bool) -> bool {
    !is_done && age_ns <= limits.minimum_freshness_ns
}

/// Whether a recording that a listener still waits for may go for want of room: the listener is too far behind.
pub fn may_go(age_ns: u64) -> bool {
    age_ns > BEHIND_NS
}

/// Whether a recording can still be of use; `is_done`: it is complete, and all listeners have had it.
pub fn is_of_use(view: &View, limits: &Limits, is_done: bool) -> bool {
    let is_kept = match view.stage {
        Stage::Requested { .. } => true,
        Stage::Responded { is_fresh, can_be_confirmed, .. } => is_fresh || can_be_confirmed,
    };
    view.timed_ns <= limits.maximum_age_ns
        && (is_kept || (view.age_ns <= limits.minimum_freshness_ns && !is_done))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const S: u64 = 1_000_000_000;
    const LIMITS: Limits = Limits { minimum_freshness_ns: 180 * S, maximum_age_ns: 3600 * S };

    fn responded(is_seen: bool, age_s: u64, is_fresh: bool, can_be_confirmed: bool) -> View {
        let stage = Stage::Responded { suits: true, is_fresh, can_be_confirmed };
        View { bond: Bond::Unknown, is_seen, age_ns: age_s * S, timed_ns: age_s * S, stage }
    }

    fn requested(is_seen: bool, age_ns: u64, is_conditional: bool, is_of_a_proxy: bool) -> View {
        let stage = Stage::Requested { is_conditional, is_of_a_proxy };
        View { bond: Bond::Unknown, is_seen, age_ns, timed_ns: age_ns, stage }
    }

    fn plain(views: &[View]) -> Choice {
        choose(views, &LIMITS, None, false)
    }

    #[test]
    fn what_is_fresh_is_replayed_to_everybody() {
        assert_eq!(plain(&[responded(true, 1000, true, false)]), Choice::Replay(0));
        assert_eq!(
            plain(&[responded(true, 9, true, true), responded(true, 1, true, true)]),
            Choice::Replay(1)
        );
        assert_eq!(plain(&[responded(false, 3601, true, true)]), Choice::Fetch, "its timings are too old");
    }

    #[test]
    fn what_is_not_is_replayed_once_to_each_listener_for_a_while() {
        assert_eq!(plain(&[responded(false, 180, false, false)]), Choice::Replay(0));
        assert_eq!(plain(&[responded(true, 1, false, false)]), Choice::Fetch);
        assert_eq!(plain(&[responded(false, 181, false, false)]), Choice::Fetch);
        assert_eq!(plain(&[responded(true, 181, false, true)]), Choice::Confirm(0));
    }

    #[test]
    fn a_listener_that_is_behind_gets_the_next_one_and_a_new_listener_the_newest() {
        let views = [
            responded(true, 9, false, false),
            responded(false, 8, false, false),
            responded(false, 2, false, false),
        ];
        assert_eq!(plain(&views), Choice::Replay(1));
        let old = [responded(false, 50, false, false), responded(false, 40, false, false)];
        assert_eq!(plain(&old), Choice::Replay(1));
        assert_eq!(plain(&[old[0], views[2]]), Choice::Replay(1));
    }

    #[test]
    fn a_reload_gets_nothing_old() {
        let choice = |view| choose(&[view], &LIMITS, None, true);
        assert_eq!(
            choice(responded(false, 9, false, false)),
            Choice::Replay(0),
            "the others requested it just now"
        );
        assert_eq!(choice(responded(false, 11, false, true)), Choice::Fetch);
    }

    #[test]
    fn a_fetch_under_way_is_waited_for_by_each_listener_once_unless_it_may_be_shared() {
        let under_way = |is_seen| [requested(is_seen, 5 * S, false, false)];
        assert_eq!(plain(&under_way(false)), Choice::Wait { index: 0, claims: true });
        assert_eq!(plain(&under_way(true)), Choice::Wait { index: 0, claims: false });
        let known = |is_seen| choose(&under_way(is_seen), &LIMITS, Some(false), false);
        assert_eq!(known(false), Choice::Wait { index: 0, claims: true });
        assert_eq!(known(true), Choice::Fetch);
        assert_eq!(plain(&[requested(false, 0, true, false)]), Choice::Fetch, "a 304 would be of no use");
    }

    #[test]
    fn clients_do_not_wait_for_what_a_proxy_began_unless_they_lost_a_race() {
        assert_eq!(plain(&[requested(false, RACE_NS, false, true)]), Choice::Wait { index: 0, claims: true });
        assert_eq!(plain(&[requested(false, RACE_NS + 1, false, true)]), Choice::Fetch);
    }

    #[test]
    fn a_numbered_request_gets_what_its_own_client_got_and_nothing_of_others() {
        let of = |bond, view| View { bond, ..view };
        let others = of(Bond::Others, responded(false, 3, false, false));
        let own = of(Bond::Own, responded(false, 2, false, false));
        assert_eq!(plain(&[others, own, others]), Choice::Replay(1), "in whatever order they are requested");
        assert_eq!(
            plain(&[others, of(Bond::Own, responded(true, 2, false, false))]),
            Choice::Replay(1),
            "twice"
        );
        assert_eq!(plain(&[others]), Choice::Fetch);
        let newer = of(Bond::Others, responded(false, 1, true, true));
        assert_eq!(
            plain(&[own, newer]),
            Choice::Replay(0),
            "what the client got, though there is a newer one"
        );
        assert_eq!(plain(&[newer]), Choice::Replay(0), "what is fresh is everybody's");
        let under_way = |bond, is_seen| [of(bond, requested(is_seen, 0, false, false))];
        assert_eq!(plain(&under_way(Bond::Own, false)), Choice::Wait { index: 0, claims: true });
        assert_eq!(plain(&under_way(Bond::Others, false)), Choice::Wait { index: 0, claims: false });
        let known = choose(&under_way(Bond::Others, false), &LIMITS, Some(false), false);
        assert_eq!(known, Choice::Fetch, "it is not going to be shared");
    }

    #[test]
    fn what_a_listener_waits_for_is_kept_for_a_while_and_then_as_long_as_there_is_room() {
        assert!(is_waited_for(180 * S, &LIMITS, false) && !is_waited_for(180 * S + 1, &LIMITS, false));
        assert!(!is_waited_for(0, &LIMITS, true));
        assert!(!may_go(10 * S) && may_go(10 * S + 1));
    }

    fn view() -> impl Strategy<Value = View> {
        let stage = prop_oneof![
            (any::<bool>(), any::<bool>()).prop_map(|(is_conditional, is_of_a_proxy)| Stage::Requested {
                is_conditional,
                is_of_a_proxy
            }),
            (any::<bool>(), any::<bool>(), any::<bool>()).prop_map(|(suits, is_fresh, can_be_confirmed)| {
                Stage::Responded { suits, is_fresh, can_be_confirmed }
            }),
        ];
        let bond = prop_oneof![Just(Bond::Own), Just(Bond::Others), Just(Bond::Unknown)];
        (bond, any::<bool>(), 0u64..5000, 0u64..1000, stage).prop_map(
            |(bond, is_seen, age_s, more_s, stage)| View {
                bond,
                is_seen,
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
                Choice::Replay(index) => {
                    let view = views[index];
                    let Stage::Responded { suits, is_fresh, .. } = view.stage else { panic!("not answered") };
                    prop_assert!(suits && view.timed_ns <= LIMITS.maximum_age_ns);
                    let is_next = !view.is_seen
                        && view.bond == Bond::Unknown
                        && view.age_ns <= LIMITS.minimum_freshness_ns;
                    prop_assert!(is_fresh || view.bond == Bond::Own || is_next);
                    prop_assert!(view.bond == Bond::Own || is_of_use(&view, &LIMITS, false));
                }
                Choice::Wait { index, claims } => {
                    let is_right = matches!(views[index].stage, Stage::Requested { is_conditional: false, .. });
                    let is_its = !views[index].is_seen && views[index].bond != Bond::Others;
                    prop_assert!(is_right && claims == is_its);
                }
                Choice::Confirm(index) => {
                    let is_right = matches!(views[index].stage, Stage::Responded { can_be_confirmed: true, suits: true, .. });
                    prop_assert!(is_right && is_of_use(&views[index], &LIMITS, false));
                }
                Choice::Fetch => {
                    let is_response = |view: &View| {
                        let Stage::Responded { suits: true, is_fresh, .. } = view.stage else { return false };
                        let is_next = !view.is_seen && view.bond != Bond::Others && view.age_ns <= BEHIND_NS;
                        view.timed_ns <= LIMITS.maximum_age_ns && (is_fresh || is_next || view.bond == Bond::Own)
                    };
                    prop_assert!(!views.iter().any(is_response));
                }
            }
        }
    }
}
