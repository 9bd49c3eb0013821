//! The disk of a node: when it is done with a request. One request at a time for each disk, in the order in which they came.

use std::collections::VecDeque;

use crate::dispatch::moment::Moment;
use crate::dispatch::node::JobId;

/// Disks with one queue.
#[derive(Debug)]
pub(super) struct Disk {
    disks: u32,
    /// What they are working on and until when; the first is done first.
    working: Vec<(Moment, JobId)>,
    waiting: VecDeque<(JobId, f64)>,
}

impl Disk {
    pub(super) fn new(disks: u32) -> Self {
        Self { disks: disks.max(1), working: Vec::new(), waiting: VecDeque::new() }
    }

    pub(super) fn busy(&self) -> u32 {
        self.working.len() as u32
    }

    pub(super) fn add(&mut self, job: JobId, work_s: f64, now: Moment) {
        if self.busy() < self.disks {
            self.start(job, work_s, now);
        } else {
            self.waiting.push_back((job, work_s));
        }
    }

    pub(super) fn next(&self) -> Option<Moment> {
        self.working.first().map(|(until, _)| *until)
    }

    /// What is done by now; call it until there is nothing.
    pub(super) fn take(&mut self, now: Moment) -> Option<JobId> {
        self.next().filter(|next| *next <= now)?;
        let (until, job) = self.working.remove(0);
        if let Some((next, work_s)) = self.waiting.pop_front() {
            self.start(next, work_s, until);
        }
        Some(job)
    }

    pub(super) fn clear(&mut self) {
        self.working.clear();
        self.waiting.clear();
    }

    fn start(&mut self, job: JobId, work_s: f64, now: Moment) {
        let until = now.plus_secs(work_s.max(0.0));
        let place = self.working.partition_point(|(other, _)| *other <= until);
        self.working.insert(place, (until, job));
    }
}
