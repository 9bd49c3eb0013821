//! A worker of the robots, watching itself. What it reports of its own doing, and the breath that it takes.

use super::crew::{Crew, Report};
use crate::watch::Watch;
use assay_plane::worker::Breather;

/// What a worker has to do with itself.
#[derive(Debug)]
pub struct Health {
    /// None: it does not watch itself.
    pub watch: Option<Watch>,
    /// Keeps a real-time thread from shutting others out.
    pub breather: Breather,
}

impl Crew {
    /// Looks at itself, and tells of stalls.
    pub fn look_at_itself(&mut self, now_ns: u64) {
        self.health.breather.breathe(now_ns);
        let Some(watch) = &mut self.health.watch else { return };
        let stalls = watch.tick(now_ns, &mut self.timer.account());
        for stall in stalls {
            self.report(Report::Stall(stall));
        }
    }

    /// Tells what it saw of itself since the last cut.
    pub fn hand_over_health(&mut self, now_ns: u64) {
        let phase = self.phase();
        let Some(watch) = &mut self.health.watch else { return };
        let interval = watch.cut(now_ns, phase, &mut self.timer.account());
        if let Some(interval) = interval {
            self.report(Report::Thread(Box::new(interval)));
        }
    }
}
