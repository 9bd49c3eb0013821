//! Trace of the requests to the disk of the proxy's store: positions and distances.
//!
//! The tracepoint `block:block_rq_issue` writes a line for each request into a private instance of tracefs; a thread sums the
//! lines, so that memory does not grow with the run. Nothing global is changed: tracefs is not mounted, and the instance is
//! removed on drop, or by the next one if Assay is killed.

use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions};
use std::io::Read;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use assay_measurement::machine::BlockInterval;

use super::disks::{DiskDevice, disk_of};
use super::instance::{TraceError, TraceInstance};
use super::pacer::thread_cpu_time;

/// Size of the trace buffer per processor, in KiB: some 50,000 lines.
const BUFFER_KIB: &str = "4096";
/// Interval between readings of the buffer.
const EVERY: Duration = Duration::from_millis(100);
const EVENT: &str = "events/block/block_rq_issue";

/// A running trace of a disk.
#[derive(Debug)]
pub struct BlockTrace {
    reader: Arc<Mutex<TraceReader>>,
    /// Ends the thread when it is dropped.
    running: Option<mpsc::Sender<()>>,
    thread: Option<JoinHandle<()>>,
    instance: Option<TraceInstance>,
}

impl BlockTrace {
    /// Starts to trace the disk of `store`.
    pub fn start(store: &Path) -> Result<Self, TraceError> {
        let device = disk_of(store).ok_or_else(|| TraceError::NoDisk(store.to_owned()))?;
        let instance = TraceInstance::create()?;
        let refused = |action| move |error| TraceError::Refused { action, error };
        let set = |file: &str, value: &str, action| {
            fs::write(instance.path().join(file), value).map_err(refused(action))
        };
        set("buffer_size_kb", BUFFER_KIB, "keep a buffer for the trace")?;
        set(&format!("{EVENT}/filter"), &format!("dev == {}", device.number), "trace one disk alone")?;
        let pipe = OpenOptions::new()
            .read(true)
            .custom_flags(rustix::fs::OFlags::NONBLOCK.bits().cast_signed())
            .open(instance.path().join("trace_pipe"))
            .map_err(refused("hand out the trace"))?;
        set(&format!("{EVENT}/enable"), "1", "trace requests to disks")?;
        let reader = Arc::new(Mutex::new(TraceReader::new(device, pipe)));
        let (running, ended) = mpsc::channel();
        let thread = std::thread::Builder::new().name("trace".into());
        let read = Arc::clone(&reader);
        let thread = thread
            .spawn(move || {
                while ended.recv_timeout(EVERY) == Err(RecvTimeoutError::Timeout) {
                    let mut reader = read.lock().unwrap_or_else(PoisonError::into_inner);
                    let before = thread_cpu_time();
                    reader.drain();
                    reader.cost += thread_cpu_time().saturating_sub(before);
                }
            })
            .map_err(refused("start a thread"))?;
        Ok(Self { reader, running: Some(running), thread: Some(thread), instance: Some(instance) })
    }

    /// Requests since the last call.
    pub fn intervals(&self, start_ms: u64, length_ms: u64) -> Vec<BlockInterval> {
        let mut reader = self.reader.lock().unwrap_or_else(PoisonError::into_inner);
        reader.drain();
        reader.sums.take(start_ms, length_ms)
    }

    /// Processor time of the thread since the last call.
    pub fn cost(&self) -> Duration {
        std::mem::take(&mut self.reader.lock().unwrap_or_else(PoisonError::into_inner).cost)
    }
}

impl Drop for BlockTrace {
    fn drop(&mut self) {
        drop(self.running.take());
        if let Some(thread) = self.thread.take() {
            // A thread that panicked has nothing more to read.
            let _ = thread.join();
        }
        // The instance cannot be removed while its files are open.
        self.reader.lock().unwrap_or_else(PoisonError::into_inner).pipe = None;
        drop(self.instance.take());
    }
}

#[derive(Debug)]
struct TraceReader {
    pipe: Option<File>,
    rest: Vec<u8>,
    sums: RequestSums,
    cost: Duration,
}

impl TraceReader {
    fn new(device: DiskDevice, pipe: File) -> Self {
        Self {
            pipe: Some(pipe),
            rest: Vec::new(),
            sums: RequestSums { device: device.name, ..RequestSums::default() },
            cost: Duration::ZERO,
        }
    }

    /// Reads all available lines.
    fn drain(&mut self) {
        let Some(pipe) = &mut self.pipe else { return };
        let mut part = [0; 8192];
        // The pipe is non-blocking: an error ends the loop when nothing is left to read.
        while let Ok(length @ 1..) = pipe.read(&mut part) {
            self.rest.extend_from_slice(&part[..length]);
            let mut begin = 0;
            while let Some(end) = self.rest[begin..].iter().position(|byte| *byte == b'\n') {
                self.sums.line(&String::from_utf8_lossy(&self.rest[begin..begin + end]));
                begin += end + 1;
            }
            self.rest.drain(..begin);
        }
    }
}

#[derive(Debug, Default)]
struct RequestSums {
    device: String,
    kinds: BTreeMap<&'static str, OperationSums>,
    lost: u64,
    /// Sector after the last request.
    head: Option<u64>,
}

#[derive(Debug, Default)]
struct OperationSums {
    sums: BlockInterval,
    distances: BTreeMap<u64, u64>,
}

