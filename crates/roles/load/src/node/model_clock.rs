//! Moments of the model in real time, at a scale: on a small machine a cluster may run slower than it would.

use std::future::Future;

use assay_base::clock::monotonic_ns;
use assay_cluster::dispatch::Moment;
use assay_net::timer::Timer;
use tokio::sync::oneshot;

/// Clock of the model, converted to `CLOCK_MONOTONIC` and back.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ModelClock {
    start_ns: u64,
    /// Real seconds in a second of the model.
    scale: f64,
}

impl ModelClock {
    /// Starts now; a second of the model takes `scale` real ones.
    pub fn now_at(scale: f64) -> Self {
        Self { start_ns: monotonic_ns(), scale }
    }

    pub fn now(&self) -> Moment {
        let passed_ns = monotonic_ns().saturating_sub(self.start_ns);
        if self.scale == 1.0 {
            return Moment::from_nanos(passed_ns);
        }
        Moment::from_nanos((passed_ns as f64 / self.scale) as u64)
    }

    /// Instant of a moment on the real clock. Never before the moment itself.
    pub fn at_ns(&self, moment: Moment) -> u64 {
        if self.scale == 1.0 {
            return self.start_ns.saturating_add(moment.nanos());
        }
        self.start_ns.saturating_add((moment.nanos() as f64 * self.scale).ceil() as u64 + 1)
    }

    /// Real seconds in a second of the model.
    pub fn scale(&self) -> f64 {
        self.scale
    }
}

/// Waits for moments. One task must run [`ModelTimer::run`].
pub(crate) struct ModelTimer {
    clock: ModelClock,
    timer: Timer<oneshot::Sender<()>>,
}

impl ModelTimer {
    pub(crate) fn new(clock: ModelClock) -> std::io::Result<Self> {
        Ok(Self { clock, timer: Timer::new(0)? })
    }

    /// Returns when it is that moment, or soon after.
    pub(crate) fn until(&self, moment: Moment) -> impl Future<Output = ()> + use<> {
        let (sender, receiver) = oneshot::channel();
        self.timer.schedule(self.clock.at_ns(moment), sender);
        async {
            // An alarm that is dropped does not go off any more, and then nothing waits for it either.
            let _ = receiver.await;
        }
    }

    pub(crate) async fn run(&self) -> std::io::Result<()> {
        self.timer
            .dispatch(|_, waiting| {
                // The task that waited may be gone.
                let _ = waiting.send(());
            })
            .await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slower_model_reaches_its_moments_later_and_never_early() {
        let slow = ModelClock { start_ns: 1000, scale: 2.5 };
        assert!(slow.at_ns(Moment::from_nanos(100)) >= 1250);
        let usual = ModelClock { start_ns: 1000, scale: 1.0 };
        assert_eq!(usual.at_ns(Moment::from_nanos(100)), 1100);
        let clock = ModelClock::now_at(4.0);
        let before_ns = monotonic_ns();
        let moment = clock.now().plus_nanos(1_000);
        assert!(clock.at_ns(moment) > before_ns);
    }
}
