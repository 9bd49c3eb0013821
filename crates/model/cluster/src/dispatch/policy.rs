//! Interface of all policies: the events that they receive, and the choices that they make.

use crate::dispatch::moment::Moment;

/// Number of a server, which stays with it when it goes and comes back; that of a node is its place in the cluster. Policies keep tables
/// by it, so numbers should be dense.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ServerId(pub u32);

impl ServerId {
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

/// Number of a class of requests, from 0.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ClassId(pub u16);

impl ClassId {
    pub(crate) const fn index(self) -> usize {
        self.0 as usize
    }
}

/// A request, as far as policies know it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Request {
    pub class: ClassId,
    /// Hash of the requested document: equal for equal targets.
    pub document: u64,
}

/// End of a request on a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Completion {
    /// Nanoseconds since it was started on that server.
    pub took_nanos: u64,
    pub outcome: RequestOutcome,
}

/// Outcome of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RequestOutcome {
    Responded,
    /// The server failed it: refused, reset, or too late.
    Failed,
    /// The client left before there was a response, which would have taken longer than the request did.
    Left,
}

/// State that a server reports, by itself or in response to a probe. Shares are of the time since the last report, 0 to 1.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct ServerState {
    /// Busy share of the processors.
    pub processor: f64,
    /// Busy share of the disks.
    pub disk: f64,
    /// Busy share of the network.
    pub network: f64,
    /// Requests in flight.
    pub in_flight: u32,
    /// Estimated response time of a request that arrives now.
    pub latency_nanos: Option<u64>,
}

/// Balancing policy: receives events, and chooses a server for each request. Calls come in the order of their moments.
///
/// Only servers that are up are chosen; requests of a server that is down may still finish. `started` follows for each server that was
/// chosen and really got the request; `finished` follows each `started` once, whatever became of the server.
pub trait Policy: std::fmt::Debug {
    fn name(&self) -> &'static str;

    /// Servers that are up, in ascending order.
    fn servers(&self) -> &[ServerId];

    /// A server is up, or its weight has changed. The weight is above 0; 1 is usual.
    fn server_up(&mut self, server: ServerId, weight: f64, now: Moment);

    /// A server must not be chosen any more: it is down, draining, or removed.
    fn server_gone(&mut self, server: ServerId, now: Moment);

    /// Chooses the server of a request; none if no server is up.
    fn choose(&mut self, request: &Request, now: Moment) -> Option<ServerId>;

    /// Chooses another server for a request that those of `tried` have failed. By default the policy chooses once more; if it insists on one
    /// that was tried, the next server in order takes its place.
    fn choose_again(&mut self, request: &Request, tried: &[ServerId], now: Moment) -> Option<ServerId> {
        let named = self.choose(request, now)?;
        if !tried.contains(&named) {
            return Some(named);
        }
        let servers = self.servers();
        let after = servers.partition_point(|server| *server <= named);
        servers[after..].iter().chain(&servers[..after]).find(|server| !tried.contains(server)).copied()
    }

    /// A request was sent to a server.
    fn started(&mut self, _server: ServerId, _request: &Request, _now: Moment) {}

    /// The response began, this time in nanoseconds after the request was started.
    fn first_byte(&mut self, _server: ServerId, _request: &Request, _after_nanos: u64, _now: Moment) {}

    /// A request that was started has ended.
    fn finished(&mut self, _server: ServerId, _request: &Request, _completion: &Completion, _now: Moment) {}

    /// A server has reported its state: by itself, or in response to a probe ([`Policy::probes`]).
    fn reported(&mut self, _server: ServerId, _state: &ServerState, _now: Moment) {}

    /// Appends to `wanted` the servers to probe now that a request has come; responses arrive through [`Policy::reported`].
    fn probes(&mut self, _now: Moment, _wanted: &mut Vec<ServerId>) {}
}
