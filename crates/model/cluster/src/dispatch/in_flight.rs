//! The number of requests that each server has now.

use crate::dispatch::members::Members;
use crate::dispatch::policy::ServerId;

/// Requests started and not finished, by server; kept for servers that are gone too, so that one that comes back is
/// not taken for idle while it still has requests.
#[derive(Debug, Clone, Default)]
pub(crate) struct InFlight {
    counts: Vec<u32>,
}

impl InFlight {
    pub(crate) fn of(&self, server: ServerId) -> u32 {
        self.counts.get(server.index()).copied().unwrap_or(0)
    }

    pub(crate) fn started(&mut self, server: ServerId) {
        if self.counts.len() <= server.index() {
            self.counts.resize(server.index() + 1, 0);
        }
        self.counts[server.index()] += 1;
    }

    pub(crate) fn finished(&mut self, server: ServerId) {
        if let Some(count) = self.counts.get_mut(server.index()) {
            *count = count.saturating_sub(1);
        }
    }

    /// Requests of the member at a place, for its weight.
    pub(crate) fn for_weight(&self, members: &Members, place: usize) -> f64 {
        f64::from(self.of(members.at(place))) / members.weight(place)
    }

    /// The place of the member with the fewest requests; of equal ones the first from `from` on.
    pub(crate) fn least(&self, members: &Members, from: usize) -> Option<usize> {
        let len = members.len();
        let first = if from >= len { 0 } else { from };
        (first..len).chain(0..first).min_by_key(|place| self.of(members.at(*place)))
    }
}
