//! Tables of a run directory: their columns, and the conversion of intervals to rows.
//!
//! `docs/reference/run-directory.md` prints these tables; a test keeps it so.

pub(crate) mod health;
pub(crate) mod host;
pub(crate) mod rows;

use crate::table::FileError;
use crate::table::{Cell, Column, ColumnKind, Table};
use assay_measurement::adapted::Adapted;
use assay_measurement::counts::{OriginCounts, RobotCounts};
use assay_measurement::declared::Described;
use assay_measurement::histogram::SparseHistogram;
use assay_measurement::interval::{OriginInterval, RobotInterval, RobotLevels};

/// A Parquet file of the run directory.
pub(crate) struct TableSpec {
    pub file: &'static str,
    /// Meaning of a row, for the reference page.
    pub about: &'static str,
    pub columns: fn() -> Vec<Column>,
}

/// Columns of a declared type whose rows other tables reference by number.
fn numbered<T: Described>() -> Vec<Column> {
    let mut columns = rows::columns::<T>();
    columns.insert(0, INTERVAL);
    columns
}

impl TableSpec {
    pub(crate) fn names(&self) -> Vec<&'static str> {
        (self.columns)().iter().map(|column| column.name).collect()
    }
}

const INTERVAL: Column =
    Column::new("interval", ColumnKind::Uint, "number of the interval on its side, from 0");
const START: Column = Column::new(
    "start_ms",
    ColumnKind::Uint,
    "when the interval began, in milliseconds since the start of the run",
);
const LENGTH: Column = Column::new("length_ms", ColumnKind::Uint, "how long it lasted, in milliseconds");
const PHASE: Column = Column::new(
    "phase",
    ColumnKind::Uint,
    "index into `phases` of run.json: the phase that the xacts were due in",
);
const COUNT: Column = Column::new("count", ColumnKind::Uint, "how many");

pub(crate) const ROBOTS: TableSpec = TableSpec {
    file: "robots.parquet",
    about: "What the robots counted: a row per interval (a second, or less at a phase's ends) and phase.",
    columns: || {
        let mut columns = vec![INTERVAL, START, LENGTH, PHASE];
        columns.extend(rows::columns::<RobotCounts>());
        columns.extend(rows::columns::<RobotLevels>());
        columns
    },
};

pub(crate) const ORIGINS: TableSpec = TableSpec {
    file: "origins.parquet",
    about: "What the origins counted: a row per interval and phase, as the requests themselves name it.",
    columns: || {
        let mut columns = vec![INTERVAL, START, LENGTH, PHASE];
        columns.extend(rows::columns::<OriginCounts>());
        columns.push(Column::new(
            "connections",
            ColumnKind::Uint,
            "at the end of the interval: open connections",
        ));
        columns
    },
};

pub(crate) const CLASSES: TableSpec = TableSpec {
    file: "classes.parquet",
    about: "Completed xacts of the robots by method, by request type and by status code.",
    columns: || {
        vec![
            Column { about: "`interval` of robots.parquet", ..INTERVAL },
            START,
            PHASE,
            Column::new(
                "by",
                ColumnKind::Text,
                "`method`, `type`, `status`, `tls` (version and cipher suite) or `changed field` (one for caches that is not as the origin sent it)",
            ),
            Column::new("value", ColumnKind::Text, "for example `GET`, `basic`, `200`"),
            COUNT,
        ]
    },
};

pub(crate) const ERRORS: TableSpec = TableSpec {
    file: "errors.parquet",
    about: "Errors of the robots by kind; the first of each kind are in examples.json.",
    columns: || {
        vec![
            Column { about: "`interval` of robots.parquet", ..INTERVAL },
            START,
            PHASE,
            Column::new("kind", ColumnKind::Text, "name of the error class"),
            COUNT,
        ]
    },
};

/// Counts, sums and maxima of all histograms, whose buckets are in [`HISTOGRAMS`].
pub(crate) const TIMES: TableSpec = TableSpec {
    file: "times.parquet",
    about: "A row per histogram: its count, exact sum and exact maximum. The mean of any selection is \
            `sum(sum_us) / sum(count)`.",
    columns: || {
        let mut columns = histogram_columns();
        columns.extend([
            Column::new("count", ColumnKind::Uint, "number of values"),
            Column::new("sum_us", ColumnKind::Uint, "their exact sum, in microseconds"),
            Column::new("max_us", ColumnKind::Uint, "the largest, in microseconds"),
        ]);
        columns
    },
};

