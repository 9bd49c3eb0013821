//! Health of Assay itself while the run goes on: its timers, stalls, waits for a processor, and doubts.
//!
//! Pure, and no judge: what is shown here is to be seen at once; whether it matters is decided at the end.

use std::collections::{BTreeMap, VecDeque};

use assay_measurement::doubt::Doubt;
use assay_measurement::health::{Stall, ThreadInterval};
use assay_measurement::histogram::{Histogram, SparseHistogram};

use super::words::{quantile, time_us};

/// Seconds that timer lags are taken from.
const RECENT_MS: u64 = 5_000;
/// Time for which a stall is shown before all else.
const FRESH_MS: u64 = 10_000;
/// From this share of a second on, a thread that waited for a processor is named.
const WAITED: f64 = 0.05;
/// Reports come once a second, from other machines a little later. Without one for so long, what is shown is of the past.
const SILENT_MS: u64 = 4_000;
/// Intervals shorter than this say little about shares.
const SHORTEST_MS: u64 = 200;

/// Severity of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum AlarmLevel {
    /// All is well.
    Quiet,
    /// Worth a look.
    Look,
    /// May leave numbers known only roughly, or not at all.
    Loud,
}

/// Health of Assay itself.
#[derive(Debug, Clone, Default)]
pub struct OwnHealth {
    /// The last interval of each thread, without its histogram.
    threads: BTreeMap<(String, u32), ThreadInterval>,
    /// Timer lags of the last seconds, with the start of their interval.
    lags: VecDeque<(u64, SparseHistogram)>,
    /// Until when something was reported.
    heard_ms: u64,
    /// A phase is under way, so that reports come.
    pub expects_reports: bool,
    /// The last time that a thread stood still.
    last_stall: Option<Stall>,
    /// The longest one that no line has told of yet.
    untold: Option<Stall>,
    pub stalls: u64,
    /// Serious doubts, first told first.
    pub doubts: Vec<Doubt>,
}

impl OwnHealth {
    /// Takes in how a thread did.
    pub fn thread(&mut self, interval: &ThreadInterval) {
        self.heard_ms = self.heard_ms.max(interval.start_ms + interval.length_ms);
        self.lags.push_back((interval.start_ms, interval.timer_lag.clone()));
        let newest_ms = self.lags.iter().map(|(start_ms, _)| *start_ms).max().unwrap_or_default();
        self.lags.retain(|(start_ms, _)| start_ms + RECENT_MS > newest_ms);
        if interval.length_ms >= SHORTEST_MS {
            let known = ThreadInterval { timer_lag: SparseHistogram::default(), ..interval.clone() };
            self.threads.insert((interval.role.clone(), interval.thread), known);
        }
    }

    /// Takes in that a thread stood still.
    pub fn stall(&mut self, stall: &Stall) {
        self.stalls += 1;
        self.last_stall = Some(stall.clone());
        if self.untold.as_ref().is_none_or(|known| known.length_us < stall.length_us) {
            self.untold = Some(stall.clone());
        }
    }

    /// Takes in a doubt; gives it in words.
    pub fn doubt(&mut self, doubt: &Doubt) -> String {
        let weight = if doubt.serious { "DISTURBED" } else { "worth knowing" };
        if doubt.serious {
            self.doubts.push(doubt.clone());
        }
        format!("{weight}: {} ({}, {})", doubt.seen, doubt.blame.name(), doubt.reason.name())
    }

    /// Everything up to now has been told in a line.
    pub fn reset(&mut self) {
        self.untold = None;
    }

    /// Timer lag of the last seconds.
    fn timer_lag(&self) -> Histogram {
        let mut merged = Histogram::new();
        self.lags.iter().for_each(|(_, lag)| merged.merge_sparse(lag));
        merged
    }

