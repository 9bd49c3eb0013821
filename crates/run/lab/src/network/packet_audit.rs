//! Whether links did what they were told. Adds up what they report, and holds losses against their plan, packet by packet.

use assay_host::link::{LinkSettings, LossPlan};
use assay_measurement::doubt::{Doubt, Reason};
use assay_measurement::health::LinkInterval;
use assay_measurement::histogram::Histogram;
use assay_record::run::{BedInfo, LinkTotals};

/// A link whose packets come out so much later than they should, as a share of its delay, is another link.
const LATE_SHARE: f64 = 0.05;
/// Below this, lateness is never that much.
const LATE_US: u64 = 500;
/// A 99th percentile of lateness that a reader should know of.
const LATE_P99_US: u64 = 1000;

/// A link that does not what it was told.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum LinkError {
    #[error("{link} from {from} is no link of this run")]
    Unknown { link: String, from: String },
    #[error("the link {link} lost {lost} of {wire} packets from {from}, and its plan loses {planned}")]
    WrongLoss { link: String, from: String, lost: u64, wire: u64, planned: u64 },
}

/// One direction of a link.
#[derive(Debug)]
struct LinkDirection {
    link: String,
    from: String,
    delay_us: u64,
    plan: LossPlan,
    totals: LinkTotals,
    lateness: Histogram,
}

/// Totals of the links so far, held against their plans.
#[derive(Debug, Default)]
pub(crate) struct PacketAudit {
    directions: Vec<LinkDirection>,
}

impl PacketAudit {
    /// Of links: name, ends, settings and seed of each.
    pub(crate) fn new(links: impl Iterator<Item = (String, [String; 2], LinkSettings, u64)>) -> Self {
        let both = links.flat_map(|(link, ends, settings, seed)| {
            (0..).zip(ends).map(move |(direction, from)| LinkDirection {
                link: link.clone(),
                from: from.clone(),
                delay_us: u64::try_from(settings.delay.as_micros()).unwrap_or(u64::MAX),
                plan: LossPlan::new(&settings, seed, direction),
                totals: LinkTotals { from, ..LinkTotals::default() },
                lateness: Histogram::new(),
            })
        });
        Self { directions: both.collect() }
    }

    /// Takes an interval; says what is wrong with it.
    pub(crate) fn record(&mut self, interval: &LinkInterval) -> Result<(), LinkError> {
        let mut directions = self.directions.iter_mut();
        let direction = directions.find(|a| a.link == interval.link && a.from == interval.from);
        let Some(LinkDirection { plan, totals, lateness, .. }) = direction else {
            return Err(LinkError::Unknown { link: interval.link.clone(), from: interval.from.clone() });
        };
        let next = totals.wire..totals.wire + interval.wire;
        totals.planned_lost += next.filter(|n| plan.is_lost(*n)).count() as u64;
        totals.wire += interval.wire;
        totals.packets += interval.packets;
        totals.lost += interval.lost;
        totals.queue_full += interval.queue_full;
        totals.failed += interval.failed;
        lateness.merge_sparse(&interval.lateness);
        if totals.lost == totals.planned_lost {
            return Ok(());
        }
        Err(LinkError::WrongLoss {
            link: interval.link.clone(),
            from: interval.from.clone(),
            lost: totals.lost,
            wire: totals.wire,
            planned: totals.planned_lost,
        })
    }

    /// Doubts once all is over; `device_drops`: packets that the devices dropped.
    pub(crate) fn doubts(&self, device_drops: u64) -> Vec<Doubt> {
        let mut doubts = Vec::new();
        if device_drops > 0 {
            let message =
                format!("links were too slow to take {device_drops} packets, which their devices dropped");
            doubts.push(Doubt::serious(Reason::LabFailed, message));
        }
        for direction in &self.directions {
            let LinkDirection { link, from, delay_us, totals, lateness, .. } = direction;
            if totals.failed > 0 {
                let message =
                    format!("the link {link} could not carry {} packets from {from}", totals.failed);
                doubts.push(Doubt::serious(Reason::LabFailed, message));
            }
            let (p50_us, p99_us) = (quantile(lateness, 0.5), quantile(lateness, 0.99));
            let message = format!(
                "packets from {from} came out of the link {link} later than they should: half of them by {:.2} ms or more, \
                 one in a hundred by {:.2} ms or more",
                p50_us as f64 / 1000.0,
                p99_us as f64 / 1000.0
            );
            if p50_us > LATE_US.max((*delay_us as f64 * LATE_SHARE) as u64) {
                doubts.push(Doubt::serious(Reason::LabFailed, message));
            } else if p99_us > LATE_P99_US {
                doubts.push(Doubt::worth_knowing(Reason::LabFailed, message));
            }
        }
        doubts
    }

