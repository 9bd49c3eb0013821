//! A link, checked against its settings. Measured before the run, from inside its namespaces; one that deviates is refused.

use std::net::Ipv4Addr;
use std::time::Duration;

use assay_host::link::probe::Endpoint;
use assay_host::link::{LinkSettings, Namespace, NetError, probe};
use assay_record::run::LinkTest;

/// Largest relative error of delay and rate.
const TOLERANCE: f64 = 0.05;
/// A round trip is never refused for less than this: it is what the machine's own restlessness may add.
const LEAST_US: f64 = 500.0;
/// Packets that measure the round trip.
const PACKETS: u16 = 200;
/// Bytes of such a packet, IP header included.
const PACKET_BYTES: u64 = 28;
/// Number of measurements before a link is refused. Some seconds of unrest are no reason: threads of a virtual machine can take a
/// quarter of a millisecond to wake up, and four of them do so in a round trip.
const ATTEMPTS: usize = 10;
/// Time for which a rate is measured.
const RATE_TIME: Duration = Duration::from_millis(500);

/// A link that cannot be used. Causes are part of the message, and so no `source` of the error.
#[derive(Debug, thiserror::Error)]
pub(crate) enum LinkTestError {
    #[error("{0}")]
    Network(NetError),
    #[error(
        "the link {name} ({settings}) is not what was requested, measured {ATTEMPTS} times: {fault}; keep other work off this machine, or ask for a link that it can carry"
    )]
    Deviates { name: String, settings: LinkSettings, fault: String },
}

/// A link to be measured.
#[derive(Debug, Clone)]
pub(crate) struct LinkUnderTest {
    pub(crate) name: String,
    pub(crate) settings: LinkSettings,
    pub(crate) namespaces: [Namespace; 2],
    pub(crate) addresses: [Ipv4Addr; 2],
    pub(crate) congestion_control: String,
}

impl LinkUnderTest {
    /// Measures it; why it is refused otherwise. Takes a second or some; blocks.
    pub(crate) fn measure(&self) -> Result<LinkTest, LinkTestError> {
        let mut last = String::new();
        for _ in 0..ATTEMPTS {
            let test = self.attempt().map_err(LinkTestError::Network)?;
            match self.fault(&test) {
                None => return Ok(test),
                Some(fault) => last = fault,
            }
        }
        Err(LinkTestError::Deviates { name: self.name.clone(), settings: self.settings, fault: last })
    }

    fn attempt(&self) -> Result<LinkTest, NetError> {
        let settings = &self.settings;
        let [here, there] = &self.namespaces;
        // Far enough apart that jitter does not make one wait for another.
        let every = (settings.jitter * 2).clamp(Duration::from_millis(2), Duration::from_millis(20));
        let limit = self.expected() * 2 + Duration::from_secs(1);
        let trips = probe::round_trips(here, self.addresses[1], PACKETS, every, limit)?;
        let near = Endpoint { namespace: here, address: self.addresses[0] };
        let far = Endpoint { namespace: there, address: self.addresses[1] };
        let mut rates = Vec::new();
        if let Some(bits_per_s) = settings.rate_bits_per_s {
            for (from, to) in [(here, far), (there, near)] {
                rates.push(probe::rate(from, to, bits_per_s, RATE_TIME)?.unwrap_or(0.0));
            }
        }
        let connect = Duration::from_secs(10) + 20 * self.expected();
        let message = probe::congestion_control(here, far, connect)?;
        Ok(LinkTest {
            packets_sent: trips.sent.into(),
            packets_back: trips.times.count(),
            expected_round_trip_us: u64::try_from(self.expected().as_micros()).unwrap_or(u64::MAX),
            round_trip_p50_us: trips.times.quantile_us(0.5).unwrap_or(0),
            round_trip_p99_us: trips.times.quantile_us(0.99).unwrap_or(0),
            rates_bits_per_s: rates,
            congestion_control: message.to_vec(),
        })
    }

    /// The round trip of a small packet.
    fn expected(&self) -> Duration {
        let rate = self.settings.rate_bits_per_s.unwrap_or(u64::MAX);
        2 * (self.settings.delay + Duration::from_nanos(PACKET_BYTES * 8 * 1_000_000_000 / rate.max(1)))
    }

