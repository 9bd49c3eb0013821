//! The table of what was decided about load that adapts.

use super::{PHASE, TableSpec};
use assay_measurement::adapted::{Adapted, Decided};
use assay_table::FileError;
use assay_table::{Cell, Column, Kind, Table};

/// One row per decision.
pub(crate) const ADAPTED: TableSpec = TableSpec {
    file: "adapted.parquet",
    about: "What thermostats and scripts decided about the load, a row per decision; empty where the load follows the \
            schedule alone.",
    columns: || {
        vec![
            Column::new(
                "at_ms",
                Kind::Uint,
                "when it takes effect, in milliseconds since the start of the run",
            ),
            Column { about: "index into `phases` of run.json", ..PHASE },
            Column::new(
                "schedule_ns",
                Kind::Uint,
                "how much of the schedule the phase had taken by then, in nanoseconds",
            ),
            Column::new("what", Kind::Text, "`load`, `population`, `end` (of the phase) or `print`"),
            Column::new("value", Kind::Float, "the load factor, or the share of robots alive, from then on"),
            Column::optional(
                "response_us",
                Kind::Uint,
                "mean response time since the decision before, in microseconds; null: there were no answers",
            ),
            Column::new("text", Kind::Text, "what a script printed"),
        ]
    },
};

/// The row of a decision.
pub(crate) fn row(adapted: &Adapted) -> [Cell<'_>; 7] {
    [
        Cell::Uint(adapted.at_ms),
        Cell::Uint(adapted.phase.into()),
        Cell::Uint(adapted.schedule_ns),
        Cell::Text(adapted.what.name()),
        Cell::Float(adapted.value),
        Cell::opt_uint(adapted.response_us),
        Cell::Text(&adapted.text),
    ]
}

/// Reads a row.
pub(crate) fn read(table: &Table, row: usize) -> Result<Adapted, FileError> {
    let name = table.text("what", row)?;
    let what = Decided::ALL.into_iter().find(|what| what.name() == name);
    Ok(Adapted {
        at_ms: table.uint("at_ms", row)?,
        schedule_ns: table.uint("schedule_ns", row)?,
        phase: table.narrow("phase", table.uint("phase", row)?)?,
        what: what.ok_or_else(|| table.unknown("what", name))?,
        value: table.float("value", row)?,
        response_us: table.opt_uint("response_us", row)?,
        text: table.text("text", row)?.to_owned(),
    })
}
