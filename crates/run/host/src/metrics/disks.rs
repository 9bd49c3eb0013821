//! Activity of disks, and the disk of a file.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use assay_measurement::machine::DiskInterval;
use rustix::fs::{major, minor};

use super::proc_file::{ProcFile, ReadBuffer, read};

/// Bytes of a sector in the kernel's counters, whatever the device's own size.
const SECTOR_BYTES: u64 = 512;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DiskDevice {
    pub name: String,
    /// Device number as in tracepoints.
    pub number: u32,
}

/// The disk of a file or directory; none if it is on no disk, or on several.
pub fn disk_of(path: &Path) -> Option<DiskDevice> {
    let device = fs::metadata(path).ok()?.dev();
    let place = fs::canonicalize(format!("/sys/dev/block/{}:{}", major(device), minor(device))).ok()?;
    // The directory of a partition is in that of its disk.
    let place = if place.join("partition").exists() { place.parent()? } else { &place };
    let (major, minor) = super::read_words(place.join("dev").to_str()?)?
        .split_once(':')
        .and_then(|(major, minor)| Some((major.parse::<u32>().ok()?, minor.parse::<u32>().ok()?)))?;
    Some(DiskDevice { name: place.file_name()?.to_str()?.to_owned(), number: (major << 20) | minor })
}

/// Reader of the kernel's counters of disks.
#[derive(Debug)]
pub struct Disks {
    file: Option<ProcFile>,
    /// Last counters of whole disks; none for partitions.
    known: BTreeMap<String, Option<DiskCounters>>,
    store: Option<String>,
}

/// Fields of `/proc/diskstats`: reads, merged reads, sectors read, ms reading; the same four of writes; requests in flight, ms
/// busy, weighted ms.
type DiskCounters = [u64; 11];

impl Disks {
    /// Reads the first counters; `store` is the disk of the proxy's files.
    pub fn open(store: Option<String>, buffer: &mut ReadBuffer) -> Self {
        let mut disks = Self { file: ProcFile::open("/proc/diskstats"), known: BTreeMap::new(), store };
        disks.intervals(0, 0, buffer);
        disks
    }

    /// Activity of each disk since the last call, without disks that were never used.
    pub fn intervals(&mut self, start_ms: u64, length_ms: u64, buffer: &mut ReadBuffer) -> Vec<DiskInterval> {
        let Some(text) = read(self.file.as_ref(), buffer) else { return Vec::new() };
        let mut intervals = Vec::new();
        for (name, counters) in text.lines().filter_map(parse) {
            if counters[0] + counters[4] == 0 {
                continue;
            }
            let before = match self.known.get_mut(name) {
                Some(known) => known,
                None => {
                    let whole = Path::new("/sys/block").join(name.replace('/', "!")).exists();
                    self.known.entry(name.to_owned()).or_insert(whole.then_some(counters))
                }
            };
            let Some(before) = before else { continue };
            let since = |at: usize| counters[at].saturating_sub(before[at]);
            intervals.push(DiskInterval {
                start_ms,
                length_ms,
                device: name.to_owned(),
                holds: if self.store.as_deref() == Some(name) { "store".into() } else { String::new() },
                reads: since(0),
                read_bytes: since(2) * SECTOR_BYTES,
                writes: since(4),
                written_bytes: since(6) * SECTOR_BYTES,
                read_ms: since(3),
                write_ms: since(7),
                busy_ms: since(9),
                queue_ms: since(10),
                in_flight: counters[8],
            });
            *before = counters;
        }
        intervals
    }
}

fn parse(line: &str) -> Option<(&str, DiskCounters)> {
    let mut words = line.split_whitespace().skip(2);
    let name = words.next()?;
    let mut counters = DiskCounters::default();
    for place in &mut counters {
        *place = words.next()?.parse().ok()?;
    }
    Some((name, counters))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_a_name_and_eleven_numbers_and_more() {
        let line = " 254       0 vda 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17";
        assert_eq!(parse(line), Some(("vda", [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11])));
        assert_eq!(parse("254 0 vda 1 2"), None);
        assert_eq!(parse(""), None);
    }

    #[test]
    fn what_is_on_no_disk_has_none() {
        assert_eq!(disk_of(Path::new("/proc")), None);
        assert_eq!(disk_of(Path::new("/no/such/file")), None);
    }
}
