//! Which URLs got a status of 400 and above, by status. In bounded memory.

use crate::hash::hash_on;
use crate::sketch::heavy_hitters::{HeavyHitters, Weights};
use crate::sketch::time_counts::TimeCounts;

/// URLs that are followed one by one, once for each status.
const MAX_URLS: usize = 16_384;
/// Statuses from this one on are listed.
pub(super) const FIRST_STATUS: u16 = 400;

/// Counts of a URL with one status.
#[derive(Debug, Clone, Default)]
pub(super) struct FailedUrlCounts {
    pub status: u16,
    pub over_time: TimeCounts,
}

#[derive(Debug)]
pub(super) struct FailedUrls {
    pub urls: HeavyHitters<FailedUrlCounts>,
}

impl Default for FailedUrls {
    fn default() -> Self {
        Self { urls: HeavyHitters::new(MAX_URLS) }
    }
}

impl FailedUrls {
    /// Counts a response with such a status; `write` writes its URL, whose hash is `url_key`.
    #[cold]
    pub(super) fn count(
        &mut self,
        status: u16,
        url_key: u64,
        bytes: u64,
        second: Option<i64>,
        write: impl FnOnce(&mut Vec<u8>),
    ) {
        let key = hash_on(url_key, &status.to_le_bytes());
        if self.urls.find(key).is_none() {
            self.urls.add(key, write).more.status = status;
        }
        let Some(entry) = self.urls.find(key) else { return };
        entry.sums += Weights { requests: 1, bytes, misses: 0 };
        if let Some(second) = second {
            entry.more.over_time.count(second);
        }
    }
}
