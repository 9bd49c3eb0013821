//! Tables on the health of Assay and its machine: threads, links, processors.

use assay_measurement::health::{Baseline, LinkInterval, ProcessorInterval, Stall, ThreadInterval};

use super::{TableSpec, numbered, rows};

pub(crate) const THREADS: TableSpec = TableSpec {
    file: "threads.parquet",
    about: "How each worker thread of robots and origins did, a row per thread and interval. How late its timer was \
            served is in times.parquet and histograms.parquet (side `threads`).",
    columns: numbered::<ThreadInterval>,
};

pub(crate) const STALLS: TableSpec = TableSpec {
    file: "stalls.parquet",
    about: "Where a worker thread stood still: its timer was served 10 ms late or more. What `cpu_us` and \
            `run_delay_us` do not explain, the process or the machine was stopped.",
    columns: rows::columns::<Stall>,
};

pub(crate) const BASELINES: TableSpec = TableSpec {
    file: "baselines.parquet",
    about: "A bare timer, measured in each worker thread before the run. How late it was is in times.parquet and \
            histograms.parquet (side `baseline`).",
    columns: numbered::<Baseline>,
};

pub(crate) const LINKS: TableSpec = TableSpec {
    file: "links.parquet",
    about: "What each emulated link carried, a row per direction and interval; a row of no length holds everything before \
            the start. How late packets came out is in times.parquet and histograms.parquet (side `links`).",
    columns: numbered::<LinkInterval>,
};

pub(crate) const PROCESSORS: TableSpec = TableSpec {
    file: "processors.parquet",
    about: "What each processor of this machine did, for whomever, a row per processor and interval. The kernel \
            counts it in steps of 10 ms.",
    columns: rows::columns::<ProcessorInterval>,
};
