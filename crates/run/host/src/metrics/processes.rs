//! Resource usage of process trees.
//!
//! The usage of each process and thread since the last reading is summed, so that nothing is counted twice and little is lost
//! when some of them end. A process that was once found in a tree stays in it, even if its parent ends.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use super::pacer::Pacer;
use super::proc_file::{ProcFile, ReadBuffer, read};

/// Least interval between readings of proportional memory, for which the kernel walks all pages.
const PSS_EVERY: Duration = Duration::from_secs(10);
/// Upper bound on the processes of a tree, against one that grows while it is walked.
const MAX_PROCESSES: usize = 4096;

/// Usage of a tree since the last reading, and its levels.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ProcessUsage {
    pub user_us: u64,
    /// Time in the kernel.
    pub system_us: u64,
    /// Page faults without a disk.
    pub minor_faults: u64,
    /// Page faults with one.
    pub major_faults: u64,
    /// Time that threads were ready to run and waited for a processor.
    pub run_delay_us: u64,
    /// Times that threads gave up the processor.
    pub voluntary_switches: u64,
    /// Times that threads were preempted.
    pub involuntary_switches: u64,
    /// Bytes read from disks.
    pub disk_read_bytes: Option<u64>,
    /// Bytes to be written to disks.
    pub disk_written_bytes: Option<u64>,
    /// Level: resident memory.
    pub rss_bytes: u64,
    /// Level: proportional memory, if it was read this time.
    pub pss_bytes: Option<u64>,
    /// Level: open file descriptors.
    pub descriptors: u64,
    /// Level: processes.
    pub processes: u64,
    /// Level: threads.
    pub threads: u64,
}

/// Clock ticks in microseconds.
pub fn ticks_us(ticks: u64) -> u64 {
    ticks * 1_000_000 / rustix::param::clock_ticks_per_second().max(1)
}

/// The processes of a role.
#[derive(Debug)]
pub struct ProcessTree {
    roots: Vec<u32>,
    processes: BTreeMap<u32, Process>,
    disk: DiskBytes,
    descriptors: u64,
    counting: Pacer,
    pss: Pacer,
    page_bytes: u64,
}

impl ProcessTree {
    /// The tree of some root processes.
    pub fn new(roots: Vec<u32>, buffer: &mut ReadBuffer) -> Self {
        let mut tree = Self {
            roots,
            processes: BTreeMap::new(),
            disk: DiskBytes::default(),
            descriptors: 0,
            counting: Pacer::new(Duration::from_secs(1)),
            pss: Pacer::new(PSS_EVERY),
            page_bytes: rustix::param::page_size() as u64,
        };
        tree.read_all(buffer);
        tree
    }

    /// All threads (process id, thread id), those first that waited most for a processor in the last interval.
    pub fn threads_by_wait(&self) -> Vec<(u32, u32)> {
        let mut all: Vec<(u64, (u32, u32))> = self
            .processes
            .iter()
            .flat_map(|(pid, process)| {
                process.threads.iter().map(|(id, thread)| (thread.waited_ns, (*pid, *id)))
            })
            .collect();
        all.sort_by(|one, other| other.cmp(one));
        all.into_iter().map(|(_, thread)| thread).collect()
    }

    pub fn usage(&mut self, now: Instant, buffer: &mut ReadBuffer) -> ProcessUsage {
        let mut usage = self.read_all(buffer);
        let processes = &self.processes;
        let counted = self.counting.if_due(now, || processes.keys().map(|pid| count_descriptors(*pid)).sum());
        self.descriptors = counted.unwrap_or(self.descriptors);
        usage.descriptors = self.descriptors;
        let pss = self
            .pss
            .if_due(now, || processes.keys().filter_map(|pid| pss_bytes(*pid)).reduce(u64::wrapping_add));
        usage.pss_bytes = pss.flatten();
        usage
    }

