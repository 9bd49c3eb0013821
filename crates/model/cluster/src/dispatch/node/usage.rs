//! How much of its processors and disks a node has used.

use crate::dispatch::moment::Moment;

/// Time used, summed over processors and over disks.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Busy {
    pub processor_s: f64,
    pub disk_s: f64,
}

/// How many were busy, integrated over time.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Usage {
    used: Busy,
    at: Moment,
    processors: u32,
    disks: u32,
}

impl Usage {
    /// From now on so many are busy.
    pub(super) fn note(&mut self, now: Moment, processors: u32, disks: u32) {
        self.used = self.until(now);
        (self.at, self.processors, self.disks) = (self.at.max(now), processors, disks);
    }

    pub(super) fn until(&self, now: Moment) -> Busy {
        let passed_s = now.secs_since(self.at);
        Busy {
            processor_s: self.used.processor_s + passed_s * f64::from(self.processors),
            disk_s: self.used.disk_s + passed_s * f64::from(self.disks),
        }
    }
}
