//! Reading of columns from a Parquet file: whole, or a row group at a time. A file that is being written, or whose writer was
//! killed, is read as far as it was written (see `unfinished`).
//!
//! What is in a file that somebody else wrote, or that was damaged, ends in an error that names the file.

use std::collections::BTreeMap;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use parquet::basic::{LogicalType, Type as Physical};
use parquet::data_type::{BoolType, ByteArray, ByteArrayType, DataType, DoubleType, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::metadata::ParquetMetaDataReader;
use parquet::file::properties::ReaderProperties;
use parquet::file::reader::{FileReader, RowGroupReader};
use parquet::file::serialized_reader::{SerializedFileReader, SerializedRowGroupReader};
use parquet::schema::types::{ColumnDescriptor, SchemaDescriptor};

use crate::table::claims::{check_footer, check_group};
use crate::table::rows::RowsReader;
use crate::table::unfinished::{footer_path, is_unfinished, partial_path};
use crate::table::{Cell, ColumnKind, FileError};

/// Largest value of a column that is added up: bytes of 280 terabytes, microseconds of nine years. Sums of 65,536 such values
/// fit into 64 bits.
pub const MOST: u64 = 1 << 48;

/// All values of a column, null where there is none.
enum Values {
    Int(Vec<Option<i64>>),
    Float(Vec<Option<f64>>),
    Text(Vec<Option<ByteArray>>),
    Bool(Vec<Option<bool>>),
}

impl Values {
    fn ints(&self) -> Option<&Vec<Option<i64>>> {
        if let Values::Int(values) = self { Some(values) } else { None }
    }

    fn floats(&self) -> Option<&Vec<Option<f64>>> {
        if let Values::Float(values) = self { Some(values) } else { None }
    }

    fn texts(&self) -> Option<&Vec<Option<ByteArray>>> {
        if let Values::Text(values) = self { Some(values) } else { None }
    }

    fn bools(&self) -> Option<&Vec<Option<bool>>> {
        if let Values::Bool(values) = self { Some(values) } else { None }
    }
}

impl Values {
    /// Adds a value of a row that is in no row group.
    fn push(&mut self, cell: Cell<'_>) -> Result<(), ParquetError> {
        match (self, cell) {
            (Values::Int(all), Cell::Null) => all.push(None),
            (Values::Int(all), Cell::Uint(value)) => all.push(Some(value.cast_signed())),
            (Values::Int(all), Cell::Int(value)) => all.push(Some(value)),
            (Values::Float(all), Cell::Null) => all.push(None),
            (Values::Float(all), Cell::Float(value)) => all.push(Some(value)),
            (Values::Text(all), Cell::Null) => all.push(None),
            (Values::Text(all), Cell::Text(text)) => all.push(Some(ByteArray::from(text))),
            (Values::Bool(all), Cell::Null) => all.push(None),
            (Values::Bool(all), Cell::Bool(value)) => all.push(Some(value)),
            _ => return Err(ParquetError::General("a row does not fit its columns".into())),
        }
        Ok(())
    }
}

/// Columns of a Parquet file, read whole; only those that were requested.
pub struct Table {
    path: PathBuf,
    rows: usize,
    columns: BTreeMap<String, Values>,
    /// Columns that the file has and that were not requested.
    others: Vec<String>,
}

impl Table {
    /// Reads the columns called `names`; a column that the file does not have is left out.
    pub fn read(path: &Path, names: &[&str]) -> Result<Self, FileError> {
        let mut table = Self::empty(path);
        for_each_part(path, &mut |part| table.read_part(part, names))?;
        Ok(table)
    }

    /// Reads a file a row group at a time: for tables that would fill the memory.
    pub fn read_in_groups<E: From<FileError>>(
        path: &Path,
        names: &[&str],
        mut each: impl FnMut(&Table) -> Result<(), E>,
    ) -> Result<(), E> {
        let mut outcome = Ok(());
        for_each_part(path, &mut |part| {
            if outcome.is_ok() {
                let mut table = Self::empty(path);
                table.read_part(part, names)?;
                outcome = each(&table);
            }
            Ok(())
        })?;
        outcome
    }

    fn empty(path: &Path) -> Self {
        Self { path: path.to_owned(), rows: 0, columns: BTreeMap::new(), others: Vec::new() }
    }

    fn read_part(&mut self, part: TablePart<'_>, names: &[&str]) -> Result<(), ParquetError> {
        // All parts of a file have the same columns.
        if self.others.is_empty() && self.rows == 0 {
            let names = part.columns().map(ColumnDescriptor::name).filter(|name| !names.contains(name));
            self.others = names.map(str::to_owned).collect();
            self.others.sort_unstable();
            self.others.dedup();
        }
        match part {
            TablePart::Group(group) => self.read_group(group, names),
            TablePart::Rows(schema, rows) => {
                rows.iter().try_for_each(|row| self.read_row(schema, row, names))
            }
        }
    }

    fn read_group(&mut self, group: &dyn RowGroupReader, names: &[&str]) -> Result<(), ParquetError> {
        self.rows += group.metadata().num_rows().max(0).unsigned_abs() as usize;
        let schema = group.metadata().schema_descr_ptr();
        for (index, descriptor) in schema.columns().iter().enumerate() {
            match self.column(descriptor, names)? {
                Some(Values::Int(all)) => read_column::<Int64Type>(group, index, all)?,
                Some(Values::Float(all)) => read_column::<DoubleType>(group, index, all)?,
                Some(Values::Text(all)) => read_column::<ByteArrayType>(group, index, all)?,
                Some(Values::Bool(all)) => read_column::<BoolType>(group, index, all)?,
                None => {}
            }
        }
        Ok(())
    }

    fn read_row(
        &mut self,
        schema: &SchemaDescriptor,
        row: &[Cell<'_>],
        names: &[&str],
    ) -> Result<(), ParquetError> {
        self.rows += 1;
        for (descriptor, cell) in schema.columns().iter().zip(row) {
            if let Some(values) = self.column(descriptor, names)? {
                values.push(*cell)?;
            }
        }
        Ok(())
    }

    /// Values of a column, to be added to. None: it was not requested, or another column of its name has another type.
    fn column(
        &mut self,
        descriptor: &ColumnDescriptor,
        names: &[&str],
    ) -> Result<Option<&mut Values>, ParquetError> {
        let name = descriptor.name();
        if !names.contains(&name) {
            return Ok(None);
        }
        let fresh = match descriptor.physical_type() {
            Physical::INT64 => Values::Int(Vec::new()),
            Physical::DOUBLE => Values::Float(Vec::new()),
            Physical::BYTE_ARRAY => Values::Text(Vec::new()),
            Physical::BOOLEAN => Values::Bool(Vec::new()),
            other => return Err(ParquetError::General(format!("column {name} has type {other}"))),
        };
        let kind = std::mem::discriminant(&fresh);
        let values = self.columns.entry(name.to_owned()).or_insert(fresh);
        Ok((std::mem::discriminant(values) == kind).then_some(values))
    }

    /// Columns that the file has and that were not requested.
    pub fn others(&self) -> &[String] {
        &self.others
    }

    /// Number of rows that were read.
    pub fn rows(&self) -> usize {
        self.rows
    }

    fn values<'a, V: 'a>(
        &'a self,
        name: &str,
        of_kind: impl Fn(&'a Values) -> Option<&'a Vec<Option<V>>>,
    ) -> Result<&'a [Option<V>], FileError> {
        let values = self.columns.get(name).and_then(of_kind).map(Vec::as_slice);
        values.ok_or_else(|| FileError::damaged(&self.path, format!("it has no usable column {name}")))
    }

    fn required<T>(&self, name: &str, value: Option<T>) -> Result<T, FileError> {
        value.ok_or_else(|| FileError::damaged(&self.path, format!("column {name} has an empty value")))
    }

    /// Whether the file has a column that was requested.
    pub fn has(&self, name: &str) -> bool {
        self.columns.contains_key(name)
    }

    /// An integer, or null.
    pub fn opt_int(&self, name: &str, row: usize) -> Result<Option<i64>, FileError> {
        Ok(self.values(name, Values::ints)?.get(row).copied().flatten())
    }

    /// An integer; null is an error.
    pub fn int(&self, name: &str, row: usize) -> Result<i64, FileError> {
        self.integers(name)?.int(row)
    }

    /// An unsigned integer, or null.
    pub fn opt_uint(&self, name: &str, row: usize) -> Result<Option<u64>, FileError> {
        Ok(self.opt_int(name, row)?.map(i64::cast_unsigned))
    }

    /// An unsigned integer; null is an error.
    pub fn uint(&self, name: &str, row: usize) -> Result<u64, FileError> {
        self.integers(name)?.uint(row)
    }

    /// An unsigned integer that is added to others: see [`IntegerColumn::count`].
    pub fn count(&self, name: &str, row: usize) -> Result<u64, FileError> {
        self.integers(name)?.count(row)
    }

    /// A column of integers, looked up once: for tables of many rows.
    pub fn integers<'a>(&'a self, name: &'a str) -> Result<IntegerColumn<'a>, FileError> {
        Ok(IntegerColumn { table: self, name, values: self.values(name, Values::ints)? })
    }

    /// A double; null is an error.
    pub fn float(&self, name: &str, row: usize) -> Result<f64, FileError> {
        let value = self.values(name, Values::floats)?.get(row).copied().flatten();
        self.required(name, value)
    }

    /// True or false; null is an error.
    pub fn bool(&self, name: &str, row: usize) -> Result<bool, FileError> {
        let value = self.values(name, Values::bools)?.get(row).copied().flatten();
        self.required(name, value)
    }

    /// Text, or null; an error where it is not UTF-8.
    pub fn opt_text(&self, name: &str, row: usize) -> Result<Option<&str>, FileError> {
        let value = self.values(name, Values::texts)?.get(row).and_then(Option::as_ref);
        // Text columns are written from `str`; a file from elsewhere may hold anything.
        Ok(value.map(|bytes| bytes.as_utf8().unwrap_or("\u{fffd}")))
    }

    /// Text; null is an error.
    pub fn text(&self, name: &str, row: usize) -> Result<&str, FileError> {
        let value = self.opt_text(name, row)?;
        self.required(name, value)
    }

    /// Any value; null also where the file has fewer of them than rows.
    pub fn cell(&self, name: &str, kind: ColumnKind, row: usize) -> Cell<'_> {
        let cell = match kind {
            ColumnKind::Uint => self.opt_uint(name, row).map(Cell::opt_uint),
            ColumnKind::Int => self.opt_int(name, row).map(Cell::opt_int),
            ColumnKind::Text => self.opt_text(name, row).map(Cell::opt_text),
            ColumnKind::Float => self.float(name, row).map(Cell::Float),
            ColumnKind::Bool => self.bool(name, row).map(Cell::Bool),
        };
        cell.unwrap_or(Cell::Null)
    }

    /// A number as a narrower type, or an error that names the column.
    pub fn narrow<T: TryFrom<u64>>(&self, name: &str, value: u64) -> Result<T, FileError> {
        T::try_from(value).map_err(|_| self.out_of_range(name, value))
    }

    /// Error for a number out of the column's range.
    pub fn out_of_range(&self, name: &str, value: u64) -> FileError {
        FileError::damaged(&self.path, format!("column {name} holds {value}, out of its range"))
    }

    /// Error for a value that the caller does not know.
    pub fn unknown(&self, name: &str, value: &str) -> FileError {
        FileError::damaged(&self.path, format!("column {name} holds {value:?}, which is not known"))
    }
}

/// A column of integers.
#[derive(Clone, Copy)]
pub struct IntegerColumn<'a> {
    table: &'a Table,
    name: &'a str,
    values: &'a [Option<i64>],
}