    /// The thread that waited most for a processor in its last interval, and which share of it.
    fn waited(&self) -> Option<(&ThreadInterval, f64)> {
        let share =
            |thread: &ThreadInterval| thread.run_delay_us as f64 / (thread.length_ms.max(1) as f64 * 1000.0);
        let shares = self.threads.values().map(|thread| (thread, share(thread)));
        shares.max_by(|a, b| a.1.total_cmp(&b.1))
    }

    fn starved(&self) -> Option<String> {
        let (thread, share) = self.waited().filter(|(_, share)| *share >= WAITED)?;
        let name = format!("{} {}", thread.role, thread.thread);
        Some(format!("STARVED: {name} waited for a processor {:.0} % of the time", share * 100.0))
    }

    /// Message that nothing is reported any more.
    fn silent(&self, now_ms: u64) -> Option<String> {
        let silent_ms = now_ms.saturating_sub(self.heard_ms);
        let is_silent = self.expects_reports && self.heard_ms > 0 && silent_ms >= SILENT_MS;
        is_silent.then(|| {
            format!("SILENT: nothing was reported for {} s; what is shown is older", silent_ms / 1000)
        })
    }

    /// Messages on the last second: silence, stalls and waits; none when all is well.
    pub fn alarms(&self, now_ms: u64) -> Vec<String> {
        if let Some(silent) = self.silent(now_ms) {
            return vec![silent];
        }
        let stalled = self.untold.as_ref().map(|stall| stalled(stall, None));
        stalled.into_iter().chain(self.starved()).collect()
    }

    /// Assay itself in one line of a screen, and how loud to say it.
    pub fn status(&self, now_ms: u64) -> (AlarmLevel, String) {
        if let [first, others @ ..] = self.doubts.as_slice() {
            let others =
                if others.is_empty() { String::new() } else { format!(" (and {} more)", others.len()) };
            return (AlarmLevel::Loud, format!("DISTURBED{others}: {}", first.seen));
        }
        if let Some(silent) = self.silent(now_ms) {
            return (AlarmLevel::Loud, silent);
        }
        let fresh = self.last_stall.as_ref().filter(|stall| now_ms < stall.at_ms + FRESH_MS);
        let stalled = fresh.map(|stall| stalled(stall, Some(now_ms)));
        if let Some(alarms) = match (stalled, self.starved()) {
            (Some(stalled), Some(starved)) => Some(format!("{stalled}; {starved}")),
            (stalled, starved) => stalled.or(starved),
        } {
            return (AlarmLevel::Loud, alarms);
        }
        let Some((_, share)) = self.waited() else { return (AlarmLevel::Quiet, String::new()) };
        let stalls = match self.stalls {
            0 => "no stall".to_owned(),
            1 => "1 stall".to_owned(),
            stalls => format!("{stalls} stalls"),
        };
        let alarm = if self.stalls > 0 { AlarmLevel::Look } else { AlarmLevel::Quiet };
        let lag = self.timer_lag();
        let lag = format!("p99 {}, max {}", quantile(&lag, 0.99), quantile(&lag, 1.0));
        (alarm, format!("Assay itself: timers late {lag}; waited {:.1} %; {stalls}", share * 100.0))
    }
}

/// `STALLED: robots 0 stood still for 304 ms, 2 s ago`.
fn stalled(stall: &Stall, now_ms: Option<u64>) -> String {
    let ago = now_ms
        .map_or_else(String::new, |now_ms| format!(", {} s ago", now_ms.saturating_sub(stall.at_ms) / 1000));
    let length = time_us(Some(stall.length_us));
    format!("STALLED: {} {} stood still for {length}{ago}", stall.role, stall.thread)
}

#[cfg(test)]
mod tests {
    use assay_measurement::doubt::Reason;

    use super::*;

    fn thread(start_ms: u64, run_delay_us: u64) -> ThreadInterval {
        let mut lag = Histogram::new();
        (1..=100).for_each(|n| lag.record(n * 3));
        ThreadInterval {
            start_ms,
            length_ms: 1000,
            role: "robots".into(),
            run_delay_us,
            timer_lag: lag.to_sparse(),
            ..ThreadInterval::default()
        }
    }

