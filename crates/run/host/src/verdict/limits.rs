//! Thresholds of the judgement, each with its reason, and their description for the reference page.

use std::fmt::Write;

use assay_measurement::doubt::Reason;
use strum::VariantArray;

use super::finding::{format_percent, format_time};

/// A stall of this length disturbs its phase seriously. Timers of robots and origins are served late by 10 ms
/// and more on a busy machine now and then; a tenth of a second is no accident of scheduling, and every response and every
/// due request of that time is touched.
pub const STALL_SERIOUS_US: u64 = 100_000;
/// Shorter stalls (10 ms and more) are worth knowing if their sum is this share of a phase: then one request in a hundred met
/// one, and the 99th percentile includes it.
pub const STALLS_SHARE: f64 = 0.01;

/// Upper bound on lateness, as a share of the median response time: lateness is part of response time, and a tenth would be
/// visible in a comparison.
pub const LATE_SHARE: f64 = 0.1;
/// Lateness below this is tolerated in any case: pacing is exact to 1 ms on any machine.
pub const LATE_FLOOR_US: u64 = 1_000;
/// Lateness above this is not tolerated, however slow the target is: the load does not follow the schedule any more.
pub const LATE_CEILING_US: u64 = 100_000;
/// Quantile of lateness that is judged.
pub const LATE_QUANTILE: f64 = 0.99;
/// Least number of requests that must be that late: a single accident is no pattern, even if the 99th percentile of a few
/// requests is their maximum.
pub const LATE_COUNT: u64 = 5;

/// Share of requests that Assay did not send before the end of their phase, above which the schedule was not kept.
pub const UNSENT_LATE_SHARE: f64 = 0.001;

/// Share of the expirations of a thread's timer that may be served later than the limit of lateness: above, due requests and
/// arrived responses of the thread wait as long as often.
pub const LAG_SHARE: f64 = 0.01;
/// Least share of the time waiting for a processor that explains a timer that was served late.
pub const WAITED_SHARE: f64 = 0.01;
/// Least share of a processor that others must have used for a thread to have waited for them. The kernel counts this roughly,
/// in ticks; the use by robots and origins is known exactly.
pub const OTHERS_SHARE: f64 = 0.2;
/// Share of the time ready or running in which others may keep a thread waiting: above, all its work takes a quarter longer.
pub const KEPT_WAITING_SHARE: f64 = 0.2;
/// Mean waits below this are only worth knowing: a hypervisor on a busy machine delays wake-ups by some 50 µs, which cannot be
/// avoided. Longer ones cost a request, which meets a few of them, more than the response time of a cache.
pub const KEPT_WAITING_SERIOUS_US: u64 = 100;
/// Upper bound on the mean wait, as a share of the median response time, as for lateness.
pub const ADDED_SHARE: f64 = LATE_SHARE;

/// Share of a phase running or ready to run from which on a thread is saturated.
pub const SATURATED_SHARE: f64 = 0.95;
/// Least share of a processor used by robots and origins for waits for it to be their own doing.
pub const OWN_SHARE: f64 = 0.85;

/// Fullness of an accept queue from which on overflows of the machine are attributed to it.
pub const ACCEPT_QUEUE_SHARE: f64 = 0.9;

/// Share of retransmitted segments that is worth knowing: each delays a response by 200 ms or more, which may show in the
/// 99.9th percentile.
pub const RETRANSMITTED_KNOWN: f64 = 0.001;
/// Share of retransmitted segments that may determine the 99th percentile.
pub const RETRANSMITTED_SERIOUS: f64 = 0.01;
/// Share of segments dropped by sockets that is worth knowing.
pub const DROPPED_KNOWN: f64 = 0.001;
/// Least number of affected segments: fewer are an accident.
pub const SEGMENTS_COUNT: u64 = 10;

/// Share of stolen processor time that is worth knowing.
pub const STEAL_KNOWN: f64 = 0.005;
/// Share of stolen processor time that is serious: rates and times of a processor-bound target are off by as much.
pub const STEAL_SERIOUS: f64 = 0.05;

/// Lateness of a bare timer (99th percentile) before the run that is worth knowing.
pub const UNQUIET_US: u64 = 1_000;

/// Share of the machine's calibrated capacity from which on a run is near its limit.
pub const NEAR_LIMIT_SHARE: f64 = 0.8;

/// Description of the check for a reason.
#[derive(Clone)]
struct Rule {
    reason: Reason,
    /// Observed quantity.
    observed: &'static str,
    /// Threshold for worth knowing; empty for never.
    known: String,
    /// Threshold for serious; empty for never.
    serious: String,
}

fn rule(reason: Reason, observed: &'static str, known: String, serious: String) -> Rule {
    Rule { reason, observed, known, serious }
}

fn late_limit_text() -> String {
    format!(
        "{} of the phase's median response time, but at least {} and at most {}",
        format_percent(LATE_SHARE),
        format_time(LATE_FLOOR_US),
        format_time(LATE_CEILING_US)
    )
}

fn rules() -> Vec<Rule> {
    [rules_of_roles(), rules_of_time(), rules_of_the_machine()].concat()
}

fn rules_of_roles() -> Vec<Rule> {
    let none = String::new;
    vec![
        rule(
            Reason::RoleFailed,
            "how role processes end, what they say, and whether their last report comes",
            none(),
            "a role ends early, reports a fault, or its last report does not come".into(),
        ),
        rule(
            Reason::LabFailed,
            "what the lab had to do beside the roles",
            none(),
            "something that was planned could not be kept".into(),
        ),
        rule(
            Reason::Descriptors,
            "requests that found no free file descriptor (error `descriptors_exhausted`)",
            none(),
            "one".into(),
        ),
        rule(
            Reason::Ports,
            "requests that found no free source port (error `ports_exhausted`)",
            none(),
            "one".into(),
        ),
        rule(Reason::SamplesDropped, "samples that could not be kept", none(), "one".into()),
    ]
}

