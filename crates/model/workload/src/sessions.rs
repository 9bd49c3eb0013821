//! When a robot is busy, and when idle. A walk through its busy and idle periods, a pure function of the robot and time.
//!
//! Times are those of the schedule. A busy period that ends at a count of transactions lasts as long as the
//! robot takes for them at its own rate and load factor 1; a robot without a rate counts them itself and says
//! when it is done ([`SessionClock::finish`]). The walk is stationary: at every moment of the run the
//! expected share of busy robots is the same, so robots are somewhere in the middle of a period when the run
//! begins.

use crate::Purpose;
use crate::model::RobotIndex;
use crate::universe::Universe;
use assay_base::random::Rng;

/// State of a robot's sessions at a moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SessionState {
    /// Number of its session, from 0; an idle robot is at the end of this one.
    pub session: u64,
    /// Busy: it sends requests.
    pub busy: bool,
    /// End of this state, in nanoseconds of the schedule; `u64::MAX`: at a count, or never.
    pub until_ns: u64,
}

impl SessionState {
    /// Of a robot that is always busy.
    pub const ALWAYS: Self = Self { session: 0, busy: true, until_ns: u64::MAX };
}

/// Busy periods are at least this long, so that a walk gets on.
const SHORTEST_BUSY_NS: u64 = 1_000_000;

/// Candidates among which the period of the start is drawn by length.
const CANDIDATES: usize = 16;

/// Walk through the sessions of one robot. Moments must be queried in order.
#[derive(Debug, Clone, Copy)]
pub struct SessionClock {
    robot: RobotIndex,
    group: u32,
    state: SessionState,
}

impl SessionClock {
    /// A robot's sessions; none: it has none and is always busy.
    pub fn new(universe: &Universe, robot: RobotIndex) -> Option<Self> {
        let group = universe.group_of(robot)?;
        let table = universe.groups()[group].session.as_ref()?;
        let mut rng = Rng::of(Purpose::Session, &[universe.seed(), u64::from(robot)]);
        let state = match table.busy_s {
            None => SessionState::ALWAYS,
            Some(busy_s) => {
                let (coin, part) = (rng.unit(), rng.unit());
                let busy = coin < table.busy_share;
                let length_s = if busy { busy_s } else { drawn_by_length(&mut rng, |rng| table.idle_s(rng)) };
                SessionState { session: 0, busy, until_ns: nanoseconds(part * length_s) }
            }
        };
        Some(Self { robot, group: group as u32, state })
    }

    /// State at a moment of the schedule, not earlier than the last one queried.
    #[inline]
    pub fn at(&mut self, universe: &Universe, now_ns: u64) -> SessionState {
        while self.state.until_ns <= now_ns {
            self.turn(universe, self.state.until_ns);
        }
        self.state
    }

    /// Transactions of a robot without a rate in a busy period; none: it does not count.
    pub fn transactions(&self, universe: &Universe) -> Option<u64> {
        universe.groups()[self.group as usize].session.as_ref()?.transactions
    }

    /// The robot has made its transactions: its busy period ends now.
    pub fn finish(&mut self, universe: &Universe, now_ns: u64) {
        if self.state.busy {
            self.turn(universe, now_ns);
        }
    }

    fn turn(&mut self, universe: &Universe, from_ns: u64) {
        let Some(table) = &universe.groups()[self.group as usize].session else { return };
        let SessionState { session, busy, .. } = self.state;
        let length_ns = if busy {
            let words = [universe.seed(), u64::from(self.robot), session + 1];
            nanoseconds(table.idle_s(&mut Rng::of(Purpose::Session, &words)))
        } else {
            table.busy_s.map_or(u64::MAX, nanoseconds)
        };
        self.state = SessionState {
            session: session + u64::from(!busy),
            busy: !busy,
            until_ns: from_ns.saturating_add(length_ns.max(if busy { 0 } else { SHORTEST_BUSY_NS })),
        };
    }
}

/// The period that a moment chosen at random falls into: long ones are more likely.
pub(crate) fn drawn_by_length(rng: &mut Rng, mut draw: impl FnMut(&mut Rng) -> f64) -> f64 {
    let lengths: [f64; CANDIDATES] = std::array::from_fn(|_| draw(rng));
    let chosen = crate::picker::pick_few(lengths.into_iter(), rng.unit());
    chosen.map_or(0.0, |index| lengths[index])
}

fn nanoseconds(seconds: f64) -> u64 {
    (seconds * 1e9) as u64
}
