//! Tables and facts of how well Assay itself did.

use serde::Serialize;

use super::health::{Health, Lags, StallCause, StallHealth};
use super::text::whole_percent;
use crate::document::{CalibrationUse, Summary};
use crate::format::{NOTHING, bytes, count, date, moment_ms, number, percent, time_ms};
use crate::page::{Fact, RowView, TableView, fact};

/// Stalls that are listed; the chart shows them all.
const MOST_STALLS: usize = 20;

/// Share used of what the machine can offer, as a bar.
#[derive(Debug, Serialize)]
pub(crate) struct CalibrationView {
    /// `This run used 23 % of what this machine can offer for this workload.`
    pub headline: String,
    /// Source of that figure.
    pub detail: String,
    /// Width of the bar, 0 to 100.
    pub percent: f64,
    /// `good`, `doubtful` near the limit.
    pub mood: &'static str,
}

/// Share of the calibrated rate from which on the target may have been able to do more.
const NEAR: f64 = 0.8;

pub(crate) fn calibration(known: &CalibrationUse) -> Option<CalibrationView> {
    let (share, phase, rate) = (known.share?, known.phase.as_ref()?, known.rate?);
    let limit = match known.limit_seen.as_str() {
        "" => String::new(),
        seen => format!(" It went no higher: {seen}."),
    };
    Some(CalibrationView {
        headline: format!(
            "This run used {} % of what this machine can offer for this workload.",
            whole_percent(share)
        ),
        detail: format!(
            "{} responses per second in phase {phase}, of {} without a proxy, as found on {} with Assay {}.{limit}",
            number(rate),
            number(known.requests_per_s),
            date(known.made_unix_ms),
            known.assay_version,
        ),
        percent: (share * 100.0).clamp(0.0, 100.0),
        mood: if share < NEAR { "good" } else { "doubtful" },
    })
}

fn lag_cells(lags: &Lags) -> [String; 3] {
    [lags.p50, lags.p99, lags.max].map(|us| us.map_or_else(|| NOTHING.to_owned(), count))
}

/// The threads of robots and origins.
pub(crate) fn threads(health: &Health) -> Option<TableView> {
    let rows: Vec<RowView> = health
        .threads
        .iter()
        .map(|thread| {
            let cpu = thread.cpu.map_or_else(|| "any".to_owned(), |cpu| cpu.to_string());
            let longest = thread.longest_stall_us.map(|us| time_ms(us as f64 / 1000.0));
            let mut cells = vec![cpu];
            cells.extend(lag_cells(&thread.baseline_us));
            cells.extend(lag_cells(&thread.timer_lag_us));
            cells.extend([percent(thread.processor_share), percent(thread.run_delay_share)]);
            cells.extend([count(thread.stalls), longest.unwrap_or_else(|| NOTHING.to_owned())]);
            RowView { name: format!("{} {}", thread.role, thread.thread), cells, ..RowView::default() }
        })
        .collect();
    let table = |rows| TableView {
        id: "threads-table",
        title: "Threads",
        about: "How late a bare timer was on each thread's processor before the run, and how late the thread's own \
                timer was served during it. What the second has beyond the first came with the run: from Assay's own \
                work, or from others' on the same processor.",
        first: "thread",
        groups: vec![
            ("", 1),
            ("bare timer before, µs", 3),
            ("own timer, µs", 3),
            ("processor, % of time", 2),
            ("stalls", 2),
        ],
        heads: vec![
            "processor",
            "p50",
            "p99",
            "max",
            "p50",
            "p99",
            "max",
            "used",
            "waited for",
            "number",
            "longest",
        ],
        rows,
    };
    (!rows.is_empty()).then(|| table(rows))
}

/// The longest stalls, in the order of time.
pub(crate) fn stalls(mut stalls: Vec<StallHealth>) -> Option<TableView> {
    stalls.sort_by_key(|stall| std::cmp::Reverse(stall.length_us));
    stalls.truncate(MOST_STALLS);
    stalls.sort_by_key(|stall| stall.at_ms);
    let rows: Vec<RowView> = stalls
        .iter()
        .map(|stall| RowView {
            name: moment_ms(stall.at_ms),
            cells: vec![
                stall.phase.clone().unwrap_or_else(|| NOTHING.to_owned()),
                format!("{} {}", stall.role, stall.thread),
                time_ms(stall.length_us as f64 / 1000.0),
                stall_cause_text(stall.cause).to_owned(),
            ],
            ..RowView::default()
        })
        .collect();
    let table = |rows| TableView {
        id: "stalls-table",
        title: "Stalls",
        about: "A thread whose timer was served 10 ms late or more stood still. The longest ones, in the order of \
                time.",
        first: "at",
        groups: vec![],
        heads: vec!["phase", "thread", "length", "meanwhile"],
        rows,
    };
    (!rows.is_empty()).then(|| table(rows))
}

fn stall_cause_text(cause: StallCause) -> &'static str {
    match cause {
        StallCause::Busy => "it was busy",
        StallCause::NoProcessor => "it waited for a processor",
        StallCause::Stopped => "the process or the machine was stopped",
    }
}

/// Peaks and sums that have no chart of their own.
pub(crate) fn facts(summary: &Summary) -> Vec<Fact> {
    let health = &summary.health;
    let mut facts = Vec::new();
    let share = |value: Option<f64>| value.map(|share| format!("{} %", whole_percent(share)));
    if let Some(share) = share(health.processor_share) {
        facts.push(fact("Used by robots and origins", format!("{share} of their processors")));
    }
    if let Some(share) = health.metering_share {
        facts.push(fact("Measuring roles and machine", format!("{:.2} % of a processor", share * 100.0)));
    }
    if let Some(share) = share(health.stolen_share) {
        facts.push(fact("Taken by the hypervisor", format!("{share} of all processors' time")));
    }
    let limit = match summary.host.descriptor_limit {
        0 => String::new(),
        limit => format!(" of {}", count(limit)),
    };
    for (role, health) in health.roles.iter().filter(|(_, health)| health.descriptors_peak > 0) {
        let name = format!("Most descriptors of {role}");
        facts.push(fact(&name, format!("{}{limit}", count(health.descriptors_peak))));
    }
    for (role, health) in &health.roles {
        if let (Some(peak), Some(limit)) = (health.accept_queue_peak, health.accept_queue_limit) {
            let name = format!("Longest accept queue of {role}");
            facts.push(fact(&name, format!("{} of {}", count(peak), count(limit))));
        }
    }
    if let Some(network) = &health.network {
        let sent_again = format!("{} of {}", count(network.retransmitted), count(network.segments_out));
        facts.push(fact("TCP segments sent again", sent_again));
        facts.push(fact("Connections dropped by listeners", count(network.listen_drops)));
        facts.push(fact("Most TCP sockets", count(network.sockets_peak)));
        facts.push(fact("Most in TIME_WAIT", count(network.time_wait_peak)));
        facts.push(fact("Most memory of TCP buffers", bytes(network.buffer_bytes_peak)));
    }
    facts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_stalls_are_listed_in_the_order_of_time() {
        let stall = |at_ms, length_us| StallHealth {
            role: "robots".into(),
            thread: 0,
            at_ms,
            length_us,
            phase: None,
            cause: StallCause::Busy,
        };
        let table = stalls((0..100).map(|n| stall(n * 1000, 10_000 + n % 50)).collect()).unwrap();
        assert_eq!(table.rows.len(), MOST_STALLS);
        assert_eq!(table.rows[0].name, "40.0 s");
        assert!(stalls(Vec::new()).is_none());
    }
}