pub(crate) const HISTOGRAMS: TableSpec = TableSpec {
    file: "histograms.parquet",
    about: "The buckets of all histograms that have something in them. Buckets of any two histograms with the \
            same `low_us` are the same bucket, so they add up; a percentile is the `high_us` of the first bucket \
            at which the running sum of `count` reaches its share, but no more than the selection's `max(max_us)`.",
    columns: || {
        let mut columns = histogram_columns();
        columns.extend([
            Column::new("low_us", ColumnKind::Uint, "smallest value of the bucket, in microseconds"),
            Column::new("high_us", ColumnKind::Uint, "largest value of the bucket, in microseconds"),
            Column::new("count", ColumnKind::Uint, "values in the bucket"),
        ]);
        columns
    },
};

fn histogram_columns() -> Vec<Column> {
    vec![
        Column::new("histogram", ColumnKind::Uint, "number of the histogram, the same in both tables"),
        Column::new(
            "side",
            ColumnKind::Text,
            "`robots`, `origins`, `host`, `threads`, `links` or `baseline`",
        ),
        Column {
            about: "`interval` of that side's table; where a host.parquet has no such column, the number of the row, from 0",
            ..INTERVAL
        },
        START,
        PHASE,
        Column::new(
            "metric",
            ColumnKind::Text,
            "`response`, `service`, `ttfb`; of those that Assay disturbed, the same with `_disturbed` as they were seen and with \
             `_least` as short as they can have been, and `aftermath`: the delay of others with which they were held back, or whose \
             burst they met, and `passing`: a delay of another request that could have slowed this one, if the target was busy; `lateness`, `unsent_wait`, `unsent_least` \
             (these waits without Assay's delays), `unread`, `handshake` (robots); `service`, `lateness` (origins); `waits` (host, of the proxy: in each stretch of \
             2 ms); `timer_lag` (threads, baseline); `lateness` (links)",
        ),
        Column::new(
            "class",
            ColumnKind::Text,
            "`hit` or `miss`, by the outcome of any xact; `other`: completed with another outcome, or with none that was \
             told; `timed_out`: given up, and how long they had waited by then; `all` where they are not told apart",
        ),
    ]
}

pub(crate) const PROXY: TableSpec = TableSpec {
    file: "proxy.parquet",
    about: "The target's own counters, as it reports them (cumulative), a row per counter and reading.",
    columns: || {
        vec![
            Column::new(
                "at_ms",
                ColumnKind::Uint,
                "when it was read, in milliseconds since the start of the run",
            ),
            Column::new("counter", ColumnKind::Text, "its name, in the target's words"),
            Column::new("value", ColumnKind::Float, "its value"),
            Column::new(
                "cache",
                ColumnKind::Text,
                "whose it is, where several caches work together; else empty",
            ),
        ]
    },
};

pub(crate) const ADAPTED: TableSpec = TableSpec {
    file: "adapted.parquet",
    about: "What thermostats and scripts decided about the load, a row per decision; empty where the load follows the \
            schedule alone.",
    columns: rows::columns::<Adapted>,
};

pub(crate) const XACTS: TableSpec = TableSpec {
    file: "xacts.parquet",
    about: "Every xact that was sent or is unsent, only with `--xact-log`. Embedded objects that were not reached \
            are not in it. Instants are microseconds since the start of the run; null: it never came to that.",
    columns: || {
        vec![
            Column::new("robot", ColumnKind::Uint, "robot"),
            Column::new("number", ColumnKind::Uint, "its request number"),
            Column::new("place", ColumnKind::Uint, "0: launched by the stream; else place in its page"),
            PHASE,
            Column::new("method", ColumnKind::Text, "`GET`, `HEAD`, `POST` or `PUT`"),
            Column::new(
                "type",
                ColumnKind::Text,
                "`basic`, `ims200`, `ims304`, `reload`, `range` or `upload`",
            ),
            Column::new("object", ColumnKind::Uint, "key of the object"),
            Column::new("content", ColumnKind::Uint, "index into `contents` of workload.json"),
            Column::new("cachable", ColumnKind::Bool, "the object may be cached"),
            Column::new("revisit", ColumnKind::Bool, "the stream says that it was requested before"),
            Column::new(
                "due_us",
                ColumnKind::Int,
                "when the schedule wanted it; its response time begins later by what it was sent later than `due_us` and `ready_us`, up to 50 µs",
            ),
            Column::optional("ready_us", ColumnKind::Int, "when the robot's own rules let it go"),
            Column::optional(
                "sent_us",
                ColumnKind::Int,
                "connect begun, or first byte written on a reused connection",
            ),
            Column::optional(
                "connected_us",
                ColumnKind::Int,
                "connection established (new connections only)",
            ),
            Column::optional(
                "secured_us",
                ColumnKind::Int,
                "TLS handshake over: data can be sent (new connections with TLS only)",
            ),
            Column::optional(
                "first_byte_us",
                ColumnKind::Int,
                "first byte of the response: when the kernel had it, if that is no more than 0.1 ms before it was read",
            ),
            Column::optional("last_byte_us", ColumnKind::Int, "last byte of the response, likewise"),
            Column::optional(
                "outcome",
                ColumnKind::Text,
                "`hit`, `collapsed`, `revalidated` or `miss`; null for errors and unsent requests",
            ),
            Column::optional("error", ColumnKind::Text, "name of the error class"),
            Column::optional("status", ColumnKind::Uint, "status code"),
            Column::new("body_bytes", ColumnKind::Uint, "body bytes received"),
            Column::optional("connection", ColumnKind::Uint, "which connection of the robot, counted from 0"),
            Column::optional(
                "fault",
                ColumnKind::Text,
                "what its origin does wrong on purpose if the request gets there: `status` (an error), `reset`, `expired` (a \
                 reset after long thought), `slow_start` or `slow_body`; null: nothing",
            ),
            Column::new(
                "fault_met",
                ColumnKind::Bool,
                "its response shows that it met that fault: the error or the lost connection came through (neither is an \
                 `error`), or the origin made the late or slow response for this very request",
            ),
        ]
    },
};

