//! Which tables a run directory has, and how intervals become their rows.
//!
//! `docs/reference/run-directory.md` prints these tables; a test keeps it so.

pub(crate) mod adapted;
pub(crate) mod health;
pub(crate) mod host;

use assay_measurement::counts::{OriginCounts, RobotCounts};
use assay_measurement::error_kind::ErrorKind;
use assay_measurement::histogram::SparseHistogram;
use assay_measurement::interval::{OriginInterval, RobotInterval};
use assay_table::FileError;
use assay_table::{Cell, Column, Kind, Table};

/// A Parquet file of the run directory.
pub(crate) struct TableSpec {
    /// File name.
    pub file: &'static str,
    /// What a row is.
    pub about: &'static str,
    /// Columns, in order.
    pub columns: fn() -> Vec<Column>,
}

impl TableSpec {
    /// Names of all columns.
    pub(crate) fn names(&self) -> Vec<&'static str> {
        (self.columns)().iter().map(|column| column.name).collect()
    }
}

macro_rules! count_columns {
    ($columns:ident, $cells:ident, $read:ident, $counts:ty, $($field:ident: $about:literal),+ $(,)?) => {
        const $columns: &[Column] = &[$(Column::new(stringify!($field), Kind::Uint, $about)),+];

        fn $cells(counts: &$counts, row: &mut Vec<Cell<'_>>) {
            $(row.push(Cell::Uint(counts.$field));)+
        }

        fn $read(table: &Table, row: usize) -> Result<$counts, FileError> {
            let mut counts = <$counts>::default();
            // A column that the file does not have was added after it was written: it counts as zero.
            $(if table.has(stringify!($field)) {
                counts.$field = table.uint(stringify!($field), row)?;
            })+
            Ok(counts)
        }
    };
}

count_columns!(
    ROBOT_COUNTS, robot_cells, robot_counts, RobotCounts,
    due: "requests due (a page counts its embedded objects when it comes due)",
    due_basic: "basic ones among them",
    due_basic_bytes: "body bytes of those, as the origin would send them (coded, where it would code the body)",
    offered_hits: "basic revisits of cachable objects: offered hits",
    offered_hit_bytes: "body bytes of those",
    due_digest: "wrapping sum of the digests of the identities that came due",
    sent: "requests sent, at least in part",
    unsent: "due, but not sent by the end of the phase",
    unsent_late: "unsent ones that Assay itself came to too late",
    not_reached: "embedded objects whose page failed or whose link was not seen before the phase ended",
    completed: "answered without error",
    retries: "sent again on another connection: a reused one turned out to be closed, or one ended before a pipelined request had its turn",
    pages: "pages completed, embedded objects included",
    basic: "completed basic xacts (plain GETs)",
    basic_bytes: "body bytes of those",
    hits: "basic xacts answered from the store, as the reply shows it",
    hit_bytes: "body bytes of those",
    collapsed: "basic xacts that joined another's fetch",
    collapsed_bytes: "body bytes of those",
    revalidated: "basic xacts confirmed by the origin, as the reply shows it",
    revalidated_bytes: "body bytes of those",
    misses: "basic xacts that the origin answered",
    miss_bytes: "body bytes of those",
    ideal_hits: "what an infinite cache with the target's declared behaviour would have hit of `ideal_basic`",
    ideal_hit_bytes: "body bytes of those",
    ideal_basic: "completed basic xacts that ideal was asked about; over a run, `basic`",
    ideal_basic_bytes: "body bytes of those",
    body_bytes_in: "body bytes received",
    wire_bytes_in: "bytes read from sockets",
    wire_bytes_out: "bytes written to sockets",
    connections_opened: "connections opened",
    connections_closed: "connections closed, by either side",
    parts: "answered with parts of an object (206)",
    multiparts: "of those, answered with more than one part",
    coded: "answered with a coded body (gzip), decoded and compared",
    unsatisfied: "asked for parts that are not there, and told so (416)",
    redirected: "answered after one redirection or more",
    refused: "refused: 401 or 407 to a robot that is nobody or has a wrong password, 406",
    logged_in: "answered after the robot was asked who it is (401, 407) and said so",
    uninvited: "asked whether the request's body may come, were told no (417), and were sent without asking",
    faults_passed: "met a fault on purpose that the target passed on",
    faults_hidden: "were to meet a fault on purpose, and were answered as if there were none",
    broken_off: "broken off by the robot, on purpose",
    broken_off_by_origin: "broken off by the origin, on purpose",
    cookies_taken: "cookies that robots took from replies and keep",
    cookies_sent: "requests with cookies",
    invited: "request bodies sent when 100 had come",
    impatient: "request bodies sent because no word had come in time",
    held: "embedded objects that robots had in a cache of their own: these never come due",
    substituted: "requests sent on an idle connection to an address that stands for their own",
    dropped_samples: "samples that could not be kept; any makes the run invalid",
);

