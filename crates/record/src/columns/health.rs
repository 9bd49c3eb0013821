//! Which tables hold how Assay itself and the machine did, and how what was seen becomes their rows.

use super::{INTERVAL, LENGTH, START, TableSpec};
use crate::dir::RunDirError;
use crate::health::{Baseline, NetworkInterval, ProcessorInterval, Stall, ThreadInterval};
use crate::table::{Cell, Column, Kind, Table};

const ROLE: Column = Column::new("role", Kind::Text, "`robots` or `origins`");
const THREAD: Column = Column::new("thread", Kind::Uint, "number of the thread within its role");
const CPU: Column =
    Column::optional("cpu", Kind::Uint, "processor that it is pinned to; null: it is not pinned");

/// One row per second and worker thread.
pub(crate) const THREADS: TableSpec = TableSpec {
    file: "threads.parquet",
    about: "How each worker thread of robots and origins did, a row per thread and interval. How late its timer was \
            served is in times.parquet and histograms.parquet (side `threads`).",
    columns: || {
        vec![
            INTERVAL,
            START,
            LENGTH,
            Column::new("phase", Kind::Uint, "robots: phase that was on when it ended; origins: 0"),
            ROLE,
            THREAD,
            CPU,
            Column::new("cpu_us", Kind::Uint, "processor time it used, in microseconds"),
            Column::new(
                "run_delay_us",
                Kind::Uint,
                "time it was ready to run and had no processor, in microseconds",
            ),
            Column::new("slices", Kind::Uint, "times it was put on a processor"),
            Column::new(
                "longest_lag_us",
                Kind::Uint,
                "the latest that its timer was served, in microseconds",
            ),
            Column::new(
                "accept_queue",
                Kind::Uint,
                "origins: most connections that waited to be accepted on one of its listeners",
            ),
            Column::new("accept_queue_limit", Kind::Uint, "the limit of that"),
        ]
    },
};

/// Where worker threads stood still.
pub(crate) const STALLS: TableSpec = TableSpec {
    file: "stalls.parquet",
    about: "Where a worker thread stood still: its timer was served 10 ms late or more. What `cpu_us` and \
            `run_delay_us` do not explain, the process or the machine was stopped.",
    columns: || {
        vec![
            ROLE,
            THREAD,
            Column::new("at_ms", Kind::Uint, "when it began, in milliseconds since the start of the run"),
            Column::new("length_us", Kind::Uint, "how long it lasted, in microseconds"),
            Column::new("cpu_us", Kind::Uint, "processor time that it used meanwhile, in microseconds"),
            Column::new(
                "run_delay_us",
                Kind::Uint,
                "time that it was ready to run meanwhile and had no processor, in microseconds",
            ),
        ]
    },
};

/// How quiet the machine was before the run.
pub(crate) const BASELINES: TableSpec = TableSpec {
    file: "baselines.parquet",
    about: "A bare timer, measured in each worker thread before the run. How late it was is in times.parquet and \
            histograms.parquet (side `baseline`).",
    columns: || {
        vec![
            INTERVAL,
            ROLE,
            THREAD,
            CPU,
            Column::new("length_ms", Kind::Uint, "how long was measured, in milliseconds"),
        ]
    },
};

/// What the network stack counted.
pub(crate) const NETWORK: TableSpec = TableSpec {
    file: "network.parquet",
    about: "What the network stack of this machine (or namespace) counted, a row per interval: for everybody on it.",
    columns: || {
        let count = |name, about| Column::new(name, Kind::Uint, about);
        vec![
            START,
            LENGTH,
            count("segments_out", "TCP segments sent (`OutSegs`)"),
            count("retransmitted", "segments sent again (`RetransSegs`)"),
            count("listen_overflows", "connections that found a full accept queue (`ListenOverflows`)"),
            count("listen_drops", "connection attempts dropped by listeners for any reason (`ListenDrops`)"),
            count("backlog_drops", "segments dropped because a socket's backlog was full (`TCPBacklogDrop`)"),
            count(
                "receive_drops",
                "times received data was thrown away for lack of memory (`RcvPruned`, `TCPRcvQDrop`)",
            ),
            count("memory_pressures", "times TCP came under memory pressure (`TCPMemoryPressures`)"),
            count("sockets", "at the end: TCP sockets in use"),
            count("time_wait", "at the end: connections in TIME_WAIT"),
            count("buffer_bytes", "at the end: memory of TCP buffers, in bytes"),
        ]
    },
};

/// What each processor did.
pub(crate) const PROCESSORS: TableSpec = TableSpec {
    file: "processors.parquet",
    about: "What each processor of this machine did, for whomever, a row per processor and interval. The kernel \
            counts it in steps of 10 ms.",
    columns: || {
        vec![
            START,
            LENGTH,
            Column::new("cpu", Kind::Uint, "its number"),
            Column::new("busy_us", Kind::Uint, "time that it worked, in microseconds"),
            Column::new("steal_us", Kind::Uint, "time that the hypervisor took from it, in microseconds"),
        ]
    },
};

/// All rows of a table.
pub(crate) fn read_all<T>(
    table: &Table,
    read: fn(&Table, usize) -> Result<T, RunDirError>,
) -> Result<Vec<T>, RunDirError> {
    (0..table.rows()).map(|row| read(table, row)).collect()
}

