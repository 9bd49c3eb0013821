//! The model of a node: how long a request takes. Processors that share their time, a disk with a queue, a memory of
//! documents.
//!
//! A request waits for a worker (if their number is limited), reads its document from disk unless memory has it, shares the
//! processors with all others that are computing, and then waits for its disk work. Requests only ever wait for each other:
//! a node does nothing between the moments that [`Node::next`] names, so whoever drives it (a simulation, or a live virtual
//! node that sleeps) calls [`Node::advance`] then and learns what is done.
//!
//! A node with several processors may be slower than their sum when all are busy (memory and bus are shared):
//! [`NodeSpec::shared_speed`]; and slower still when more requests compute than there are processors:
//! [`NodeSpec::crowded_speed`].

mod disk;
mod latency;
mod memory;
mod sharing;
mod usage;

use std::collections::{HashMap, VecDeque};

use thiserror::Error;

pub use memory::DOCUMENT_OVERHEAD_BYTES;
pub use sharing::Sharing;
pub use usage::Busy;

use crate::dispatch::moment::Moment;
use crate::dispatch::policy::ServerState;
use disk::Disk;
use latency::Latencies;
use memory::Memory;
use usage::Usage;

#[derive(Debug, Clone, Copy, PartialEq)]
pub struct NodeSpec {
    pub processors: u32,
    /// How fast each of them is; 1 takes the processor time of work as it is.
    pub speed: f64,
    /// How fast each is, relative to that, when all are busy.
    pub shared_speed: f64,
    /// How fast each is, relative to that, when more requests compute than there are processors.
    pub crowded_speed: f64,
    /// Disks, each of which serves one request at a time.
    pub disks: u32,
    /// Finding a document on disk.
    pub disk_seek_s: f64,
    pub disk_bytes_per_s: f64,
    /// Memory for documents, each of which needs [`DOCUMENT_OVERHEAD_BYTES`] beside its own bytes; what it does not hold is
    /// read from disk.
    pub memory_bytes: u64,
    /// Requests that are worked on at a time; the others wait. None: all.
    pub workers: Option<u32>,
    /// Requests that may wait for a worker; none: all.
    pub queue: Option<u32>,
}

impl Default for NodeSpec {
    /// One processor and a disk, with more memory than documents.
    fn default() -> Self {
        Self {
            processors: 1,
            speed: 1.0,
            shared_speed: 1.0,
            crowded_speed: 1.0,
            disks: 1,
            disk_seek_s: 0.008,
            disk_bytes_per_s: 20e6,
            memory_bytes: 1 << 40,
            workers: None,
            queue: None,
        }
    }
}

/// What a request costs.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Work {
    /// Processor time, at speed 1.
    pub processor_s: f64,
    /// Disk time that memory does not spare: writes.
    pub disk_s: f64,
    /// The document that is read, and its size.
    pub document: Option<(u64, u64)>,
}

/// One request at a node, as whoever drives it names it.
pub type JobId = u64;

/// The node takes no more.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("all {workers} workers are busy and {queue} requests wait already; send it elsewhere")]
pub struct Refused {
    /// Requests worked on at a time.
    pub workers: u32,
    /// Requests that may wait.
    pub queue: u32,
}

#[derive(Debug, Clone, Copy)]
struct Job {
    work: Work,
    came: Moment,
    /// Requests that were here when it came.
    found: u32,
    stage: Stage,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    Reading,
    Computing,
    Writing,
}

/// A machine at work.
#[derive(Debug)]
pub struct Node {
    spec: NodeSpec,
    now: Moment,
    jobs: HashMap<JobId, Job>,
    waiting: VecDeque<JobId>,
    processors: Sharing<JobId>,
    disk: Disk,
    memory: Memory,
    latencies: Latencies,
    usage: Usage,
    reads: u64,
}

impl Node {
    /// An idle node with an empty memory.
    pub fn new(spec: NodeSpec) -> Self {
        Self {
            spec,
            now: Moment::START,
            jobs: HashMap::new(),
            waiting: VecDeque::new(),
            processors: Sharing::new(spec.processors, spec.speed, spec.shared_speed)
                .crowded_speed(spec.crowded_speed),
            disk: Disk::new(spec.disks),
            memory: Memory::new(spec.memory_bytes),
            latencies: Latencies::default(),
            usage: Usage::default(),
            reads: 0,
        }
    }

    pub fn spec(&self) -> &NodeSpec {
        &self.spec
    }

    /// Requests that it has, waiting ones included.
    pub fn in_flight(&self) -> u32 {
        self.jobs.len() as u32
    }

    /// Documents that were read from disk because memory did not have them.
    pub fn reads(&self) -> u64 {
        self.reads
    }

    /// Puts a document into memory as if it had been read before; it is the one that was used last.
    pub fn remember(&mut self, document: u64, bytes: u64) {
        self.memory.keep(document, bytes);
    }

