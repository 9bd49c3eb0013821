//! Utilisation of a node's processors and disks.

use crate::dispatch::moment::Moment;

/// Busy time, summed over processors and over disks.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct BusyTime {
    pub processor_s: f64,
    pub disk_s: f64,
}

/// Number of busy processors and disks, integrated over time.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Usage {
    used: BusyTime,
    at: Moment,
    processors: u32,
    disks: u32,
}

impl Usage {
    /// Sets the numbers of busy processors and disks from now on.
    pub(super) fn note(&mut self, now: Moment, processors: u32, disks: u32) {
        self.used = self.until(now);
        (self.at, self.processors, self.disks) = (self.at.max(now), processors, disks);
    }

    pub(super) fn until(&self, now: Moment) -> BusyTime {
        let passed_s = now.secs_since(self.at);
        BusyTime {
            processor_s: self.used.processor_s + passed_s * f64::from(self.processors),
            disk_s: self.used.disk_s + passed_s * f64::from(self.disks),
        }
    }
}
