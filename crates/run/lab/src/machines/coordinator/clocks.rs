//! The clocks of a run's machines, measured all the time while it goes on.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::machines::fleet::clock::{AgentClock, ClockError, MOST_DRIFT_PPM, Offset, start_spread_ns};
use crate::machines::fleet::message::AgentInfo;
use crate::machines::fleet::name::Name;
use async_nats::Client;
use async_nats::connection::State as Link;
use tokio::sync::mpsc;

use super::saved::SavedClock;
use crate::machines::discovery::{self, ExchangeError};
use assay_base::clock::monotonic_ns;

/// Time between two exchanges with one machine: within it, drift adds no more than 50 µs to the bound.
const PERIOD: Duration = Duration::from_millis(100);
/// A machine that does not respond for so long is lost. A network that is cut for less costs nothing.
const LOST_AFTER: Duration = Duration::from_secs(15);
/// A machine whose agent is not connected any more, though the server is there, is lost sooner.
const GONE_AFTER: Duration = Duration::from_secs(2);

/// Reason why nothing came from a machine: where the server is gone as well, nothing is known of the machine itself.
fn silence(to_server: &Link) -> String {
    let seconds = LOST_AFTER.as_secs();
    match to_server {
        Link::Connected => format!("its agent said nothing for {seconds} s"),
        Link::Pending | Link::Disconnected => {
            format!(
                "there is no connection to the NATS server, and nothing came through it for {seconds} s; the machine may be well"
            )
        }
    }
}

/// Clock of one machine, as far as it is known.
#[derive(Debug, Clone)]
pub struct MachineClock {
    /// Description by the agent itself.
    pub info: AgentInfo,
    pub clock: AgentClock,
    /// The offset that its start was computed with; none: it was not told of a start.
    pub assumed_ns: Option<i64>,
    /// The narrowest that is known of the offset at the start: before it, what the clock may drift until then.
    pub at_start: Option<Offset>,
    /// The greatest distance of an instant that it reported from the coordinator's scale, since the start; none: not known.
    pub worst_ns: Option<u64>,
    /// Time at which the last exchange was made, and what the offset was then.
    pub last: Option<(u64, Offset)>,
    /// Wall clock beyond the coordinator's, in microseconds, at the first exchange.
    pub wall_ahead_us: Option<i64>,
    /// Time at which it was lost, in nanoseconds of the coordinator's clock, and how that was seen.
    pub lost: Option<(u64, String)>,
}

impl MachineClock {
    /// The greatest distance of any of its instants, the start among them, from the coordinator's scale. None: not known.
    fn error_ns(&self) -> Option<u64> {
        let at_start_ns = match self.assumed_ns {
            Some(assumed_ns) => self.at_start?.error_of_ns(assumed_ns),
            None => 0,
        };
        self.worst_ns.map(|worst_ns| worst_ns.max(at_start_ns))
    }
}

/// All machines of a run, and the instant of its start.
#[derive(Debug, Default)]
struct ClockTable {
    machines: BTreeMap<Name, MachineClock>,
    start_ns: Option<u64>,
}

/// An agent that carries the name of a machine of the run, and is not the one that took part.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("another agent has its name now: it was started again")]
pub struct OtherInstance;

/// The clocks of a run's machines.
#[derive(Debug, Clone, Default)]
pub struct Clocks(Arc<Mutex<ClockTable>>);

impl Clocks {
    pub fn of(machines: impl IntoIterator<Item = AgentInfo>) -> Self {
        let machine = |info: AgentInfo| MachineClock {
            info,
            clock: AgentClock::default(),
            assumed_ns: None,
            at_start: None,
            worst_ns: Some(0),
            last: None,
            wall_ahead_us: None,
            lost: None,
        };
        let machines = machines.into_iter().map(|info| (info.name.clone(), machine(info))).collect();
        Self(Arc::new(Mutex::new(ClockTable { machines, start_ns: None })))
    }

    /// The same machines, as another coordinator had written them down; the run has begun.
    pub fn resumed(
        machines: impl IntoIterator<Item = AgentInfo>,
        saved: &BTreeMap<Name, SavedClock>,
        start_ns: u64,
    ) -> Self {
        let clocks = Self::of(machines);
        let mut state = clocks.locked();
        state.start_ns = Some(start_ns);
        for (name, machine) in &mut state.machines {
            let SavedClock { assumed_ns, at_start, worst_ns, last, wall_ahead_us } =
                saved.get(name).copied().unwrap_or_default();
            (machine.assumed_ns, machine.at_start, machine.worst_ns) = (assumed_ns, at_start, worst_ns);
            (machine.last, machine.wall_ahead_us) = (last, wall_ahead_us);
        }
        drop(state);
        clocks
    }