    fn read_all(&mut self, buffer: &mut ReadBuffer) -> ProcessUsage {
        let mut usage = ProcessUsage::default();
        let (mut own, mut ended, mut gone) =
            (ProcessCounters::default(), ProcessCounters::default(), ProcessCounters::default());
        let mut disk = None;
        let mut visited = BTreeSet::new();
        let mut open: Vec<u32> = self.roots.iter().chain(self.processes.keys()).copied().collect();
        while let Some(pid) = open.pop() {
            if !visited.insert(pid) || visited.len() > MAX_PROCESSES {
                continue;
            }
            let process = match self.processes.entry(pid) {
                Entry::Occupied(known) => known.into_mut(),
                Entry::Vacant(place) => {
                    let Some(process) = Process::open(pid) else { continue };
                    place.insert(process)
                }
            };
            let Some(stat) = process.stat(buffer) else {
                gone = gone.plus(process.last.own).plus(process.last.ended);
                self.processes.remove(&pid);
                continue;
            };
            own = own.plus(stat.own.since(process.last.own));
            ended = ended.plus(stat.ended.since(process.last.ended));
            process.last = stat;
            usage.rss_bytes += stat.rss_pages * self.page_bytes;
            if let Some(now) = read(process.io.as_ref(), buffer).map(|text| parse_io(&text)) {
                let sum: &mut DiskBytes = disk.get_or_insert_default();
                sum.read += now.read;
                sum.written += now.written;
            }
            usage.processes += 1;
            process.threads(pid, &mut usage, &mut open, buffer);
        }
        // When a parent reaps a child, the child's totals are added to the parent's `ended` counters. Subtract what was read from
        // the child before.
        let ProcessCounters([user, system, minor, major]) = own.plus(ended.since(gone));
        (usage.user_us, usage.system_us) = (ticks_us(user), ticks_us(system));
        (usage.minor_faults, usage.major_faults) = (minor, major);
        if let Some(disk) = disk {
            usage.disk_read_bytes = Some(disk.read.saturating_sub(self.disk.read));
            usage.disk_written_bytes = Some(disk.written.saturating_sub(self.disk.written));
            self.disk = disk;
        }
        usage
    }
}

/// Total wait for processors of the threads of process trees.
#[derive(Debug)]
pub struct ProcessorWaits {
    tree: ProcessTree,
    buffer: ReadBuffer,
    waited_us: u64,
}

impl ProcessorWaits {
    /// Counts from now on, for these processes and their descendants.
    pub fn new(roots: Vec<u32>) -> Self {
        let mut buffer = ReadBuffer::default();
        Self { tree: ProcessTree::new(roots, &mut buffer), buffer, waited_us: 0 }
    }

    /// Total so far, in microseconds, without waits since the last call of threads that have ended.
    pub fn until_now_us(&mut self) -> u64 {
        self.waited_us += self.tree.read_all(&mut self.buffer).run_delay_us;
        self.waited_us
    }
}

/// User ticks, system ticks, minor faults, major faults.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct ProcessCounters([u64; 4]);

impl ProcessCounters {
    fn plus(self, other: ProcessCounters) -> ProcessCounters {
        ProcessCounters(std::array::from_fn(|at| self.0[at].saturating_add(other.0[at])))
    }

    fn since(self, before: ProcessCounters) -> ProcessCounters {
        ProcessCounters(std::array::from_fn(|at| self.0[at].saturating_sub(before.0[at])))
    }
}

/// Bytes read from and written to disks, with those of reaped children.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct DiskBytes {
    read: u64,
    written: u64,
}

#[derive(Debug)]
struct Process {
    stat: ProcFile,
    /// None for a process of another user, for which it is not readable.
    io: Option<ProcFile>,
    last: ProcessStat,
    threads: BTreeMap<u32, ProcessThread>,
}

#[derive(Debug)]
struct ProcessThread {
    schedstat: Option<ProcFile>,
    status: Option<ProcFile>,
    children: Option<ProcFile>,
    run_delay_ns: u64,
    /// Wait for a processor in the last interval.
    waited_ns: u64,
    switches: [u64; 2],
}

impl Process {
    fn open(pid: u32) -> Option<Self> {
        Some(Self {
            stat: ProcFile::open(format!("/proc/{pid}/stat"))?,
            io: ProcFile::open(format!("/proc/{pid}/io")),
            last: ProcessStat::default(),
            threads: BTreeMap::new(),
        })
    }

