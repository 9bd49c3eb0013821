//! Servers that are up, and their weights.

use assay_base::random::Rng;

use crate::dispatch::policy::ServerId;

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

    pub(crate) fn len(&self) -> usize {
        self.servers.len()
    }

    pub(crate) fn at(&self, index: usize) -> ServerId {
        self.servers[index]
    }

    /// Index of a random member; 0 without members.
    pub(crate) fn draw(&self, draws: &mut Rng) -> usize {
        draws.below(self.len() as u64) as usize
    }

    /// Indices of two different random members, of at least two.
    pub(crate) fn draw_two(&self, draws: &mut Rng) -> (usize, usize) {
        let first = self.draw(draws);
        let second = draws.below(self.len() as u64 - 1) as usize;
        (first, if second >= first { second + 1 } else { second })
    }

    pub(crate) fn weight(&self, index: usize) -> f64 {
        self.weights[index]
    }

    pub(crate) fn index_of(&self, server: ServerId) -> Option<usize> {
        self.servers.binary_search(&server).ok()
    }

    pub(crate) fn contains(&self, server: ServerId) -> bool {
        self.index_of(server).is_some()
    }

    /// Adds a server, or changes its weight. Returns the index of a new one.
    pub(crate) fn insert(&mut self, server: ServerId, weight: f64) -> Option<usize> {
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
                Some(index)
            }
        }
    }

    /// Removes a server, and returns its index.
    pub(crate) fn remove(&mut self, server: ServerId) -> Option<usize> {
        let index = self.index_of(server)?;
        self.servers.remove(index);
        self.weights.remove(index);
        Some(index)
    }
}

/// Round-robin position that stays before the same member when others come and go.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Cursor(pub(crate) usize);

impl Cursor {
    /// Index of the next member; moves the cursor behind it. `len` is not 0.
    pub(crate) fn advance(&mut self, len: usize) -> usize {
        let index = if self.0 >= len { 0 } else { self.0 };
        self.0 = index + 1;
        index
    }

    pub(crate) fn inserted(&mut self, index: usize) {
        if index < self.0 {
            self.0 += 1;
        }
    }

    pub(crate) fn removed(&mut self, index: usize) {
        if index < self.0 {
            self.0 -= 1;
        }
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
            let (one, other) = members.draw_two(&mut draws);
            assert_ne!(one, other);
            seen[one] += 1;
            seen[other] += 1;
        }
        assert!(seen.iter().all(|count| (3_700..4_300).contains(count)), "{seen:?}");
    }
}
