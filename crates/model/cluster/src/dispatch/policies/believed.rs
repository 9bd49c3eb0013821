//! What is believed of the state of servers, from their reports: each new one counts in part.

use crate::dispatch::moment::Moment;
use crate::dispatch::policy::{ServerId, ServerState};

#[derive(Debug, Clone, Copy, Default)]
struct Believed {
    state: ServerState,
    at: Option<Moment>,
}

/// What is believed, by server.
#[derive(Debug, Clone, Default)]
pub(crate) struct Beliefs {
    all: Vec<Believed>,
}

impl Beliefs {
    /// A server has reported. `trust`: the part of the report in what is believed; all of it if nothing was.
    pub(crate) fn report(&mut self, server: ServerId, state: &ServerState, trust: f64, now: Moment) {
        if self.all.len() <= server.index() {
            self.all.resize(server.index() + 1, Believed::default());
        }
        let believed = &mut self.all[server.index()];
        let trust = if believed.at.is_some() { trust } else { 1.0 };
        let blend = |old: f64, new: f64| old + trust * (new.clamp(0.0, 1.0) - old);
        let old = believed.state;
        believed.state = ServerState {
            processor: blend(old.processor, state.processor),
            disk: blend(old.disk, state.disk),
            network: blend(old.network, state.network),
            ..*state
        };
        believed.at = Some(now);
    }

    /// Nothing is believed of a server any more.
    pub(crate) fn forget(&mut self, server: ServerId) {
        if let Some(believed) = self.all.get_mut(server.index()) {
            *believed = Believed::default();
        }
    }

    /// What is believed of a server; none if it has not reported for so long.
    pub(crate) fn fresh(&self, server: ServerId, stale_after_s: f64, now: Moment) -> Option<ServerState> {
        let believed = self.all.get(server.index())?;
        believed.at.filter(|at| now.secs_since(*at) <= stale_after_s).map(|_| believed.state)
    }
}