impl IntegerColumn<'_> {
    fn int(&self, row: usize) -> Result<i64, FileError> {
        self.table.required(self.name, self.values.get(row).copied().flatten())
    }

    /// An unsigned integer; null is an error.
    pub fn uint(&self, row: usize) -> Result<u64, FileError> {
        Ok(self.int(row)?.cast_unsigned())
    }

    /// An unsigned integer that is added to others, as counts, bytes and times are. Null is an error, and so is more than
    /// [`MOST`]: no count reaches that, and a sum of such numbers would overflow.
    pub fn count(&self, row: usize) -> Result<u64, FileError> {
        let value = self.uint(row)?;
        if value > MOST { Err(self.table.out_of_range(self.name, value)) } else { Ok(value) }
    }
}

/// A row group of a table, or rows that are in none yet.
enum TablePart<'a> {
    Group(&'a dyn RowGroupReader),
    /// The rows after the last group of a file that is not finished.
    Rows(&'a SchemaDescriptor, &'a [Vec<Cell<'a>>]),
}

impl TablePart<'_> {
    fn columns(&self) -> impl Iterator<Item = &ColumnDescriptor> {
        let schema = match self {
            TablePart::Group(group) => group.metadata().schema_descr(),
            TablePart::Rows(schema, _) => schema,
        };
        schema.columns().iter().map(|column| &**column)
    }
}

/// Calls `each` for the parts of a table.
fn for_each_part(
    path: &Path,
    each: &mut dyn FnMut(TablePart<'_>) -> Result<(), ParquetError>,
) -> Result<(), FileError> {
    // The library's asserts fail on some damaged files, and must not end this process.
    let read = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| match is_unfinished(path) {
        false => for_each_of_finished(path, each),
        true => for_each_of_unfinished(path, each),
    }));
    read.unwrap_or_else(|_| Err(FileError::damaged(path, "its pages cannot be decoded")))
}