    /// Deviation of the measurements from the settings; none: within tolerance.
    fn fault(&self, test: &LinkTest) -> Option<String> {
        if test.packets_back == 0 {
            return Some(format!("none of {} packets came back", test.packets_sent));
        }
        let (expected, message) = (test.expected_round_trip_us as f64, test.round_trip_p50_us as f64);
        // The median of so many trips is itself a little uncertain where they differ by chance.
        let chance = self.settings.jitter.as_micros() as f64 * 0.3;
        if (message - expected).abs() > (expected * TOLERANCE).max(LEAST_US) + chance {
            return Some(format!(
                "round trips take {:.2} ms instead of {:.2} ms",
                message / 1000.0,
                expected / 1000.0
            ));
        }
        let wanted = self.settings.rate_bits_per_s.unwrap_or(0) as f64;
        let loss = self.settings.loss;
        // What is lost was carried; how much that was in so few packets is a matter of chance.
        let packets = (wanted * RATE_TIME.as_secs_f64() / 11_424.0).max(1.0);
        let chance = 4.0 * (loss * (1.0 - loss) / packets).sqrt();
        let through = wanted * (1.0 - loss);
        let off = |rate: &&f64| (**rate - through).abs() > wanted * (TOLERANCE + chance);
        if let Some(rate) = test.rates_bits_per_s.iter().find(off) {
            return Some(format!("{:.2} Mbit/s come through instead of {:.2}", rate / 1e6, through / 1e6));
        }
        let other = test.congestion_control.iter().find(|name| **name != self.congestion_control);
        other.map(|name| format!("connections over it use {name} instead of {}", self.congestion_control))
    }
}

#[cfg(test)]
mod real_tests {
    use super::*;

    fn fault(settings: &str, change: impl FnOnce(&mut LinkTest)) -> Option<String> {
        let link = LinkUnderTest {
            name: "robots-target".into(),
            settings: settings.parse().unwrap(),
            // Nothing is measured here; where there are no namespaces, there is nothing to judge.
            namespaces: [Namespace::new().ok()?, Namespace::new().ok()?],
            addresses: [Ipv4Addr::LOCALHOST; 2],
            congestion_control: "cubic".into(),
        };
        let expected = link.expected().as_micros() as u64;
        let mut test = LinkTest {
            packets_sent: 200,
            packets_back: 190,
            expected_round_trip_us: expected,
            round_trip_p50_us: expected + 100,
            congestion_control: vec!["cubic".into(), "cubic".into()],
            ..LinkTest::default()
        };
        change(&mut test);
        link.fault(&test)
    }

    #[test]
    fn a_link_that_is_off_by_more_than_five_percent_is_refused() {
        if let Err(error) = Namespace::new() {
            return assay_testbed::skip(&error.to_string());
        }
        assert_eq!(fault("delay=40ms", |_| {}), None);
        assert_eq!(fault("delay=40ms", |test| test.round_trip_p50_us = 83_900), None);
        assert!(
            fault("delay=40ms", |test| test.round_trip_p50_us = 84_200)
                .unwrap()
                .contains("84.20 ms instead of 80.00")
        );
        assert!(fault("delay=40ms", |test| test.round_trip_p50_us = 75_000).is_some());
        assert_eq!(fault("delay=0", |test| test.round_trip_p50_us = 400), None);
        assert!(fault("delay=40ms", |test| test.packets_back = 0).unwrap().contains("came back"));
        assert_eq!(fault("rate=10Mbit/s", |test| test.rates_bits_per_s = vec![9.6e6, 10.3e6]), None);
        assert!(fault("rate=10Mbit/s", |test| test.rates_bits_per_s = vec![9.9e6, 9.4e6]).is_some());
        assert_eq!(fault("rate=10Mbit/s,loss=10%", |test| test.rates_bits_per_s = vec![9e6, 9e6]), None);
        assert!(
            fault("delay=1ms", |test| test.congestion_control[1] = "bbr".into())
                .unwrap()
                .contains("bbr instead")
        );
    }
}
