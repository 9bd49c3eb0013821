//! The machine under a run, second by second: its memory, its disks, its interfaces, and the requests that went to a disk.

use crate::series;

series! {
    /// The machine as a whole in one interval.
    #[derive(Eq)]
    pub struct MachineInterval {
        start_ms: u64 = "when the interval began, in milliseconds since the start of the run";
        length_ms: u64 = "how long it lasted, in milliseconds";
        context_switches: u64 = "times that a processor went over to another thread";
        interrupts: u64 = "interrupts served";
        forks: u64 = "processes and threads started";
        running: u64 = "threads that were running or runnable";
        blocked: u64 = "threads that waited for a disk";
        used_bytes: u64 = "memory that is not available (total − available), in bytes";
        cached_bytes: u64 = "page cache and buffers, in bytes";
        dirty_bytes: u64 = "page cache that is still to be written, in bytes";
        writeback_bytes: u64 = "page cache that is being written, in bytes";
        swapped_bytes: u64 = "what was moved out to swap, in bytes";
        metering_us: u64 = "processor time that it took Assay to measure roles and machine and to keep it, the second before, \
                            in microseconds";
    }
}

series! {
    /// A disk (a whole device) in one interval.
    #[derive(Eq)]
    pub struct DiskInterval {
        start_ms: u64 = "when the interval began, in milliseconds since the start of the run";
        length_ms: u64 = "how long it lasted, in milliseconds";
        device: String = "the kernel's name of it";
        holds: String = "`store`: the proxy's files are on it; else empty";
        reads: u64 = "reads completed";
        read_bytes: u64 = "bytes read";
        writes: u64 = "writes completed";
        written_bytes: u64 = "bytes written";
        read_ms: u64 = "time that all reads took, in milliseconds";
        write_ms: u64 = "time that all writes took, in milliseconds";
        busy_ms: u64 = "time in which it had something to do, in milliseconds";
        queue_ms: u64 =
            "time that requests spent in it, all together, in milliseconds; over `length_ms` it is the mean queue";
        in_flight: u64 = "at the end: requests in it";
    }
}

series! {
    /// A network interface in one interval.
    #[derive(Eq)]
    pub struct InterfaceInterval {
        start_ms: u64 = "when the interval began, in milliseconds since the start of the run";
        length_ms: u64 = "how long it lasted, in milliseconds";
        role: String = "whose network namespace it is in: roles, joined by `+`";
        interface: String = "the kernel's name of it";
        received_bytes: u64 = "bytes received";
        received_packets: u64 = "packets received";
        receive_drops: u64 = "packets dropped when they came in";
        sent_bytes: u64 = "bytes sent";
        sent_packets: u64 = "packets sent";
        send_drops: u64 = "packets dropped when they were to go out";
    }
}

series! {
    /// Requests of one kind that went to the traced disk in one interval.
    #[derive(Eq)]
    pub struct BlockInterval {
        start_ms: u64 = "when the interval began, in milliseconds since the start of the run";
        length_ms: u64 = "how long it lasted, in milliseconds";
        device: String = "the kernel's name of the device";
        operation: String = "`read`, `write` or `other` (discards, flushes)";
        requests: u64 = "requests";
        bytes: u64 = "their bytes";
        sequential: u64 = "those that were no seek";
        seek_bytes: u64 = "sum of the distances of the seeks, in bytes";
        lowest_sector: u64 = "lowest sector (of 512 bytes) that was requested";
        highest_sector: u64 = "highest";
        lost: u64 = "requests that the kernel could not keep for want of room; they are in no other column";
    } beside {
        /// Distances in sectors: the least of each bucket (0, 1, 2, 4, 8, …), and how many.
        distances: Vec<(u64, u64)>,
    }
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
