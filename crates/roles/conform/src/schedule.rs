//! When tries of cases begin: many at the same time at first, and those that are repeated with less beside them.
//!
//! What exchanges messages disturbs others, and what only waits (for the end of a lifetime, or for a response that does not come) does
//! not. So tries are limited by how many are *active*, and a try that waits makes room for the next. A case is tried again as soon as its
//! own tries have shown that it must be, and there is little enough beside it.

use std::cell::Cell;
use std::collections::{BTreeMap, HashMap, VecDeque};
use std::rc::Rc;
use std::time::Duration;

use tokio::sync::Notify;
use tokio::task::{Id, JoinSet};
use tokio::time::{sleep, timeout};

use crate::case::Case;
use crate::origin::Origin;
use crate::retries::{CaseTries, Contradiction};
use crate::run::{Outcome, Target, run_try};
use crate::verdict::{Judgement, TryCounts, Verdict};

/// Time between a response and the next step: a target may store a response after it has passed it on.
pub(crate) const SETTLE: Duration = Duration::from_millis(300);
/// The same when a case is tried again by itself.
const SETTLE_AGAIN: Duration = Duration::from_millis(1000);
/// A try that waits this long, or longer, makes room for others.
const LONG: Duration = Duration::from_secs(1);
/// Tries that wait, at most: each has a connection to the target, and perhaps one to the origin.
const MAX_WAITING: usize = 96;
/// Rounds of a case: the first beside all others, a second, a third or those to be counted, and what became one of these in the third.
const MAX_ROUNDS: usize = 4;
/// Tries of a case during which Assay stood still, for each that it is tried at first: these are made up for.
const MAX_DISTURBED: usize = 5;

/// Number of tries, and of those at a time.
#[derive(Debug, Clone, Copy)]
pub(crate) struct TryLimits {
    /// Tries that are active at the same time.
    pub at_once: usize,
    /// Treatment of tries that contradict each other.
    pub contradiction: Contradiction,
}

impl TryLimits {
    /// Tries that may be active at the same time where a case is tried again: the later the round, the fewer.
    fn beside(self, round: usize) -> usize {
        // A try that fails only beside others shows that the target is slow, not what it does.
        let (shift, least) = match round {
            0 => (0, 1),
            1 => (1, 4),
            _ => (4, 2),
        };
        (self.at_once >> shift).max(least).min(self.at_once)
    }
}

/// Tries that are active.
#[derive(Default)]
pub(crate) struct ActiveTries {
    count: Cell<usize>,
    changed: Notify,
}

impl ActiveTries {
    /// One more. It never waits: a step that is due is sent.
    pub fn begin(self: &Rc<Self>) -> ActiveTry {
        let mut turn = ActiveTry { of: Rc::clone(self), is_active: false };
        turn.resume();
        turn
    }
}

/// A try that is active, or waits.
pub(crate) struct ActiveTry {
    of: Rc<ActiveTries>,
    is_active: bool,
}

impl ActiveTry {
    pub fn resume(&mut self) {
        if !self.is_active {
            self.is_active = true;
            self.of.count.set(self.of.count.get() + 1);
        }
    }

    pub fn rest(&mut self) {
        if self.is_active {
            self.is_active = false;
            self.of.count.set(self.of.count.get() - 1);
            self.of.changed.notify_one();
        }
    }

    /// Until `ended`: what takes long is waited for.
    pub async fn run_until<T>(&mut self, ended: impl Future<Output = T>) -> T {
        tokio::pin!(ended);
        self.resume();
        match timeout(LONG, &mut ended).await {
            Ok(value) => value,
            Err(_) => {
                // While it waits for a slow target, another try may begin.
                self.rest();
                ended.await
            }
        }
    }

    /// For `least`, or for as long as the case says. That is a lifetime; our own pauses make room for nobody.
    pub async fn pause(&mut self, least: Duration, wait: Duration) {
        if wait >= LONG {
            self.rest();
        }
        sleep(least.max(wait)).await;
        self.resume();
    }
}

impl Drop for ActiveTry {
    fn drop(&mut self) {
        self.rest();
    }
}

/// The tries of a case, and how many of its round are not over yet.
struct OpenCase {
    tries: CaseTries,
    round: usize,
    /// The queue of this round.
    queue: usize,
    left: usize,
    /// Disturbed tries that may still be repeated.
    spare: usize,
}

