//! When the switch has read a request. Processors that take them one by one, in the order in which they came.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use crate::dispatch::Moment;

#[derive(Debug)]
pub struct Switch {
    per_request_s: f64,
    /// When each of them is free.
    free: BinaryHeap<Reverse<Moment>>,
}

impl Switch {
    /// So many processors, each of which needs so long for a request.
    pub fn new(processors: u32, per_request_s: f64) -> Self {
        let free = (0..processors.max(1)).map(|_| Reverse(Moment::START)).collect();
        Self { per_request_s, free }
    }

    /// A request comes; it is read at the moment that this gives.
    pub fn read(&mut self, now: Moment) -> Moment {
        self.work(now, self.per_request_s)
    }

    /// There is so much for it to do; it is done at the moment that this gives.
    pub fn work(&mut self, now: Moment, work_s: f64) -> Moment {
        let free = self.free.pop().map_or(now, |Reverse(free)| free);
        let done = free.max(now).plus_secs(work_s);
        self.free.push(Reverse(done));
        done
    }
}
