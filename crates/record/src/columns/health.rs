//! Which tables hold how Assay itself and the machine did, and how what was seen becomes their rows.

use super::{INTERVAL, LENGTH, START, TableSpec};
use assay_measurement::health::{Baseline, LinkInterval, ProcessorInterval, Stall, ThreadInterval};
use assay_table::FileError;
use assay_table::{Cell, Column, Kind, Table};

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

/// What links carried.
pub(crate) const LINKS: TableSpec = TableSpec {
    file: "links.parquet",
    about: "What each emulated link carried, a row per direction and interval; a row of no length holds everything before \
            the start. How late packets came out is in times.parquet and histograms.parquet (side `links`).",
    columns: || {
        let count = |name, about| Column::new(name, Kind::Uint, about);
        vec![
            INTERVAL,
            START,
            LENGTH,
            Column::new("link", Kind::Text, "its name: the roles that it joins"),
            Column::new("from", Kind::Text, "the role that packets came from"),
            count("packets", "packets that came to the link"),
            count("bytes", "their bytes, IP headers included"),
            count("delivered", "packets that came out"),
            count("delivered_bytes", "their bytes"),
            count("wire", "packets that were on the wire: all but those that found the queue full"),
            count("lost", "those of them that the plan lost"),
            count("queue_full", "packets that found the queue full"),
            count("failed", "packets that the link could not carry for reasons of its own"),
        ]
    },
};

/// What each processor did.
pub(crate) const PROCESSORS: TableSpec = TableSpec {
    file: "processors.parquet",
    about: "What each processor of this machine did, for whomever, a row per processor and interval. The kernel \
            counts it in steps of 10 ms.",
    columns: || {
        let mut columns = vec![
            START,
            LENGTH,
            Column::new("cpu", Kind::Uint, "its number"),
            Column::new("busy_us", Kind::Uint, "time that it worked, in microseconds"),
            Column::new("steal_us", Kind::Uint, "time that the hypervisor took from it, in microseconds"),
        ];
        columns.extend(TIMES.map(|(name, about)| Column::new(name, Kind::Uint, about)));
        columns
    },
};

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
pub(crate) fn read_thread(table: &Table, row: usize) -> Result<ThreadInterval, FileError> {
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

fn read_cpu(table: &Table, row: usize) -> Result<Option<u32>, FileError> {
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
pub(crate) fn read_stall(table: &Table, row: usize) -> Result<Stall, FileError> {
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
pub(crate) fn read_baseline(table: &Table, row: usize) -> Result<Baseline, FileError> {
    Ok(Baseline {
        role: table.text("role", row)?.to_owned(),
        thread: table.narrow("thread", table.uint("thread", row)?)?,
        cpu: read_cpu(table, row)?,
        length_ms: table.uint("length_ms", row)?,
        ..Baseline::default()
    })
}

/// What a processor did with its time beside `busy_us` and `steal_us`, as columns.
const TIMES: [(&str, &str); 6] = [
    ("user_us", "of `busy_us`: programs"),
    ("system_us", "of `busy_us`: the kernel, at the wish of programs"),
    ("irq_us", "of `busy_us`: interrupts"),
    ("softirq_us", "of `busy_us`: what interrupts left to do, such as the network"),
    ("iowait_us", "time that it had nothing to do but somebody waited for a disk, in microseconds"),
    ("idle_us", "time that it had nothing to do, in microseconds"),
];

/// The row of an interval in links.parquet.
pub(crate) fn link_row(number: u64, interval: &LinkInterval) -> [Cell<'_>; 13] {
    [
        Cell::Uint(number),
        Cell::Uint(interval.start_ms),
        Cell::Uint(interval.length_ms),
        Cell::Text(&interval.link),
        Cell::Text(&interval.from),
        Cell::Uint(interval.packets),
        Cell::Uint(interval.bytes),
        Cell::Uint(interval.delivered),
        Cell::Uint(interval.delivered_bytes),
        Cell::Uint(interval.wire),
        Cell::Uint(interval.lost),
        Cell::Uint(interval.queue_full),
        Cell::Uint(interval.failed),
    ]
}

/// Reads a row of links.parquet; the histogram comes from another table.
pub(crate) fn read_link(table: &Table, row: usize) -> Result<LinkInterval, FileError> {
    let uint = |name: &str| table.uint(name, row);
    Ok(LinkInterval {
        start_ms: uint("start_ms")?,
        length_ms: uint("length_ms")?,
        link: table.text("link", row)?.to_owned(),
        from: table.text("from", row)?.to_owned(),
        packets: uint("packets")?,
        bytes: uint("bytes")?,
        delivered: uint("delivered")?,
        delivered_bytes: uint("delivered_bytes")?,
        wire: uint("wire")?,
        lost: uint("lost")?,
        queue_full: uint("queue_full")?,
        failed: uint("failed")?,
        ..LinkInterval::default()
    })
}

/// The row of an interval in processors.parquet.
pub(crate) fn processor_row(interval: &ProcessorInterval) -> [Cell<'static>; 11] {
    let ProcessorInterval { start_ms, length_ms, cpu, busy_us, steal_us, .. } = *interval;
    let ProcessorInterval { user_us, system_us, irq_us, softirq_us, iowait_us, idle_us, .. } = *interval;
    let of_it = [user_us, system_us, irq_us, softirq_us, iowait_us, idle_us];
    let mut row = [Cell::Null; 11];
    row[..5].copy_from_slice(&[start_ms, length_ms, u64::from(cpu), busy_us, steal_us].map(Cell::Uint));
    row[5..].copy_from_slice(&of_it.map(Cell::Uint));
    row
}

/// Reads a row of processors.parquet.
pub(crate) fn read_processor(table: &Table, row: usize) -> Result<ProcessorInterval, FileError> {
    let mut times = [0; TIMES.len()];
    for (time, (name, _)) in times.iter_mut().zip(TIMES) {
        // An earlier version did not tell these apart.
        if table.has(name) {
            *time = table.uint(name, row)?;
        }
    }
    let [user_us, system_us, irq_us, softirq_us, iowait_us, idle_us] = times;
    Ok(ProcessorInterval {
        start_ms: table.uint("start_ms", row)?,
        length_ms: table.uint("length_ms", row)?,
        cpu: table.narrow("cpu", table.uint("cpu", row)?)?,
        busy_us: table.uint("busy_us", row)?,
        steal_us: table.uint("steal_us", row)?,
        user_us,
        system_us,
        irq_us,
        softirq_us,
        iowait_us,
        idle_us,
    })
}