count_columns!(
    ORIGIN_COUNTS, origin_cells, origin_counts, OriginCounts,
    requests: "requests received",
    responses: "answered in full",
    not_modified: "answered with 304",
    validations: "conditional requests that no robot had asked for: the proxy's own validations",
    validated_basic: "of those, answered with 304 for basic xacts: hits that were really revalidations",
    validated_basic_bytes: "body bytes of the objects so confirmed",
    body_bytes_out: "body bytes sent",
    wire_bytes_in: "bytes read from sockets",
    wire_bytes_out: "bytes written to sockets",
    connections_opened: "connections accepted",
    connections_closed: "connections closed",
    refused: "requests that were not HTTP, or for no object of this universe",
    broken: "connections that ended in the middle of a request or a reply",
    ranges: "answered with 206: a part, or several",
    multiparts: "of those, with several parts in one body",
    unsatisfied: "answered with 416: the object has none of the bytes asked for",
    redirects: "answered with 302, on purpose",
    challenges: "answered with 401: who asks was not said, or not proven",
    wrong_credentials: "of those, requests that named a user and did not prove it",
    authenticated: "requests whose user was proven",
    cookies_set: "cookies in replies",
    coded: "replies in a content coding",
    unacceptable: "answered with 406: no coding that the client accepts",
    broken_off: "bodies broken off on purpose, as the reply had said",
    fault_statuses: "faults on purpose: an error status",
    fault_resets: "faults on purpose: the connection was reset",
    fault_slow_starts: "faults on purpose: the first byte was late",
    fault_slow_bodies: "faults on purpose: the body was sent slowly",
    retried: "requests that met a fault and were made again within ten seconds",
    continued: "request bodies that were asked for with 100",
    expectations_refused: "answered with 417, on purpose: the request body was not wanted",
    wrong_uploads: "request bodies that were not what the robot sends",
);

const INTERVAL: Column = Column::new("interval", Kind::Uint, "number of the interval on its side, from 0");
const START: Column = Column::new(
    "start_ms",
    Kind::Uint,
    "when the interval began, in milliseconds since the start of the run",
);
const LENGTH: Column = Column::new("length_ms", Kind::Uint, "how long it lasted, in milliseconds");
const PHASE: Column =
    Column::new("phase", Kind::Uint, "index into `phases` of run.json: the phase that the xacts were due in");
const COUNT: Column = Column::new("count", Kind::Uint, "how many");

/// One row per second and phase: what robots counted.
pub(crate) const ROBOTS: TableSpec = TableSpec {
    file: "robots.parquet",
    about: "What the robots counted: a row per interval (a second, or less at a phase's ends) and phase.",
    columns: || {
        let mut columns = vec![INTERVAL, START, LENGTH, PHASE];
        columns.extend_from_slice(ROBOT_COUNTS);
        columns.extend([
            Column::new(
                "waiting",
                Kind::Uint,
                "at the end of the interval: requests that wait for a connection",
            ),
            Column::new("in_flight", Kind::Uint, "at the end: requests sent and not yet answered"),
            Column::new("connections", Kind::Uint, "at the end: open connections"),
        ]);
        columns
    },
};

/// One row per second and phase: what origins counted.
pub(crate) const ORIGINS: TableSpec = TableSpec {
    file: "origins.parquet",
    about: "What the origins counted: a row per interval and phase, as the requests themselves name it.",
    columns: || {
        let mut columns = vec![INTERVAL, START, LENGTH, PHASE];
        columns.extend_from_slice(ORIGIN_COUNTS);
        columns.push(Column::new("connections", Kind::Uint, "at the end of the interval: open connections"));
        columns
    },
};

/// Completed xacts by method, request type and status.
pub(crate) const CLASSES: TableSpec = TableSpec {
    file: "classes.parquet",
    about: "Completed xacts of the robots by method, by request type and by status code.",
    columns: || {
        vec![
            Column { about: "`interval` of robots.parquet", ..INTERVAL },
            START,
            PHASE,
            Column::new("by", Kind::Text, "`method`, `type` or `status`"),
            Column::new("value", Kind::Text, "for example `GET`, `basic`, `200`"),
            COUNT,
        ]
    },
};

