//! All balancing policies, a file each, with its algorithm and its source.
//!
//! Blind to the request: [`random`], [`round_robin`], [`weighted_round_robin`], [`least_connections`],
//! [`weighted_least_connections`], [`power_of_two`], [`peak_ewma`], [`prequal`]. By the requested document:
//! [`bounded_hash`], [`lard`], [`lard_replicated`], [`ward`]. By the kind of work: [`cap`], [`cap_with_state`].

pub mod bounded_hash;
pub mod cap;
pub mod cap_with_state;
pub mod lard;
pub mod lard_replicated;
pub mod least_connections;
pub mod peak_ewma;
pub mod power_of_two;
pub mod prequal;
mod probe_pool;
pub mod random;
pub mod round_robin;
mod server_states;
pub mod ward;
pub mod ward_analysis;
pub mod weighted_by_load;
pub mod weighted_least_connections;
pub mod weighted_round_robin;

/// Helpers of the tests of policies.
#[cfg(test)]
mod testing {
    use crate::dispatch::{ClassId, Completion, Moment, Policy, Request, RequestOutcome, ServerId};

    pub(crate) const ANY: Request = Request { class: ClassId(0), document: 7 };

    /// A request for a document.
    pub(crate) fn document(document: u64) -> Request {
        Request { class: ClassId(0), document }
    }

    /// A request of a class.
    pub(crate) fn class(class: u16) -> Request {
        Request { class: ClassId(class), document: 7 }
    }

    /// Servers 0 to `count` − 1 come up with weight 1.
    pub(crate) fn up(policy: &mut dyn Policy, count: u32) {
        (0..count).for_each(|number| policy.server_up(ServerId(number), 1.0, Moment::START));
    }

    /// Lets the policy choose a server and starts the request there.
    pub(crate) fn send(policy: &mut dyn Policy, request: &Request, now: Moment) -> u32 {
        let server = policy.choose(request, now).expect("a server");
        policy.started(server, request, now);
        server.0
    }

    /// Chooses `count` times, and starts nothing.
    pub(crate) fn names(policy: &mut dyn Policy, request: &Request, count: usize) -> Vec<u32> {
        (0..count).map(|_| policy.choose(request, Moment::START).expect("a server").0).collect()
    }

    /// Completes a request successfully after this time in nanoseconds.
    pub(crate) fn finish(policy: &mut dyn Policy, server: u32, took_nanos: u64, now: Moment) {
        policy.finished(
            ServerId(server),
            &ANY,
            &Completion { took_nanos, outcome: RequestOutcome::Responded },
            now,
        );
    }
}
