//! Model of a link, pure: packets and their times in, fates out.
//!
//! A packet first waits for the rate, in a queue of limited bytes (or is dropped at its tail); then it is on the wire, where
//! the loss plan may lose it; then it is delayed, without overtaking an earlier packet.

use assay_base::random::{STEP, finalize, unit_of};

use crate::link::settings::LinkSettings;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PacketFate {
    /// Leaves at the other end at this time, on the clock of its arrival.
    Departs { at_ns: u64 },
    /// Lost by the loss plan.
    Lost,
    /// Dropped at a full queue.
    QueueFull,
}

/// The lost packets of one direction, by their number (from 0) among those on the wire. A function of the seed, so that
/// losses can be checked afterwards.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LossPlan {
    seed: u64,
    share: f64,
}

impl LossPlan {
    /// The plan of a direction (0 or 1) of a link with this seed.
    pub fn new(settings: &LinkSettings, seed: u64, direction: u8) -> Self {
        Self { seed: finalize(seed ^ (0x10_55 + u64::from(direction))), share: settings.loss }
    }

    pub fn is_lost(&self, n: u64) -> bool {
        self.share > 0.0 && uniform(self.seed, n) < self.share
    }

    /// Number of lost packets among the first `packets`.
    pub fn lost_among(&self, packets: u64) -> u64 {
        if self.share > 0.0 { (0..packets).filter(|n| self.is_lost(*n)).count() as u64 } else { 0 }
    }
}

/// One direction of a link.
#[derive(Debug, Clone)]
pub struct LinkModel {
    delay_ns: u64,
    jitter_ns: u64,
    jitter_seed: u64,
    loss_plan: LossPlan,
    rate: Option<RateLimiter>,
    wire: u64,
    last_departure_ns: u64,
    last_arrival_ns: u64,
}

/// Serialisation at a rate, with a queue.
#[derive(Debug, Clone)]
struct RateLimiter {
    bits_per_s: u64,
    queue_bytes: u64,
    /// Time at which the last accepted bit is sent.
    idle_at_ns: u64,
    /// Rounding remainder of `idle_at_ns`, in bits × 10⁹; below the rate.
    carry: u128,
}

impl LinkModel {
    /// A direction (0 or 1) of a link with this seed.
    pub fn new(settings: &LinkSettings, seed: u64, direction: u8) -> Self {
        let ns = |duration: std::time::Duration| u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX);
        Self {
            delay_ns: ns(settings.delay),
            jitter_ns: ns(settings.jitter.min(settings.delay)),
            jitter_seed: finalize(seed ^ (0x71_77E6 + u64::from(direction))),
            loss_plan: LossPlan::new(settings, seed, direction),
            rate: settings.rate_bits_per_s.map(|bits_per_s| RateLimiter {
                bits_per_s: bits_per_s.max(1),
                queue_bytes: settings.queue_bytes(),
                idle_at_ns: 0,
                carry: 0,
            }),
            wire: 0,
            last_departure_ns: 0,
            last_arrival_ns: 0,
        }
    }

    /// Decides on a packet that arrives. Treats a time before that of the last packet as equal to it.
    pub fn send(&mut self, now_ns: u64, bytes: u32) -> PacketFate {
        let now_ns = now_ns.max(self.last_arrival_ns);
        self.last_arrival_ns = now_ns;
        let sent_ns = match &mut self.rate {
            None => now_ns,
            Some(rate) => match rate.accept(now_ns, u64::from(bytes)) {
                Some(sent_ns) => sent_ns,
                None => return PacketFate::QueueFull,
            },
        };
        let n = self.wire;
        self.wire += 1;
        if self.loss_plan.is_lost(n) {
            return PacketFate::Lost;
        }
        let at_ns = sent_ns.saturating_add(self.delay_of(n)).max(self.last_departure_ns);
        self.last_departure_ns = at_ns;
        PacketFate::Departs { at_ns }
    }

    /// Packets on the wire so far: all but those dropped at the queue.
    pub fn wire_packets(&self) -> u64 {
        self.wire
    }

    fn delay_of(&self, n: u64) -> u64 {
        if self.jitter_ns == 0 {
            return self.delay_ns;
        }
        let spread = 2.0 * self.jitter_ns as f64 * uniform(self.jitter_seed, n);
        self.delay_ns - self.jitter_ns + spread as u64
    }
}

