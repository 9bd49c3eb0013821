//! The subscribers to the events of a run. All subscribe before it begins.

use std::sync::Arc;

use assay_record::event::RunEvent;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

/// Channel of a listener: every event, in order. It closes when the run has ended.
pub type EventReceiver = UnboundedReceiver<Arc<RunEvent>>;

/// All who listen to a run: the terminal, the requirements, the server of `--serve`.
#[derive(Debug, Default)]
pub struct Listeners {
    told: Vec<UnboundedSender<Arc<RunEvent>>>,
}

impl Listeners {
    /// One more; it may listen on another thread.
    pub fn join(&mut self) -> EventReceiver {
        let (sender, heard) = unbounded_channel();
        self.told.push(sender);
        heard
    }

    /// Sends all of them one event. A listener that is gone gets none.
    pub fn send(&mut self, event: RunEvent) {
        let event = Arc::new(event);
        self.told.retain(|listener| listener.send(event.clone()).is_ok());
    }

    /// Tells all of them everything, until the run has nothing more to tell.
    pub async fn forward(mut self, mut events: UnboundedReceiver<RunEvent>) {
        while let Some(event) = events.recv().await {
            self.send(event);
        }
    }
}

#[cfg(test)]
mod tests {
    use assay_protocol::message::PhaseEvent;

    use super::*;

    #[test]
    fn everybody_hears_everything_and_who_leaves_is_missed_by_nobody() {
        let mut listeners = Listeners::default();
        let (mut one, other) = (listeners.join(), listeners.join());
        listeners.send(RunEvent::Phase(PhaseEvent::Began { phase: 0, at_ms: 0 }));
        drop(other);
        listeners.send(RunEvent::Finished);
        drop(listeners);
        assert!(matches!(*one.try_recv().unwrap(), RunEvent::Phase(PhaseEvent::Began { .. })));
        assert!(matches!(*one.try_recv().unwrap(), RunEvent::Finished));
        assert!(one.try_recv().is_err());
    }
}