/// The row of an interval in threads.parquet.
pub(crate) fn thread_row(number: u64, interval: &ThreadInterval) -> [Cell<'_>; 13] {
    [
        Cell::Uint(number),
        Cell::Uint(interval.start_ms),
        Cell::Uint(interval.length_ms),
        Cell::Uint(interval.phase.into()),
        Cell::Text(&interval.role),
        Cell::Uint(interval.thread.into()),
        Cell::opt_uint(interval.cpu.map(u64::from)),
        Cell::Uint(interval.cpu_us),
        Cell::Uint(interval.run_delay_us),
        Cell::Uint(interval.slices),
        Cell::Uint(interval.longest_lag_us),
        Cell::Uint(interval.accept_queue.into()),
        Cell::Uint(interval.accept_queue_limit.into()),
    ]
}

/// Reads a row of threads.parquet; the histogram comes from another table.
pub(crate) fn read_thread(table: &Table, row: usize) -> Result<ThreadInterval, RunDirError> {
    let uint = |name: &str| table.uint(name, row);
    Ok(ThreadInterval {
        start_ms: uint("start_ms")?,
        length_ms: uint("length_ms")?,
        phase: table.narrow("phase", uint("phase")?)?,
        role: table.text("role", row)?.to_owned(),
        thread: table.narrow("thread", uint("thread")?)?,
        cpu: read_cpu(table, row)?,
        cpu_us: uint("cpu_us")?,
        run_delay_us: uint("run_delay_us")?,
        slices: uint("slices")?,
        longest_lag_us: uint("longest_lag_us")?,
        accept_queue: table.narrow("accept_queue", uint("accept_queue")?)?,
        accept_queue_limit: table.narrow("accept_queue_limit", uint("accept_queue_limit")?)?,
        ..ThreadInterval::default()
    })
}

fn read_cpu(table: &Table, row: usize) -> Result<Option<u32>, RunDirError> {
    table.opt_uint("cpu", row)?.map(|cpu| table.narrow("cpu", cpu)).transpose()
}

/// The row of a stall in stalls.parquet.
pub(crate) fn stall_row(stall: &Stall) -> [Cell<'_>; 6] {
    [
        Cell::Text(&stall.role),
        Cell::Uint(stall.thread.into()),
        Cell::Uint(stall.at_ms),
        Cell::Uint(stall.length_us),
        Cell::Uint(stall.cpu_us),
        Cell::Uint(stall.run_delay_us),
    ]
}

/// Reads a row of stalls.parquet.
pub(crate) fn read_stall(table: &Table, row: usize) -> Result<Stall, RunDirError> {
    Ok(Stall {
        role: table.text("role", row)?.to_owned(),
        thread: table.narrow("thread", table.uint("thread", row)?)?,
        at_ms: table.uint("at_ms", row)?,
        length_us: table.uint("length_us", row)?,
        cpu_us: table.uint("cpu_us", row)?,
        run_delay_us: table.uint("run_delay_us", row)?,
    })
}

/// The row of a baseline in baselines.parquet.
pub(crate) fn baseline_row(number: u64, baseline: &Baseline) -> [Cell<'_>; 5] {
    [
        Cell::Uint(number),
        Cell::Text(&baseline.role),
        Cell::Uint(baseline.thread.into()),
        Cell::opt_uint(baseline.cpu.map(u64::from)),
        Cell::Uint(baseline.length_ms),
    ]
}

/// Reads a row of baselines.parquet; the histogram comes from another table.
pub(crate) fn read_baseline(table: &Table, row: usize) -> Result<Baseline, RunDirError> {
    Ok(Baseline {
        role: table.text("role", row)?.to_owned(),
        thread: table.narrow("thread", table.uint("thread", row)?)?,
        cpu: read_cpu(table, row)?,
        length_ms: table.uint("length_ms", row)?,
        ..Baseline::default()
    })
}

/// The row of an interval in network.parquet.
pub(crate) fn network_row(interval: &NetworkInterval) -> [Cell<'static>; 12] {
    [
        interval.start_ms,
        interval.length_ms,
        interval.segments_out,
        interval.retransmitted,
        interval.listen_overflows,
        interval.listen_drops,
        interval.backlog_drops,
        interval.receive_drops,
        interval.memory_pressures,
        interval.sockets,
        interval.time_wait,
        interval.buffer_bytes,
    ]
    .map(Cell::Uint)
}

/// Reads a row of network.parquet.
pub(crate) fn read_network(table: &Table, row: usize) -> Result<NetworkInterval, RunDirError> {
    let uint = |name: &str| table.uint(name, row);
    Ok(NetworkInterval {
        start_ms: uint("start_ms")?,
        length_ms: uint("length_ms")?,
        segments_out: uint("segments_out")?,
        retransmitted: uint("retransmitted")?,
        listen_overflows: uint("listen_overflows")?,
        listen_drops: uint("listen_drops")?,
        backlog_drops: uint("backlog_drops")?,
        receive_drops: uint("receive_drops")?,
        memory_pressures: uint("memory_pressures")?,
        sockets: uint("sockets")?,
        time_wait: uint("time_wait")?,
        buffer_bytes: uint("buffer_bytes")?,
    })
}

/// The row of an interval in processors.parquet.
pub(crate) fn processor_row(interval: &ProcessorInterval) -> [Cell<'static>; 5] {
    [interval.start_ms, interval.length_ms, u64::from(interval.cpu), interval.busy_us, interval.steal_us]
        .map(Cell::Uint)
}

/// Reads a row of processors.parquet.
pub(crate) fn read_processor(table: &Table, row: usize) -> Result<ProcessorInterval, RunDirError> {
    Ok(ProcessorInterval {
        start_ms: table.uint("start_ms", row)?,
        length_ms: table.uint("length_ms", row)?,
        cpu: table.narrow("cpu", table.uint("cpu", row)?)?,
        busy_us: table.uint("busy_us", row)?,
        steal_us: table.uint("steal_us", row)?,
    })
}
