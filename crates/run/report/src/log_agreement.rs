//! Agreement of the access logs of caches with robots on hits and misses.

use assay_record::caches::{Responses, Seen, Source};

/// Plain GETs of whose response both robots and the logs of caches say where it came from.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct LogAgreement {
    pub(crate) plain: u64,
    /// Of these, hits to one side and misses to the other. What an origin confirmed, or joined another's fetch, is neither: not every
    /// proxy has words for these.
    pub(crate) misreported: u64,
}

impl LogAgreement {
    /// Of requests that were put together one by one.
    pub(crate) fn from_rows<'a>(rows: impl Iterator<Item = &'a Responses>) -> Self {
        let mut all = Self::default();
        for row in rows.filter(|row| row.basic && !matches!(row.source, Source::Unlogged | Source::Unsaid)) {
            let is_misreported = match row.seen {
                Seen::Hit => matches!(row.source, Source::Origin | Source::ThroughParent),
                Seen::Miss => row.source.is_hit() && row.source != Source::Joined,
                Seen::Collapsed | Seen::Revalidated => false,
                Seen::Other | Seen::Failed | Seen::Nothing | Seen::Unknown => continue,
            };
            all.plain += row.requests;
            all.misreported += if is_misreported { row.requests } else { 0 };
        }
        all
    }

    pub(crate) fn add(&mut self, more: Self) {
        self.plain += more.plain;
        self.misreported += more.misreported;
    }
}

#[cfg(test)]
mod tests {
    use assay_measurement::histogram::Histogram;

    use super::*;

    #[test]
    fn what_a_log_calls_a_miss_and_robots_a_hit_is_misreported() {
        let rows = [
            (Seen::Hit, Source::Origin, 5),
            (Seen::Hit, Source::Local, 20),
            (Seen::Hit, Source::Revalidated, 2),
            (Seen::Miss, Source::Local, 3),
            (Seen::Miss, Source::Joined, 1),
            (Seen::Collapsed, Source::Origin, 4),
            (Seen::Failed, Source::Origin, 7),
            (Seen::Hit, Source::Unlogged, 9),
            (Seen::Hit, Source::Unsaid, 6),
        ];
        let rows = rows.map(|(seen, source, requests)| Responses {
            cache: String::new(),
            phase: 0,
            basic: true,
            seen,
            source,
            requests,
            other_status: 0,
            body_bytes: 0,
            logged_bytes: 0,
            response: Histogram::new().to_sparse(),
            duration: Histogram::new().to_sparse(),
        });
        assert_eq!(LogAgreement::from_rows(rows.iter()), LogAgreement { plain: 35, misreported: 8 });
    }
}
