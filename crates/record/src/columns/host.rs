//! Which tables hold what the roles' processes and the machine under them did, and how what was seen becomes their rows.

use super::{LENGTH, START, TableSpec};
use assay_measurement::health::NetworkInterval;
use assay_measurement::interval::HostInterval;
use assay_measurement::machine::{BlockInterval, DiskInterval, InterfaceInterval, MachineInterval};
use assay_table::FileError;
use assay_table::{Cell, Column, Kind, Table};

/// A table whose columns are the fields of one type: when, then texts, then numbers, then numbers that may be missing.
macro_rules! plain_table {
    (
        $spec:ident, $row:ident, $read:ident, $of:ty, $file:literal, $about:literal,
        texts { $($text:ident: $text_about:literal,)* }
        numbers { $($number:ident: $number_about:literal,)* }
        perhaps { $($perhaps:ident: $perhaps_about:literal,)* }
    ) => {
        #[doc = $about]
        pub(crate) const $spec: TableSpec = TableSpec {
            file: $file,
            about: $about,
            columns: || vec![
                START,
                LENGTH,
                $(Column::new(stringify!($text), Kind::Text, $text_about),)*
                $(Column::new(stringify!($number), Kind::Uint, $number_about),)*
                $(Column::optional(stringify!($perhaps), Kind::Uint, $perhaps_about),)*
            ],
        };

        #[doc = concat!("The row of an interval in ", $file, ".")]
        pub(crate) fn $row(interval: &$of) -> Vec<Cell<'_>> {
            vec![
                Cell::Uint(interval.start_ms),
                Cell::Uint(interval.length_ms),
                $(Cell::Text(&interval.$text),)*
                $(Cell::Uint(interval.$number),)*
                $(Cell::opt_uint(interval.$perhaps),)*
            ]
        }

        #[doc = concat!("Reads a row of ", $file, "; a column that the file does not have was added after it was written.")]
        pub(crate) fn $read(table: &Table, row: usize) -> Result<$of, FileError> {
            let mut interval = <$of>::default();
            interval.start_ms = table.uint("start_ms", row)?;
            interval.length_ms = table.uint("length_ms", row)?;
            $(if table.has(stringify!($text)) {
                interval.$text = table.text(stringify!($text), row)?.to_owned();
            })*
            $(if table.has(stringify!($number)) {
                interval.$number = table.uint(stringify!($number), row)?;
            })*
            $(if table.has(stringify!($perhaps)) {
                interval.$perhaps = table.opt_uint(stringify!($perhaps), row)?;
            })*
            Ok(interval)
        }
    };
}

plain_table!(
    HOST, host_row, read_host, HostInterval, "host.parquet",
    "What each role's processes used (all of them, with those that came and went), a row per role and interval. \
     Processor time is counted in steps of 10 ms, but for a role with a control group of its own.",
    texts {
        role: "`robots`, `origins`, `proxy`, or `host` for the whole machine",
    }
    numbers {
        cpu_us: "processor time used, user and system, in microseconds",
        rss_bytes: "resident memory at the end, in bytes",
        run_delay_us: "time that runnable threads waited for a processor, in microseconds",
        descriptors: "open file descriptors at the end",
        steal_us: "time stolen by the hypervisor (`host` only), in microseconds",
        user_us: "of `cpu_us`: in the programs themselves",
        system_us: "of `cpu_us`: in the kernel, for them",
        voluntary_switches: "times that a thread gave up its processor because it had to wait (not `host`)",
        involuntary_switches: "times that a processor was taken from a thread (not `host`)",
        minor_faults: "page faults that needed no disk (not `host`)",
        major_faults: "page faults that had to read from a disk (not `host`)",
        processes: "processes at the end (not `host`)",
        threads: "threads at the end (not `host`)",
    }
    perhaps {
        pss_bytes: "memory at the end with shared pages counted in parts (PSS), in bytes; every 10 seconds, else null",
        disk_read_bytes: "bytes read from disks for them; null where the kernel does not tell",
        disk_written_bytes: "bytes of theirs that were or will be written to disks; null where the kernel does not tell",
        group_bytes: "memory charged to the role's control group, page cache included; null where it has none of its own",
        cache_bytes: "page cache at the end: of the role's control group (null where it has none), of the machine (`host`)",
    }
);

plain_table!(
    NETWORK, network_row, read_network, NetworkInterval, "network.parquet",
    "What the network stack counted, a row per interval and network namespace: for everybody in it. Levels are taken at \
     the end. States are counted every second, or less often where there are so many connections that counting them \
     would take more than 0.2 % of a processor; else null.",
    texts {
        role: "whose namespace it is: roles, joined by `+`",
    }
    numbers {
        segments_out: "TCP segments sent (`OutSegs`)",
        retransmitted: "segments sent again (`RetransSegs`)",
        listen_overflows: "connections that found a full accept queue (`ListenOverflows`)",
        listen_drops: "connection attempts dropped by listeners for any reason (`ListenDrops`)",
        backlog_drops: "segments dropped because a socket's backlog was full (`TCPBacklogDrop`)",
        receive_drops: "times received data was thrown away for lack of memory (`RcvPruned`, `TCPRcvQDrop`)",
        memory_pressures: "times TCP came under memory pressure (`TCPMemoryPressures`)",
        sockets: "at the end: TCP sockets in use",
        time_wait: "at the end: connections in TIME_WAIT",
        buffer_bytes: "at the end: memory of TCP buffers, in bytes",
    }
    perhaps {
        established: "at the end: connections in ESTABLISHED (with CLOSE_WAIT where that is null)",
        syn_sent: "at the end: connections in SYN_SENT",
        syn_received: "at the end: connections in SYN_RECV",
        fin_wait1: "at the end: connections in FIN_WAIT1",
        fin_wait2: "at the end: connections in FIN_WAIT2",
        close_wait: "at the end: connections in CLOSE_WAIT",
        last_ack: "at the end: connections in LAST_ACK or CLOSING",
        listening: "at the end: listening sockets",
    }
);

