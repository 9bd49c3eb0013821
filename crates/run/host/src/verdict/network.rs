//! Limits of the network stack: accept queues of origins, socket memory, retransmissions.

use assay_measurement::doubt::Reason;
use assay_record::run::BedInfo;

use super::evidence::{JudgedRun, PhaseEvidence, ThreadSum, WatchedRole, share};
use super::finding::{Finding, format_percent};
use super::limits::{
    ACCEPT_QUEUE_SHARE, DROPPED_KNOWN, RETRANSMITTED_KNOWN, RETRANSMITTED_SERIOUS, SEGMENTS_COUNT,
};

/// Findings of every phase.
pub fn findings(run: &JudgedRun<'_>) -> Vec<Finding> {
    let checks = [accept_backlog, memory_pressure, dropped];
    let mut found: Vec<Finding> =
        run.phases().flat_map(|(index, phase)| checks.map(|check| check(index, phase))).flatten().collect();
    // Retransmissions are expected if links lose packets on purpose.
    if !run.info.bed.as_ref().is_some_and(drops_packets) {
        found.extend(run.phases().filter_map(|(index, phase)| retransmitted(index, phase)));
    }
    found
}

fn drops_packets(bed: &BedInfo) -> bool {
    let lost = bed
        .links
        .iter()
        .flat_map(|link| &link.directions)
        .any(|direction| direction.lost + direction.queue_full > 0);
    lost || bed.links.iter().any(|link| link.settings.contains("loss=") || link.settings.contains("rate="))
}

fn machine_finding(reason: Reason, index: u16, serious: bool, weight: f64, seen: String) -> Finding {
    Finding { reason, serious, role: "", phase: Some(index), weight, at_ms: None, seen }
}

/// Checks the origins only: a full queue of the target is the target's behaviour.
fn accept_backlog(index: u16, phase: &PhaseEvidence) -> Option<Finding> {
    let origins = phase.threads.iter().filter(|((role, _), _)| *role == WatchedRole::Origins);
    let fullest =
        |a: &ThreadSum, b: &ThreadSum| a.accept_queue.fullness().total_cmp(&b.accept_queue.fullness());
    let (_, thread) = origins.max_by(|(_, a), (_, b)| fullest(a, b))?;
    let queue = thread.accept_queue;
    let overflows = phase.network.listen_overflows;
    let fullness = queue.fullness();
    if fullness < 1.0 && !(fullness >= ACCEPT_QUEUE_SHARE && overflows > 0) {
        return None;
    }
    let (waiting, limit) = (queue.length, queue.limit);
    let mut seen = format!("{waiting} connections waited to be accepted by origins, and {limit} may");
    if overflows > 0 {
        seen = format!("{seen}; {overflows} on this machine found a full queue");
    }
    Some(Finding {
        reason: Reason::AcceptBacklog,
        serious: true,
        role: WatchedRole::Origins.name(),
        phase: Some(index),
        weight: fullness + overflows as f64,
        at_ms: Some(queue.at_ms),
        seen,
    })
}

fn memory_pressure(index: u16, phase: &PhaseEvidence) -> Option<Finding> {
    let times = phase.network.memory_pressures;
    let seen = format!("TCP came under memory pressure {times} times");
    (times > 0).then(|| machine_finding(Reason::SocketMemory, index, true, times as f64, seen))
}

fn dropped(index: u16, phase: &PhaseEvidence) -> Option<Finding> {
    let dropped = phase.network.backlog_drops + phase.network.receive_drops;
    let weight = share(dropped, phase.network.segments_out);
    let seen =
        format!("sockets dropped {dropped} segments that had arrived, {} of all", format_percent(weight));
    (dropped >= SEGMENTS_COUNT && weight >= DROPPED_KNOWN)
        .then(|| machine_finding(Reason::SocketMemory, index, false, weight, seen))
}

/// Does not count retransmissions after drops by listeners, which a target with a full queue causes.
fn retransmitted(index: u16, phase: &PhaseEvidence) -> Option<Finding> {
    let again = phase.network.retransmitted.saturating_sub(phase.network.listen_drops);
    let weight = share(again, phase.network.segments_out);
    let seen =
        format!("{again} TCP segments were sent again on this machine, {} of all", format_percent(weight));
    (again >= SEGMENTS_COUNT && weight >= RETRANSMITTED_KNOWN).then(|| {
        machine_finding(Reason::Retransmissions, index, weight >= RETRANSMITTED_SERIOUS, weight, seen)
    })
}

#[cfg(test)]
mod tests {
    use assay_measurement::health::{NetworkInterval, ThreadInterval};

    use super::*;
    use crate::verdict::testing::{Run, used};

    fn doubts_of(network: NetworkInterval, queue: u32) -> Vec<(Reason, bool)> {
        let mut run = Run::new(&["a"]);
        run.thread(
            "origins",
            ThreadInterval { accept_queue: queue, accept_queue_limit: 100, ..used(1000, 0) },
        );
        run.network(network);
        run.judge().iter().map(|doubt| (doubt.reason, doubt.serious)).collect()
    }

    fn counted(change: impl FnOnce(&mut NetworkInterval)) -> NetworkInterval {
        let mut network = NetworkInterval { segments_out: 100_000, ..NetworkInterval::default() };
        change(&mut network);
        network
    }

    #[test]
    fn a_full_accept_queue_is_the_origins_only_if_it_is_theirs() {
        let overflows = || counted(|network| network.listen_overflows = 50);
        assert_eq!(doubts_of(counted(|_| ()), 99), []);
        assert_eq!(doubts_of(counted(|_| ()), 100), [(Reason::AcceptBacklog, true)]);
        assert_eq!(doubts_of(overflows(), 90), [(Reason::AcceptBacklog, true)]);
        assert_eq!(doubts_of(overflows(), 89), [], "the proxy's own affair");
    }

    #[test]
    fn memory_pressure_is_serious_and_drops_are_worth_knowing() {
        assert_eq!(
            doubts_of(counted(|network| network.memory_pressures = 1), 0),
            [(Reason::SocketMemory, true)]
        );
        assert_eq!(doubts_of(counted(|network| network.receive_drops = 99), 0), []);
        assert_eq!(
            doubts_of(counted(|network| network.backlog_drops = 100), 0),
            [(Reason::SocketMemory, false)]
        );
    }

    #[test]
    fn retransmissions_count_where_they_matter() {
        let again = |count, drops| {
            doubts_of(counted(|network| (network.retransmitted, network.listen_drops) = (count, drops)), 0)
        };
        assert_eq!(again(99, 0), []);
        assert_eq!(again(100, 0), [(Reason::Retransmissions, false)]);
        assert_eq!(again(1000, 0), [(Reason::Retransmissions, true)]);
        assert_eq!(again(1000, 950), [], "connection attempts that a busy target dropped");
        let few = NetworkInterval { segments_out: 100, retransmitted: 9, ..NetworkInterval::default() };
        assert_eq!(doubts_of(few, 0), [], "an accident");
    }
}
