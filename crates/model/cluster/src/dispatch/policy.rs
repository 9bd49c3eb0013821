//! The interface of policies: the events that one gets, and the choices that it makes. One trait for all of them.

use crate::dispatch::moment::Moment;

/// A server: a small number that whoever uses the policy gives it, and that stays with it when it goes and
/// comes back. Policies keep tables by it, so numbers should be close to each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ServerId(pub u32);

impl ServerId {
    pub(crate) const fn index(self) -> usize {
        self.0 as usize
    }
}

/// A class of requests: a small number, from 0.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ClassId(pub u16);

/// What a policy may know of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Request {
    pub class: ClassId,
    /// A hash of what it requests: equal for equal targets.
    pub document: u64,
}

/// How a request ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Finish {
    /// Nanoseconds since it was started on that server.
    pub took_nanos: u64,
    /// What it ended with.
    pub end: End,
}

/// What a request ended with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    Responded,
    /// The server failed it: refused, reset, or too late.
    Failed,
    /// Its client left before there was a response, which would have taken longer than the request did.
    Left,
}

/// The state that a server reports, by itself or in response to a probe. Shares are of the time since the last report, 0 to 1.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct ServerState {
    /// Share of its processors that was busy.
    pub processor: f64,
    /// Share of its disks that was busy.
    pub disk: f64,
    /// Share of its network that was busy.
    pub network: f64,
    /// Requests that it has now.
    pub in_flight: u32,
    /// How long it thinks that a request takes which comes now.
    pub latency_nanos: Option<u64>,
}

/// A policy: gets the events, and chooses a server for each request. Calls come in the order of their moments.
///
/// A server that is up can be named; one that is gone never is, although requests that it has may still finish.
/// `started` follows for each server that was named and really got the request; `finished` follows each `started` once,
/// whatever became of the server.
pub trait Policy: std::fmt::Debug {
    /// What it is called.
    fn name(&self) -> &'static str;

    /// The servers that can be named now, in ascending order.
    fn servers(&self) -> &[ServerId];

    /// A server can be named from now on, or its weight has changed. The weight is above 0; 1 is usual.
    fn server_up(&mut self, server: ServerId, weight: f64, now: Moment);

    /// A server must not be named any more: it is down, draining, or gone for good.
    fn server_gone(&mut self, server: ServerId, now: Moment);

    /// Chooses the server of a request; none when there is none.
    fn choose(&mut self, request: &Request, now: Moment) -> Option<ServerId>;

    /// Chooses another server for a request that those of `tried` have failed. Without an implementation of its own, a policy
    /// chooses once more; if it insists on one that was tried, the next server after that one takes its place.
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

    /// The response began, so many nanoseconds after the request was started.
    fn first_byte(&mut self, _server: ServerId, _request: &Request, _after_nanos: u64, _now: Moment) {}

    /// A request that was started has ended.
    fn finished(&mut self, _server: ServerId, _request: &Request, _how: &Finish, _now: Moment) {}

    /// A server has reported its state: by itself, or in response to a probe ([`Policy::probes`]).
    fn reported(&mut self, _server: ServerId, _state: &ServerState, _now: Moment) {}

    /// Servers that should be probed now that a request has come; responses come through
    /// [`Policy::reported`]. They are added to `wanted`.
    fn probes(&mut self, _now: Moment, _wanted: &mut Vec<ServerId>) {}
}