/// Tables that a journal is converted to when its run ends.
pub(crate) const SERIES: [&TableSpec; 20] = [
    &ROBOTS,
    &ORIGINS,
    &CLASSES,
    &ERRORS,
    &TIMES,
    &HISTOGRAMS,
    &host::HOST,
    &PROXY,
    &health::THREADS,
    &health::STALLS,
    &health::BASELINES,
    &host::NETWORK,
    &health::PROCESSORS,
    &host::MACHINE,
    &host::DISKS,
    &host::INTERFACES,
    &host::BLOCKS,
    &host::SEEKS,
    &ADAPTED,
    &health::LINKS,
];

/// The row of an interval in robots.parquet.
pub(crate) fn robots_row(number: u64, interval: &RobotInterval) -> Vec<Cell<'_>> {
    let mut row = head(number, interval.start_ms, interval.length_ms, interval.phase);
    row.extend(rows::cells(&interval.counts).chain(rows::cells(&interval.levels)));
    row
}

/// The row of an interval in origins.parquet.
pub(crate) fn origins_row(number: u64, interval: &OriginInterval) -> Vec<Cell<'_>> {
    let mut row = head(number, interval.start_ms, interval.length_ms, interval.phase);
    row.extend(rows::cells(&interval.counts));
    row.push(Cell::Uint(interval.connections));
    row
}

fn head(number: u64, start_ms: u64, length_ms: u64, phase: u16) -> Vec<Cell<'static>> {
    vec![Cell::Uint(number), Cell::Uint(start_ms), Cell::Uint(length_ms), Cell::Uint(phase.into())]
}

/// Reads a row of robots.parquet; histograms and maps come from other tables.
pub(crate) fn read_robots(table: &Table, row: usize) -> Result<RobotInterval, FileError> {
    Ok(RobotInterval {
        start_ms: table.count("start_ms", row)?,
        length_ms: table.count("length_ms", row)?,
        phase: table.narrow("phase", table.uint("phase", row)?)?,
        counts: rows::read(table, row)?,
        levels: rows::read(table, row)?,
        ..RobotInterval::default()
    })
}

/// Reads a row of origins.parquet; histograms come from another table.
pub(crate) fn read_origins(table: &Table, row: usize) -> Result<OriginInterval, FileError> {
    Ok(OriginInterval {
        start_ms: table.count("start_ms", row)?,
        length_ms: table.count("length_ms", row)?,
        phase: table.narrow("phase", table.uint("phase", row)?)?,
        counts: rows::read(table, row)?,
        connections: table.count("connections", row)?,
        ..OriginInterval::default()
    })
}

/// The histograms of an origins' interval, each with its metric and class.
pub(crate) fn origin_histograms(
    interval: &OriginInterval,
) -> [(&'static str, &'static str, &SparseHistogram); 2] {
    [("service", "all", &interval.service), ("lateness", "all", &interval.lateness)]
}

/// Histogram of this metric in an origins' interval.
pub(crate) fn origin_histogram_mut<'a>(
    interval: &'a mut OriginInterval,
    metric: &str,
) -> Option<&'a mut SparseHistogram> {
    match metric {
        "service" => Some(&mut interval.service),
        "lateness" => Some(&mut interval.lateness),
        _ => None,
    }
}
