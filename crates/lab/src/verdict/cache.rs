//! Was the cache ever full? Not a doubt, but hit ratios mean something else where it was not.

use assay_role::words::ProxyCounters;

use super::Sums;
use crate::checks::size;

/// A sentence, where the cache has bounds and never came to them.
pub fn never_full(sums: &Sums, counters: &ProxyCounters, capacity_bytes: Option<u64>) -> Option<String> {
    let filled = sums.origin_body_bytes.max(sums.peak_stored_bytes);
    let capacity = capacity_bytes.filter(|capacity| filled < *capacity)?;
    (counters.evictions == 0 && sums.completed > 0).then(|| {
        format!(
            "the cache was never full: at most {} of {} were put into it, so hit ratios are those of a cache without \
             bounds",
            size(filled),
            size(capacity)
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cache_that_was_never_full_is_told() {
        let judge = |filled: u64, evictions: u64, capacity: Option<u64>| {
            let sums = Sums { completed: 1, origin_body_bytes: filled, peak_stored_bytes: 0 };
            never_full(&sums, &ProxyCounters { evictions, ..ProxyCounters::default() }, capacity)
        };
        let told = judge(1 << 20, 0, Some(1 << 30)).unwrap();
        assert!(told.contains("never full: at most 1.0 MB of 1.0 GB"), "{told}");
        assert_eq!(judge(1 << 20, 5, Some(1 << 30)), None);
        assert_eq!(judge(2 << 30, 0, Some(1 << 30)), None);
        assert_eq!(judge(1, 0, None), None);
    }
}
