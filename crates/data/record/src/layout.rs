//! Layout of the tables of a run directory, for the reference page and for exports.

use std::fmt::Write;

use crate::checksums::Checksums;
use crate::columns::{SERIES, TableSpec, XACTS};
use crate::dir::{RunDir, RunDirError};
use crate::table::{Cell, ColumnKind, Table};

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TableLayout {
    /// Name of the file without `.parquet`.
    pub name: &'static str,
    pub file: &'static str,
    /// Meaning of a row.
    pub about: &'static str,
    pub columns: Vec<ColumnLayout>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ColumnLayout {
    /// Name; that of a measurement ends in its unit.
    pub name: &'static str,
    /// Type of the values: `uint64`, `text or null`.
    pub kind: &'static str,
    pub about: &'static str,
}

fn specs() -> impl Iterator<Item = &'static TableSpec> {
    SERIES.into_iter().chain([&XACTS])
}

/// All tables that a run directory can have.
pub fn tables() -> Vec<TableLayout> {
    let columns = |table: &TableSpec| {
        let columns = (table.columns)();
        columns.iter().map(|c| ColumnLayout { name: c.name, kind: c.kind_name(), about: c.about }).collect()
    };
    specs()
        .map(|table| TableLayout {
            name: table.file.trim_end_matches(".parquet"),
            file: table.file,
            about: table.about,
            columns: columns(table),
        })
        .collect()
}

/// A table on disk, with all columns of its file.
#[derive(Debug)]
pub struct StoredTable {
    path: std::path::PathBuf,
    columns: Vec<(String, ColumnKind)>,
}

impl StoredTable {
    /// Opens a table of a run directory, and verifies its checksum.
    pub fn open(dir: &RunDir, file: &str) -> Result<Self, RunDirError> {
        let path = dir.path().join(file);
        Checksums::read(dir)?.check(&path)?;
        Ok(Self { columns: crate::table::columns_of(&path)?, path })
    }

    /// Name and kind of each column, in the file's order.
    pub fn columns(&self) -> &[(String, ColumnKind)] {
        &self.columns
    }

    /// Calls `each` with every row, in order; one row group (65,536 rows) is in memory at a time.
    pub fn for_each_row<E: From<RunDirError>>(
        &self,
        mut each: impl FnMut(&[Cell<'_>]) -> Result<(), E>,
    ) -> Result<(), E> {
        let names: Vec<&str> = self.columns.iter().map(|(name, _)| name.as_str()).collect();
        let mut outcome = Ok(());
        Table::read_in_groups(&self.path, &names, |group| {
            for row in 0..group.rows() {
                if outcome.is_err() {
                    break;
                }
                let cells: Vec<Cell<'_>> =
                    self.columns.iter().map(|(name, kind)| group.cell(name, *kind, row)).collect();
                outcome = each(&cells);
            }
            Ok::<_, RunDirError>(())
        })?;
        outcome
    }
}

/// The tables of a run directory as Markdown, a section each. The reference page holds this text.
pub fn tables_as_markdown() -> String {
    as_markdown(specs())
}

/// Tables as Markdown, a section each.
pub(crate) fn as_markdown(tables: impl Iterator<Item = &'static TableSpec>) -> String {
    let mut text = String::new();
    for table in tables {
        section(&mut text, table);
    }
    text
}

fn section(text: &mut String, table: &TableSpec) {
    // Writing to a string cannot fail.
    let _ =
        write!(text, "### {}\n\n{}\n\n| column | type | meaning |\n|---|---|---|\n", table.file, table.about);
    for column in (table.columns)() {
        let _ = writeln!(text, "| `{}` | {} | {} |", column.name, column.kind_name(), column.about);
    }
    text.push('\n');
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_column_that_measures_ends_in_its_unit() {
        let units = [
            ("milliseconds", "_ms"),
            ("microseconds", "_us"),
            ("nanoseconds", "_ns"),
            ("in bytes", "_bytes"),
        ];
        for table in tables() {
            for column in &table.columns {
                for (word, suffix) in units {
                    if column.about.contains(&format!(", in {word}")) || column.about.ends_with(word) {
                        assert!(
                            column.name.ends_with(suffix),
                            "{}: {}: {}",
                            table.file,
                            column.name,
                            column.about
                        );
                    }
                }
            }
        }
    }
}