fn for_each_of_finished(
    path: &Path,
    each: &mut dyn FnMut(TablePart<'_>) -> Result<(), ParquetError>,
) -> Result<(), FileError> {
    let bad = |source: ParquetError| FileError::damaged(path, source.to_string());
    let file = open(path)?;
    check_footer(path, &file)?;
    let reader = SerializedFileReader::new(file.try_clone().map_err(|cause| FileError::read(path, cause))?);
    let reader = reader.map_err(bad)?;
    for index in 0..reader.num_row_groups() {
        let group = reader.get_row_group(index).map_err(bad)?;
        check_group(path, &file, group.metadata())?;
        each(TablePart::Group(group.as_ref())).map_err(bad)?;
    }
    Ok(())
}

fn for_each_of_unfinished(
    path: &Path,
    each: &mut dyn FnMut(TablePart<'_>) -> Result<(), ParquetError>,
) -> Result<(), FileError> {
    let rows_reader = RowsReader::open(path)?;
    let (footer_path, data_path) = (footer_path(path), partial_path(path));
    let file = open(&footer_path)?;
    check_footer(&footer_path, &file)?;
    let footer = ParquetMetaDataReader::new().parse_and_finish(&file);
    let footer = footer.map_err(|source| FileError::damaged(&footer_path, source.to_string()))?;
    let bad = |source: ParquetError| FileError::damaged(&data_path, source.to_string());
    let data = Arc::new(open(&data_path)?);
    let properties = Arc::new(ReaderProperties::builder().build());
    for (index, metadata) in footer.row_groups().iter().enumerate() {
        check_group(&data_path, &data, metadata)?;
        let (data, properties) = (Arc::clone(&data), Arc::clone(&properties));
        let no_index = footer.page_index_for_row_group(index);
        let group = SerializedRowGroupReader::new(data, metadata, no_index, properties).map_err(bad)?;
        each(TablePart::Group(&group)).map_err(bad)?;
    }
    let schema = footer.file_metadata().schema_descr();
    rows_reader.for_each(footer.num_row_groups(), schema.num_columns(), |rows| {
        each(TablePart::Rows(schema, rows)).map_err(bad)
    })
}

fn open(path: &Path) -> Result<File, FileError> {
    assay_base::files::open(path).map_err(|source| FileError::read(path, source))
}

/// Name and type of each column of a file, in its order. Columns of other types are left out.
pub fn columns_of(path: &Path) -> Result<Vec<(String, ColumnKind)>, FileError> {
    let mut columns = Vec::new();
    let footer = footer_path(path);
    let whole = if is_unfinished(path) { &footer } else { path };
    let file = open(whole)?;
    check_footer(whole, &file)?;
    let read = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        ParquetMetaDataReader::new()
            .parse_and_finish(&file)
            .map(|read| read.file_metadata().schema_descr_ptr())
    }));
    let schema = read
        .unwrap_or_else(|_| Err(ParquetError::General("its end cannot be decoded".into())))
        .map_err(|source| FileError::damaged(path, source.to_string()))?;
    for column in schema.columns() {
        let unsigned = column.logical_type_ref() == Some(&LogicalType::integer(64, false));
        let kind = match column.physical_type() {
            Physical::INT64 if unsigned => ColumnKind::Uint,
            Physical::INT64 => ColumnKind::Int,
            Physical::DOUBLE => ColumnKind::Float,
            Physical::BYTE_ARRAY => ColumnKind::Text,
            Physical::BOOLEAN => ColumnKind::Bool,
            _ => continue,
        };
        columns.push((column.name().to_owned(), kind));
    }
    Ok(columns)
}

/// Appends all values of one column chunk.
fn read_column<T: DataType>(
    group: &dyn RowGroupReader,
    index: usize,
    all: &mut Vec<Option<T::T>>,
) -> Result<(), ParquetError>
where
    T::T: Clone,
{
    let reader = group.get_column_reader(index)?;
    let mut reader = parquet::column::reader::get_typed_column_reader::<T>(reader);
    let rows = group.metadata().num_rows().max(0).unsigned_abs() as usize;
    let optional = group.metadata().schema_descr().column(index).max_def_level() > 0;
    let (mut values, mut levels) = (Vec::with_capacity(rows), Vec::new());
    reader.read_records(rows, optional.then_some(&mut levels), None, &mut values)?;
    if !optional {
        all.extend(values.into_iter().map(Some));
        return Ok(());
    }
    let mut values = values.into_iter();
    all.extend(levels.iter().map(|&level| if level > 0 { values.next() } else { None }));
    Ok(())
}
