//! The servers that can be named now, and their weights.

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

    pub(crate) fn at(&self, place: usize) -> ServerId {
        self.servers[place]
    }

    /// A place, each as likely as the others; 0 when there is none.
    pub(crate) fn draw(&self, draws: &mut Rng) -> usize {
        draws.below(self.len() as u64) as usize
    }

    /// Two places that differ; there are at least two members.
    pub(crate) fn draw_two(&self, draws: &mut Rng) -> (usize, usize) {
        let first = self.draw(draws);
        let second = draws.below(self.len() as u64 - 1) as usize;
        (first, if second >= first { second + 1 } else { second })
    }

    pub(crate) fn weight(&self, place: usize) -> f64 {
        self.weights[place]
    }

    pub(crate) fn place(&self, server: ServerId) -> Option<usize> {
        self.servers.binary_search(&server).ok()
    }

    pub(crate) fn contains(&self, server: ServerId) -> bool {
        self.place(server).is_some()
    }

    /// Puts a server in, or changes its weight. Gives the place that is new.
    pub(crate) fn insert(&mut self, server: ServerId, weight: f64) -> Option<usize> {
        // A weight that is none would make every sum meaningless.
        let weight = if weight.is_finite() && weight > 0.0 { weight } else { 1.0 };
        match self.servers.binary_search(&server) {
            Ok(place) => {
                self.weights[place] = weight;
                None
            }
            Err(place) => {
                self.servers.insert(place, server);
                self.weights.insert(place, weight);
                Some(place)
            }
        }
    }

    /// Takes a server out. Gives the place that it had.
    pub(crate) fn remove(&mut self, server: ServerId) -> Option<usize> {
        let place = self.place(server)?;
        self.servers.remove(place);
        self.weights.remove(place);
        Some(place)
    }
}

/// A place in a circle of members that stays with the same neighbour when members come and go.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Turn(pub(crate) usize);

impl Turn {
    /// The place whose turn it is, and the next one's turn after it. `len` is not 0.
    pub(crate) fn take(&mut self, len: usize) -> usize {
        let place = if self.0 >= len { 0 } else { self.0 };
        self.0 = place + 1;
        place
    }

    pub(crate) fn inserted(&mut self, place: usize) {
        if place < self.0 {
            self.0 += 1;
        }
    }

    pub(crate) fn removed(&mut self, place: usize) {
        if place < self.0 {
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
