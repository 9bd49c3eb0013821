//! Load of emulated links, beside their rate.

use assay_base::settings::show::bytes;

use super::demand::{LinkRate, PhaseLoad};
use super::{Demand, Need, Resource};

/// Above this share of its rate, what waits for a link shows in response times.
const TIGHT: f64 = 0.7;

/// The bits that responses take at the peak. A link that is too slow is never refused: it may be what is to be tried.
pub fn needs(demand: &Demand) -> Vec<Need> {
    let bits_per_s = |load: &PhaseLoad, link: &LinkRate| {
        let share = if link.is_to_origins { load.origin_share } else { 1.0 };
        load.requests_per_s * share * load.bytes_per_request * 8.0
    };
    let need = |link: &LinkRate| {
        let peak = demand
            .loads
            .iter()
            .max_by(|one, other| bits_per_s(one, link).total_cmp(&bits_per_s(other, link)))?;
        let name = if link.is_to_origins { "the link to origins" } else { "the link to robots" };
        let need = Need::new(name, Resource::Link, 0, link.bits_per_s);
        let need = Need { needed: bits_per_s(peak, link), tight_above: TIGHT, ..need };
        let load = format!(
            "phase {}: bodies of {} in {:.0} responses/s at most",
            peak.phase,
            bytes(peak.bytes_per_request.clamp(0.0, 1e18) as u64),
            peak.requests_per_s
        );
        Some(need.words(load, "its rate", "raise its rate, or lower that of requests"))
    };
    demand.links.iter().filter_map(need).collect()
}

#[cfg(test)]
mod tests {
    use super::super::tests::usual;
    use super::*;

    #[test]
    fn a_link_that_responses_fill_is_warned_of_and_never_refused() {
        // 160 responses of 13 KB in a second are 16.6 Mbit/s, half of it from origins.
        let tight = |is_to_origins, bits_per_s| {
            let links = vec![LinkRate { is_to_origins, bits_per_s }];
            let needs = needs(&Demand { links, ..usual() });
            assert!(!needs[0].exceeds());
            needs[0].is_tight()
        };
        assert!(tight(false, 10_000_000) && tight(false, 20_000_000) && !tight(false, 30_000_000));
        assert!(tight(true, 10_000_000) && !tight(true, 20_000_000));
        assert!(needs(&usual()).is_empty());
    }
}