    fn stall(at_ms: u64, length_us: u64) -> Stall {
        Stall { role: "robots".into(), at_ms, length_us, ..Stall::default() }
    }

    #[test]
    fn a_quiet_second_is_said_quietly() {
        let mut own = OwnHealth::default();
        assert_eq!(own.status(0), (AlarmLevel::Quiet, String::new()));
        own.thread(&thread(0, 1000));
        let (alarm, text) = own.status(1000);
        assert_eq!(text, "Assay itself: timers late p99 0.30 ms, max 0.30 ms; waited 0.1 %; no stall");
        assert_eq!((alarm, own.alarms(1000).len()), (AlarmLevel::Quiet, 0));
    }

    #[test]
    fn figures_of_the_past_are_not_shown_as_if_they_were_of_now() {
        let mut own = OwnHealth { expects_reports: true, ..OwnHealth::default() };
        assert!(own.alarms(60_000).is_empty(), "nothing was to be reported yet");
        own.thread(&thread(8000, 410_000));
        assert!(own.alarms(12_900)[0].starts_with("STARVED"));
        let silent = "SILENT: nothing was reported for 6 s; what is shown is older";
        assert_eq!(own.alarms(15_500), [silent]);
        assert_eq!(own.status(15_500), (AlarmLevel::Loud, silent.to_owned()));
        own.thread(&thread(15_000, 0));
        assert!(own.alarms(16_500).is_empty());
        own.expects_reports = false;
        assert!(own.alarms(60_000).is_empty(), "the last phase is over");
    }

    #[test]
    fn a_stall_is_loud_at_once_and_told_once() {
        let mut own = OwnHealth::default();
        own.thread(&thread(0, 0));
        own.stall(&stall(900, 304_112));
        own.stall(&stall(1300, 11_000));
        assert_eq!(own.alarms(1000), ["STALLED: robots 0 stood still for 304 ms"]);
        own.reset();
        assert!(own.alarms(1000).is_empty());
        let loud = (AlarmLevel::Loud, "STALLED: robots 0 stood still for 11.0 ms, 2 s ago".to_owned());
        assert_eq!(own.status(3300), loud);
        own.thread(&thread(59_000, 0));
        let (alarm, text) = own.status(60_000);
        assert!(alarm == AlarmLevel::Look && text.ends_with("2 stalls"), "{text}");
    }

    #[test]
    fn a_starved_second_is_loud_and_the_next_one_is_not() {
        let mut own = OwnHealth::default();
        own.thread(&thread(0, 410_000));
        assert_eq!(own.alarms(1000), ["STARVED: robots 0 waited for a processor 41 % of the time"]);
        assert_eq!(own.status(1000).0, AlarmLevel::Loud);
        own.thread(&thread(1000, 1000));
        assert!(own.alarms(1000).is_empty());
    }

    #[test]
    fn a_doubt_stays_on_the_screen() {
        let mut own = OwnHealth::default();
        let said = own.doubt(&Doubt::serious(Reason::Ports, "75 requests found no free source port"));
        assert_eq!(said, "DISTURBED: 75 requests found no free source port (assay, ports)");
        assert_eq!(own.status(99_000).1, "DISTURBED: 75 requests found no free source port");
        own.doubt(&Doubt::worth_knowing(Reason::Unquiet, "a bare timer was late"));
        own.doubt(&Doubt::serious(Reason::Late, "late"));
        assert!(own.status(99_000).1.starts_with("DISTURBED (and 1 more): 75"));
    }

    #[test]
    fn lags_of_long_ago_are_forgotten() {
        let mut own = OwnHealth::default();
        (0..100).for_each(|second| own.thread(&thread(second * 1000, 0)));
        assert_eq!(own.lags.len(), 5);
    }
}