plain_table!(
    MACHINE, machine_row, read_machine, MachineInterval, "machine.parquet",
    "What the machine as a whole did, for whomever, a row per interval. Levels are taken at the end.",
    texts {}
    numbers {
        context_switches: "times that a processor went over to another thread",
        interrupts: "interrupts served",
        forks: "processes and threads started",
        running: "threads that ran or were ready to",
        blocked: "threads that waited for a disk",
        used_bytes: "memory that is not to be had (total − available), in bytes",
        cached_bytes: "page cache and buffers, in bytes",
        dirty_bytes: "page cache that is still to be written, in bytes",
        writeback_bytes: "page cache that is being written, in bytes",
        swapped_bytes: "what was moved out to swap, in bytes",
        metering_us: "processor time that it took Assay to measure roles and machine and to keep it, the second before, \
                      in microseconds",
    }
    perhaps {}
);

plain_table!(
    DISKS, disk_row, read_disk, DiskInterval, "disks.parquet",
    "What each disk did, for whomever, a row per whole device and interval; devices without a request are left out.",
    texts {
        device: "the kernel's name of it",
        holds: "`store`: the proxy's files are on it; else empty",
    }
    numbers {
        reads: "reads completed",
        read_bytes: "bytes read",
        writes: "writes completed",
        written_bytes: "bytes written",
        read_ms: "time that all reads took, in milliseconds",
        write_ms: "time that all writes took, in milliseconds",
        busy_ms: "time in which it had something to do, in milliseconds",
        queue_ms: "time that requests spent in it, all together, in milliseconds; over `length_ms` it is the mean queue",
        in_flight: "at the end: requests in it",
    }
    perhaps {}
);

plain_table!(
    INTERFACES, interface_row, read_interface, InterfaceInterval, "interfaces.parquet",
    "What went through each network interface, a row per interface and interval; interfaces without a packet are left \
     out. On `lo`, everything is both sent and received.",
    texts {
        role: "whose network namespace it is in: roles, joined by `+`",
        interface: "the kernel's name of it",
    }
    numbers {
        received_bytes: "bytes received",
        received_packets: "packets received",
        receive_drops: "packets dropped when they came in",
        sent_bytes: "bytes sent",
        sent_packets: "packets sent",
        send_drops: "packets dropped when they were to go out",
    }
    perhaps {}
);

plain_table!(
    BLOCKS, block_row, read_block, BlockInterval, "blocks.parquet",
    "Requests handed to the disk that the proxy's files are on, by whomever, only with `--trace-disk`: a row per kind and \
     interval. A seek is a request that does not begin where the one before it (of any kind) ended.",
    texts {
        device: "the kernel's name of the device",
        operation: "`read`, `write` or `other` (discards, flushes)",
    }
    numbers {
        requests: "requests",
        bytes: "their bytes",
        sequential: "those that were no seek",
        seek_bytes: "sum of the distances of the seeks, in bytes",
        lowest_sector: "lowest sector (of 512 bytes) that was asked for",
        highest_sector: "highest",
        lost: "requests that the kernel could not keep for want of room; they are in no other column",
    }
    perhaps {}
);

/// How far the traced disk had to go.
pub(crate) const SEEKS: TableSpec = TableSpec {
    file: "seeks.parquet",
    about: "Distances between where a request began and where the one before it had ended, only with `--trace-disk`: the \
            buckets of each row of blocks.parquet that has any. Buckets with the same `low_sectors` are the same.",
    columns: || {
        vec![
            Column::new("block", Kind::Uint, "number of the row in blocks.parquet, from 0"),
            Column::new(
                "low_sectors",
                Kind::Uint,
                "shortest distance of the bucket, in sectors of 512 bytes",
            ),
            Column::new("high_sectors", Kind::Uint, "longest"),
            Column::new("count", Kind::Uint, "how many"),
        ]
    },
};

/// The rows of an interval in seeks.parquet.
pub(crate) fn seek_rows(number: u64, interval: &BlockInterval) -> impl Iterator<Item = [Cell<'static>; 4]> {
    let row = move |&(low, count): &(u64, u64)| {
        [number, low, BlockInterval::bucket_high(low), count].map(Cell::Uint)
    };
    interval.distances.iter().map(row)
}

/// Reads seeks.parquet into the intervals of blocks.parquet.
pub(crate) fn read_seeks(table: &Table, blocks: &mut [BlockInterval]) -> Result<(), FileError> {
    for row in 0..table.rows() {
        let number = table.uint("block", row)?;
        let index = usize::try_from(number).unwrap_or(usize::MAX);
        let block = blocks.get_mut(index).ok_or_else(|| table.unknown("block", &number.to_string()))?;
        block.distances.push((table.uint("low_sectors", row)?, table.uint("count", row)?));
    }
    Ok(())
}