    /// A request comes. Moments never go back.
    pub fn arrive(
        &mut self,
        id: JobId,
        work: Work,
        now: Moment,
        done: &mut Vec<JobId>,
    ) -> Result<(), Refused> {
        self.advance(now, done);
        let working = self.jobs.len() - self.waiting.len();
        let waits = self.spec.workers.is_some_and(|workers| working >= workers as usize);
        if let (true, Some(queue), Some(workers)) = (waits, self.spec.queue, self.spec.workers)
            && self.waiting.len() >= queue as usize
        {
            return Err(Refused { workers, queue });
        }
        let job = Job { work, came: now, found: self.in_flight(), stage: Stage::Reading };
        self.jobs.insert(id, job);
        if waits {
            self.waiting.push_back(id);
        } else {
            self.begin(id, now);
        }
        self.usage.note(now, self.processors.busy(), self.disk.busy());
        Ok(())
    }

    /// When something will happen next; none when it is idle.
    pub fn next(&self) -> Option<Moment> {
        [self.processors.next(), self.disk.next()].into_iter().flatten().min()
    }

    /// Lets time pass; adds what is done by then to `done`, in the order in which it was.
    pub fn advance(&mut self, now: Moment, done: &mut Vec<JobId>) {
        while let Some(next) = self.next().filter(|next| *next <= now) {
            self.step(next, done);
        }
        self.now = self.now.max(now);
    }

    /// It fails: everything that it has is lost, and its memory is empty. Gives what is lost, in the order of ids.
    pub fn fail(&mut self, now: Moment) -> Vec<JobId> {
        let mut lost: Vec<JobId> = self.jobs.drain().map(|(id, _)| id).collect();
        lost.sort_unstable();
        self.waiting.clear();
        self.processors.clear(now);
        self.disk.clear();
        self.memory = Memory::new(self.spec.memory_bytes);
        self.usage.note(now, 0, 0);
        lost
    }

    /// Processor and disk time that was used since the beginning.
    pub fn busy(&self, now: Moment) -> Busy {
        self.usage.until(now)
    }

    /// How it is, for those who want to know; shares are of the time since `since`, when `before` was used.
    pub fn state(&self, now: Moment, since: Moment, before: Busy) -> ServerState {
        let elapsed_s = now.secs_since(since);
        let Busy { processor_s, disk_s } = self.busy(now);
        let share = |used: f64, of: u32| match elapsed_s > 0.0 {
            true => (used / elapsed_s / f64::from(of.max(1))).clamp(0.0, 1.0),
            false => 0.0,
        };
        ServerState {
            processor: share(processor_s - before.processor_s, self.spec.processors),
            disk: share(disk_s - before.disk_s, self.spec.disks),
            network: 0.0,
            in_flight: self.in_flight(),
            latency_nanos: self.latencies.estimate(self.in_flight()),
        }
    }

    /// What happens at exactly this moment.
    fn step(&mut self, now: Moment, done: &mut Vec<JobId>) {
        while let Some(id) = self.processors.take(now) {
            self.goes_on(id, Stage::Writing, now, done);
        }
        while let Some(id) = self.disk.take(now) {
            let wrote = self.jobs.get(&id).is_some_and(|job| job.stage == Stage::Writing);
            if wrote {
                self.ends(id, now, done);
            } else {
                self.goes_on(id, Stage::Computing, now, done);
            }
        }
        self.usage.note(now, self.processors.busy(), self.disk.busy());
    }

    /// A worker takes a request.
    fn begin(&mut self, id: JobId, now: Moment) {
        let Some(job) = self.jobs.get_mut(&id) else { return };
        if let Some((document, bytes)) = job.work.document
            && !self.memory.has(document)
        {
            let read_s = self.spec.disk_seek_s + bytes as f64 / self.spec.disk_bytes_per_s;
            self.memory.keep(document, bytes);
            self.reads += 1;
            self.disk.add(id, read_s, now);
            return;
        }
        job.stage = Stage::Computing;
        self.processors.add(id, job.work.processor_s, now);
    }

    fn goes_on(&mut self, id: JobId, stage: Stage, now: Moment, done: &mut Vec<JobId>) {
        let Some(job) = self.jobs.get_mut(&id) else { return };
        job.stage = stage;
        match stage {
            Stage::Writing if job.work.disk_s > 0.0 => self.disk.add(id, job.work.disk_s, now),
            Stage::Writing => self.ends(id, now, done),
            Stage::Reading | Stage::Computing => self.processors.add(id, job.work.processor_s, now),
        }
    }

    fn ends(&mut self, id: JobId, now: Moment, done: &mut Vec<JobId>) {
        if let Some(job) = self.jobs.remove(&id) {
            self.latencies.learn(job.found, now.nanos_since(job.came));
            done.push(id);
        }
        if let Some(next) = self.waiting.pop_front() {
            self.begin(next, now);
        }
    }
}

#[cfg(test)]
mod tests;
