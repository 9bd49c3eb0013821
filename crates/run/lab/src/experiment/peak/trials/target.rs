//! Targets whose limit is known without a search, in virtual time: token buckets and queues. Nothing of the search is used
//! here; what limits them is calculated from their parameters.

use assay_base::random::Rng;

/// Response to a request.
pub struct SimulatedResponse {
    /// Time at which its response comes, in seconds.
    pub at_s: f64,
    /// Response is correct.
    pub is_good: bool,
}

/// Model of a target's limit.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum TargetModel {
    /// So many tokens come in a second, and no more than `depth` are kept; a request without one gets a 503 response.
    Refuses { depth: f64 },
    /// The same, but a request without a token waits for one.
    Delays { depth: f64 },
    /// One request after the other, each for the same time.
    Constant,
    /// One request after the other, each for a time of an exponential distribution.
    Exponential,
}

#[derive(Debug, Clone)]
pub struct SimulatedTarget {
    pub kind: TargetModel,
    /// Requests that it completes per second.
    pub limit_per_s: f64,
    /// Moment at which the limit is multiplied, and the factor; none: it stays.
    pub falls: Option<(f64, f64)>,
    /// Pauses that nobody sees: how many a second, and how long.
    pub pauses: (f64, f64),
    next_pause_s: f64,
    free_at_s: f64,
    tokens: f64,
    filled_at_s: f64,
}

/// A good response takes this long where nothing is waited for.
const RESPONSE_S: f64 = 0.001;

impl SimulatedTarget {
    pub fn new(kind: TargetModel, limit_per_s: f64) -> Self {
        Self {
            kind,
            limit_per_s,
            falls: None,
            pauses: (0.0, 0.0),
            next_pause_s: 0.0,
            free_at_s: 0.0,
            tokens: 0.0,
            filled_at_s: 0.0,
        }
    }

    /// The same target with a share of its limit.
    pub fn after(&self, share: f64) -> Self {
        Self { limit_per_s: self.limit_per_s * share, falls: None, ..self.clone() }
    }

    fn limit_at(&self, now_s: f64) -> f64 {
        let share = self.falls.filter(|(from_s, _)| now_s >= *from_s).map_or(1.0, |(_, share)| share);
        self.limit_per_s * share
    }

    /// Takes a request; no earlier than the one before.
    pub fn response(&mut self, now_s: f64, chance: &mut Rng) -> SimulatedResponse {
        let limit_per_s = self.limit_at(now_s);
        if self.pauses.0 > 0.0 && now_s >= self.next_pause_s {
            self.free_at_s = self.free_at_s.max(now_s) + self.pauses.1 * chance.unit();
            self.next_pause_s = now_s + chance.exponential() / self.pauses.0;
        }
        let (depth, service_s) = match self.kind {
            TargetModel::Refuses { depth } | TargetModel::Delays { depth } => (depth, 0.0),
            TargetModel::Constant => (0.0, 1.0 / limit_per_s),
            TargetModel::Exponential => (0.0, chance.exponential() / limit_per_s),
        };
        if service_s > 0.0 {
            self.free_at_s = self.free_at_s.max(now_s) + service_s;
            return SimulatedResponse { at_s: self.free_at_s, is_good: true };
        }
        self.tokens = (self.tokens + (now_s - self.filled_at_s) * limit_per_s).min(depth);
        self.filled_at_s = now_s;
        let begins_s = now_s.max(self.free_at_s);
        match self.kind {
            TargetModel::Refuses { .. } if self.tokens < 1.0 => {
                SimulatedResponse { at_s: begins_s + RESPONSE_S, is_good: false }
            }
            // A bucket that owes tokens is a queue.
            _ => {
                self.tokens -= 1.0;
                let waits_s = (-self.tokens / limit_per_s).max(0.0);
                SimulatedResponse { at_s: begins_s + waits_s + RESPONSE_S, is_good: true }
            }
        }
    }

    /// The rate at which a promise is just kept in the long run: fewer than `errors` of all in error, and 99 % of responses
    /// within `p99_s`.
    pub fn known_per_s(&self, errors: f64, p99_s: f64) -> f64 {
        let limit_per_s = self.limit_per_s;
        match self.kind {
            TargetModel::Refuses { depth } => refusing(limit_per_s, depth, errors),
            TargetModel::Delays { depth } => {
                constant(limit_per_s, p99_s - RESPONSE_S + depth / limit_per_s).min(limit_per_s)
            }
            TargetModel::Constant => constant(limit_per_s, p99_s - 1.0 / limit_per_s),
            // M/M/1: response times are exponential, with a mean of 1 / (limit − rate).
            TargetModel::Exponential => limit_per_s - 100.0_f64.ln() / p99_s,
        }
    }
}

/// M/D/1: the rate at which one in a hundred waits longer than `wait_s`. By the theorem of Cramér and Lundberg, a wait is
/// longer than t with a probability of C · exp(−η t), where λ (exp(η / μ) − 1) = η and C = (1 − ρ) / (λ / μ · exp(η / μ) − 1);
/// from a few service times on, it is exact to many digits.
fn constant(limit_per_s: f64, wait_s: f64) -> f64 {
    let longer = |rate: f64| {
        let (mut low, mut high) = (1e-9 * limit_per_s, 60.0 * limit_per_s);
        for _ in 0..200 {
            let middle = f64::midpoint(low, high);
            if rate * (middle / limit_per_s).exp_m1() < middle { low = middle } else { high = middle }
        }
        let share = rate / limit_per_s;
        (1.0 - share) / (share * (low / limit_per_s).exp() - 1.0) * (-low * wait_s).exp()
    };
    bisect(limit_per_s, |rate| longer(rate) < 0.01)
}

/// A bucket that refuses, by drawing a long row of requests: there is no short formula. Its mean rate is made exact, as most of
/// what is refused is what is above the limit.
fn refusing(limit_per_s: f64, depth: f64, errors: f64) -> f64 {
    const ALL: usize = 200_000;
    let mut chance = Rng::new(7);
    let gaps: Vec<f64> = (0..ALL).map(|_| chance.exponential()).collect();
    let mean = gaps.iter().sum::<f64>() / ALL as f64;
    bisect(limit_per_s * 1.2, |rate| {
        let (mut tokens, mut refused) = (0.0, 0);
        for gap in &gaps {
            tokens = f64::min(tokens + gap / mean / rate * limit_per_s, depth);
            if tokens < 1.0 {
                refused += 1;
            } else {
                tokens -= 1.0;
            }
        }
        f64::from(refused) < errors * ALL as f64
    })
}

/// The highest rate below `most` for which something is so.
fn bisect(most: f64, is_so: impl Fn(f64) -> bool) -> f64 {
    let (mut low, mut high) = (most * 0.3, most);
    for _ in 0..14 {
        let middle = f64::midpoint(low, high);
        if is_so(middle) { low = middle } else { high = middle }
    }
    f64::midpoint(low, high)
}
