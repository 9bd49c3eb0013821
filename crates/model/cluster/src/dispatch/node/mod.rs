//! Model of a node: processor sharing, disks with a queue, and a memory of documents.
//!
//! A request waits for a worker (if their number is limited), reads its document from disk unless it is in memory, shares the
//! processors with all others that are computing, and then waits for its disk work. Nothing happens between the events whose times
//! [`Node::next_event`] returns, so its caller (a simulation, or a live virtual node that sleeps) calls [`Node::advance`] at those
//! times and receives the requests that are complete.
//!
//! A node with several processors may be slower than their sum when all are busy (memory and bus are shared):
//! [`NodeSpec::shared_speed`]; and slower still when more requests compute than there are processors:
//! [`NodeSpec::crowded_speed`].

mod disk;
mod latency;
mod memory;
mod sharing;
mod usage;

use std::collections::VecDeque;

use slotmap::{SlotMap, new_key_type};
use thiserror::Error;

pub use memory::DOCUMENT_OVERHEAD_BYTES;
pub use sharing::ProcessorSharing;
pub use usage::BusyTime;

use crate::dispatch::moment::Moment;
use crate::dispatch::policy::ServerState;
use disk::Disk;
use latency::Latencies;
use memory::Memory;
use usage::Usage;

#[derive(Debug, Clone, Copy, PartialEq)]
pub struct NodeSpec {
    pub processors: u32,
    /// Speed of each processor; 1 takes the processor time of work as it is.
    pub speed: f64,
    /// Speed of each processor when all are busy, relative to `speed`.
    pub shared_speed: f64,
    /// Speed of each processor when more requests compute than there are processors, relative to `speed`.
    pub crowded_speed: f64,
    /// Disks, each of which serves one request at a time.
    pub disks: u32,
    /// Time to find a document on disk.
    pub disk_seek_s: f64,
    pub disk_bytes_per_s: f64,
    /// Memory for documents, each of which needs [`DOCUMENT_OVERHEAD_BYTES`] beside its own bytes; others are read from disk.
    pub memory_bytes: u64,
    /// Requests in service at a time; the others wait. None: no limit.
    pub workers: Option<u32>,
    /// Requests that may wait for a worker; none: no limit.
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

/// Service demands of a request.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Work {
    /// Processor time, at speed 1.
    pub processor_s: f64,
    /// Disk time that memory does not save: writes.
    pub disk_s: f64,
    /// The document that is read, and its size.
    pub document: Option<(u64, u64)>,
}

/// A request that is refused, because the queue is full.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("all {workers} workers are busy and {queue} requests wait already; send it elsewhere")]
pub struct QueueFull {
    /// Requests worked on at a time.
    pub workers: u32,
    /// Requests that may wait.
    pub queue: u32,
}

new_key_type! {
    /// Key of a request in a node.
    struct JobKey;
}

