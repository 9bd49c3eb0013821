//! Exponentially smoothed states of servers, from their reports.

use crate::dispatch::moment::Moment;
use crate::dispatch::policy::{ServerId, ServerState};

#[derive(Debug, Clone, Copy, Default)]
struct SmoothedState {
    state: ServerState,
    /// Moment of the last report.
    at: Option<Moment>,
}

/// Smoothed states by server.
#[derive(Debug, Clone, Default)]
pub(crate) struct ServerStates {
    all: Vec<SmoothedState>,
}

impl ServerStates {
    /// Adds a report. `trust` is its weight in the smoothed state; a first report counts whole.
    pub(crate) fn report(&mut self, server: ServerId, state: &ServerState, trust: f64, now: Moment) {
        if self.all.len() <= server.index() {
            self.all.resize(server.index() + 1, SmoothedState::default());
        }
        let smoothed = &mut self.all[server.index()];
        let trust = if smoothed.at.is_some() { trust } else { 1.0 };
        let blend = |old: f64, new: f64| old + trust * (new.clamp(0.0, 1.0) - old);
        let old = smoothed.state;
        smoothed.state = ServerState {
            processor: blend(old.processor, state.processor),
            disk: blend(old.disk, state.disk),
            network: blend(old.network, state.network),
            ..*state
        };
        smoothed.at = Some(now);
    }

    /// Drops the state of a server.
    pub(crate) fn forget(&mut self, server: ServerId) {
        if let Some(smoothed) = self.all.get_mut(server.index()) {
            *smoothed = SmoothedState::default();
        }
    }

    /// Smoothed state of a server; none if its last report is older than `stale_after_s`.
    pub(crate) fn fresh(&self, server: ServerId, stale_after_s: f64, now: Moment) -> Option<ServerState> {
        let smoothed = self.all.get(server.index())?;
        smoothed.at.filter(|at| now.secs_since(*at) <= stale_after_s).map(|_| smoothed.state)
    }
}
