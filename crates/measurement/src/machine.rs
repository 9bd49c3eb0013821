//! What the machine under a run did in a second. Its memory, its disks, its interfaces, and the requests that went to a
//! disk.

use serde::{Deserialize, Serialize};

/// The machine as a whole in one interval.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct MachineInterval {
    /// Milliseconds since the start of the run at which the interval began.
    pub start_ms: u64,
    /// How long it lasted.
    pub length_ms: u64,
    /// Times that a processor went over to another thread.
    pub context_switches: u64,
    /// Interrupts served.
    pub interrupts: u64,
    /// Processes and threads started.
    pub forks: u64,
    /// Level: threads that ran or were ready to.
    pub running: u64,
    /// Level: threads that waited for a disk.
    pub blocked: u64,
    /// Level: memory that is not to be had (total − available), in bytes.
    pub used_bytes: u64,
    /// Level: page cache and buffers, in bytes.
    pub cached_bytes: u64,
    /// Level: page cache that is still to be written, in bytes.
    pub dirty_bytes: u64,
    /// Level: page cache that is being written, in bytes.
    pub writeback_bytes: u64,
    /// Level: what was moved out to swap, in bytes.
    pub swapped_bytes: u64,
    /// Processor time that it took Assay to measure and keep all of this the last time, in microseconds.
    pub metering_us: u64,
}

/// A disk (a whole device) in one interval.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct DiskInterval {
    /// Milliseconds since the start of the run at which the interval began.
    pub start_ms: u64,
    /// How long it lasted.
    pub length_ms: u64,
    /// The kernel's name of it.
    pub device: String,
    /// `store`: the proxy keeps its files on it; else empty.
    pub holds: String,
    /// Reads completed.
    pub reads: u64,
    /// Bytes read.
    pub read_bytes: u64,
    /// Writes completed.
    pub writes: u64,
    /// Bytes written.
    pub written_bytes: u64,
    /// Time that all reads took, in milliseconds.
    pub read_ms: u64,
    /// Time that all writes took, in milliseconds.
    pub write_ms: u64,
    /// Time in which it had something to do, in milliseconds.
    pub busy_ms: u64,
    /// Time that requests spent in it, all together; over the length it is the mean queue.
    pub queue_ms: u64,
    /// Level: requests in it.
    pub in_flight: u64,
}

/// A network interface in one interval.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct InterfaceInterval {
    /// Milliseconds since the start of the run at which the interval began.
    pub start_ms: u64,
    /// How long it lasted.
    pub length_ms: u64,
    /// Whose network namespace it is in: roles, joined by `+`.
    pub role: String,
    /// The kernel's name of it.
    pub interface: String,
    /// Bytes received.
    pub received_bytes: u64,
    /// Packets received.
    pub received_packets: u64,
    /// Packets that were dropped when they came in.
    pub receive_drops: u64,
    /// Bytes sent.
    pub sent_bytes: u64,
    /// Packets sent.
    pub sent_packets: u64,
    /// Packets that were dropped when they were to go out.
    pub send_drops: u64,
}

/// Requests of one kind that went to the traced disk in one interval.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct BlockInterval {
    /// Milliseconds since the start of the run at which the interval began.
    pub start_ms: u64,
    /// How long it lasted.
    pub length_ms: u64,
    /// The kernel's name of the device.
    pub device: String,
    /// `read`, `write` or `other` (discards, flushes).
    pub operation: String,
    /// Requests handed to the device.
    pub requests: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Those that began where the one before (of any kind) had ended.
    pub sequential: u64,
    /// Sum of the distances between where a request began and where the one before it had ended, in bytes.
    pub seek_bytes: u64,
    /// The lowest sector (of 512 bytes) that was asked for.
    pub lowest_sector: u64,
    /// The highest.
    pub highest_sector: u64,
    /// Requests that the kernel could not keep for want of room.
    pub lost: u64,
    /// Distances in sectors: the least of each bucket (0, 1, 2, 4, 8, …), and how many.
    pub distances: Vec<(u64, u64)>,
}

impl BlockInterval {
    /// The bucket of a distance: its least.
    pub fn bucket(sectors: u64) -> u64 {
        sectors.checked_ilog2().map_or(0, |power| 1 << power)
    }

    /// The last distance of a bucket.
    pub fn bucket_high(low_sectors: u64) -> u64 {
        low_sectors | low_sectors.saturating_sub(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_distance_lies_in_its_bucket() {
        for sectors in [0, 1, 2, 3, 4, 1000, 1023, 1024, u64::MAX] {
            let low = BlockInterval::bucket(sectors);
            assert!(low <= sectors && sectors <= BlockInterval::bucket_high(low), "{sectors}");
        }
    }
}
