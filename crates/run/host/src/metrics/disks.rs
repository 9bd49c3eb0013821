//! The disks of this machine: what they do, and on which of them files are.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use assay_measurement::machine::DiskInterval;
use rustix::fs::{major, minor};

use super::kept::{Kept, Room, read};

/// Bytes of a sector in the kernel's accounts, whatever the device's own are.
const SECTOR_BYTES: u64 = 512;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Device {
    /// The kernel's name of it.
    pub name: String,
    /// Its number as tracepoints have it.
    pub number: u32,
}

/// The disk that a file (or directory) is on; none where it is on no disk, or on several.
pub fn device_of(path: &Path) -> Option<Device> {
    let device = fs::metadata(path).ok()?.dev();
    let place = fs::canonicalize(format!("/sys/dev/block/{}:{}", major(device), minor(device))).ok()?;
    // A partition's directory lies in that of its disk.
    let place = if place.join("partition").exists() { place.parent()? } else { &place };
    let (major, minor) = super::read_line(place.join("dev").to_str()?)?
        .split_once(':')
        .and_then(|(major, minor)| Some((major.parse::<u32>().ok()?, minor.parse::<u32>().ok()?)))?;
    Some(Device { name: place.file_name()?.to_str()?.to_owned(), number: (major << 20) | minor })
}

/// What the kernel counts of each disk.
#[derive(Debug)]
pub struct Disks {
    file: Option<Kept>,
    /// Whole devices: their last accounts. Partitions are none.
    known: BTreeMap<String, Option<Account>>,
    store: Option<String>,
}

/// Reads, merged, sectors read, ms; writes, merged, sectors written, ms; in flight, ms busy, ms of all requests.
type Account = [u64; 11];

impl Disks {
    /// Begins to watch; `store` is the disk that the proxy's files are on.
    pub fn open(store: Option<String>, room: &mut Room) -> Self {
        let mut disks = Self { file: Kept::open("/proc/diskstats"), known: BTreeMap::new(), store };
        disks.intervals(0, 0, room);
        disks
    }

    /// What each disk did since the last time; those that never did anything are left out.
    pub fn intervals(&mut self, start_ms: u64, length_ms: u64, room: &mut Room) -> Vec<DiskInterval> {
        let Some(text) = read(self.file.as_ref(), room) else { return Vec::new() };
        let mut intervals = Vec::new();
        for (name, account) in text.lines().filter_map(parse) {
            if account[0] + account[4] == 0 {
                continue;
            }
            let before = match self.known.get_mut(name) {
                Some(known) => known,
                None => {
                    let whole = Path::new("/sys/block").join(name.replace('/', "!")).exists();
                    self.known.entry(name.to_owned()).or_insert(whole.then_some(account))
                }
            };
            let Some(before) = before else { continue };
            let since = |at: usize| account[at].saturating_sub(before[at]);
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
                in_flight: account[8],
            });
            *before = account;
        }
        intervals
    }
}

fn parse(line: &str) -> Option<(&str, Account)> {
    let mut words = line.split_whitespace().skip(2);
    let name = words.next()?;
    let mut account = Account::default();
    for place in &mut account {
        *place = words.next()?.parse().ok()?;
    }
    Some((name, account))
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
        assert_eq!(device_of(Path::new("/proc")), None);
        assert_eq!(device_of(Path::new("/no/such/file")), None);
    }
}