    /// State of the clocks for another coordinator.
    pub fn saved(&self) -> BTreeMap<Name, SavedClock> {
        let saved = |machine: &MachineClock| SavedClock {
            assumed_ns: machine.assumed_ns,
            at_start: machine.at_start,
            worst_ns: machine.worst_ns,
            last: machine.last,
            wall_ahead_us: machine.wall_ahead_us,
        };
        self.locked().machines.iter().map(|(name, machine)| (name.clone(), saved(machine))).collect()
    }

    /// Nobody exchanged anything with a machine for a while, and now its clock was measured again: while nobody looked, it can
    /// have drifted away and back.
    pub fn rejoin(&self, name: &Name, measured: AgentClock) {
        let mut state = self.locked();
        let Some(machine) = state.machines.get_mut(name) else { return };
        let found = measured.now_at();
        machine.clock = measured;
        let (Some((before_ns, before)), Ok((now_ns, now)), Some(assumed_ns)) =
            (machine.last, found, machine.assumed_ns)
        else {
            machine.worst_ns = None;
            return;
        };
        let moved_ns = unseen_ns(now_ns.saturating_sub(before_ns));
        let moved = i64::try_from(moved_ns).unwrap_or(i64::MAX / 4);
        let contradicts = now.least_ns > before.most_ns + moved || now.most_ns < before.least_ns - moved;
        // It can have moved by so much between the two, there and back: the farthest is where both ways meet.
        let both_ns = before.error_of_ns(assumed_ns).saturating_add(now.error_of_ns(assumed_ns));
        let farthest_ns = both_ns.saturating_add(moved_ns).div_ceil(2);
        let farthest_ns = farthest_ns.max(now.error_of_ns(assumed_ns));
        machine.worst_ns =
            machine.worst_ns.map(|worst_ns| worst_ns.max(farthest_ns)).filter(|_| !contradicts);
        machine.last = Some((now_ns, now));
    }

    /// A machine was lost while nobody looked.
    pub fn lose(&self, name: &Name, at_ns: u64, why: String) {
        if let Some(machine) = self.locked().machines.get_mut(name) {
            machine.lost = Some((at_ns, why));
        }
    }

    fn locked(&self) -> MutexGuard<'_, ClockTable> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// All machines, as they are known by now.
    pub fn machines(&self) -> Vec<MachineClock> {
        self.locked().machines.values().cloned().collect()
    }

    pub fn machine(&self, name: &Name) -> Option<MachineClock> {
        self.locked().machines.get(name).cloned()
    }

    /// An instant of the coordinator's clock on a machine's own. It becomes what the run is judged by.
    pub fn start(&self, name: &Name, at_ns: u64) -> Result<u64, ClockError> {
        let mut state = self.locked();
        state.start_ns = Some(at_ns);
        let machine = state.machines.get_mut(name).ok_or(ClockError::Unmeasured)?;
        // All roles of a machine have one start.
        let assumed_ns = match machine.assumed_ns {
            Some(assumed_ns) => assumed_ns,
            // Until then it may drift either way alike: what it is now is the best guess.
            None => machine.clock.now()?.middle_ns(),
        };
        machine.assumed_ns = Some(assumed_ns);
        machine.at_start = machine.clock.at(at_ns).ok();
        Ok(at_ns.saturating_add_signed(assumed_ns))
    }

    /// Time at which the run started; none: nobody was told yet.
    pub fn start_ns(&self) -> Option<u64> {
        self.locked().start_ns
    }

    /// Largest distance of an instant of one machine from the same instant of another, in nanoseconds, since the start: the two
    /// greatest errors together. None: not known.
    pub fn error_ns(&self) -> Option<u64> {
        let state = self.locked();
        let mut errors = state.machines.values().map(MachineClock::error_ns).collect::<Option<Vec<_>>>()?;
        errors.sort_unstable_by(|one, other| other.cmp(one));
        Some(errors.iter().take(2).sum())
    }

    /// Largest distance between the starts of machines, in nanoseconds. None: not known.
    pub fn start_spread_ns(&self) -> Option<u64> {
        let state = self.locked();
        let one = |machine: &MachineClock| Some((machine.at_start?, machine.assumed_ns?));
        let all: Option<Vec<_>> = state.machines.values().map(one).collect();
        all.map(|all| start_spread_ns(&all))
    }

