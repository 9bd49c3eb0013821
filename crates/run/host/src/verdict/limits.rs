//! The values from which on something counts. Every threshold of the judge, with its reason; the reference page prints the
//! table at the end.

use std::fmt::Write;

use assay_measurement::doubt::Reason;

use super::finding::{percent, time};

/// A thread that stood still for so long disturbs its phase seriously. Timers of robots and origins are served late by 10 ms
/// and more on a busy machine now and then; a tenth of a second is no accident of scheduling, and every response and every
/// due request of that time is touched.
pub const STALL_SERIOUS_US: u64 = 100_000;
/// Shorter stalls (10 ms and more) are worth knowing when together they take up this share of a phase: then one request in a
/// hundred met one, and the 99th percentile holds it.
pub const STALLS_SHARE: f64 = 0.01;

/// Lateness may be this share of the median response time: it is inside response time, and a tenth of it is what one would
/// see in a comparison.
pub const LATE_SHARE: f64 = 0.1;
/// But no lateness below this is held against a run: 1 ms is what the pacing of this design promises on any machine.
pub const LATE_FLOOR_US: u64 = 1_000;
/// And none above this is forgiven, however slow the target is: the load is not the schedule's any more.
pub const LATE_CEILING_US: u64 = 100_000;
/// The percentile of lateness that is looked at.
pub const LATE_QUANTILE: f64 = 0.99;
/// At least so many requests must be that late: a single accident is no pattern, also where the 99th percentile of a few
/// requests is their maximum.
pub const LATE_COUNT: u64 = 5;

/// Share of requests that Assay itself came to too late (after their phase) above which the schedule was not kept.
pub const UNSENT_LATE_SHARE: f64 = 0.001;

/// Share of the times that a thread's timer was due at which it may be served later than lateness may be: above, whatever
/// comes for this thread (a request that is due, a response that has arrived) waits as long as often.
pub const LAG_SHARE: f64 = 0.01;
/// Share of the time that a thread must have waited for a processor, if that is to be why its timer was served late.
pub const WAITED_SHARE: f64 = 0.01;
/// Share of a processor that others must have had, if a thread is to have waited for them. The kernel counts this in ticks,
/// which is rough; what robots and origins had themselves is known exactly.
pub const OTHERS_SHARE: f64 = 0.2;
/// Share of the time that a thread wanted to run in which others may keep it waiting: above, all it does takes a quarter
/// longer than it would.
pub const KEPT_WAITING_SHARE: f64 = 0.2;
/// Shorter waits than this are only worth knowing: a hypervisor delays wake-ups by some 50 µs when its own machine is busy,
/// and nobody here can help that. Longer ones cost a request, which meets a few of them, more than a cache takes to respond.
pub const KEPT_WAITING_SERIOUS_US: u64 = 100;
/// How long each of those waits may be, as a share of the median response time: the same as for lateness.
pub const ADDED_SHARE: f64 = LATE_SHARE;

/// A thread that was running or ready to run for this share of a phase had no time left.
pub const SATURATED_SHARE: f64 = 0.95;
/// What robots and origins must have of their processor themselves, if waiting for it is to be called their own doing.
pub const OWN_SHARE: f64 = 0.85;

/// An accept queue that is this full, while the machine counts connections that found a full one, was the full one.
pub const ACCEPT_QUEUE_SHARE: f64 = 0.9;

/// Share of segments sent again that is worth knowing: each costs a response 200 ms and more, so the 99.9th percentile may
/// hold it.
pub const RETRANSMITTED_KNOWN: f64 = 0.001;
/// Share of segments sent again from which on the 99th percentile may be made of it.
pub const RETRANSMITTED_SERIOUS: f64 = 0.01;
/// Share of segments that were dropped by sockets that is worth knowing.
pub const DROPPED_KNOWN: f64 = 0.001;
/// At least so many segments must be touched: fewer are an accident.
pub const SEGMENTS_COUNT: u64 = 10;

/// Share of the processors' time taken by the hypervisor that is worth knowing.
pub const STEAL_KNOWN: f64 = 0.005;
/// Share of the same that is serious: rates and times of a processor-bound target are off by as much.
pub const STEAL_SERIOUS: f64 = 0.05;

/// A bare timer that is this late (99th percentile) before the run.
pub const UNQUIET_US: u64 = 1_000;

/// Share of what the machine was calibrated to offer that a run may use before it is worth knowing.
pub const NEAR_LIMIT_SHARE: f64 = 0.8;

