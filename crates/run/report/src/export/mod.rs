//! The numbers of a run, for the tools of others.
//!
//! As plain tables (a CSV or JSON-lines file each), as one table on standard output, and as a log for HdrHistogram's
//! tools. What is written is what the run directory holds, column for column; nothing is averaged on the way.

mod flat;
mod hdr;
mod rows;

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use assay_record::dir::{RunDir, RunDirError};
use assay_record::layout::{self, StoredTable};

use crate::error::ReportError;
use crate::summary::Summary;
use rows::RowWriter;

pub use hdr::hdr_log;

/// Format of a table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TableForm {
    /// Comma-separated values after RFC 4180, with a line of names; nothing stands for null.
    Csv,
    /// A JSON object per row and line.
    JsonLines,
}

impl TableForm {
    fn extension(self) -> &'static str {
        match self {
            TableForm::Csv => "csv",
            TableForm::JsonLines => "ndjson",
        }
    }
}

/// Files that were written, and tables that could not be read.
#[derive(Debug, Default)]
pub struct Exported {
    pub files: Vec<PathBuf>,
    /// A sentence for each table that cannot be read.
    pub left_out: Vec<String>,
}

/// Writes every table of a run that has rows or columns into a directory, a file each, and `summary` in long form: a row
/// per phase and figure.
pub fn tables(dir: &RunDir, out: &Path, form: TableForm) -> Result<Exported, ReportError> {
    let there = dir.read_partial()?;
    let mut exported = Exported::default();
    std::fs::create_dir_all(out).map_err(|cause| cannot_write(out, cause))?;
    let source = TableSource::open(dir)?;
    for table in layout::tables() {
        if !source.dir.path().join(table.file).exists() {
            continue;
        }
        let path = out.join(format!("{}.{}", table.name, form.extension()));
        match write_file(&path, |file| copy(&source.dir, table.file, form, file)) {
            Ok(()) => exported.files.push(path),
            Err(CopyError::Read(error)) => {
                exported.left_out.push(error.to_string());
                // What was written of it before would be taken for all of it.
                std::fs::remove_file(&path).map_err(|cause| cannot_write(&path, cause))?;
            }
            Err(CopyError::Write(cause)) => return Err(cannot_write(&path, cause)),
        }
    }
    let absent = there.missing.iter().filter(|missing| missing.gap == assay_record::missing::Gap::Absent);
    exported.left_out.extend(absent.map(assay_record::missing::Missing::sentence));
    let path = out.join(format!("summary.{}", form.extension()));
    let summary = Summary::from_parts(dir, &there);
    let document = serde_json::to_value(&summary)?;
    write_file(&path, |file| flat::write(&document, form, file))
        .map_err(|cause| cannot_write(&path, cause))?;
    exported.files.push(path);
    Ok(exported)
}

pub fn table(dir: &RunDir, name: &str, form: TableForm, out: &mut dyn Write) -> Result<(), ReportError> {
    let tables = layout::tables();
    let wanted = name.trim_end_matches(".parquet");
    let Some(table) = tables.iter().find(|table| table.name == wanted) else {
        let known = tables.iter().map(|table| table.name).collect();
        return Err(ReportError::NoSuchTable { name: name.to_owned(), known });
    };
    let source = TableSource::open(dir)?;
    copy(&source.dir, table.file, form, out).map_err(|failed| match failed {
        CopyError::Read(error) => error.into(),
        CopyError::Write(cause) => cannot_write(Path::new("the output"), cause),
    })
}

fn cannot_write(path: &Path, cause: io::Error) -> ReportError {
    ReportError::Export { path: path.to_owned(), cause }
}

/// Failed side of a copy.
enum CopyError {
    Read(RunDirError),
    Write(io::Error),
}

impl From<RunDirError> for CopyError {
    fn from(error: RunDirError) -> Self {
        Self::Read(error)
    }
}

impl From<io::Error> for CopyError {
    fn from(cause: io::Error) -> Self {
        Self::Write(cause)
    }
}

fn copy(dir: &RunDir, file: &str, form: TableForm, out: &mut dyn Write) -> Result<(), CopyError> {
    let table = StoredTable::open(dir, file)?;
    let names: Vec<&str> = table.columns().iter().map(|(name, _)| name.as_str()).collect();
    let mut writer = RowWriter::new(form, &names, out)?;
    table.for_each_row(|row| writer.row(row).map_err(CopyError::Write))
}

/// Makes a file and hands everything to the system.
pub(crate) fn write_file<E: From<io::Error>>(
    path: &Path,
    write: impl FnOnce(&mut dyn Write) -> Result<(), E>,
) -> Result<(), E> {
    let mut file = BufWriter::new(File::create(path)?);
    write(&mut file)?;
    Ok(file.flush()?)
}

/// Directory of the tables: that of the run or, while there is only a journal, a temporary one.
struct TableSource {
    dir: RunDir,
    _scratch: Option<tempfile::TempDir>,
}

impl TableSource {
    fn open(dir: &RunDir) -> Result<Self, ReportError> {
        if !dir.journal_path().exists() {
            return Ok(Self { dir: dir.clone(), _scratch: None });
        }
        let scratch = tempfile::tempdir().map_err(|cause| cannot_write(&std::env::temp_dir(), cause))?;
        dir.tables_so_far(scratch.path())?;
        Ok(Self { dir: RunDir::open(scratch.path())?, _scratch: Some(scratch) })
    }
}
