//! Disks of a node: a FIFO queue, served by one request at a time for each disk.

use std::collections::VecDeque;

use crate::dispatch::moment::Moment;
use crate::dispatch::node::JobKey;

/// Disks with one queue.
#[derive(Debug)]
pub(super) struct Disk {
    disks: u32,
    /// Jobs in service with the time of their completion, soonest first.
    working: Vec<(Moment, JobKey)>,
    waiting: VecDeque<(JobKey, f64)>,
}

impl Disk {
    pub(super) fn new(disks: u32) -> Self {
        Self { disks: disks.max(1), working: Vec::new(), waiting: VecDeque::new() }
    }

    pub(super) fn busy(&self) -> u32 {
        self.working.len() as u32
    }

    pub(super) fn add(&mut self, job: JobKey, work_s: f64, now: Moment) {
        if self.busy() < self.disks {
            self.start(job, work_s, now);
        } else {
            self.waiting.push_back((job, work_s));
        }
    }

    pub(super) fn next_event(&self) -> Option<Moment> {
        self.working.first().map(|(until, _)| *until)
    }

    /// A job that is complete by now; called until there is none.
    pub(super) fn pop_done(&mut self, now: Moment) -> Option<JobKey> {
        self.next_event().filter(|next| *next <= now)?;
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

    fn start(&mut self, job: JobKey, work_s: f64, now: Moment) {
        let until = now.plus_secs(work_s.max(0.0));
        let index = self.working.partition_point(|(other, _)| *other <= until);
        self.working.insert(index, (until, job));
    }
}