impl RequestSums {
    fn line(&mut self, line: &str) {
        if let Some(lost) = parse_lost(line) {
            self.lost += lost;
            // The position after the lost requests is not known.
            self.head = None;
            return;
        }
        let Some(request) = BlockRequest::parse(line) else { return };
        let kind = self.kinds.entry(request.operation).or_default();
        kind.sums.requests += 1;
        kind.sums.bytes += request.bytes;
        if request.sectors == 0 {
            return;
        }
        let last = request.sector + request.sectors - 1;
        let lowest = if kind.sums.highest_sector == 0 { u64::MAX } else { kind.sums.lowest_sector };
        kind.sums.lowest_sector = lowest.min(request.sector);
        kind.sums.highest_sector = kind.sums.highest_sector.max(last);
        if let Some(head) = self.head {
            let distance = head.abs_diff(request.sector);
            kind.sums.sequential += u64::from(distance == 0);
            kind.sums.seek_bytes += distance * 512;
            *kind.distances.entry(BlockInterval::bucket(distance)).or_default() += 1;
        }
        self.head = Some(last + 1);
    }

    fn take(&mut self, start_ms: u64, length_ms: u64) -> Vec<BlockInterval> {
        let mut kinds = std::mem::take(&mut self.kinds);
        if self.lost > 0 {
            kinds.entry("other").or_default().sums.lost = std::mem::take(&mut self.lost);
        }
        let interval = |(operation, kind): (&str, OperationSums)| BlockInterval {
            start_ms,
            length_ms,
            device: self.device.clone(),
            operation: operation.to_owned(),
            distances: kind.distances.into_iter().collect(),
            ..kind.sums
        };
        kinds.into_iter().map(interval).collect()
    }
}

/// Parses a line such as `CPU:1 [LOST 123 EVENTS]`.
fn parse_lost(line: &str) -> Option<u64> {
    line.strip_prefix("CPU:")?.split_once("[LOST ")?.1.split_whitespace().next()?.parse().ok()
}

#[derive(Debug, PartialEq, Eq)]
struct BlockRequest {
    operation: &'static str,
    bytes: u64,
    sector: u64,
    sectors: u64,
}

impl BlockRequest {
    /// Parses a line `comm-pid [cpu] flags time: block_rq_issue: MAJOR,MINOR KIND BYTES (COMMAND) SECTOR + SECTORS …`.
    fn parse(line: &str) -> Option<Self> {
        // No program's name is long enough to hold this.
        let (_, request) = line.split_once(": block_rq_issue: ")?;
        let (head, place) = request.split_once(" (")?;
        let (_, place) = place.split_once(") ")?;
        let mut head = head.split(' ').skip(1);
        let operation = operation(head.next()?);
        let bytes = head.next()?.parse().ok()?;
        let mut place = place.split(' ');
        let sector = place.next()?.parse().ok()?;
        let sectors = place.nth(1)?.parse().ok()?;
        // A flush has no position, for which the kernel writes the highest number.
        (sectors == 0 || u64::checked_add(sector, sectors).is_some()).then_some(Self {
            operation,
            bytes,
            sector,
            sectors,
        })
    }
}

/// Parses the letters of a request: `F` for a preceding flush, perhaps, then the operation, then flags.
fn operation(kind: &str) -> &'static str {
    let after_flush = kind.strip_prefix('F').filter(|rest| !rest.is_empty()).unwrap_or(kind);
    match after_flush.as_bytes().first() {
        Some(b'R') => "read",
        Some(b'W') => "write",
        _ => "other",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LINES: &str = "\
   kworker/0:1-88 [000] ..... 24560.867059: block_rq_issue: 254,0 RA 16384 () 1000 + 32 be,0,4 [bash]
          dd-15880   [001] ..... 24560.868676: block_rq_issue: 254,0 R 4096 () 1032 + 8 be,0,4 [dd]
          dd-15880   [001] ..... 24560.871332: block_rq_issue: 254,0 FWFS 512 () 40 + 1 [dd]
          dd-15880   [001] ..... 24560.871333: block_rq_issue: 254,0 FF 0 () 18446744073709551615 + 0 none,0,0 [dd]
nonsense
CPU:1 [LOST 7 EVENTS]
          dd-15880   [001] ..... 24560.871334: block_rq_issue: 254,0 D 1024 () 99 + 2 none,0,0 [dd]
";

    #[test]
    fn requests_are_added_up_by_kind_and_their_distances_counted() {
        let mut sums = RequestSums { device: "vda".into(), ..RequestSums::default() };
        LINES.lines().for_each(|line| sums.line(line));
        let found = sums.take(1000, 500);
        let [other, read, write] = found.as_slice() else { panic!("{found:?}") };
        assert_eq!(
            (read.operation.as_str(), read.requests, read.bytes, read.sequential),
            ("read", 2, 20_480, 1)
        );
        assert_eq!((read.lowest_sector, read.highest_sector, read.seek_bytes), (1000, 1039, 0));
        assert_eq!(read.distances, [(0, 1)]);
        assert_eq!((write.requests, write.seek_bytes), (1, 1000 * 512));
        assert_eq!(write.distances, [(512, 1)]);
        assert_eq!(
            (other.requests, other.lost, other.distances.len()),
            (2, 7, 0),
            "after a gap, nobody knows"
        );
        assert_eq!((read.start_ms, read.length_ms, read.device.as_str()), (1000, 500, "vda"));
        assert_eq!(sums.take(0, 1), []);
        assert_eq!(sums.head, Some(101));
    }

    #[test]
    fn a_store_on_no_disk_is_refused_in_words() {
        let refused = BlockTrace::start(Path::new("/proc")).unwrap_err().to_string();
        assert!(refused.contains("/proc is on no single disk"), "{refused}");
    }
}
