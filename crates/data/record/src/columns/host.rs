//! Tables on the processes of roles and the machine under them.

use crate::table::{Cell, Column, ColumnKind, FileError, Table};
use assay_measurement::health::NetworkInterval;
use assay_measurement::interval::HostInterval;
use assay_measurement::machine::{BlockInterval, DiskInterval, InterfaceInterval, MachineInterval};

use super::{TableSpec, numbered, rows};

pub(crate) const HOST: TableSpec = TableSpec {
    file: "host.parquet",
    about: "What each role's processes used (all of them, with those that came and went), a row per role and interval. \
            Processor time is counted in steps of 10 ms, but for a role with a control group of its own.",
    columns: numbered::<HostInterval>,
};

pub(crate) const NETWORK: TableSpec = TableSpec {
    file: "network.parquet",
    about: "What the network stack counted, a row per interval and network namespace: for everybody in it. Levels are taken at \
            the end. States are counted every second, or less often where there are so many connections that counting them \
            would take more than 0.2 % of a processor; else null.",
    columns: rows::columns::<NetworkInterval>,
};

pub(crate) const MACHINE: TableSpec = TableSpec {
    file: "machine.parquet",
    about: "What the machine as a whole did, for whomever, a row per interval. Levels are taken at the end.",
    columns: rows::columns::<MachineInterval>,
};

pub(crate) const DISKS: TableSpec = TableSpec {
    file: "disks.parquet",
    about: "What each disk did, for whomever, a row per whole device and interval; devices without a request are left out.",
    columns: rows::columns::<DiskInterval>,
};

pub(crate) const INTERFACES: TableSpec = TableSpec {
    file: "interfaces.parquet",
    about: "What went through each network interface, a row per interface and interval; interfaces without a packet are left \
            out. On `lo`, everything is both sent and received.",
    columns: rows::columns::<InterfaceInterval>,
};

pub(crate) const BLOCKS: TableSpec = TableSpec {
    file: "blocks.parquet",
    about: "Requests handed to the disk that the proxy's files are on, by whomever, only with `--trace-disk`: a row per kind and \
            interval. A seek is a request that does not begin where the one before it (of any kind) ended.",
    columns: rows::columns::<BlockInterval>,
};

pub(crate) const SEEKS: TableSpec = TableSpec {
    file: "seeks.parquet",
    about: "Distances between where a request began and where the one before it had ended, only with `--trace-disk`: the \
            buckets of each row of blocks.parquet that has any. Buckets with the same `low_sectors` are the same.",
    columns: || {
        vec![
            Column::new("block", ColumnKind::Uint, "number of the row in blocks.parquet, from 0"),
            Column::new(
                "low_sectors",
                ColumnKind::Uint,
                "shortest distance of the bucket, in sectors of 512 bytes",
            ),
            Column::new("high_sectors", ColumnKind::Uint, "longest"),
            Column::new("count", ColumnKind::Uint, "how many"),
        ]
    },
};

/// Rows of seeks.parquet for an interval of blocks.parquet.
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
        block.distances.push((table.count("low_sectors", row)?, table.count("count", row)?));
    }
    Ok(())
}