    fn stat(&self, buffer: &mut ReadBuffer) -> Option<ProcessStat> {
        parse_stat(&self.stat.read(buffer)?)
    }

    /// Adds the usage of threads, and adds children to `open`.
    fn threads(&mut self, pid: u32, usage: &mut ProcessUsage, open: &mut Vec<u32>, buffer: &mut ReadBuffer) {
        let listed = fs::read_dir(format!("/proc/{pid}/task"));
        let ids: BTreeSet<u32> = listed
            .into_iter()
            .flatten()
            .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
            .collect();
        self.threads.retain(|id, _| ids.contains(id));
        usage.threads += ids.len() as u64;
        for id in ids {
            let thread = self.threads.entry(id).or_insert_with(|| ProcessThread::open(pid, id));
            if !thread.add_usage(usage, open, buffer) {
                // Ended. A new thread with the same id is found next time.
                self.threads.remove(&id);
            }
        }
    }
}

impl ProcessThread {
    fn open(pid: u32, id: u32) -> Self {
        let open = |name: &str| ProcFile::open(format!("/proc/{pid}/task/{id}/{name}"));
        Self {
            schedstat: open("schedstat"),
            status: open("status"),
            children: open("children"),
            run_delay_ns: 0,
            waited_ns: 0,
            switches: [0; 2],
        }
    }

    /// Adds the usage since the last reading; false if the thread has ended.
    fn add_usage(&mut self, usage: &mut ProcessUsage, open: &mut Vec<u32>, buffer: &mut ReadBuffer) -> bool {
        let Some(switches) = read(self.status.as_ref(), buffer).map(|text| parse_switches(&text)) else {
            return false;
        };
        usage.voluntary_switches += switches[0].saturating_sub(self.switches[0]);
        usage.involuntary_switches += switches[1].saturating_sub(self.switches[1]);
        self.switches = switches;
        if let Some(delay_ns) = read(self.schedstat.as_ref(), buffer).map(|text| parse_run_delay_ns(&text)) {
            self.waited_ns = delay_ns.saturating_sub(self.run_delay_ns);
            usage.run_delay_us += self.waited_ns / 1000;
            self.run_delay_ns = delay_ns;
        }
        if let Some(children) = read(self.children.as_ref(), buffer) {
            open.extend(children.split_whitespace().filter_map(|pid| pid.parse::<u32>().ok()));
        }
        true
    }
}

/// Fields of `/proc/PID/stat`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct ProcessStat {
    own: ProcessCounters,
    /// Counters of reaped children.
    ended: ProcessCounters,
    rss_pages: u64,
}

fn parse_stat(text: &str) -> Option<ProcessStat> {
    // The name in parentheses may contain parentheses: fields are counted from after the last one.
    let (_, rest) = text.rsplit_once(')')?;
    let fields: Vec<&str> = rest.split_whitespace().collect();
    let number = |field: usize| fields.get(field - 3)?.parse::<u64>().ok();
    Some(ProcessStat {
        own: ProcessCounters([number(14)?, number(15)?, number(10)?, number(12)?]),
        ended: ProcessCounters([number(16)?, number(17)?, number(11)?, number(13)?]),
        rss_pages: number(24)?,
    })
}

pub(super) fn parse_run_delay_ns(schedstat: &str) -> u64 {
    schedstat.split_whitespace().nth(1).and_then(|delay| delay.parse().ok()).unwrap_or(0)
}

/// Voluntary and involuntary switches: the last lines of `status`.
fn parse_switches(status: &str) -> [u64; 2] {
    ["\nvoluntary_ctxt_switches:", "\nnonvoluntary_ctxt_switches:"]
        .map(|name| status.rfind(name).map_or(0, |at| first_number(&status[at + name.len()..])))
}

fn parse_io(io: &str) -> DiskBytes {
    let value = |name: &str| io.lines().find_map(|line| line.strip_prefix(name)).map_or(0, first_number);
    let cancelled = value("cancelled_write_bytes:");
    DiskBytes { read: value("read_bytes:"), written: value("write_bytes:").saturating_sub(cancelled) }
}

fn first_number(text: &str) -> u64 {
    text.split_whitespace().next().and_then(|number| number.parse().ok()).unwrap_or(0)
}

