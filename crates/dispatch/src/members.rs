//! Which servers can be named now, and with which weight?

use crate::policy::ServerId;

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
