//! The network of a run. Links and congestion control in words.

use assay_record::run::{BedInfo, LinkInfo, LinkTest, LinkTotals};

use crate::format::count;

/// A sentence for each link, and one for congestion control.
pub(crate) fn sentences(bed: &BedInfo) -> Vec<String> {
    let links = bed.links.iter().map(|link| {
        format!(
            "The link {} ({}, {}): {}.",
            link.name,
            link.settings,
            link.carried_by,
            details(link).join("; ")
        )
    });
    let congestion = format!("TCP congestion control between roles was {}.", bed.congestion_control);
    links.chain([congestion]).collect()
}

/// The same as names and values.
pub(crate) fn facts(bed: &BedInfo) -> Vec<(String, String)> {
    let links = bed.links.iter().map(|link| {
        let value = format!("{}, {}; {}", link.settings, link.carried_by, details(link).join("; "));
        (format!("link {}", link.name), value)
    });
    let congestion = ("congestion control".to_owned(), bed.congestion_control.clone());
    let spaces = bed.namespaces.iter().enumerate().map(|(index, space)| {
        let settings: Vec<String> =
            space.settings.iter().map(|(name, value)| format!("{name} = {value}")).collect();
        let name = format!("namespace {}", index + 1);
        (name, format!("{} ({}): {}", space.roles.join(", "), space.networks.join(", "), settings.join(", ")))
    });
    links.chain([congestion]).chain(spaces).collect()
}

fn details(link: &LinkInfo) -> Vec<String> {
    let test = link.test.as_ref().map(test_results).unwrap_or_else(|| vec!["not measured".into()]);
    test.into_iter().chain(link.directions.iter().map(direction_totals)).collect()
}

fn test_results(test: &LinkTest) -> Vec<String> {
    let ms = |us: u64| us as f64 / 1000.0;
    let trips = format!(
        "round trip before the run {:.2} ms (99 %: {:.2} ms) of {:.2} ms requested",
        ms(test.round_trip_p50_us),
        ms(test.round_trip_p99_us),
        ms(test.expected_round_trip_us)
    );
    let rates: Vec<String> = test.rates_bits_per_s.iter().map(|rate| format!("{:.2}", rate / 1e6)).collect();
    let rates = (!rates.is_empty()).then(|| format!("{} Mbit/s came through of more", rates.join(" and ")));
    [trips].into_iter().chain(rates).collect()
}

fn direction_totals(direction: &LinkTotals) -> String {
    let planned = if direction.lost == direction.planned_lost {
        "as planned".to_owned()
    } else {
        format!("{} were planned", count(direction.planned_lost))
    };
    let mut words = format!(
        "{} packets from {}, {} lost ({planned})",
        count(direction.packets),
        direction.from,
        count(direction.lost)
    );
    if direction.queue_full > 0 {
        words.push_str(&format!(", {} found the queue full", count(direction.queue_full)));
    }
    if direction.failed > 0 {
        words.push_str(&format!(", {} could not be carried", count(direction.failed)));
    }
    let late_ms = direction.lateness_p99_us as f64 / 1000.0;
    format!("{words}, 99 % at most {late_ms:.2} ms late")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_link_says_what_was_requested_what_was_measured_and_what_it_carried() {
        let direction = LinkTotals {
            from: "robots".into(),
            packets: 12_000,
            wire: 11_000,
            lost: 6,
            planned_lost: 6,
            queue_full: 1000,
            lateness_p99_us: 300,
            ..LinkTotals::default()
        };
        let link = LinkInfo {
            name: "robots-target".into(),
            settings: "delay=40ms".into(),
            carried_by: "user space".into(),
            test: Some(LinkTest {
                expected_round_trip_us: 80_000,
                round_trip_p50_us: 80_110,
                round_trip_p99_us: 80_400,
                rates_bits_per_s: vec![9.9e6, 9.8e6],
                ..LinkTest::default()
            }),
            directions: vec![direction],
            ..LinkInfo::default()
        };
        let bed = BedInfo { congestion_control: "cubic".into(), links: vec![link], ..BedInfo::default() };
        let [link, congestion] = sentences(&bed).try_into().unwrap();
        for words in [
            "delay=40ms, user space",
            "80.11 ms",
            "of 80.00 ms",
            "9.90 and 9.80 Mbit/s",
            "(as planned)",
            "0.30 ms late",
        ] {
            assert!(link.contains(words), "{words}: {link}");
        }
        assert!(congestion.contains("cubic"));
        assert_eq!(facts(&bed).len(), 2);
    }
}
