//! Self-monitoring of a worker thread: the processor time it gets, the time it waits for a processor, how late its timer is
//! served, its stalls, and its accept queues.
//!
//! A [`ThreadMonitor`] belongs to one worker. Its tick ([`TICK_NS`]) bounds what a stall can be mistaken for; what it saw is
//! reported with every cut.
//!
//! # Time
//!
//! *Pacing.* Each worker thread of robots and origins has one timer: absolute deadlines in a heap, one `timerfd`; the thread that the timer
//! wakes writes the request itself. Deadlines come from the schedule only, so one late request does not make others late. Optionally the thread
//! polls for a while before a deadline (`--spin`), and runs with real-time priority (`--realtime`). All timed events use it: launches, cuts,
//! think times, pauses, time-outs.
//!
//! *Lateness* is `sent − max(due, ready)`, measured for every xact. It is Assay's own delay.
//!
//! *Self-monitoring.* A worker records, once a second: its processor time, how long it was ready to run and had no
//! processor (`/proc/self/task/…/schedstat`), how late its timer was served (*timer lag*, each time it woke), and, for
//! origins, how many connections waited to be accepted. A timer lag of 10 ms or more is a *stall*, reported immediately with
//! the activity of the thread: it was busy, it waited for a processor, or neither (the process or the machine was
//! stopped). Before `Ready`, each worker measures a *baseline*: how late a bare timer is on its own processor. The lab adds,
//! once a second, the resource usage of processes and the machine, losses in the network stack, and steal time.

mod accept_queue;
mod baseline;
mod usage;

use std::rc::Rc;

use assay_measurement::health::{Stall, ThreadInterval};
use tokio::net::TcpListener;

use self::accept_queue::AcceptQueues;
pub use self::baseline::measure;
pub use self::usage::{SchedulerUsage, SchedulerUsageMeter};
use assay_net::timer::lag::LagRecorder;
use assay_net::worker::Yielder;
use assay_protocol::clock::RunClock;

/// Interval of a worker's checks of itself.
pub const TICK_NS: u64 = 20_000_000;
/// A role that starts its workers has all of them by then: they begin to measure a bare timer at the same time.
pub const BASELINE_LEAD_NS: u64 = 5_000_000;
/// Stalls reported in an interval; after that, only longer ones.
const STALLS_REPORTED: u32 = 8;

/// Instant of the tick that follows the one of `at_ns`. Ticks that are over are left out, and none is moved.
pub fn next_tick_ns(at_ns: u64, now_ns: u64) -> u64 {
    at_ns + (now_ns.saturating_sub(at_ns) / TICK_NS + 1) * TICK_NS
}

/// Identity of a worker in records.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Identity {
    /// `robots` or `origins`.
    pub role: &'static str,
    /// Number within the role.
    pub thread: u32,
    /// The processor it is pinned to.
    pub cpu: Option<u32>,
}

/// Checks that a worker makes of itself on each tick.
#[derive(Debug)]
pub struct SelfCheck {
    /// None: the run has not begun, or is not monitored.
    pub monitor: Option<ThreadMonitor>,
    /// Keeps a real-time thread from shutting others out.
    pub breather: Yielder,
}

/// Processor time, delays and stalls of one worker thread.
#[derive(Debug)]
pub struct ThreadMonitor {
    identity: Identity,
    clock: RunClock,
    meter: SchedulerUsageMeter,
    queues: AcceptQueues,
    /// At the last tick.
    last_usage: SchedulerUsage,
    /// Beginning of the interval in milliseconds since the start, and the usage then.
    interval_start: Option<(u64, SchedulerUsage)>,
    reported: u32,
    longest_reported_ns: u64,
}

impl ThreadMonitor {
    /// Monitors the calling thread, in a run that starts by `clock`. From then on `account` counts.
    pub fn begin(identity: Identity, clock: RunClock, account: &mut LagRecorder) -> Self {
        let mut meter = SchedulerUsageMeter::of_this_thread();
        account.begin(clock.start_ns);
        let last_usage = meter.read();
        let queues = AcceptQueues::default();
        Self {
            identity,
            clock,
            meter,
            queues,
            last_usage,
            interval_start: None,
            reported: 0,
            longest_reported_ns: 0,
        }
    }

    /// Looks at these sockets too.
    pub fn listeners(mut self, listeners: Vec<Rc<TcpListener>>) -> Self {
        self.queues = AcceptQueues::new(listeners);
        self
    }