    /// Measures a machine's clock until it is lost; says so once.
    pub async fn follow(self, client: Client, name: Name, run: Name, lost: mpsc::UnboundedSender<Name>) {
        let mut ticker = tokio::time::interval(PERIOD);
        ticker.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        let mut heard = tokio::time::Instant::now();
        loop {
            ticker.tick().await;
            let seen = discovery::exchange(&client, &name, Some(&run)).await;
            let silent = heard.elapsed();
            let (why, is_cut_off) = match seen {
                Ok((exchange, instance, ahead_us)) => {
                    heard = tokio::time::Instant::now();
                    match self.take(&name, instance, exchange, ahead_us) {
                        Ok(()) => continue,
                        Err(other) => (other.to_string(), false),
                    }
                }
                Err(ExchangeError::Gone) if silent >= GONE_AFTER => ("its agent has ended".to_owned(), false),
                Err(_) if silent >= LOST_AFTER => {
                    let to_server = client.connection_state();
                    (silence(&to_server), !matches!(to_server, Link::Connected))
                }
                Err(_) => continue,
            };
            // Nobody listens once the run is over.
            self.note_loss(&name, is_cut_off, &why).into_iter().for_each(|name| drop(lost.send(name)));
            return;
        }
    }

    /// A machine is lost, and with it all others if it is because nothing comes through the server any more: which of them nobody knew of.
    fn note_loss(&self, name: &Name, is_cut_off: bool, why: &str) -> Vec<Name> {
        let at_ns = monotonic_ns();
        let mut state = self.locked();
        let concerned = state.machines.iter_mut().filter(|(other, _)| is_cut_off || *other == name);
        let new = concerned.filter(|(_, machine)| machine.lost.is_none());
        new.map(|(name, machine)| {
            machine.lost = Some((at_ns, why.to_owned()));
            name.clone()
        })
        .collect()
    }

    /// Takes note of an exchange; why the machine is lost, if another agent has its name now.
    pub fn take(
        &self,
        name: &Name,
        instance: u64,
        exchange: crate::machines::fleet::clock::Exchange,
        ahead_us: i64,
    ) -> Result<(), OtherInstance> {
        let mut state = self.locked();
        let start_ns = state.start_ns;
        let Some(machine) = state.machines.get_mut(name) else { return Ok(()) };
        if machine.info.instance != instance {
            return Err(OtherInstance);
        }
        machine.wall_ahead_us.get_or_insert(ahead_us);
        if machine.clock.take(exchange).is_err() {
            machine.worst_ns = None;
        }
        let now_ns = exchange.back_ns;
        let found = machine.clock.at(now_ns);
        machine.last = found.ok().map(|offset| (now_ns, offset)).or(machine.last);
        let (Some(start_ns), Some(assumed_ns)) = (start_ns, machine.assumed_ns) else { return Ok(()) };
        if now_ns < start_ns {
            return Ok(());
        }
        match found {
            Ok(offset) => {
                let error_ns = offset.error_of_ns(assumed_ns);
                machine.worst_ns = machine.worst_ns.map(|worst| worst.max(error_ns));
            }
            Err(_) => machine.worst_ns = None,
        }
        let narrower = |new: Offset| machine.at_start.is_none_or(|old| new.error_ns() < old.error_ns());
        if let Some(offset) = machine.clock.at(start_ns).ok().filter(|offset| narrower(*offset)) {
            machine.at_start = Some(offset);
        }
        Ok(())
    }
}

