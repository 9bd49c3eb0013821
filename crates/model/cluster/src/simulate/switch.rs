//! The switch's processors: a FIFO queue.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use crate::dispatch::Moment;

#[derive(Debug)]
pub struct Switch {
    per_request_s: f64,
    /// Moment from which each processor is free.
    free: BinaryHeap<Reverse<Moment>>,
}

impl Switch {
    pub fn new(processors: u32, per_request_s: f64) -> Self {
        let free = (0..processors.max(1)).map(|_| Reverse(Moment::START)).collect();
        Self { per_request_s, free }
    }

    /// Reads a request; returns the moment of completion.
    pub fn read(&mut self, now: Moment) -> Moment {
        self.work(now, self.per_request_s)
    }

    /// Queues work; returns the moment of completion.
    pub fn work(&mut self, now: Moment, work_s: f64) -> Moment {
        let free = self.free.pop().map_or(now, |Reverse(free)| free);
        let done = free.max(now).plus_secs(work_s);
        self.free.push(Reverse(done));
        done
    }
}