/// Errors by kind.
pub(crate) const ERRORS: TableSpec = TableSpec {
    file: "errors.parquet",
    about: "Errors of the robots by kind; the first of each kind are in examples.json.",
    columns: || {
        vec![
            Column { about: "`interval` of robots.parquet", ..INTERVAL },
            START,
            PHASE,
            Column::new("kind", Kind::Text, "name of the error class"),
            COUNT,
        ]
    },
};

/// The heads of all histograms.
pub(crate) const TIMES: TableSpec = TableSpec {
    file: "times.parquet",
    about: "A row per histogram: its count, exact sum and exact maximum. The mean of any selection is \
            `sum(sum_us) / sum(count)`.",
    columns: || {
        let mut columns = histogram_columns();
        columns.extend([
            Column::new("count", Kind::Uint, "number of values"),
            Column::new("sum_us", Kind::Uint, "their exact sum, in microseconds"),
            Column::new("max_us", Kind::Uint, "the largest, in microseconds"),
        ]);
        columns
    },
};

/// The buckets of all histograms.
pub(crate) const HISTOGRAMS: TableSpec = TableSpec {
    file: "histograms.parquet",
    about: "The buckets of all histograms that have something in them. Buckets of any two histograms with the \
            same `low_us` are the same bucket, so they add up; a percentile is the `high_us` of the first bucket \
            at which the running sum of `count` reaches its share, but no more than the selection's `max(max_us)`.",
    columns: || {
        let mut columns = histogram_columns();
        columns.extend([
            Column::new("low_us", Kind::Uint, "smallest value of the bucket, in microseconds"),
            Column::new("high_us", Kind::Uint, "largest value of the bucket, in microseconds"),
            Column::new("count", Kind::Uint, "values in the bucket"),
        ]);
        columns
    },
};

fn histogram_columns() -> Vec<Column> {
    vec![
        Column::new("histogram", Kind::Uint, "number of the histogram, the same in both tables"),
        Column::new("side", Kind::Text, "`robots`, `origins`, `threads`, `links` or `baseline`"),
        Column { about: "`interval` of that side's table", ..INTERVAL },
        START,
        PHASE,
        Column::new(
            "metric",
            Kind::Text,
            "`response`, `service`, `ttfb`, `lateness`, `unsent_wait` (robots); `service`, `lateness` (origins); \
             `timer_lag` (threads, baseline)",
        ),
        Column::new(
            "class",
            Kind::Text,
            "`hit` or `miss`, by the outcome of any xact; `other`: completed with another outcome, or with none that was \
             told; `timed_out`: given up, and how long they had waited by then; `all` where they are not told apart",
        ),
    ]
}

/// What the proxy counted itself.
pub(crate) const PROXY: TableSpec = TableSpec {
    file: "proxy.parquet",
    about: "The target's own counters, as it reports them (cumulative), a row per counter and reading.",
    columns: || {
        vec![
            Column::new("at_ms", Kind::Uint, "when it was read, in milliseconds since the start of the run"),
            Column::new("counter", Kind::Text, "its name, in the target's words"),
            Column::new("value", Kind::Float, "its value"),
            Column::new("cache", Kind::Text, "whose it is, where several caches work together; else empty"),
        ]
    },
};

/// Every xact, when asked for.
pub(crate) const XACTS: TableSpec = TableSpec {
    file: "xacts.parquet",
    about: "Every xact that was sent or is unsent, only with `--xact-log`. Embedded objects that were not reached \
            are not in it. Instants are microseconds since the start of the run; null: it never came to that.",
    columns: || {
        vec![
            Column::new("robot", Kind::Uint, "robot"),
            Column::new("number", Kind::Uint, "its request number"),
            Column::new("place", Kind::Uint, "0: launched by the stream; else place in its page"),
            PHASE,
            Column::new("method", Kind::Text, "`GET`, `HEAD`, `POST` or `PUT`"),
            Column::new("type", Kind::Text, "`basic`, `ims200`, `ims304`, `reload`, `range` or `upload`"),
            Column::new("object", Kind::Uint, "key of the object"),
            Column::new("content", Kind::Uint, "index into `contents` of workload.json"),
            Column::new("cachable", Kind::Bool, "the object may be cached"),
            Column::new("revisit", Kind::Bool, "the stream says that it was asked for before"),
            Column::new("due_us", Kind::Int, "when the schedule wanted it"),
            Column::optional("ready_us", Kind::Int, "when the robot's own rules let it go"),
            Column::optional(
                "sent_us",
                Kind::Int,
                "connect begun, or first byte written on a reused connection",
            ),
            Column::optional("connected_us", Kind::Int, "connection established (new connections only)"),
            Column::optional("first_byte_us", Kind::Int, "first byte of the answer"),
            Column::optional("last_byte_us", Kind::Int, "last byte of the answer"),
            Column::optional(
                "outcome",
                Kind::Text,
                "`hit`, `collapsed`, `revalidated` or `miss`; null for errors and unsent requests",
            ),
            Column::optional("error", Kind::Text, "name of the error class"),
            Column::optional("status", Kind::Uint, "status code"),
            Column::new("body_bytes", Kind::Uint, "body bytes received"),
            Column::optional("connection", Kind::Uint, "which connection of the robot, counted from 0"),
            Column::optional(
                "fault",
                Kind::Text,
                "what its origin does wrong on purpose if the request gets there: `status` (an error), `reset`, `expired` (a \
                 reset after long thought), `slow_start` or `slow_body`; null: nothing",
            ),
            Column::new(
                "fault_met",
                Kind::Bool,
                "its answer shows that it met that fault: the error or the lost connection came through (neither is an \
                 `error`), or the origin made the late or slow answer for this very request",
            ),
        ]
    },
};

