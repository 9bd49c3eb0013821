//! Work of a real node: it burns processor time, reads its files, and writes to its disk.
//!
//! Processor time is what the thread really used (`CLOCK_THREAD_CPUTIME_ID`): on a busy machine a request waits as long as
//! it would on any. A service with disk time writes a file synchronously (`O_SYNC`), as large as its response or a page at
//! least, and deletes it, as the disk program of Jones's study (2002) did; how long the disk takes for that is the disk's.

use std::cell::{Cell, RefCell};
use std::fs::{self, OpenOptions};
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use assay_base::clock::thread_cpu_ns;
use assay_cluster::dispatch::node::{NodeSpec, Work};
use assay_cluster::dispatch::{Moment, ServerState};
use assay_cluster::simulate::NodeGroup;
use assay_record::cluster::{NodeTime, NodeUse};
use tokio::sync::Semaphore;
use tokio::task::spawn_blocking;

use crate::node::NodeError;
use crate::node::model_clock::ModelClock;

/// The disk program's file of the study.
const WRITE_BYTES: u64 = 51_250;
/// Steps between two readings of the clock, some microseconds.
const STEPS: u32 = 2_000;
/// Nanoseconds in a second.
const NANOS: f64 = 1e9;

/// A node that works on this machine.
#[derive(Debug)]
pub(crate) struct RealNode {
    spec: NodeSpec,
    /// The rate of its link, as the cluster file has it.
    link_bits_per_s: Option<f64>,
    clock: ModelClock,
    directory: Arc<PathBuf>,
    /// Requests that are worked on at a time.
    workers: Arc<Semaphore>,
    in_flight: Cell<u32>,
    /// Processor and disk time used, in nanoseconds.
    used: Arc<(AtomicU64, AtomicU64)>,
    reported: Cell<(Moment, f64, f64)>,
    sampled: Cell<(Moment, f64, f64)>,
    /// Bytes of responses, in all and when it was sampled.
    sent: Cell<u64>,
    sampled_sent: Cell<u64>,
    /// Smoothed time of recent requests.
    latency_nanos: Cell<Option<u64>>,
    number: RefCell<u64>,
}

impl RealNode {
    /// Takes a directory for itself.
    pub(crate) fn new(group: &NodeGroup, directory: &Path, clock: ModelClock) -> Result<Self, NodeError> {
        let (spec, link_bits_per_s) = (group.node, group.link_bits_per_s);
        fs::create_dir_all(directory)
            .map_err(|cause| NodeError::Directory { path: directory.display().to_string(), cause })?;
        let now = clock.now();
        Ok(Self {
            spec,
            link_bits_per_s,
            clock,
            directory: Arc::new(directory.to_owned()),
            workers: Arc::new(Semaphore::new(spec.workers.map_or(Semaphore::MAX_PERMITS, |n| n as usize))),
            in_flight: Cell::new(0),
            used: Arc::default(),
            reported: Cell::new((now, 0.0, 0.0)),
            sampled: Cell::new((now, 0.0, 0.0)),
            sent: Cell::new(0),
            sampled_sent: Cell::new(0),
            latency_nanos: Cell::new(None),
            number: RefCell::new(0),
        })
    }

    /// Works a request off. False: it takes no more, or its disk does not.
    pub(crate) async fn work(&self, work: Work, bytes: u64) -> bool {
        let most = self.spec.workers.zip(self.spec.queue).map(|(workers, queue)| workers + queue);
        if most.is_some_and(|most| self.in_flight.get() >= most) {
            return false;
        }
        let came = self.clock.now();
        self.in_flight.set(self.in_flight.get() + 1);
        let _in_flight = InFlightGuard(&self.in_flight);
        // It is closed by nobody.
        let Ok(_permit) = self.workers.acquire().await else { return false };
        let number = self.number.replace_with(|number| *number + 1);
        let (directory, used) = (Arc::clone(&self.directory), Arc::clone(&self.used));
        let processor_s = work.processor_s / self.spec.speed * self.clock.scale();
        let worked = spawn_blocking(move || -> std::io::Result<()> {
            let processor = burn(processor_s);
            used.0.fetch_add(processor, Ordering::Relaxed);
            if work.disk_s > 0.0 || work.document.is_some() {
                let before = assay_base::clock::monotonic_ns();
                touch_disk(&directory, number, work, bytes)?;
                used.1.fetch_add(assay_base::clock::monotonic_ns() - before, Ordering::Relaxed);
            }
            Ok(())
        });
        let fine = matches!(worked.await, Ok(Ok(())));
        let took = self.clock.now().nanos_since(came);
        // Exponentially weighted: the last four requests make up most of it.
        let smooth = self.latency_nanos.get().map_or(took, |old| old - old / 4 + took / 4);
        self.latency_nanos.set(Some(smooth));
        fine
    }

    /// Counts bytes of a response that were sent.
    pub(crate) fn sent(&self, bytes: u64) {
        self.sent.set(self.sent.get() + bytes);
    }

