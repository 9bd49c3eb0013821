//! Consistent hashing: the next server on the circle after a document.

use assay_base::random::mix;

use crate::dispatch::policy::ServerId;

/// Points of a server of weight 1; with 100, the shares of servers differ by about a tenth.
const POINTS: f64 = 100.0;
/// Upper bound on the points of a server.
const MOST_POINTS: f64 = 10_000.0;

/// Points on a circle of 64 bits, each with its server. A server that comes or goes moves only its own documents.
#[derive(Debug, Clone, Default)]
pub(crate) struct Ring {
    points: Vec<(u64, ServerId)>,
}

impl Ring {
    pub(crate) fn insert(&mut self, server: ServerId, weight: f64) {
        self.remove(server);
        let count = libm::round(POINTS * weight).clamp(1.0, MOST_POINTS) as u64;
        let seed = mix(u64::from(server.0));
        self.points.extend((0..count).map(|number| (mix(seed ^ mix(number)), server)));
        self.points.sort_unstable();
    }

    pub(crate) fn remove(&mut self, server: ServerId) {
        self.points.retain(|(_, owner)| *owner != server);
    }

    /// Servers in the order of the circle, from a document on; each may occur several times.
    pub(crate) fn from(&self, document: u64) -> impl Iterator<Item = ServerId> {
        let hash = mix(document);
        let first = self.points.partition_point(|(point, _)| *point < hash);
        self.points[first..].iter().chain(&self.points[..first]).map(|(_, server)| *server)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_that_goes_moves_only_its_own_documents() {
        let mut ring = Ring::default();
        (0..10).for_each(|number| ring.insert(ServerId(number), 1.0));
        let owner = |ring: &Ring, document| ring.from(document).next();
        let before: Vec<_> = (0..10_000).map(|document| owner(&ring, document)).collect();
        ring.remove(ServerId(3));
        for (document, before) in before.iter().enumerate() {
            let after = owner(&ring, document as u64);
            assert!(if *before == Some(ServerId(3)) { after != *before } else { after == *before });
        }
        ring.insert(ServerId(3), 1.0);
        assert!(before.iter().enumerate().all(|(document, owned)| owner(&ring, document as u64) == *owned));
    }

    #[test]
    fn shares_follow_weights() {
        let mut ring = Ring::default();
        (0..4).for_each(|number| ring.insert(ServerId(number), if number == 0 { 3.0 } else { 1.0 }));
        let owned = (0..60_000).filter(|document| ring.from(*document).next() == Some(ServerId(0))).count();
        assert!((25_000..35_000).contains(&owned), "{owned}");
    }
}