#[derive(Debug, Clone, Copy)]
struct Job<T> {
    request: T,
    work: Work,
    arrived_at: Moment,
    /// Requests that were in the node when this one arrived.
    queue_length: u32,
    stage: JobStage,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum JobStage {
    Reading,
    Computing,
    Writing,
}

/// A node. `T` is what the caller knows a request by.
#[derive(Debug)]
pub struct Node<T> {
    spec: NodeSpec,
    now: Moment,
    jobs: SlotMap<JobKey, Job<T>>,
    waiting: VecDeque<JobKey>,
    processors: ProcessorSharing<JobKey>,
    disk: Disk,
    memory: Memory,
    latencies: Latencies,
    usage: Usage,
    reads: u64,
}

impl<T: Copy + Ord> Node<T> {
    /// An idle node with an empty memory.
    pub fn new(spec: NodeSpec) -> Self {
        Self {
            spec,
            now: Moment::START,
            jobs: SlotMap::with_key(),
            waiting: VecDeque::new(),
            processors: ProcessorSharing::new(spec.processors, spec.speed, spec.shared_speed)
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

    /// Requests in the node, waiting ones included.
    pub fn in_flight(&self) -> u32 {
        self.jobs.len() as u32
    }

    /// Documents read from disk because they were not in memory.
    pub fn reads(&self) -> u64 {
        self.reads
    }

    /// Puts a document into memory, as the most recently used, without reading it.
    pub fn preload(&mut self, document: u64, bytes: u64) {
        self.memory.insert(document, bytes);
    }

    /// Adds a request. Moments never go back.
    pub fn arrive(
        &mut self,
        request: T,
        work: Work,
        now: Moment,
        done: &mut Vec<T>,
    ) -> Result<(), QueueFull> {
        self.advance(now, done);
        let working = self.jobs.len() - self.waiting.len();
        let waits = self.spec.workers.is_some_and(|workers| working >= workers as usize);
        if let (true, Some(queue), Some(workers)) = (waits, self.spec.queue, self.spec.workers)
            && self.waiting.len() >= queue as usize
        {
            return Err(QueueFull { workers, queue });
        }
        let job =
            Job { request, work, arrived_at: now, queue_length: self.in_flight(), stage: JobStage::Reading };
        let key = self.jobs.insert(job);
        if waits {
            self.waiting.push_back(key);
        } else {
            self.start(key, now);
        }
        self.usage.note(now, self.processors.busy(), self.disk.busy());
        Ok(())
    }

    /// Time of the next event; none when the node is idle.
    pub fn next_event(&self) -> Option<Moment> {
        [self.processors.next_event(), self.disk.next_event()].into_iter().flatten().min()
    }

    /// Advances to a moment; appends requests that are complete by then to `done`, in the order of completion.
    pub fn advance(&mut self, now: Moment, done: &mut Vec<T>) {
        while let Some(next) = self.next_event().filter(|next| *next <= now) {
            self.step(next, done);
        }
        self.now = self.now.max(now);
    }

    /// Fails the node: all requests are lost, and memory is empty. Returns the lost requests in ascending order.
    pub fn fail(&mut self, now: Moment) -> Vec<T> {
        let mut lost: Vec<T> = self.jobs.drain().map(|(_, job)| job.request).collect();
        lost.sort_unstable();
        self.waiting.clear();
        self.processors.clear(now);
        self.disk.clear();
        self.memory = Memory::new(self.spec.memory_bytes);
        self.usage.note(now, 0, 0);
        lost
    }

    /// Processor and disk time used since the start.
    pub fn busy(&self, now: Moment) -> BusyTime {
        self.usage.until(now)
    }

    /// State for a report; shares are of the time since `since`, when the busy time was `before`.
    pub fn state(&self, now: Moment, since: Moment, before: BusyTime) -> ServerState {
        let elapsed_s = now.secs_since(since);
        let BusyTime { processor_s, disk_s } = self.busy(now);
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

    /// Processes the events of exactly this moment.
    fn step(&mut self, now: Moment, done: &mut Vec<T>) {
        while let Some(key) = self.processors.pop_done(now) {
            self.continue_job(key, JobStage::Writing, now, done);
        }
        while let Some(key) = self.disk.pop_done(now) {
            if self.jobs[key].stage == JobStage::Writing {
                self.finish(key, now, done);
            } else {
                self.continue_job(key, JobStage::Computing, now, done);
            }
        }
        self.usage.note(now, self.processors.busy(), self.disk.busy());
    }

    /// Starts a request on a worker.
    fn start(&mut self, key: JobKey, now: Moment) {
        let job = &mut self.jobs[key];
        if let Some((document, bytes)) = job.work.document
            && !self.memory.touch(document)
        {
            let read_s = self.spec.disk_seek_s + bytes as f64 / self.spec.disk_bytes_per_s;
            self.memory.insert(document, bytes);
            self.reads += 1;
            self.disk.add(key, read_s, now);
            return;
        }
        job.stage = JobStage::Computing;
        self.processors.add(key, job.work.processor_s, now);
    }

    fn continue_job(&mut self, key: JobKey, stage: JobStage, now: Moment, done: &mut Vec<T>) {
        let job = &mut self.jobs[key];
        job.stage = stage;
        match stage {
            JobStage::Writing if job.work.disk_s > 0.0 => self.disk.add(key, job.work.disk_s, now),
            JobStage::Writing => self.finish(key, now, done),
            JobStage::Reading | JobStage::Computing => self.processors.add(key, job.work.processor_s, now),
        }
    }

    fn finish(&mut self, key: JobKey, now: Moment, done: &mut Vec<T>) {
        if let Some(job) = self.jobs.remove(key) {
            self.latencies.record(job.queue_length, now.nanos_since(job.arrived_at));
            done.push(job.request);
        }
        if let Some(next) = self.waiting.pop_front() {
            self.start(next, now);
        }
    }
}

#[cfg(test)]
mod tests;
