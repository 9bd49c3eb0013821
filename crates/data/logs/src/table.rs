//! The figures as columns: one Parquet file, a row for each group of requests.

use std::path::Path;

use assay_record::dir::RunDirError;
use assay_record::table::{Cell, Column, ColumnKind, FileError, TableWriter};

use crate::document::{Figures, LogsDocument};

/// The columns and what they hold.
pub const COLUMNS: [Column; 19] = [
    Column::new(
        "section",
        ColumnKind::Text,
        "what the requests of a row have in common: `all`, `class`, `time`, `phase`, or a grouping of the document; with \
         `requests` alone: `time-status`, `time-agent-kind` and `time-referrer-kind` (by step), `status-404` and the like \
         (URLs), `agent-text`",
    ),
    Column::new("name", ColumnKind::Text, "which of that: `miss`, `image/png`, a host"),
    Column::optional("from_unix_ms", ColumnKind::Float, "when a step or a phase began"),
    Column::new("requests", ColumnKind::Uint, "requests"),
    Column::optional("bytes", ColumnKind::Uint, "bytes of responses"),
    Column::optional("local_hits", ColumnKind::Uint, "requests that this cache served without help"),
    Column::optional("sibling_hits", ColumnKind::Uint, "requests that a sibling had a response for"),
    Column::optional("parent_hits", ColumnKind::Uint, "requests that a parent had a response for"),
    Column::optional("revalidated", ColumnKind::Uint, "requests whose response the origin confirmed"),
    Column::optional("errors", ColumnKind::Uint, "requests that failed"),
    Column::optional("unknown", ColumnKind::Uint, "requests whose outcome the log does not say"),
    Column::optional("dhr", ColumnKind::Float, "document hit ratio"),
    Column::optional("bhr", ColumnKind::Float, "byte hit ratio"),
    Column::optional("mean_ms", ColumnKind::Float, "mean response time"),
    Column::optional("p50_ms", ColumnKind::Float, "median response time"),
    Column::optional("p90_ms", ColumnKind::Float, "90th percentile of response times"),
    Column::optional("p95_ms", ColumnKind::Float, "95th percentile of response times"),
    Column::optional("p99_ms", ColumnKind::Float, "99th percentile of response times"),
    Column::optional("max_ms", ColumnKind::Float, "longest response time"),
];

/// Writes the figures of a document.
pub fn write(document: &LogsDocument, path: &Path) -> Result<(), RunDirError> {
    let mut table = TableWriter::create(path, COLUMNS.to_vec())?;
    push(&mut table, "all", "", None, &document.all)?;
    for class in &document.by_class {
        push(&mut table, "class", &class.name, None, &class.figures)?;
    }
    for step in &document.time {
        push(&mut table, "time", "", Some(step.from_unix_ms), &step.figures)?;
        let kinds = [
            ("time-status", &step.by_status),
            ("time-agent-kind", &step.by_agent_kind),
            ("time-referrer-kind", &step.by_referrer_kind),
        ];
        for (section, counts) in kinds {
            for (name, requests) in counts {
                push_count(&mut table, section, name, Some(step.from_unix_ms), *requests)?;
            }
        }
    }
    for phase in &document.phases {
        push(&mut table, "phase", &phase.name, Some(phase.from_unix_ms), &phase.figures)?;
    }
    for grouping in &document.groups {
        for group in &grouping.groups {
            push(&mut table, &grouping.by, &group.name, None, &group.figures)?;
        }
    }
    for status in document.failed.iter().flat_map(|failed| &failed.by_status) {
        for url in &status.urls {
            push_count(&mut table, &format!("status-{}", status.status), &url.url, None, url.requests)?;
        }
    }
    for agent in document.agents.iter().flat_map(|agents| &agents.top) {
        push_count(&mut table, "agent-text", &agent.text, None, agent.requests)?;
    }
    Ok(table.finish()?)
}

/// A row of which nothing but the number of requests is counted.
fn push_count(
    table: &mut TableWriter,
    section: &str,
    name: &str,
    from_unix_ms: Option<f64>,
    requests: u64,
) -> Result<(), FileError> {
    let mut cells = [Cell::Null; COLUMNS.len()];
    cells[..2].copy_from_slice(&[Cell::Text(section), Cell::Text(name)]);
    cells[2] = from_unix_ms.map_or(Cell::Null, Cell::Float);
    cells[3] = Cell::Uint(requests);
    table.push(&cells)
}

fn push(
    table: &mut TableWriter,
    section: &str,
    name: &str,
    from_unix_ms: Option<f64>,
    figures: &Figures,
) -> Result<(), FileError> {
    let float = |value: Option<f64>| value.map_or(Cell::Null, Cell::Float);
    let whole = |value: Option<u64>| value.map_or(Cell::Null, Cell::Uint);
    let times = figures.response.as_ref();
    table.push(&[
        Cell::Text(section),
        Cell::Text(name),
        float(from_unix_ms),
        Cell::Uint(figures.requests),
        whole(figures.bytes),
        whole(figures.local_hits),
        whole(figures.sibling_hits),
        whole(figures.parent_hits),
        whole(figures.revalidated),
        whole(figures.errors),
        Cell::Uint(figures.unknown),
        float(figures.dhr),
        float(figures.bhr),
        float(times.map(|times| times.mean_ms)),
        float(times.map(|times| times.p50_ms)),
        float(times.map(|times| times.p90_ms)),
        float(times.map(|times| times.p95_ms)),
        float(times.map(|times| times.p99_ms)),
        float(times.map(|times| times.max_ms)),
    ])
}