fn count_descriptors(pid: u32) -> u64 {
    let dir = format!("/proc/{pid}/fd");
    // Since Linux 6.2 the size of the directory is the number of descriptors; before, it is 0.
    match Path::new(&dir).metadata().map(|meta| meta.len()) {
        Ok(0) => fs::read_dir(dir).map_or(0, |entries| entries.count() as u64),
        Ok(count) => count,
        Err(_) => 0,
    }
}

fn pss_bytes(pid: u32) -> Option<u64> {
    let text = fs::read_to_string(format!("/proc/{pid}/smaps_rollup")).ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("Pss:"))?;
    Some(first_number(line) * 1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_name_with_parentheses_confuses_nobody() {
        let text = "7 (a) b (c)) S 1 7 7 0 -1 4194560 1 2 3 4 10 20 30 40 20 0 1 0 5 1000 77 0 0";
        let (own, ended) = (ProcessCounters([10, 20, 1, 3]), ProcessCounters([30, 40, 2, 4]));
        assert_eq!(parse_stat(text), Some(ProcessStat { own, ended, rss_pages: 77 }));
        assert_eq!(parse_stat("7 (gone"), None);
    }

    #[test]
    fn the_time_that_a_thread_waited_is_the_second_number() {
        assert_eq!(parse_run_delay_ns("5000 7000 3\n"), 7000);
        assert_eq!(parse_run_delay_ns(""), 0);
    }

    #[test]
    fn switches_of_both_kinds_and_bytes_of_disks_are_read_by_name() {
        let status = "Name:\tvoluntary_ctxt_switches: 9\nvoluntary_ctxt_switches:\t12\nnonvoluntary_ctxt_switches:\t3\n";
        assert_eq!(parse_switches(status), [12, 3]);
        assert_eq!(parse_switches("Name: x\n"), [0, 0]);
        let io = "rchar: 1\nwchar: 2\nread_bytes: 4096\nwrite_bytes: 10000\ncancelled_write_bytes: 4000\n";
        assert_eq!(parse_io(io), DiskBytes { read: 4096, written: 6000 });
    }

    /// Reads what the kernel tells within a second.
    mod real_tests {
        use super::*;

        #[test]
        fn what_children_used_that_came_and_went_is_counted_once() {
            use std::io::{BufRead, BufReader, Write};
            use std::process::{Command, Stdio};

            let script = "echo up; read a; (i=0; while [ $i -lt 3000 ]; do i=$((i+1)); done; echo below; read b); \
                          $(i=0; while [ $i -lt 3000 ]; do i=$((i+1)); done); echo end; read c";
            let mut shell = Command::new("/bin/sh");
            let mut shell =
                shell.args(["-c", script]).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
            let mut words = BufReader::new(shell.stdout.take().unwrap()).lines();
            let mut input = shell.stdin.take().unwrap();
            let mut buffer = ReadBuffer::default();

            assert_eq!(words.next().unwrap().unwrap(), "up");
            let mut tree = ProcessTree::new(vec![shell.id()], &mut buffer);
            let account = |tree: &ProcessTree| {
                tree.processes[&shell.id()].last.own.plus(tree.processes[&shell.id()].last.ended)
            };
            let begin = account(&tree);
            writeln!(input, "go").unwrap();
            assert_eq!(words.next().unwrap().unwrap(), "below");
            let first = tree.usage(Instant::now(), &mut buffer);
            assert_eq!((first.processes, first.threads), (2, 2));
            assert!(first.descriptors > 0 && first.pss_bytes.is_some() && first.rss_bytes > 0, "{first:?}");
            writeln!(input, "go").unwrap();
            assert_eq!(words.next().unwrap().unwrap(), "end");
            let second = tree.usage(Instant::now(), &mut buffer);
            assert_eq!((second.processes, second.pss_bytes), (1, None));

            let faults = account(&tree).since(begin).0[2];
            assert!(faults > 0);
            assert_eq!(first.minor_faults + second.minor_faults, faults);
            drop(input);
            shell.wait().unwrap();
            assert_eq!(tree.usage(Instant::now(), &mut buffer).processes, 0);
        }
    }
}
