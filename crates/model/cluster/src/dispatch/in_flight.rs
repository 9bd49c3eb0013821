//! Requests in flight by server.

use crate::dispatch::members::{Cursor, MemberIndex, Members};
use crate::dispatch::policy::ServerId;

/// Requests started and not finished, by server. Counts of servers that are down are kept, so that one that comes back is not taken for
/// idle while it still has requests.
#[derive(Debug, Clone, Default)]
pub(crate) struct InFlight {
    counts: Vec<u32>,
}

impl InFlight {
    pub(crate) fn count(&self, server: ServerId) -> u32 {
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

    /// Requests of a member, over its weight.
    pub(crate) fn per_weight(&self, members: &Members, member: MemberIndex) -> f64 {
        f64::from(self.count(members.at(member))) / members.weight(member)
    }

    /// Member with the fewest requests; of equal ones the first from the cursor on, which moves behind it.
    pub(crate) fn least(&self, members: &Members, turn: &mut Cursor) -> Option<ServerId> {
        let least =
            members.from(*turn).map(|member| members.at(member)).min_by_key(|server| self.count(*server))?;
        *turn = Cursor::after(least);
        Some(least)
    }
}