/// The tables that measurements become when a run ends.
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
    &adapted::ADAPTED,
    &health::LINKS,
];

/// The row of an interval in robots.parquet.
pub(crate) fn robots_row(number: u64, interval: &RobotInterval) -> Vec<Cell<'static>> {
    let mut row = head(number, interval.start_ms, interval.length_ms, interval.phase);
    robot_cells(&interval.counts, &mut row);
    let levels = &interval.levels;
    row.extend([levels.waiting, levels.in_flight, levels.connections].map(Cell::Uint));
    row
}

/// The row of an interval in origins.parquet.
pub(crate) fn origins_row(number: u64, interval: &OriginInterval) -> Vec<Cell<'static>> {
    let mut row = head(number, interval.start_ms, interval.length_ms, interval.phase);
    origin_cells(&interval.counts, &mut row);
    row.push(Cell::Uint(interval.connections));
    row
}

fn head(number: u64, start_ms: u64, length_ms: u64, phase: u16) -> Vec<Cell<'static>> {
    vec![Cell::Uint(number), Cell::Uint(start_ms), Cell::Uint(length_ms), Cell::Uint(phase.into())]
}

/// Reads a row of robots.parquet; histograms and maps come from other tables.
pub(crate) fn read_robots(table: &Table, row: usize) -> Result<RobotInterval, FileError> {
    let mut interval = RobotInterval {
        start_ms: table.uint("start_ms", row)?,
        length_ms: table.uint("length_ms", row)?,
        phase: table.narrow("phase", table.uint("phase", row)?)?,
        counts: robot_counts(table, row)?,
        ..RobotInterval::default()
    };
    interval.levels.waiting = table.uint("waiting", row)?;
    interval.levels.in_flight = table.uint("in_flight", row)?;
    interval.levels.connections = table.uint("connections", row)?;
    Ok(interval)
}

/// Reads a row of origins.parquet; histograms come from another table.
pub(crate) fn read_origins(table: &Table, row: usize) -> Result<OriginInterval, FileError> {
    Ok(OriginInterval {
        start_ms: table.uint("start_ms", row)?,
        length_ms: table.uint("length_ms", row)?,
        phase: table.narrow("phase", table.uint("phase", row)?)?,
        counts: origin_counts(table, row)?,
        connections: table.uint("connections", row)?,
        ..OriginInterval::default()
    })
}

/// The histograms of an origins' interval, each with its metric and class.
pub(crate) fn origin_histograms(
    interval: &OriginInterval,
) -> [(&'static str, &'static str, &SparseHistogram); 2] {
    [("service", "all", &interval.service), ("lateness", "all", &interval.lateness)]
}

/// Where a histogram of a robots' interval goes.
pub(crate) fn robot_histogram_mut<'a>(
    interval: &'a mut RobotInterval,
    metric: &str,
    class: &str,
) -> Option<&'a mut SparseHistogram> {
    let times = match class {
        "hit" => &mut interval.hit,
        "miss" => &mut interval.miss,
        "other" => &mut interval.other,
        "timed_out" => &mut interval.timed_out,
        _ => {
            return match metric {
                "lateness" => Some(&mut interval.lateness),
                "unsent_wait" => Some(&mut interval.unsent_wait),
                _ => None,
            };
        }
    };
    match metric {
        "response" => Some(&mut times.response),
        "service" => Some(&mut times.service),
        "ttfb" => Some(&mut times.ttfb),
        _ => None,
    }
}

/// Where a histogram of an origins' interval goes.
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

/// The error class called `name`.
pub(crate) fn error_kind(name: &str) -> Option<ErrorKind> {
    ErrorKind::ALL.into_iter().find(|kind| kind.name() == name)
}