    /// Writes what each link carried into the record.
    pub(crate) fn write(&self, info: &mut BedInfo) {
        for link in &mut info.links {
            let own = self.directions.iter().filter(|direction| direction.link == link.name);
            let totals = own.map(|direction| LinkTotals {
                lateness_p50_us: quantile(&direction.lateness, 0.5),
                lateness_p99_us: quantile(&direction.lateness, 0.99),
                ..direction.totals.clone()
            });
            link.directions = totals.collect();
        }
    }
}

fn quantile(histogram: &Histogram, quantile: f64) -> u64 {
    histogram.quantile_us(quantile).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use assay_record::run::LinkInfo;

    use super::*;

    const ENDS: [&str; 2] = ["robots", "target"];

    fn packet_audit(settings: &str) -> PacketAudit {
        let link = ("robots-target".into(), ENDS.map(str::to_owned), settings.parse().unwrap(), 3);
        PacketAudit::new(std::iter::once(link))
    }

    fn interval(wire: u64, lost: u64, late_us: u64) -> LinkInterval {
        let mut lateness = Histogram::new();
        (0..wire - lost).for_each(|_| lateness.record(late_us));
        LinkInterval {
            link: "robots-target".into(),
            from: "robots".into(),
            packets: wire,
            wire,
            lost,
            lateness: lateness.to_sparse(),
            ..LinkInterval::default()
        }
    }

    #[test]
    fn losses_are_held_against_the_plan_wherever_intervals_end() {
        let mut packet_audit = packet_audit("loss=10%");
        let plan = LossPlan::new(&"loss=10%".parse().unwrap(), 3, 0);
        let lost = |from: u64, to: u64| (from..to).filter(|n| plan.is_lost(*n)).count() as u64;
        assert_eq!(packet_audit.record(&interval(100, lost(0, 100), 0)), Ok(()));
        assert_eq!(packet_audit.record(&interval(50, lost(100, 150), 0)), Ok(()));
        let mut info = BedInfo {
            links: vec![LinkInfo { name: "robots-target".into(), ..LinkInfo::default() }],
            ..BedInfo::default()
        };
        packet_audit.write(&mut info);
        let [robots, target] = info.links[0].directions.as_slice() else { panic!("{info:?}") };
        assert_eq!((robots.wire, robots.lost, robots.planned_lost), (150, lost(0, 150), lost(0, 150)));
        assert_eq!((target.from.as_str(), target.wire), ("target", 0));
        assert!(
            packet_audit
                .record(&interval(50, lost(150, 200) + 1, 0))
                .unwrap_err()
                .to_string()
                .contains("its plan loses")
        );
    }

    #[test]
    fn a_link_that_is_late_or_drops_packets_is_doubted() {
        let invalid = |late_us, device_drops| {
            let mut packet_audit = packet_audit("delay=20ms");
            packet_audit.record(&interval(100, 0, late_us)).unwrap();
            packet_audit.doubts(device_drops).iter().map(|doubt| doubt.serious).collect::<Vec<bool>>()
        };
        assert!(invalid(300, 0).is_empty());
        assert!(invalid(999, 0).is_empty());
        assert_eq!(invalid(1000, 5), [true]);
        assert_eq!(invalid(1100, 0), [true]);
        let mut slow = packet_audit("delay=40ms");
        slow.record(&interval(100, 0, 1500)).unwrap();
        assert!(!slow.doubts(0)[0].serious);
    }
}