/// Tries all, and those again that do not hold, or whose tries contradict each other. `count` is called when the first tries of a case are over.
pub(crate) async fn run_cases(
    cases: Vec<Rc<Case>>,
    target: &Target,
    origin: &Rc<Origin>,
    effort: TryLimits,
    count: impl Fn(),
) -> Vec<Outcome> {
    let mut plan = TryQueue::of(cases, effort);
    let active: Rc<ActiveTries> = Rc::default();
    let mut tasks = JoinSet::new();
    let mut under_way: HashMap<Id, Rc<Case>> = HashMap::new();
    loop {
        while let Some((case, round)) = plan.next(active.count.get(), tasks.len()) {
            let (turn, target, origin) = (active.begin(), target.clone(), Rc::clone(origin));
            let pause = if round == 0 { SETTLE } else { SETTLE_AGAIN };
            let tried = Rc::clone(&case);
            let task = tasks.spawn_local(async move { run_try(case, &target, &origin, pause, turn).await });
            under_way.insert(task.id(), tried);
        }
        let ended = tokio::select! {
            ended = tasks.join_next_with_id() => ended,
            () = active.changed.notified() => continue,
        };
        let outcome = match ended {
            Some(Ok((id, outcome))) => {
                under_way.remove(&id);
                outcome
            }
            Some(Err(error)) => match under_way.remove(&error.id()) {
                Some(case) => broken_off(case),
                None => continue,
            },
            None => break,
        };
        if plan.ended(outcome) {
            count();
        }
    }
    let open = plan.open.into_values();
    open.filter_map(|open| open.tries.decided(effort.contradiction)).collect()
}

/// A try that did not come to its end says nothing, and is missed: without it, its case would have no result.
fn broken_off(case: Rc<Case>) -> Outcome {
    let why = "the try was broken off by a fault of Assay; please report it";
    let judgement = Judgement::new(Verdict::Inconclusive, why);
    let times = TryCounts::of(judgement.verdict);
    Outcome { case, judgement, observations: Vec::new(), tries: 1, times }
}

/// Tries that are still to be made.
struct TryQueue {
    effort: TryLimits,
    open: BTreeMap<String, OpenCase>,
    /// A queue for each round.
    due: [VecDeque<Rc<Case>>; MAX_ROUNDS],
}

impl TryQueue {
    /// Queues the cases with the longest waits first, so that the run does not end with them alone.
    fn of(mut cases: Vec<Rc<Case>>, effort: TryLimits) -> Self {
        cases.sort_by(|a, b| b.waits_s().total_cmp(&a.waits_s()));
        let mut due: [VecDeque<Rc<Case>>; MAX_ROUNDS] = Default::default();
        let mut open = BTreeMap::new();
        for case in cases {
            due[0].extend(std::iter::repeat_n(Rc::clone(&case), case.tries));
            let left = case.tries;
            let spare = MAX_DISTURBED * case.tries;
            let name = case.name.clone();
            open.insert(name, OpenCase { tries: CaseTries::default(), round: 0, queue: 0, left, spare });
        }
        Self { effort, open, due }
    }

    /// The next case to be tried, with its round, if so few are active and under way that it may begin.
    fn next(&mut self, active: usize, under_way: usize) -> Option<(Rc<Case>, usize)> {
        let round = self.due.iter().position(|queue| !queue.is_empty())?;
        let may_begin = active < self.effort.beside(round) && under_way < self.effort.at_once + MAX_WAITING;
        let case = may_begin.then(|| self.due[round].pop_front()).flatten()?;
        Some((case, round))
    }