/// By how much an offset can change while nobody looks.
fn unseen_ns(for_ns: u64) -> u64 {
    u64::try_from((u128::from(for_ns) * u128::from(MOST_DRIFT_PPM)).div_ceil(1_000_000)).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use crate::machines::fleet::clock::Exchange;

    use super::super::testing::agent;
    use super::*;

    const SECOND: u64 = 1_000_000_000;

    /// An exchange with a clock that is ahead by so much; 20 µs there, 20 µs back.
    fn exchange(sent_ns: u64, ahead_ns: u64) -> Exchange {
        let received_ns = sent_ns + 20_000 + ahead_ns;
        Exchange { sent_ns, received_ns, responded_ns: received_ns, back_ns: sent_ns + 40_000 }
    }

    #[test]
    fn all_machines_are_lost_with_the_server_and_each_is_told_of_once() {
        let names = ["one", "two", "three"].map(|name| agent(name).name);
        let clocks = Clocks::of(["one", "two", "three"].map(agent));
        assert_eq!(clocks.note_loss(&names[1], false, "its agent has ended"), [names[1].clone()]);
        assert_eq!(clocks.note_loss(&names[0], true, "cut off"), [names[0].clone(), names[2].clone()]);
        assert!(clocks.note_loss(&names[2], true, "cut off").is_empty());
        let why = |name| clocks.machine(name).unwrap().lost.unwrap().1;
        assert_eq!(names.each_ref().map(why), ["cut off", "its agent has ended", "cut off"]);
    }

    #[test]
    fn the_error_of_a_run_follows_the_drift_of_its_clocks() {
        let (one, two) = (agent("one"), agent("two"));
        let clocks = Clocks::of([one.clone(), two.clone()]);
        for name in [&one.name, &two.name] {
            clocks.take(name, 1, exchange(SECOND, 5 * SECOND), 3).unwrap();
        }
        let start_ns = 2 * SECOND;
        for name in [&one.name, &two.name] {
            let at = clocks.start(name, start_ns).unwrap();
            assert!(at.abs_diff(7 * SECOND) < 1000, "{at}");
        }
        // One clock is 100 µs further ahead after the start; the other stays.
        clocks.take(&one.name, 1, exchange(start_ns + SECOND / 10, 5 * SECOND + 100_000), 3).unwrap();
        clocks.take(&two.name, 1, exchange(start_ns + SECOND / 10, 5 * SECOND), 3).unwrap();
        let error = clocks.error_ns().unwrap();
        assert!((100_000..250_000).contains(&error), "{error}");
        assert!(clocks.start_spread_ns().is_some_and(|spread| spread < 400_000));
    }

    #[test]
    fn an_error_is_known_from_the_moment_that_a_start_is_told() {
        let one = agent("one");
        let clocks = Clocks::of([one.clone()]);
        // 80 ms there, 20 µs back: the middle is 40 ms off.
        let received_ns = SECOND + 80_000_000;
        let slow = Exchange {
            sent_ns: SECOND,
            received_ns,
            responded_ns: received_ns,
            back_ns: received_ns + 20_000,
        };
        clocks.take(&one.name, 1, slow, 0).unwrap();
        clocks.start(&one.name, 2 * SECOND).unwrap();
        let error = clocks.error_ns().unwrap();
        assert!((40_000_000..41_000_000).contains(&error), "{error}");
    }

    /// Clocks of one machine, five seconds ahead, that another coordinator saw last a tenth of a second after the start, and that
    /// are measured again ten seconds later, `ahead_ns` further ahead.
    fn taken_up(ahead_ns: u64) -> Clocks {
        let one = agent("one");
        let clocks = Clocks::of([one.clone()]);
        clocks.take(&one.name, 1, exchange(SECOND, 5 * SECOND), 3).unwrap();
        clocks.start(&one.name, 2 * SECOND).unwrap();
        clocks.take(&one.name, 1, exchange(2 * SECOND + SECOND / 10, 5 * SECOND), 3).unwrap();
        let again = Clocks::resumed([one.clone()], &clocks.saved(), 2 * SECOND);
        assert_eq!(again.machine(&one.name).unwrap().at_start, clocks.machine(&one.name).unwrap().at_start);
        let mut measured = AgentClock::default();
        measured.take(exchange(12 * SECOND + SECOND / 10, 5 * SECOND + ahead_ns)).unwrap();
        again.rejoin(&one.name, measured);
        again
    }

    #[test]
    fn while_nobody_looked_a_clock_can_have_drifted_away_and_back() {
        // Ten seconds at 500 ppm are 5 ms: 2.5 ms away and 2.5 ms back.
        let error = taken_up(0).error_ns().unwrap();
        assert!((2_500_000..2_700_000).contains(&error), "{error}");
        // One that is 3 ms ahead afterwards was at most 4 ms ahead on the way.
        let error = taken_up(3_000_000).error_ns().unwrap();
        assert!((4_000_000..4_200_000).contains(&error), "{error}");
        // One that is 6 ms ahead was set: it cannot drift so much.
        assert_eq!(taken_up(6_000_000).error_ns(), None);
    }

    #[test]
    fn a_clock_that_was_set_leaves_the_error_unknown_and_another_agent_is_a_lost_one() {
        let one = agent("one");
        let clocks = Clocks::of([one.clone()]);
        clocks.take(&one.name, 1, exchange(SECOND, 0), 0).unwrap();
        clocks.start(&one.name, 2 * SECOND).unwrap();
        clocks.take(&one.name, 1, exchange(3 * SECOND, SECOND), 0).unwrap();
        assert_eq!(clocks.error_ns(), None);
        assert_eq!(clocks.take(&one.name, 8, exchange(4 * SECOND, 0), 0), Err(OtherInstance));
    }
}