    fn shares(&self, since: (Moment, f64, f64)) -> ((Moment, f64, f64), f64, f64) {
        let now = self.clock.now();
        let used = |counter: &AtomicU64| counter.load(Ordering::Relaxed) as f64 / NANOS / self.clock.scale();
        let (processor, disk) = (used(&self.used.0), used(&self.used.1));
        let passed = now.secs_since(since.0).max(1e-9);
        let share =
            |used: f64, before: f64, of: u32| ((used - before) / passed / f64::from(of.max(1))).min(1.0);
        let shares = (share(processor, since.1, self.spec.processors), share(disk, since.2, self.spec.disks));
        ((now, processor, disk), shares.0, shares.1)
    }

    /// State since the last call.
    pub(crate) fn report(&self) -> ServerState {
        let (now, processor, disk) = self.shares(self.reported.get());
        self.reported.set(now);
        let in_flight = self.in_flight.get();
        ServerState { processor, disk, network: 0.0, in_flight, latency_nanos: self.latency_nanos.get() }
    }

    /// Time used since the start.
    pub(crate) fn used(&self) -> NodeTime {
        let used = |counter: &AtomicU64| counter.load(Ordering::Relaxed) as f64 / NANOS / self.clock.scale();
        let bits = self.sent.get() as f64 * 8.0;
        NodeTime {
            at_s: self.clock.now().secs_since(Moment::START),
            processor_s: used(&self.used.0) / f64::from(self.spec.processors.max(1)),
            disk_s: used(&self.used.1) / f64::from(self.spec.disks.max(1)),
            network_s: self.link_bits_per_s.map_or(0.0, |per_s| bits / per_s),
        }
    }

    /// Utilisation since the last sample.
    pub(crate) fn sample(&self) -> NodeUse {
        let since = self.sampled.get().0;
        let (now, processor, disk) = self.shares(self.sampled.get());
        self.sampled.set(now);
        let sent = self.sent.get();
        let bits = (sent - self.sampled_sent.replace(sent)) as f64 * 8.0;
        let possible = self.link_bits_per_s.unwrap_or(0.0) * now.0.secs_since(since);
        let network = if possible > 0.0 { (bits / possible).min(1.0) } else { 0.0 };
        NodeUse { processor, disk, network, in_flight: f64::from(self.in_flight.get()) }
    }
}

/// Counts a request out, however its connection ends.
struct InFlightGuard<'a>(&'a Cell<u32>);

impl Drop for InFlightGuard<'_> {
    fn drop(&mut self) {
        self.0.set(self.0.get().saturating_sub(1));
    }
}

/// Burns processor time of the calling thread; returns the time used, in nanoseconds.
pub fn burn(seconds: f64) -> u64 {
    let before = thread_cpu_ns();
    let until = before + (seconds.max(0.0) * NANOS) as u64;
    let mut x = 1.000_1_f64;
    loop {
        let now = thread_cpu_ns();
        if now >= until {
            return now - before;
        }
        for _ in 0..STEPS {
            x = std::hint::black_box((x * 1.000_000_1).sqrt() + 0.5);
        }
    }
}

/// Reads the document, which is made at the first request for it; writes what the disk's time is for.
fn touch_disk(directory: &Path, number: u64, work: Work, bytes: u64) -> std::io::Result<()> {
    if let Some((document, size)) = work.document {
        let path = directory.join(format!("document-{document:016x}"));
        match fs::read(&path) {
            Ok(there) if there.len() as u64 == size => drop(std::hint::black_box(there)),
            _ => {
                // Another request may read it meanwhile: it comes into being at once.
                let made = directory.join(format!("making-{number}"));
                fs::write(&made, vec![b'a'; size as usize])?;
                fs::rename(&made, &path)?;
            }
        }
    }
    if work.disk_s > 0.0 {
        let path = directory.join(format!("written-{number}"));
        let mut file = OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(true)
            .custom_flags(libc::O_SYNC)
            .open(&path)?;
        file.write_all(&vec![b'a'; bytes.max(WRITE_BYTES) as usize])?;
        drop(file);
        fs::remove_file(&path)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_burnt_is_the_threads_own_time() {
        let used = burn(0.005);
        assert!(used >= 5_000_000, "{used}");
        assert!(burn(0.0) < 5_000_000);
    }

    #[test]
    fn a_document_is_made_once_and_what_is_written_is_deleted() {
        let directory = tempfile::tempdir().expect("a directory");
        let read = Work { processor_s: 0.0, disk_s: 0.001, document: Some((7, 1000)) };
        for number in 0..3 {
            touch_disk(directory.path(), number, read, 10).expect("a disk");
        }
        let names: Vec<_> = fs::read_dir(directory.path()).expect("is there").flatten().collect();
        assert_eq!(names.len(), 1);
        assert_eq!(names[0].metadata().expect("a file").len(), 1000);
    }
}