    /// A try is over; true if it was the last of the first round of its case.
    fn ended(&mut self, outcome: Outcome) -> bool {
        let Some(open) = self.open.get_mut(&outcome.case.name) else { return false };
        if outcome.judgement.is_disturbed && open.spare > 0 {
            open.spare -= 1;
            self.due[open.queue].push_back(outcome.case);
            return false;
        }
        let of_round = if open.round == 0 { &mut open.tries.crowded } else { &mut open.tries.quiet };
        of_round.push(outcome);
        open.left = open.left.saturating_sub(1);
        if open.left > 0 {
            return false;
        }
        let was_first = open.round == 0;
        if let Some((case, times)) = open.tries.next(self.effort.contradiction)
            && open.round + 1 < MAX_ROUNDS
        {
            (open.round, open.left) = (open.round + 1, times);
            // Many are to be counted: it is not quiet that they need, and in turn they would take long.
            open.queue = if times > 1 { 1 } else { open.round };
            self.due[open.queue].extend(std::iter::repeat_n(case, times));
        }
        was_first
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const EFFORT: TryLimits = TryLimits { at_once: 8, contradiction: Contradiction::Counted };

    fn case(name: &str, wait: u32, tries: usize) -> Rc<Case> {
        let text = format!(
            "topic = \"t\"\n[[case]]\nname = \"{name}\"\nlevel = \"MUST\"\nsection = \"x\"\nrule = \"r.\"\n\
             tries = {tries}\nsteps = [{{}}, {{ wait = {wait}, expect = {{ status = 200 }} }}]\n"
        );
        Rc::new(crate::read::read("t.toml", &text).unwrap().cases.remove(0))
    }

    fn outcome(case: &Rc<Case>, verdict: Verdict) -> Outcome {
        let judgement = Judgement::new(verdict, "");
        Outcome {
            case: Rc::clone(case),
            judgement,
            observations: Vec::new(),
            tries: 1,
            times: TryCounts::of(verdict),
        }
    }

    fn begun(plan: &mut TryQueue, active: usize, under_way: usize) -> Option<(String, usize)> {
        plan.next(active, under_way).map(|(case, round)| (case.name.clone(), round))
    }

    #[test]
    fn a_case_is_tried_again_while_others_are_still_tried_for_the_first_time() {
        let (short, long) = (case("short", 1, 1), case("long", 3, 1));
        let mut plan = TryQueue::of(vec![Rc::clone(&short), Rc::clone(&long)], EFFORT);
        assert_eq!(begun(&mut plan, 0, 0), Some(("long".into(), 0)));
        assert_eq!(begun(&mut plan, 1, 1), Some(("short".into(), 0)));
        assert_eq!(begun(&mut plan, 2, 2), None);
        assert!(plan.ended(outcome(&short, Verdict::Fail)));
        assert_eq!(begun(&mut plan, 4, 4), None, "four are active beside it");
        assert_eq!(begun(&mut plan, 3, 4), Some(("short".into(), 1)));
        assert!(!plan.ended(outcome(&short, Verdict::Fail)), "it is no first try");
        assert!(plan.ended(outcome(&long, Verdict::Pass)));
        assert_eq!(begun(&mut plan, 0, 0), None);
    }

    #[test]
    fn tries_that_contradict_each_other_are_counted_beside_each_other() {
        let once = case("once", 1, 1);
        let mut plan = TryQueue::of(vec![Rc::clone(&once)], EFFORT);
        let mut tried = Vec::new();
        while let Some((_, round)) = begun(&mut plan, 0, 0) {
            let holds = tried.len() % 2 == 1;
            plan.ended(outcome(&once, if holds { Verdict::Pass } else { Verdict::Fail }));
            tried.push(round);
        }
        assert_eq!(tried, [0, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1]);
    }

    #[test]
    fn a_try_during_which_we_stood_still_is_made_up_for_and_not_for_ever() {
        let once = case("once", 1, 1);
        let mut plan = TryQueue::of(vec![Rc::clone(&once)], EFFORT);
        let mut disturbed = outcome(&once, Verdict::Inconclusive);
        disturbed.judgement.is_disturbed = true;
        for _ in 0..MAX_DISTURBED {
            assert_eq!(begun(&mut plan, 0, 0), Some(("once".into(), 0)));
            assert!(!plan.ended(disturbed.clone()), "it counts for nothing");
        }
        assert_eq!(begun(&mut plan, 0, 0), Some(("once".into(), 0)));
        assert!(plan.ended(disturbed));
        assert_eq!(
            begun(&mut plan, 0, 0),
            Some(("once".into(), 1)),
            "it is an inconclusive try like any other"
        );
    }

    #[test]
    fn a_case_whose_tries_were_all_broken_off_has_a_result() {
        let once = case("once", 1, 1);
        let mut plan = TryQueue::of(vec![Rc::clone(&once)], EFFORT);
        while begun(&mut plan, 0, 0).is_some() {
            plan.ended(broken_off(Rc::clone(&once)));
        }
        let open = plan.open.remove("once").unwrap();
        let outcome = open.tries.decided(EFFORT.contradiction).unwrap();
        assert_eq!(outcome.judgement.verdict, Verdict::Inconclusive);
    }

    #[test]
    fn as_many_are_under_way_as_may_wait_and_no_more() {
        let many: Vec<Rc<Case>> = (0..200).map(|number| case(&format!("c{number}"), 3, 1)).collect();
        let mut plan = TryQueue::of(many, EFFORT);
        let begun = (0..).take_while(|under_way| plan.next(0, *under_way).is_some()).count();
        assert_eq!(begun, 8 + MAX_WAITING);
    }

    #[test]
    fn who_waits_long_makes_room_until_it_goes_on() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        runtime.block_on(async {
            let active: Rc<ActiveTries> = Rc::default();
            let mut turn = active.begin();
            assert_eq!(turn.run_until(async { active.count.get() }).await, 1);
            // It comes only once there is room for others.
            let response = async {
                while active.count.get() > 0 {
                    active.changed.notified().await;
                }
            };
            turn.run_until(response).await;
            turn.pause(Duration::ZERO, Duration::ZERO).await;
            assert_eq!(active.count.get(), 1);
            drop(turn);
            assert_eq!(active.count.get(), 0);
        });
    }
}
