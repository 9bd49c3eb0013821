//! How measurements are kept while a run goes on, and how they are read when it is over.
//!
//! A Parquet file is readable only once its footer is written, at its end. So measurements are first
//! appended to a journal (`journal.jsonl`, one JSON document per line, handed to the system line by line):
//! a run that is killed leaves a journal that is whole up to its last line. [`SeriesWriter::finish`] turns
//! the journal into Parquet and removes it; it is removed last, so whenever it is there, it is the truth.
//! [`Series::read`] reads whichever is there, and [`RunDir::recover`] finishes what a killed run could not.

mod convert;
mod read;

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::fs::{File, OpenOptions};
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::dir::{RunDir, RunDirError};
use crate::missing::Gaps;
use assay_measurement::adapted::Adapted;
use assay_measurement::error_kind::ErrorExample;
use assay_measurement::health::{
    Baseline, LinkInterval, NetworkInterval, ProcessorInterval, Stall, ThreadInterval,
};
use assay_measurement::interval::{HostInterval, OriginInterval, RobotInterval};
use assay_measurement::machine::{BlockInterval, DiskInterval, InterfaceInterval, MachineInterval};
use assay_table::FileError;

/// One thing that was measured: a line of the journal.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[expect(clippy::large_enum_variant, reason = "one at a time, never kept")]
pub enum Entry<'a> {
    /// An interval of the robots.
    Robots(Cow<'a, RobotInterval>),
    /// An interval of the origins.
    Origins(Cow<'a, OriginInterval>),
    /// What a role's processes used.
    Host(Cow<'a, HostInterval>),
    /// A reading of the target's own counters.
    Proxy(Cow<'a, ProxySample>),
    /// An error for people to look at.
    Example(Cow<'a, ErrorExample>),
    /// How a worker thread did.
    Thread(Cow<'a, ThreadInterval>),
    /// A worker thread stood still.
    Stall(Cow<'a, Stall>),
    /// How quiet a worker's processor was before the run.
    Baseline(Cow<'a, Baseline>),
    /// What the network stack counted.
    Network(Cow<'a, NetworkInterval>),
    /// What the processors of this machine did, one each.
    Processors(Cow<'a, [ProcessorInterval]>),
    /// What was decided about load that adapts.
    Adapted(Cow<'a, Adapted>),
    /// What the machine as a whole did.
    Machine(Cow<'a, MachineInterval>),
    /// What its disks did, one each.
    Disks(Cow<'a, [DiskInterval]>),
    /// What went through its network interfaces, one each.
    Interfaces(Cow<'a, [InterfaceInterval]>),
    /// Requests that went to the traced disk, one for each kind.
    Blocks(Cow<'a, [BlockInterval]>),
    /// What a direction of a link carried.
    Link(Cow<'a, LinkInterval>),
}

/// One reading of the target's own counters.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct ProxySample {
    /// Whose they are, where several caches work together; else empty.
    #[serde(default)]
    pub cache: String,
    /// Milliseconds since the start of the run.
    pub at_ms: u64,
    /// Values by name, in the target's words; cumulative unless the target means otherwise.
    pub counters: BTreeMap<String, f64>,
}

/// Everything that was measured, in the order in which it came.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Series {
    /// The robots' side.
    pub robots: Vec<RobotInterval>,
    /// The origins' side.
    pub origins: Vec<OriginInterval>,
    /// What processes used.
    pub host: Vec<HostInterval>,
    /// The target's own counters.
    pub proxy: Vec<ProxySample>,
    /// The first errors of each kind.
    pub examples: Vec<ErrorExample>,
    /// How each worker thread did.
    pub threads: Vec<ThreadInterval>,
    /// Where worker threads stood still.
    pub stalls: Vec<Stall>,
    /// How quiet the machine was before the run.
    pub baselines: Vec<Baseline>,
    /// What the network stack counted.
    pub network: Vec<NetworkInterval>,
    /// What each processor of this machine did.
    pub processors: Vec<ProcessorInterval>,
    /// What was decided about load that adapts.
    pub adapted: Vec<Adapted>,
    /// What the machine as a whole did.
    pub machine: Vec<MachineInterval>,
    /// What each of its disks did.
    pub disks: Vec<DiskInterval>,
    /// What went through each of its network interfaces.
    pub interfaces: Vec<InterfaceInterval>,
    /// Requests that went to the traced disk.
    pub blocks: Vec<BlockInterval>,
    /// What each direction of each link carried.
    pub links: Vec<LinkInterval>,
}

/// Keeps measurements as they come.
#[derive(Debug)]
pub struct SeriesWriter {
    dir: RunDir,
    path: PathBuf,
    journal: File,
    /// Length of the journal up to its last whole line.
    whole_bytes: u64,
}

impl SeriesWriter {
    /// Starts the journal.
    pub fn create(dir: &RunDir) -> Result<Self, RunDirError> {
        let path = dir.journal_path();
        let journal = OpenOptions::new()
            .create(true)
            .append(true)
            .open(&path)
            .map_err(|source| FileError::write(&path, source))?;
        let whole_bytes = journal.metadata().map_err(|source| FileError::write(&path, source))?.len();
        Ok(Self { dir: dir.clone(), path, journal, whole_bytes })
    }

    /// Keeps an interval of the robots.
    pub fn robots(&mut self, interval: &RobotInterval) -> Result<(), RunDirError> {
        self.append(&Entry::Robots(Cow::Borrowed(interval)))
    }

    /// Keeps an interval of the origins.
    pub fn origins(&mut self, interval: &OriginInterval) -> Result<(), RunDirError> {
        self.append(&Entry::Origins(Cow::Borrowed(interval)))
    }

    /// Keeps an interval of a role's processes.
    pub fn host(&mut self, interval: &HostInterval) -> Result<(), RunDirError> {
        self.append(&Entry::Host(Cow::Borrowed(interval)))
    }

    /// Keeps a reading of the target's counters, or of those of one of its caches. Values that are no numbers are left out.
    pub fn proxy_counters(
        &mut self,
        cache: &str,
        at_ms: u64,
        counters: &BTreeMap<String, f64>,
    ) -> Result<(), RunDirError> {
        let finite = counters.iter().filter(|(_, value)| value.is_finite());
        let counters = finite.map(|(name, value)| (name.clone(), *value)).collect();
        self.append(&Entry::Proxy(Cow::Owned(ProxySample { cache: cache.to_owned(), at_ms, counters })))
    }

    /// Keeps an error for people to look at.
    pub fn example(&mut self, example: &ErrorExample) -> Result<(), RunDirError> {
        self.append(&Entry::Example(Cow::Borrowed(example)))
    }

    /// Keeps how a worker thread did in an interval.
    pub fn thread(&mut self, interval: &ThreadInterval) -> Result<(), RunDirError> {
        self.append(&Entry::Thread(Cow::Borrowed(interval)))
    }

    /// Keeps where a worker thread stood still.
    pub fn stall(&mut self, stall: &Stall) -> Result<(), RunDirError> {
        self.append(&Entry::Stall(Cow::Borrowed(stall)))
    }

    /// Keeps how quiet a worker's processor was before the run.
    pub fn baseline(&mut self, baseline: &Baseline) -> Result<(), RunDirError> {
        self.append(&Entry::Baseline(Cow::Borrowed(baseline)))
    }

    /// Keeps what the network stack counted in an interval.
    pub fn network(&mut self, interval: &NetworkInterval) -> Result<(), RunDirError> {
        self.append(&Entry::Network(Cow::Borrowed(interval)))
    }

    /// Keeps what a direction of a link carried in an interval.
    pub fn link(&mut self, interval: &LinkInterval) -> Result<(), RunDirError> {
        self.append(&Entry::Link(Cow::Borrowed(interval)))
    }

    /// Keeps what the processors did in an interval.
    pub fn processors(&mut self, intervals: &[ProcessorInterval]) -> Result<(), RunDirError> {
        self.append(&Entry::Processors(Cow::Borrowed(intervals)))
    }

    /// Keeps what was decided about load that adapts.
    pub fn adapted(&mut self, adapted: &Adapted) -> Result<(), RunDirError> {
        self.append(&Entry::Adapted(Cow::Borrowed(adapted)))
    }

    /// Keeps what the machine as a whole did in an interval.
    pub fn machine(&mut self, interval: &MachineInterval) -> Result<(), RunDirError> {
        self.append(&Entry::Machine(Cow::Borrowed(interval)))
    }

    /// Keeps what the disks did in an interval; nothing is kept of nothing.
    pub fn disks(&mut self, intervals: &[DiskInterval]) -> Result<(), RunDirError> {
        if intervals.is_empty() { Ok(()) } else { self.append(&Entry::Disks(Cow::Borrowed(intervals))) }
    }

    /// Keeps what went through the network interfaces in an interval; nothing is kept of nothing.
    pub fn interfaces(&mut self, intervals: &[InterfaceInterval]) -> Result<(), RunDirError> {
        if intervals.is_empty() { Ok(()) } else { self.append(&Entry::Interfaces(Cow::Borrowed(intervals))) }
    }

    /// Keeps the traced disk's requests of an interval; an interval without any is not kept.
    pub fn blocks(&mut self, intervals: &[BlockInterval]) -> Result<(), RunDirError> {
        if intervals.is_empty() { Ok(()) } else { self.append(&Entry::Blocks(Cow::Borrowed(intervals))) }
    }

    fn append(&mut self, entry: &Entry<'_>) -> Result<(), RunDirError> {
        let mut line = serde_json::to_vec(entry).map_err(|e| FileError::write(&self.path, e.into()))?;
        line.push(b'\n');
        match self.journal.write_all(&line) {
            Ok(()) => {
                self.whole_bytes += line.len() as u64;
                Ok(())
            }
            Err(source) => {
                // Half a line in the middle would make everything after it unreadable. If this fails too,
                // the error that is returned is still the one that matters.
                let _ = self.journal.set_len(self.whole_bytes);
                Err(FileError::write(&self.path, source).into())
            }
        }
    }

    /// Turns the journal into Parquet. If that fails (a full disk), the journal stays and nothing is lost.
    pub fn finish(self) -> Result<(), RunDirError> {
        drop(self.journal);
        convert::convert(&self.dir)
    }
}

impl Series {
    /// Readings of the target's counters: where it is several caches, those of all added up, from when all have spoken.
    pub fn proxy_together(&self) -> Cow<'_, [ProxySample]> {
        let caches: BTreeSet<&str> = self.proxy.iter().map(|sample| sample.cache.as_str()).collect();
        if caches.len() < 2 {
            return Cow::Borrowed(&self.proxy);
        }
        let mut last: BTreeMap<&str, &BTreeMap<String, f64>> = BTreeMap::new();
        let mut all: Vec<ProxySample> = Vec::new();
        for sample in &self.proxy {
            last.insert(&sample.cache, &sample.counters);
            if last.len() < caches.len() {
                continue;
            }
            let mut sum = ProxySample { at_ms: sample.at_ms, ..ProxySample::default() };
            for (name, value) in last.values().copied().flatten() {
                *sum.counters.entry(name.clone()).or_default() += value;
            }
            // Of several at one instant, the last knows most.
            all.pop_if(|before| before.at_ms == sum.at_ms);
            all.push(sum);
        }
        Cow::Owned(all)
    }

    /// Reads the measurements of a run, whether it ended, was killed, or still goes on.
    pub fn read(dir: &RunDir) -> Result<Self, RunDirError> {
        Self::read_with(dir, &mut Gaps::strict())
    }

    pub(crate) fn read_with(dir: &RunDir, gaps: &mut Gaps) -> Result<Self, RunDirError> {
        let journal = dir.journal_path();
        if !journal.exists() {
            return read::read_tables(dir, gaps);
        }
        let mut series = Self::default();
        let read = read_journal(&journal, &mut |error| gaps.error(error), |entry| {
            series.take(entry);
            Ok(())
        });
        read.or_else(|error| gaps.error(error))?;
        Ok(series)
    }

    /// Adds one thing that was measured.
    pub fn take(&mut self, entry: Entry<'_>) {
        match entry {
            Entry::Robots(interval) => self.robots.push(interval.into_owned()),
            Entry::Origins(interval) => self.origins.push(interval.into_owned()),
            Entry::Host(interval) => self.host.push(interval.into_owned()),
            Entry::Proxy(sample) => self.proxy.push(sample.into_owned()),
            Entry::Example(example) => self.examples.push(example.into_owned()),
            Entry::Thread(interval) => self.threads.push(interval.into_owned()),
            Entry::Stall(stall) => self.stalls.push(stall.into_owned()),
            Entry::Baseline(baseline) => self.baselines.push(baseline.into_owned()),
            Entry::Network(interval) => self.network.push(interval.into_owned()),
            Entry::Link(interval) => self.links.push(interval.into_owned()),
            Entry::Processors(intervals) => self.processors.extend_from_slice(&intervals),
            Entry::Adapted(adapted) => self.adapted.push(adapted.into_owned()),
            Entry::Machine(interval) => self.machine.push(interval.into_owned()),
            Entry::Disks(intervals) => self.disks.extend_from_slice(&intervals),
            Entry::Interfaces(intervals) => self.interfaces.extend_from_slice(&intervals),
            Entry::Blocks(intervals) => self.blocks.extend_from_slice(&intervals),
        }
    }

    /// Calls `each` for everything in it: each kind in the order in which it came.
    pub fn for_each<'a>(&'a self, mut each: impl FnMut(Entry<'a>)) {
        fn all<'a, T: Clone>(
            items: &'a [T],
            entry: fn(Cow<'a, T>) -> Entry<'a>,
            each: &mut impl FnMut(Entry<'a>),
        ) {
            items.iter().for_each(|item| each(entry(Cow::Borrowed(item))));
        }
        all(&self.baselines, Entry::Baseline, &mut each);
        all(&self.robots, Entry::Robots, &mut each);
        all(&self.origins, Entry::Origins, &mut each);
        all(&self.host, Entry::Host, &mut each);
        all(&self.proxy, Entry::Proxy, &mut each);
        all(&self.examples, Entry::Example, &mut each);
        all(&self.threads, Entry::Thread, &mut each);
        all(&self.stalls, Entry::Stall, &mut each);
        all(&self.network, Entry::Network, &mut each);
        all(&self.adapted, Entry::Adapted, &mut each);
        all(&self.machine, Entry::Machine, &mut each);
        all(&self.links, Entry::Link, &mut each);
        if !self.processors.is_empty() {
            each(Entry::Processors(Cow::Borrowed(&self.processors)));
        }
        if !self.disks.is_empty() {
            each(Entry::Disks(Cow::Borrowed(&self.disks)));
        }
        if !self.interfaces.is_empty() {
            each(Entry::Interfaces(Cow::Borrowed(&self.interfaces)));
        }
        if !self.blocks.is_empty() {
            each(Entry::Blocks(Cow::Borrowed(&self.blocks)));
        }
    }
}

impl RunDir {
    /// Calls `each` for everything that was measured. While there is a journal, only one entry of it is in memory at a
    /// time, in the order in which they came; the tables of a run that ended are read whole.
    pub fn for_each_entry(&self, mut each: impl FnMut(&Entry<'_>)) -> Result<(), RunDirError> {
        let journal = self.journal_path();
        if journal.exists() {
            return read_journal(&journal, &mut Err, |entry| {
                each(&entry);
                Ok(())
            });
        }
        Series::read(self)?.for_each(|entry| each(&entry));
        Ok(())
    }

    /// Writes the tables of a run that has not ended into another directory. Lines of the journal that cannot be read
    /// are left out. The run directory stays as it is.
    pub fn tables_so_far(&self, out: &Path) -> Result<(), RunDirError> {
        convert::convert_to(self, out, &mut |_| Ok(())).map(drop)
    }

    /// True when the run's end was not written: it still goes on, or was killed.
    pub fn is_unfinished(&self) -> Result<bool, RunDirError> {
        Ok(self.journal_path().exists() || !self.read_info()?.finished)
    }

    /// Finishes what a killed run left: its journal becomes Parquet, and `run.json` says that it is partial.
    /// Returns false when there was nothing to do. Not for a run that still goes on.
    pub fn recover(&self) -> Result<bool, RunDirError> {
        if !self.is_unfinished()? {
            return Ok(false);
        }
        if self.journal_path().exists() {
            convert::convert(self)?;
        }
        let mut info = self.read_info()?;
        if !info.finished {
            info.finished = true;
            info.verdict.partial = true;
            // Nobody was there to judge: what is known to be wrong is all that speaks against it.
            info.verdict.valid = !info.verdict.doubts.iter().any(|doubt| doubt.invalidates);
            info.verdict.warnings.insert(
                0,
                "The run was killed before it could end; its measurements go up to the last whole second."
                    .into(),
            );
            self.write_info(&info)?;
        }
        Ok(true)
    }
}

/// Calls `each` for every line of a journal, and `bad` for every one that cannot be read. A last line without an end
/// is left out.
fn read_journal(
    path: &Path,
    bad: &mut dyn FnMut(RunDirError) -> Result<(), RunDirError>,
    mut each: impl FnMut(Entry<'static>) -> Result<(), RunDirError>,
) -> Result<(), RunDirError> {
    let file = File::open(path).map_err(|source| FileError::read(path, source))?;
    let mut reader = BufReader::with_capacity(1 << 20, file);
    let mut line = Vec::new();
    for number in 1.. {
        line.clear();
        reader.read_until(b'\n', &mut line).map_err(|source| FileError::read(path, source))?;
        if line.last() != Some(&b'\n') {
            return Ok(());
        }
        match serde_json::from_slice(&line) {
            Ok(entry) => each(entry)?,
            Err(e) => bad(FileError::damaged(path, format!("line {number}: {e}")).into())?,
        }
    }
    Ok(())
}
