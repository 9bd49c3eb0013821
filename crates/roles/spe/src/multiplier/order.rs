//! The order in which a request is sent to the proxies.
//!
//! A pure function of the seed and the request's number. With a fixed order, the first proxy would always find the Multiplier a
//! little less busy.

use assay_base::random::{below, mix, shuffle};

/// Order in which the proxies (0 to `count` − 1) get request `number`.
pub fn permutation(seed: u64, number: u64, count: u8) -> Vec<u8> {
    let mut order: Vec<u8> = (0..count).collect();
    let mut state = mix(seed ^ mix(number));
    shuffle(&mut order, |n| {
        state = mix(state);
        below(state, n)
    });
    order
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    #[test]
    fn every_order_is_as_likely_as_any_other() {
        let mut seen: BTreeMap<Vec<u8>, u32> = BTreeMap::new();
        (0..24_000).for_each(|number| *seen.entry(permutation(7, number, 4)).or_default() += 1);
        assert_eq!(seen.len(), 24);
        // Six standard deviations of a binomial of 24,000 and 1/24.
        assert!(seen.values().all(|times| times.abs_diff(1000) < 186), "{seen:?}");
    }

    proptest! {
        #[test]
        fn every_proxy_gets_the_request_once_and_the_seed_decides_the_order(seed: u64, number: u64, count in 0u8..64) {
            let order = permutation(seed, number, count);
            prop_assert_eq!(&order, &permutation(seed, number, count));
            let mut all = order;
            all.sort_unstable();
            prop_assert_eq!(all, (0..count).collect::<Vec<_>>());
        }
    }
}
