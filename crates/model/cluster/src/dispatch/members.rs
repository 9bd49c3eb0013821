//! Servers that are up, and their weights.

use assay_base::random::Rng;

use crate::dispatch::policy::ServerId;

/// Index of a member among those that are up, which changes when others come and go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct MemberIndex(pub(crate) usize);

/// Servers that are up, in ascending order, with their weights.
#[derive(Debug, Clone, Default)]
pub(crate) struct Members {
    servers: Vec<ServerId>,
    weights: Vec<f64>,
}

impl Members {
    pub(crate) fn servers(&self) -> &[ServerId] {
        &self.servers
    }

    pub(crate) fn weights(&self) -> &[f64] {
        &self.weights
    }

    pub(crate) fn len(&self) -> usize {
        self.servers.len()
    }

    /// All members, from a cursor on.
    pub(crate) fn from(&self, Cursor(next): Cursor) -> impl Iterator<Item = MemberIndex> + use<> {
        let first = self.servers.partition_point(|server| server.0 < next);
        (first..self.len()).chain(0..first).map(MemberIndex)
    }

    /// The member whose turn it is; moves the cursor behind it.
    pub(crate) fn take_turn(&self, cursor: &mut Cursor) -> Option<ServerId> {
        let member = self.at(self.from(*cursor).next()?);
        *cursor = Cursor::after(member);
        Some(member)
    }

    pub(crate) fn at(&self, index: MemberIndex) -> ServerId {
        self.servers[index.0]
    }

    /// A random member.
    pub(crate) fn draw(&self, draws: &mut Rng) -> Option<ServerId> {
        self.servers.get(draws.below(self.len() as u64) as usize).copied()
    }

    /// Two different random members; none of fewer than two.
    pub(crate) fn draw_two(&self, draws: &mut Rng) -> Option<[MemberIndex; 2]> {
        let len = self.len() as u64;
        if len < 2 {
            return None;
        }
        let (first, second) = (draws.below(len) as usize, draws.below(len - 1) as usize);
        Some([first, if second >= first { second + 1 } else { second }].map(MemberIndex))
    }

    pub(crate) fn weight(&self, index: MemberIndex) -> f64 {
        self.weights[index.0]
    }

    pub(crate) fn weight_of(&self, server: ServerId) -> Option<f64> {
        self.index_of(server).map(|index| self.weight(index))
    }

    fn index_of(&self, server: ServerId) -> Option<MemberIndex> {
        self.servers.binary_search(&server).ok().map(MemberIndex)
    }

    pub(crate) fn contains(&self, server: ServerId) -> bool {
        self.index_of(server).is_some()
    }

    /// Adds a server, or changes its weight. Returns the index of a new one.
    pub(crate) fn insert(&mut self, server: ServerId, weight: f64) -> Option<MemberIndex> {
        // An invalid weight would make every sum meaningless.
        let weight = if weight.is_finite() && weight > 0.0 { weight } else { 1.0 };
        match self.servers.binary_search(&server) {
            Ok(index) => {
                self.weights[index] = weight;
                None
            }
            Err(index) => {
                self.servers.insert(index, server);
                self.weights.insert(index, weight);
                Some(MemberIndex(index))
            }
        }
    }

    /// Removes a server, and returns its index.
    pub(crate) fn remove(&mut self, server: ServerId) -> Option<MemberIndex> {
        let index = self.index_of(server)?;
        self.servers.remove(index.0);
        self.weights.remove(index.0);
        Some(index)
    }
}

/// Round-robin position: the lowest number that the next server may have, so that it does not matter who comes or goes.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Cursor(u32);

impl Cursor {
    pub(crate) fn before(server: ServerId) -> Self {
        Self(server.0)
    }

    pub(crate) fn after(server: ServerId) -> Self {
        Self(server.0.saturating_add(1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pairs_differ_and_every_number_comes() {
        let mut members = Members::default();
        (0..5).for_each(|number| assert!(members.insert(ServerId(number), 1.0).is_some()));
        let mut draws = Rng::new(1);
        let mut seen = [0u32; 5];
        for _ in 0..10_000 {
            let [one, other] = members.draw_two(&mut draws).expect("there are five");
            assert_ne!(one, other);
            seen[one.0] += 1;
            seen[other.0] += 1;
        }
        assert!(seen.iter().all(|count| (3_700..4_300).contains(count)), "{seen:?}");
    }
}
