//! The clocks of a run's machines, measured all the time while it goes on.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use assay_fleet::clock::{AgentClock, ClockError, Offset, start_spread_ns};
use assay_fleet::message::AgentInfo;
use assay_fleet::name::Name;
use async_nats::Client;
use tokio::sync::mpsc;

use crate::now::monotonic_ns;
use crate::roster::{self, ExchangeError};

/// Time between two exchanges with one machine: within it, drift adds no more than 50 µs to the bound.
const PERIOD: Duration = Duration::from_millis(100);
/// A machine that does not respond for so long is lost. A network that is cut for less costs nothing.
const LOST_AFTER: Duration = Duration::from_secs(15);
/// A machine whose agent is not connected any more, though the server is there, is lost sooner.
const GONE_AFTER: Duration = Duration::from_secs(2);

/// What is known of one machine.
#[derive(Debug, Clone)]
pub struct Machine {
    /// What it says of itself.
    pub info: AgentInfo,
    /// Its clock.
    pub clock: AgentClock,
    /// The offset that its start was computed with; none: it was not told of a start.
    pub assumed_ns: Option<i64>,
    /// The narrowest that is known of the offset at the start: before it, what the clock may drift until then.
    pub at_start: Option<Offset>,
    /// The greatest distance of an instant that it reported from the coordinator's scale, since the start; none: not known.
    pub worst_ns: Option<u64>,
    /// Its wall clock beyond the coordinator's, in microseconds, at the first exchange.
    pub wall_ahead_us: Option<i64>,
    /// When it was lost, in nanoseconds of the coordinator's clock, and how that was seen.
    pub lost: Option<(u64, String)>,
}

impl Machine {
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
struct State {
    machines: BTreeMap<Name, Machine>,
    start_ns: Option<u64>,
}

/// The clocks of a run's machines.
#[derive(Debug, Clone, Default)]
pub struct Clocks(Arc<Mutex<State>>);

impl Clocks {
    /// For these machines.
    pub fn of(machines: impl IntoIterator<Item = AgentInfo>) -> Self {
        let machine = |info: AgentInfo| Machine {
            info,
            clock: AgentClock::default(),
            assumed_ns: None,
            at_start: None,
            worst_ns: Some(0),
            wall_ahead_us: None,
            lost: None,
        };
        let machines = machines.into_iter().map(|info| (info.name.clone(), machine(info))).collect();
        Self(Arc::new(Mutex::new(State { machines, start_ns: None })))
    }

    fn locked(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// All machines, as they are known by now.
    pub fn machines(&self) -> Vec<Machine> {
        self.locked().machines.values().cloned().collect()
    }

    /// A machine.
    pub fn machine(&self, name: &Name) -> Option<Machine> {
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

    /// When the run started; none: nobody was told yet.
    pub fn start_ns(&self) -> Option<u64> {
        self.locked().start_ns
    }

    /// How far an instant of one machine can be from the same instant of another, in nanoseconds, since the start: the two
    /// greatest errors together. None: not known.
    pub fn error_ns(&self) -> Option<u64> {
        let state = self.locked();
        let mut errors = state.machines.values().map(Machine::error_ns).collect::<Option<Vec<_>>>()?;
        errors.sort_unstable_by(|one, other| other.cmp(one));
        Some(errors.iter().take(2).sum())
    }

    /// How far apart machines can have started, in nanoseconds. None: not known.
    pub fn start_spread_ns(&self) -> Option<u64> {
        let state = self.locked();
        let one = |machine: &Machine| Some((machine.at_start?, machine.assumed_ns?));
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
            let seen = roster::exchange(&client, &name, Some(&run)).await;
            let silent = heard.elapsed();
            let why = match seen {
                Ok((exchange, instance, ahead_us)) => {
                    heard = tokio::time::Instant::now();
                    match self.take(&name, instance, exchange, ahead_us) {
                        Ok(()) => continue,
                        Err(why) => why,
                    }
                }
                Err(ExchangeError::Gone) if silent >= GONE_AFTER => "its agent has ended".to_owned(),
                Err(_) if silent >= LOST_AFTER => {
                    format!("its agent said nothing for {} s", LOST_AFTER.as_secs())
                }
                Err(_) => continue,
            };
            if let Some(machine) = self.locked().machines.get_mut(&name) {
                machine.lost = Some((monotonic_ns(), why));
            }
            // Nobody listens once the run is over.
            let _ = lost.send(name);
            return;
        }
    }

    /// Takes note of an exchange; why the machine is lost, if another agent has its name now.
    pub fn take(
        &self,
        name: &Name,
        instance: u64,
        exchange: assay_fleet::clock::Exchange,
        ahead_us: i64,
    ) -> Result<(), String> {
        let mut state = self.locked();
        let start_ns = state.start_ns;
        let Some(machine) = state.machines.get_mut(name) else { return Ok(()) };
        if machine.info.instance != instance {
            return Err("another agent has its name now: it was started again".to_owned());
        }
        machine.wall_ahead_us.get_or_insert(ahead_us);
        if machine.clock.take(exchange).is_err() {
            machine.worst_ns = None;
        }
        let (Some(start_ns), Some(assumed_ns)) = (start_ns, machine.assumed_ns) else { return Ok(()) };
        let now_ns = exchange.back_ns;
        if now_ns < start_ns {
            return Ok(());
        }
        match machine.clock.at(now_ns) {
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

#[cfg(test)]
mod tests {
    use assay_fleet::clock::Exchange;

    use super::super::testing::agent;
    use super::*;

    const SECOND: u64 = 1_000_000_000;

    /// An exchange with a clock that is ahead by so much; 20 µs there, 20 µs back.
    fn exchange(sent_ns: u64, ahead_ns: u64) -> Exchange {
        let received_ns = sent_ns + 20_000 + ahead_ns;
        Exchange { sent_ns, received_ns, responded_ns: received_ns, back_ns: sent_ns + 40_000 }
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

    #[test]
    fn a_clock_that_was_set_leaves_the_error_unknown_and_another_agent_is_a_lost_one() {
        let one = agent("one");
        let clocks = Clocks::of([one.clone()]);
        clocks.take(&one.name, 1, exchange(SECOND, 0), 0).unwrap();
        clocks.start(&one.name, 2 * SECOND).unwrap();
        clocks.take(&one.name, 1, exchange(3 * SECOND, SECOND), 0).unwrap();
        assert_eq!(clocks.error_ns(), None);
        let why = clocks.take(&one.name, 8, exchange(4 * SECOND, 0), 0).unwrap_err();
        assert!(why.contains("started again"), "{why}");
    }
}