    /// Call every [`TICK_NS`], the first time at the start of the run. Gives the stalls since the last call.
    pub fn tick(&mut self, now_ns: u64, account: &mut LagRecorder) -> Vec<Stall> {
        let before = std::mem::replace(&mut self.last_usage, self.meter.read());
        if self.interval_start.is_none() {
            self.interval_start = Some((self.clock.since_start_us(now_ns) / 1_000, self.last_usage));
        }
        let standstills = account.take_stalls();
        if standstills.is_empty() {
            return Vec::new();
        }
        self.queues.sample();
        let used = self.last_usage.since(&before);
        let mut stalls = Vec::new();
        for standstill in standstills {
            let length_ns = standstill.length_ns();
            // A machine that stalls all the time would report nothing else.
            if self.reported >= STALLS_REPORTED && length_ns <= self.longest_reported_ns {
                continue;
            }
            self.reported += 1;
            self.longest_reported_ns = self.longest_reported_ns.max(length_ns);
            let length_us = length_ns / 1_000;
            // From tick to tick is a little longer than the stall.
            let cpu_us = (used.cpu_ns / 1_000).min(length_us);
            stalls.push(Stall {
                role: self.identity.role.to_owned(),
                thread: self.identity.thread,
                at_ms: self.clock.since_start_us(standstill.from_ns) / 1_000,
                length_us,
                cpu_us,
                run_delay_us: (used.run_delay_ns / 1_000).min(length_us - cpu_us),
            });
        }
        stalls
    }

    /// Ends an interval and returns its measurements; `None` while it has no length.
    pub fn end_interval(
        &mut self,
        now_ns: u64,
        phase: u16,
        account: &mut LagRecorder,
    ) -> Option<ThreadInterval> {
        let (start_ms, before) = self.interval_start?;
        let (now_ms, usage) = (self.clock.since_start_us(now_ns) / 1_000, self.meter.read());
        if now_ms <= start_ms {
            return None;
        }
        self.queues.sample();
        let accept_queue = self.queues.take();
        self.interval_start = Some((now_ms, usage));
        (self.reported, self.longest_reported_ns) = (0, 0);
        let used = usage.since(&before);
        let timer_lag = account.take_lags();
        Some(ThreadInterval {
            start_ms,
            length_ms: now_ms - start_ms,
            phase,
            role: self.identity.role.to_owned(),
            thread: self.identity.thread,
            cpu: self.identity.cpu,
            cpu_us: used.cpu_ns / 1_000,
            run_delay_us: used.run_delay_ns / 1_000,
            slices: used.slices,
            longest_lag_us: timer_lag.max_us,
            timer_lag,
            accept_queue: accept_queue.waiting,
            accept_queue_limit: accept_queue.limit,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    #[test]
    fn ticks_do_not_drift() {
        for (now_ms, next_ms) in [(100, 120), (103, 120), (119, 120), (120, 140), (471, 480)] {
            assert_eq!(next_tick_ns(100 * MS, now_ms * MS + 7), next_ms * MS, "{now_ms}");
        }
    }

    const IDENTITY: Identity = Identity { role: "robots", thread: 3, cpu: Some(1) };

    fn watch() -> (ThreadMonitor, LagRecorder) {
        let mut account = LagRecorder::default();
        let clock = RunClock { start_ns: 1_000 * MS, start_unix_s: 0 };
        (ThreadMonitor::begin(IDENTITY, clock, &mut account), account)
    }

    #[test]
    fn an_interval_begins_where_the_last_one_ended() {
        let (mut watch, mut account) = watch();
        assert_eq!(watch.end_interval(1_100 * MS, 0, &mut account), None, "it has not begun");
        assert!(watch.tick(1_004 * MS, &mut account).is_empty());
        account.record_served(1_500 * MS, 1_503 * MS);
        let seen = [(2_001, 0), (2_500, 1), (2_500, 1)]
            .map(|(at, phase)| watch.end_interval(at * MS, phase, &mut account));
        let places: Vec<_> =
            seen.iter().flatten().map(|i| (i.start_ms, i.length_ms, i.phase, i.longest_lag_us)).collect();
        assert_eq!(places, [(4, 997, 0, 3_000), (1_001, 499, 1, 0)]);
        let first = seen[0].as_ref().expect("is there");
        assert_eq!((first.role.as_str(), first.thread, first.cpu), ("robots", 3, Some(1)));
    }

    #[test]
    fn a_stall_has_its_time_and_says_what_the_thread_did() {
        let (mut watch, mut account) = watch();
        watch.tick(1_000 * MS, &mut account);
        account.record_served(1_300 * MS, 1_600 * MS);
        let stalls = watch.tick(1_600 * MS, &mut account);
        assert_eq!((stalls.len(), stalls[0].at_ms, stalls[0].length_us), (1, 300, 300_000));
        assert!(stalls[0].cpu_us < 300_000, "this test does not compute so long");
        assert!(watch.tick(1_620 * MS, &mut account).is_empty(), "once is enough");
    }

    #[test]
    fn a_second_full_of_stalls_is_not_reported_in_full() {
        let (mut watch, mut account) = watch();
        watch.tick(1_000 * MS, &mut account);
        let mut reported = Vec::new();
        for at in 0..20 {
            let from_ms = 1_100 + at * 40;
            let length_ms = if at == 15 { 30 } else { 20 };
            account.record_served(from_ms * MS, (from_ms + length_ms) * MS);
            reported.extend(watch.tick((from_ms + length_ms) * MS, &mut account));
        }
        assert_eq!((reported.len(), reported[8].length_us), (9, 30_000));
        watch.end_interval(2_000 * MS, 0, &mut account);
        account.record_served(2_010 * MS, 2_020 * MS);
        assert_eq!(watch.tick(2_020 * MS, &mut account).len(), 1);
    }
}