impl RateLimiter {
    /// Time at which the last bit of a packet is sent; none if the queue is full.
    fn accept(&mut self, now_ns: u64, bytes: u64) -> Option<u64> {
        if self.idle_at_ns <= now_ns {
            (self.idle_at_ns, self.carry) = (now_ns, 0);
        } else {
            let waiting_bits =
                u128::from(self.idle_at_ns - now_ns) * u128::from(self.bits_per_s) / 1_000_000_000;
            if waiting_bits / 8 + u128::from(bytes) > u128::from(self.queue_bytes) {
                return None;
            }
        }
        let work = u128::from(bytes) * 8 * 1_000_000_000 + self.carry;
        let rate = u128::from(self.bits_per_s);
        self.idle_at_ns = self.idle_at_ns.saturating_add(u64::try_from(work / rate).unwrap_or(u64::MAX));
        self.carry = work % rate;
        Some(self.idle_at_ns)
    }
}

/// A uniform variable in `[0, 1)`.
fn uniform(seed: u64, n: u64) -> f64 {
    unit_of(finalize(seed.wrapping_add(n.wrapping_mul(STEP))))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use proptest::prelude::*;

    use super::*;

    fn any_settings() -> impl Strategy<Value = LinkSettings> {
        (
            0_u64..100_000,
            0_u64..100_000,
            0.0_f64..0.5,
            prop::option::of(1000_u64..1_000_000_000),
            prop::option::of(1500_u64..200_000),
        )
            .prop_map(|(delay, jitter, loss, rate, queue)| LinkSettings {
                delay: Duration::from_micros(delay),
                jitter: Duration::from_micros(jitter.min(delay)),
                loss,
                rate_bits_per_s: rate,
                queue_bytes: queue.filter(|_| rate.is_some()),
            })
    }

    /// Gaps in nanoseconds and sizes.
    fn any_packets() -> impl Strategy<Value = Vec<(u64, u32)>> {
        prop::collection::vec((0_u64..2_000_000, 20_u32..1500), 1..300)
    }

    fn fates(settings: &LinkSettings, seed: u64, packets: &[(u64, u32)]) -> Vec<(u64, u32, PacketFate)> {
        let mut model = LinkModel::new(settings, seed, 0);
        let mut now_ns = 1_000_000_000;
        let one = |(gap_ns, bytes): &(u64, u32)| {
            now_ns += gap_ns;
            (now_ns, *bytes, model.send(now_ns, *bytes))
        };
        packets.iter().map(one).collect()
    }

    fn departures(fates: &[(u64, u32, PacketFate)]) -> Vec<(u64, u64, u32)> {
        let departs = |(now, bytes, fate): &(u64, u32, PacketFate)| match fate {
            PacketFate::Departs { at_ns } => Some((*now, *at_ns, *bytes)),
            _ => None,
        };
        fates.iter().filter_map(departs).collect()
    }

    proptest! {
        #[test]
        fn packets_keep_their_order_and_none_is_early(settings in any_settings(), packets in any_packets()) {
            let out = departures(&fates(&settings, 1, &packets));
            prop_assert!(out.is_sorted_by_key(|(_, at_ns, _)| *at_ns));
            let least = (settings.delay - settings.jitter).as_nanos() as u64;
            prop_assert!(out.iter().all(|(now, at, _)| *at >= now + least));
        }

        #[test]
        fn without_a_rate_none_is_later_than_delay_and_jitter_allow(
            settings in any_settings(), packets in any_packets(),
        ) {
            let settings = LinkSettings { rate_bits_per_s: None, queue_bytes: None, ..settings };
            let most = (settings.delay + settings.jitter).as_nanos() as u64;
            for (now, at, _) in departures(&fates(&settings, 1, &packets)) {
                prop_assert!(at <= now + most);
            }
        }

        #[test]
        fn exactly_the_planned_packets_are_lost(settings in any_settings(), packets in any_packets(), seed: u64) {
            let loss_plan = LossPlan::new(&settings, seed, 0);
            let all = fates(&settings, seed, &packets);
            let wire = all.iter().filter(|(.., fate)| *fate != PacketFate::QueueFull);
            let lost: Vec<bool> = wire.map(|(.., fate)| *fate == PacketFate::Lost).collect();
            let planned: Vec<bool> = (0..lost.len() as u64).map(|n| loss_plan.is_lost(n)).collect();
            prop_assert_eq!(&lost, &planned);
            let count = lost.iter().filter(|lost| **lost).count() as u64;
            prop_assert_eq!(count, loss_plan.lost_among(lost.len() as u64));
        }

        #[test]
        fn the_rate_is_never_passed_and_the_queue_never_overfull(
            settings in any_settings(), packets in any_packets(),
        ) {
            let rate = settings.rate_bits_per_s.unwrap_or(1_000_000);
            let settings = LinkSettings { rate_bits_per_s: Some(rate), jitter: Duration::ZERO, loss: 0.0, ..settings };
            let out = departures(&fates(&settings, 1, &packets));
            let delay = settings.delay.as_nanos() as u64;
            for (now, at, bytes) in &out {
                let held = (u128::from(at - delay - now) * u128::from(rate) / 8_000_000_000) as u64;
                prop_assert!(held <= settings.queue_bytes().max(u64::from(*bytes)) + 1);
            }
            // Between two departures the wire carried the later of the two, and all between them.
            let mut carried = 0;
            for window in out.windows(2) {
                carried += u128::from(window[1].2) * 8_000_000_000;
                let spent = u128::from(window[1].1 - out[0].1 + 1) * u128::from(rate);
                prop_assert!(carried <= spent, "{} bits·ns in {}", carried, spent);
            }
        }

        #[test]
        fn one_seed_gives_one_fate_and_directions_differ(settings in any_settings(), packets in any_packets()) {
            prop_assert_eq!(fates(&settings, 5, &packets), fates(&settings, 5, &packets));
            let lossy = LinkSettings { loss: 0.5, ..settings };
            let (there, back) = (LossPlan::new(&lossy, 5, 0), LossPlan::new(&lossy, 5, 1));
            prop_assert!((0..200).any(|n| there.is_lost(n) != back.is_lost(n)));
        }
    }

    #[test]
    fn a_busy_wire_delivers_its_whole_rate() {
        let settings = LinkSettings { rate_bits_per_s: Some(10_000_000), ..LinkSettings::default() };
        let mut model = LinkModel::new(&settings, 1, 0);
        let mut bytes = 0_u64;
        // 1500 bytes take 1.2 ms; one comes every millisecond, for ten seconds.
        for n in 0..10_000 {
            if let PacketFate::Departs { .. } = model.send(n * 1_000_000, 1500) {
                bytes += 1500;
            }
        }
        // Ten seconds' worth, and what still waits in the queue.
        assert!((12_500_000..=12_500_000 + 101_500).contains(&bytes), "{bytes}");
    }

    #[test]
    fn the_share_that_is_lost_is_the_one_that_was_set() {
        let settings: LinkSettings = "loss=0.05%".parse().unwrap();
        let lost: u64 = (0..8).map(|seed| LossPlan::new(&settings, seed, 1).lost_among(250_000)).sum();
        // 1000 are expected; four deviations are 126.
        assert!((874..=1126).contains(&lost), "{lost}");
    }

    #[test]
    fn a_packet_finds_room_on_an_idle_wire_however_short_the_queue() {
        let settings: LinkSettings = "rate=1Mbit/s,queue=1500B".parse().unwrap();
        let mut model = LinkModel::new(&settings, 1, 0);
        assert_eq!(model.send(0, 9000), PacketFate::Departs { at_ns: 72_000_000 });
        assert_eq!(model.send(0, 100), PacketFate::QueueFull);
        assert_eq!(
            (model.wire_packets(), model.send(72_000_000, 9000)),
            (1, PacketFate::Departs { at_ns: 144_000_000 })
        );
    }
}
