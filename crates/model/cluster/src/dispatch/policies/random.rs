//! RAND: any server, each as likely as the others.
//!
//! It needs no state and no reports from servers, which makes it the baseline that every other policy is held
//! against. With Poisson arrivals it splits them into independent Poisson streams, one for each server, so what it
//! costs is known in closed form (M/M/1, M/G/1). Source: the random maps of Apache's `mod_rewrite`
//! (R. S. Engelschall, "Load Balancing Your Web Site", Web Techniques 3, 1998), as Jones used them (2002).

use assay_base::random::{Rng, mix};

use crate::dispatch::members::Members;
use crate::dispatch::moment::Moment;
use crate::dispatch::policy::{Policy, Request, ServerId};

#[derive(Debug, Clone)]
pub struct Random {
    members: Members,
    draws: Rng,
}

impl Random {
    /// Draws follow from the seed.
    pub fn new(seed: u64) -> Self {
        Self { members: Members::default(), draws: Rng::new(mix(seed)) }
    }
}

impl Policy for Random {
    fn name(&self) -> &'static str {
        "rand"
    }

    fn servers(&self) -> &[ServerId] {
        self.members.servers()
    }

    fn server_up(&mut self, server: ServerId, weight: f64, _now: Moment) {
        self.members.insert(server, weight);
    }

    fn server_gone(&mut self, server: ServerId, _now: Moment) {
        self.members.remove(server);
    }

    fn choose(&mut self, _request: &Request, _now: Moment) -> Option<ServerId> {
        self.members.draw(&mut self.draws)
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{ANY, names, up};
    use super::*;

    #[test]
    fn every_server_is_as_likely_as_the_others() {
        let mut policy = Random::new(1);
        up(&mut policy, 4);
        let named = names(&mut policy, &ANY, 40_000);
        for server in 0..4 {
            let count = named.iter().filter(|name| **name == server).count();
            // Four standard deviations of a binomial count.
            assert!((9_650..10_350).contains(&count), "server {server}: {count}");
        }
    }

    #[test]
    fn one_name_says_nothing_about_the_next() {
        let mut policy = Random::new(2);
        up(&mut policy, 4);
        let named = names(&mut policy, &ANY, 40_000);
        let same = named.windows(2).filter(|pair| pair[0] == pair[1]).count();
        assert!((9_650..10_350).contains(&same), "{same}");
    }
}
