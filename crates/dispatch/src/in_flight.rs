//! How many requests has each server now?

use crate::members::Members;
use crate::policy::ServerId;

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

    /// The place of the member with the fewest requests for its weight; of equal ones the first from `from` on.
    pub(crate) fn least(&self, members: &Members, from: usize, weighted: bool) -> Option<usize> {
        let mut best: Option<(f64, usize)> = None;
        let len = members.len();
        let first = if from >= len { 0 } else { from };
        for place in (first..len).chain(0..first) {
            let weight = if weighted { members.weight(place) } else { 1.0 };
            let load = f64::from(self.of(members.at(place))) / weight;
            if best.is_none_or(|(least, _)| load < least) {
                best = Some((load, place));
            }
        }
        best.map(|(_, place)| place)
    }
}