fn rules_of_time() -> Vec<Rule> {
    vec![
        rule(
            Reason::Stalled,
            "stalls of each thread: its timer was served 10 ms late or more (`stalls.parquet`)",
            format!("all stalls together take up {} of a phase", format_percent(STALLS_SHARE)),
            format!("one of {}", format_time(STALL_SERIOUS_US)),
        ),
        rule(
            Reason::Starved,
            "time that a thread was ready to run and had no processor, how late its timer was served, and what others \
             had of its processor (`threads.parquet`, `processors.parquet`)",
            format!(
                "others had {} of the processor of a thread, which waited for {} of the time that it wanted to run, for {} \
                 of the median response time each time",
                format_percent(OTHERS_SHARE),
                format_percent(KEPT_WAITING_SHARE),
                format_percent(ADDED_SHARE)
            ),
            format!(
                "the same with {} each time; or the timer served later than lateness may be in {} of all cases \
                 ({LATE_COUNT} at least), by a thread that waited for {} of the time",
                format_time(KEPT_WAITING_SERIOUS_US),
                format_percent(LAG_SHARE),
                format_percent(WAITED_SHARE)
            ),
        ),
        rule(
            Reason::Saturated,
            "share of a phase that a thread was running or ready to run, and what robots and origins had of its \
             processor",
            String::new(),
            format!(
                "{} running; or {} running or ready, or its timer served as late as for `starved`, while robots and \
                 origins had {} of the processor",
                format_percent(SATURATED_SHARE),
                format_percent(SATURATED_SHARE),
                format_percent(OWN_SHARE)
            ),
        ),
        rule(
            Reason::Late,
            "lateness of requests, and of the ends of think times: the 99th percentile of a phase, but no fewer than \
             the five latest",
            format!("{}, where that is less than the limit", format_time(LATE_FLOOR_US)),
            late_limit_text(),
        ),
        rule(
            Reason::UnsentLate,
            "requests that Assay came to more than 100 ms after their phase (`unsent_late`), of all that were due",
            String::new(),
            format_percent(UNSENT_LATE_SHARE),
        ),
    ]
}

fn rules_of_the_machine() -> Vec<Rule> {
    let none = String::new;
    vec![
        rule(
            Reason::AcceptBacklog,
            "the accept queues of the origins' listeners, and connections that found a full one \
             (`ListenOverflows`). A full queue of the target is the target's own affair",
            none(),
            format!(
                "a queue at its limit; or one at {} of it in a phase in which overflows were counted",
                format_percent(ACCEPT_QUEUE_SHARE)
            ),
        ),
        rule(
            Reason::SocketMemory,
            "how often TCP came under memory pressure, and segments that sockets dropped (`TCPBacklogDrop`, \
             `RcvPruned`, `TCPRcvQDrop`), of all that were sent on this machine",
            format!("{} dropped, {SEGMENTS_COUNT} or more", format_percent(DROPPED_KNOWN)),
            "memory pressure, once".into(),
        ),
        rule(
            Reason::Retransmissions,
            "TCP segments sent again, of all that were sent on this machine; those that follow a dropped connection \
             attempt are left out",
            format!("{}, {SEGMENTS_COUNT} or more", format_percent(RETRANSMITTED_KNOWN)),
            format!("{}, {SEGMENTS_COUNT} or more", format_percent(RETRANSMITTED_SERIOUS)),
        ),
        rule(
            Reason::Stolen,
            "processor time taken by the hypervisor, of all processors",
            format_percent(STEAL_KNOWN),
            format_percent(STEAL_SERIOUS),
        ),
        rule(
            Reason::Unquiet,
            "how late a bare timer was in each thread before the run: the 99th percentile",
            format_time(UNQUIET_US),
            none(),
        ),
        rule(
            Reason::NearLimit,
            "requests per second in the busiest phase, of what this machine was calibrated to offer",
            format_percent(NEAR_LIMIT_SHARE),
            none(),
        ),
    ]
}

/// All reasons as Markdown, worst first, for the reference page.
pub fn reasons_markdown() -> String {
    let rules = rules();
    let mut text = String::new();
    for &reason in Reason::VARIANTS {
        // Writing to a string cannot fail.
        let _ = write!(
            text,
            "### {}\n\nBlame: {}. It matters because {}.\n\n",
            reason.name(),
            reason.blame().name(),
            reason.why()
        );
        for rule in rules.iter().filter(|rule| rule.reason == reason) {
            let _ = writeln!(text, "- Looked at: {}.", rule.observed);
            for (level, threshold) in [("Worth knowing", &rule.known), ("Serious", &rule.serious)] {
                if !threshold.is_empty() {
                    let _ = writeln!(text, "- {level} from: {threshold}.");
                }
            }
        }
        let _ = write!(text, "- What to do: {}.\n\n", reason.advice());
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_reason_has_one_rule() {
        let mut ruled: Vec<Reason> = rules().iter().map(|rule| rule.reason).collect();
        ruled.sort();
        assert_eq!(ruled, Reason::VARIANTS);
        assert!(rules().iter().all(|rule| !(rule.known.is_empty() && rule.serious.is_empty())));
    }
}