/// How a reason is looked for, as text.
#[derive(Clone)]
struct Rule {
    reason: Reason,
    /// What is looked at.
    looked_at: &'static str,
    /// From which value on it is worth knowing; empty: never.
    known: String,
    /// From which value on it is serious; empty: never.
    serious: String,
}

fn rule(reason: Reason, looked_at: &'static str, known: String, serious: String) -> Rule {
    Rule { reason, looked_at, known, serious }
}

/// The limit of lateness, as text.
fn late_words() -> String {
    format!(
        "{} of the phase's median response time, but at least {} and at most {}",
        percent(LATE_SHARE),
        time(LATE_FLOOR_US),
        time(LATE_CEILING_US)
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
            format!("all stalls together take up {} of a phase", percent(STALLS_SHARE)),
            format!("one of {}", time(STALL_SERIOUS_US)),
        ),
        rule(
            Reason::Starved,
            "time that a thread was ready to run and had no processor, how late its timer was served, and what others \
             had of its processor (`threads.parquet`, `processors.parquet`)",
            format!(
                "others had {} of the processor of a thread, which waited for {} of the time that it wanted to run, for {} \
                 of the median response time each time",
                percent(OTHERS_SHARE),
                percent(KEPT_WAITING_SHARE),
                percent(ADDED_SHARE)
            ),
            format!(
                "the same with {} each time; or the timer served later than lateness may be in {} of all cases \
                 ({LATE_COUNT} at least), by a thread that waited for {} of the time",
                time(KEPT_WAITING_SERIOUS_US),
                percent(LAG_SHARE),
                percent(WAITED_SHARE)
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
                percent(SATURATED_SHARE),
                percent(SATURATED_SHARE),
                percent(OWN_SHARE)
            ),
        ),
        rule(
            Reason::Late,
            "lateness of requests, and of the ends of think times: the 99th percentile of a phase, but no fewer than \
             the five latest",
            format!("{}, where that is less than the limit", time(LATE_FLOOR_US)),
            late_words(),
        ),
        rule(
            Reason::UnsentLate,
            "requests that Assay came to more than 100 ms after their phase (`unsent_late`), of all that were due",
            String::new(),
            percent(UNSENT_LATE_SHARE),
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
                percent(ACCEPT_QUEUE_SHARE)
            ),
        ),
        rule(
            Reason::SocketMemory,
            "how often TCP came under memory pressure, and segments that sockets dropped (`TCPBacklogDrop`, \
             `RcvPruned`, `TCPRcvQDrop`), of all that were sent on this machine",
            format!("{} dropped, {SEGMENTS_COUNT} or more", percent(DROPPED_KNOWN)),
            "memory pressure, once".into(),
        ),
        rule(
            Reason::Retransmissions,
            "TCP segments sent again, of all that were sent on this machine; those that follow a dropped connection \
             attempt are left out",
            format!("{}, {SEGMENTS_COUNT} or more", percent(RETRANSMITTED_KNOWN)),
            format!("{}, {SEGMENTS_COUNT} or more", percent(RETRANSMITTED_SERIOUS)),
        ),
        rule(
            Reason::Stolen,
            "processor time taken by the hypervisor, of all processors",
            percent(STEAL_KNOWN),
            percent(STEAL_SERIOUS),
        ),
        rule(
            Reason::Unquiet,
            "how late a bare timer was in each thread before the run: the 99th percentile",
            time(UNQUIET_US),
            none(),
        ),
        rule(
            Reason::NearLimit,
            "requests per second in the busiest phase, of what this machine was calibrated to offer",
            percent(NEAR_LIMIT_SHARE),
            none(),
        ),
    ]
}

/// Every reason as Markdown, worst first. The reference page holds this text.
pub fn reasons_as_markdown() -> String {
    let rules = rules();
    let mut text = String::new();
    for reason in Reason::ALL {
        // Writing to a string cannot fail.
        let _ = write!(
            text,
            "### {}\n\nBlame: {}. It matters because {}.\n\n",
            reason.name(),
            reason.blame().name(),
            reason.why()
        );
        for rule in rules.iter().filter(|rule| rule.reason == reason) {
            let _ = writeln!(text, "- Looked at: {}.", rule.looked_at);
            for (what, from) in [("Worth knowing", &rule.known), ("Serious", &rule.serious)] {
                if !from.is_empty() {
                    let _ = writeln!(text, "- {what} from: {from}.");
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
        assert_eq!(ruled, Reason::ALL);
        assert!(rules().iter().all(|rule| !(rule.known.is_empty() && rule.serious.is_empty())));
    }
}
