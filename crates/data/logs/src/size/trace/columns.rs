//! The columns of a trace, and what a line says in them.

use std::borrow::Cow;

use assay_base::settings::show::{count, series, several};

use crate::hash::{hash, hash_on};

use super::Record;
use super::name::{ColumnMeaning, ColumnName};
use super::number::{ValueError, decimal, digits, size, time_ms};
use super::operation::{self, OperationName, Operations};
use super::separator::Separator;
use crate::size::requests::LARGEST_BYTES;

/// The longest lifetime that is told from for ever.
const MAX_LIFE_S: f64 = (u32::MAX - 1) as f64;
/// A line that stands for more requests is damaged.
const MAX_REQUESTS: u64 = 1_000_000;

/// Role of a column.
#[derive(Debug, Clone, Copy, PartialEq)]
enum ColumnRole {
    Unused,
    Object {
        /// Empty values are allowed, where other columns identify the object with it.
        is_part: bool,
    },
    /// Milliseconds of what it counts; none: the size of a time says it.
    Time(Option<f64>),
    /// Bytes of the object, or a part of them.
    Size {
        unit_bytes: f64,
        /// Of a cache of keys and values: 0 if the value was not there.
        is_value: bool,
    },
    Sent {
        unit_bytes: f64,
    },
    RangeStart,
    RangeEnd,
    /// Milliseconds of what it counts.
    Life(f64),
    Takes(f64),
    Operation,
    Count,
}

#[derive(Debug, Clone, PartialEq)]
struct Column {
    name: String,
    role: ColumnRole,
}

/// Columns of a trace, with the role of each.
#[derive(Debug, Clone, PartialEq)]
pub struct Columns {
    separator: Separator,
    columns: Vec<Column>,
    /// The columns that every line must have.
    least: usize,
    /// Lines may have more of them, which are not read.
    has_more: bool,
    operation_names: Vec<OperationName>,
}

/// None of the columns stands for the object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NoObjectColumn;

/// Content of a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TraceLine {
    /// Requests, all of them alike.
    Requests {
        record: Record,
        count: u64,
        /// The value was not in the cache that was traced.
        lacks_value: bool,
    },
    /// Something else was done with the object.
    Other,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TraceLineError {
    /// Wrong number of columns: this one.
    Columns(usize),
    /// Something is wrong with a column.
    Column {
        /// Index of the column.
        index: usize,
        problem: ValueError,
    },
}

impl Columns {
    /// The columns with these names. `examples`: lines, which say whether a `type` is an operation, and whether objects have hosts.
    pub fn of(
        names: &[ColumnName],
        separator: Separator,
        examples: &[&[u8]],
    ) -> Result<Self, NoObjectColumn> {
        let mut roles = vec![ColumnRole::Unused; names.len()];
        let first = |meaning| names.iter().position(|name| name.meaning == meaning);
        let is_path = |index: usize| {
            examples
                .iter()
                .any(|line| separator.fields(line).nth(index).is_some_and(|field| field.starts_with(b"/")))
        };
        let objects = objects(names, is_path).ok_or(NoObjectColumn)?;
        for index in &objects.parts {
            roles[*index] = ColumnRole::Object { is_part: *index != objects.whole };
        }
        let unit_bytes = |index: usize| names[index].unit.unwrap_or(1.0);
        let value = first(ColumnMeaning::ValueSize);
        let whole = first(ColumnMeaning::Size);
        let key = first(ColumnMeaning::KeySize);
        // `size` beside the size of a key is that of the value; an object's own size has both.
        let has_parts =
            whole.or(value).is_some_and(|index| ["size", "valuesize"].contains(&&*names[index].words))
                && key.is_some()
                && (whole.is_none() || value.is_none());
        if let Some(index) = whole.or(value) {
            roles[index] = ColumnRole::Size { unit_bytes: unit_bytes(index), is_value: has_parts };
        }
        if let Some(index) = key.filter(|_| has_parts) {
            roles[index] = ColumnRole::Size { unit_bytes: unit_bytes(index), is_value: false };
        }
        if let Some(index) = first(ColumnMeaning::Sent) {
            let unit_bytes = unit_bytes(index);
            roles[index] = match whole.or(value) {
                Some(_) => ColumnRole::Sent { unit_bytes },
                None => ColumnRole::Size { unit_bytes, is_value: false },
            };
        } else if let (Some(start), Some(end)) =
            (first(ColumnMeaning::RangeStart), first(ColumnMeaning::RangeEnd))
        {
            (roles[start], roles[end]) = (ColumnRole::RangeStart, ColumnRole::RangeEnd);
        }
        let is_operation = |index: &usize| {
            let field = examples.first().and_then(|line| separator.fields(line).nth(*index));
            field.is_some_and(|field| operation::is_known(&String::from_utf8_lossy(&field)))
        };
        let operation =
            first(ColumnMeaning::Operation).or(first(ColumnMeaning::PerhapsOperation).filter(is_operation));
        if let Some(index) = first(ColumnMeaning::Time) {
            roles[index] = ColumnRole::Time(names[index].unit);
        }
        if let Some(index) = first(ColumnMeaning::Life) {
            roles[index] = ColumnRole::Life(names[index].unit.unwrap_or(1e3));
        }
        if let Some(index) = first(ColumnMeaning::Takes) {
            roles[index] = ColumnRole::Takes(names[index].unit.unwrap_or(1e3));
        }
        if let Some(index) = operation {
            roles[index] = ColumnRole::Operation;
        }
        if let Some(index) = first(ColumnMeaning::Count) {
            roles[index] = ColumnRole::Count;
        }
        let columns = names.iter().zip(roles).map(|(name, role)| Column { name: name.text.clone(), role });
        Ok(Self {
            separator,
            columns: columns.collect(),
            least: names.len(),
            has_more: false,
            operation_names: operation.map_or(Vec::new(), |index| names[index].operation_names.clone()),
        })
    }

    /// The same of lines that may have fewer columns, but not fewer than so many, and more.
    #[must_use]
    pub fn of_different_lengths(self, least: usize, has_more: bool) -> Self {
        Self { least: least.min(self.columns.len()), has_more, ..self }
    }

    /// True if there is a column of sizes.
    pub fn has_sizes(&self) -> bool {
        self.index_of(|role| matches!(role, ColumnRole::Size { .. })).is_some()
    }

    /// True if there is a column of times until a response began.
    pub fn has_response_times(&self) -> bool {
        self.index_of(|role| matches!(role, ColumnRole::Takes(_))).is_some()
    }

    /// Meanings of the values of its operations.
    pub fn operations(&self) -> Operations {
        Operations::new(&self.operation_names)
    }

    /// An object of a line that is a number with a power of ten, as spreadsheets write long numbers: several of them may have been
    /// different objects.
    pub fn rounded_object(&self, line: &[u8]) -> Option<String> {
        let is_rounded = |field: &[u8]| {
            let Some(end) = memchr::memchr(b'E', field) else { return false };
            let (digits, exponent) = field.split_at(end);
            let is_mark = |byte: &u8| matches!(byte, b'.' | b',');
            let is_number = digits.iter().all(|byte| byte.is_ascii_digit() || is_mark(byte));
            is_number && digits.iter().any(is_mark) && exponent.starts_with(b"E+")
        };
        let fields = self.columns.iter().zip(self.separator.fields(line));
        let mut objects = fields.filter(|(column, _)| matches!(column.role, ColumnRole::Object { .. }));
        let rounded = objects.find(|(_, field)| is_rounded(field));
        rounded.map(|(_, field)| String::from_utf8_lossy(&field).into_owned())
    }

    /// True if a line names columns rather than to have values in them: none of its numbers is one.
    pub fn are_named_in(&self, line: &[u8]) -> bool {
        let fields: Vec<_> = self.separator.fields(line).collect();
        let has_letter = |field: &[u8]| field.iter().any(u8::is_ascii_alphabetic);
        let of = |is_one: fn(ColumnRole) -> bool| {
            let columns = self.columns.iter().zip(&fields).filter(move |(column, _)| is_one(column.role));
            columns.map(|(_, field)| field).collect::<Vec<_>>()
        };
        let numbers = of(|role| {
            !matches!(role, ColumnRole::Unused | ColumnRole::Object { .. } | ColumnRole::Operation)
        });
        if !numbers.is_empty() {
            let is_number =
                |field: &[u8]| decimal(field, true).is_some() || time_ms(field, true, None).is_ok();
            return numbers.iter().all(|field| !is_number(field) && has_letter(field));
        }
        let object = of(|role| matches!(role, ColumnRole::Object { .. }));
        object.iter().any(|field| {
            let name = ColumnName::of(&String::from_utf8_lossy(field));
            name.is_ok_and(|name| name.meaning == ColumnMeaning::Object || name.meaning == ColumnMeaning::Url)
        })
    }

    /// Reads a line, and counts its operation.
    ///
    /// # Errors
    /// If it has more columns; or if it is a request, and has fewer, or a column that is read is empty or no number of its kind. A lifetime
    /// or a response time that is not a number above 0 is not known.
    pub fn read(&self, line: &[u8], operations: &mut Operations) -> Result<TraceLine, TraceLineError> {
        let mut found = ParsedLine::default();
        let (mut number, mut problem, mut is_empty) = (0, None, false);
        for field in self.separator.fields(line) {
            is_empty = field.is_empty();
            if let Some(column) = self.columns.get(number)
                && let Err(wrong) = found.parse(column.role, field, !self.separator.is_comma())
            {
                problem = problem.or(Some(TraceLineError::Column { index: number, problem: wrong }));
            }
            number += 1;
        }
        let (least, most) = (self.least, self.columns.len());
        // A separator at the end of a line begins no column.
        if number > most + usize::from(is_empty) && !self.has_more {
            return Err(TraceLineError::Columns(number));
        }
        let count = found.count.unwrap_or(1);
        if let Some(value) = &found.operation
            && !operations.parse(value, count)
        {
            operations.lifetimes += if found.record.life_s.is_some() { count } else { 0 };
            return Ok(TraceLine::Other);
        }
        if number < least {
            return Err(TraceLineError::Columns(number));
        }
        match problem.or_else(|| if number < most { self.missing(&found) } else { None }) {
            Some(problem) => Err(problem),
            None => Ok(TraceLine::Requests { record: found.record(), count, lacks_value: found.lacks_value }),
        }
    }

    /// The first of the columns that must have a value and have none.
    fn missing(&self, found: &ParsedLine<'_>) -> Option<TraceLineError> {
        let index = self.index_of(|role| match role {
            ColumnRole::Object { .. } => found.key.is_none(),
            ColumnRole::Size { .. } => found.record.bytes.is_none(),
            ColumnRole::Time(_) => found.record.at_ms.is_none(),
            ColumnRole::Operation => found.operation.is_none(),
            ColumnRole::Count => found.count.is_none(),
            _ => false,
        });
        index.map(|index| TraceLineError::Column { index, problem: ValueError::Empty })
    }

    fn index_of(&self, is_one: impl Fn(ColumnRole) -> bool) -> Option<usize> {
        self.columns.iter().position(|column| is_one(column.role))
    }

    /// Reason for which a line is not a request, for people.
    pub fn reason(&self, malformed: TraceLineError) -> String {
        match malformed {
            TraceLineError::Columns(found) => {
                let expected = match self.least {
                    least if least == self.columns.len() && !self.has_more => format!("not {least}"),
                    least => format!("not {least} or more"),
                };
                format!("it has {}, {expected}", several(found as u64, "column"))
            }
            TraceLineError::Column { index, problem } => {
                let what = match problem {
                    ValueError::Empty => "is empty",
                    ValueError::NoNumber => "is no number",
                    ValueError::Fraction => {
                        "is no whole number of bytes: neither fractions nor marks between thousands are read"
                    }
                    ValueError::Negative => "is below 0",
                    ValueError::TooLarge => "is more than 256 TB",
                    ValueError::NoTime => "is no time: numbers are read, and dates like 2026-01-31 12:00:00",
                    ValueError::NoCount => "is no number of requests from 1 to 1,000,000",
                };
                format!("{} {what}", self.named(index))
            }
        }
    }

    /// A column, as it is called in a message.
    fn named(&self, index: usize) -> String {
        match self.columns.get(index).map(|column| column.name.as_str()) {
            Some(name) if !name.is_empty() && name != "-" => {
                format!("`{}`", assay_base::quote::line::line(name))
            }
            _ => format!("column {}", index + 1),
        }
    }

    /// The columns of a kind, as they are called.
    fn all_named(&self, is_one: impl Fn(ColumnRole) -> bool) -> Vec<String> {
        let indices = self.columns.iter().enumerate().filter(|(_, column)| is_one(column.role));
        indices.map(|(index, _)| self.named(index)).collect()
    }

    /// Names of the columns that are not read.
    pub fn unused(&self) -> Vec<String> {
        self.all_named(|role| role == ColumnRole::Unused)
    }

    /// Name of the column of operations; none: there is none.
    pub fn operation(&self) -> Option<String> {
        self.all_named(|role| role == ColumnRole::Operation).pop()
    }

    /// Name of the column of requests for each line; none: there is none.
    pub fn count(&self) -> Option<String> {
        self.all_named(|role| role == ColumnRole::Count).pop()
    }

    /// Sentences on how columns are read.
    pub fn notes(&self) -> Vec<String> {
        let mut notes = Vec::new();
        let objects = self.all_named(|role| matches!(role, ColumnRole::Object { .. }));
        if objects.len() > 1 {
            notes.push(format!("An object is what has the same {}.", series(&objects)));
        }
        let sizes = self.all_named(|role| matches!(role, ColumnRole::Size { .. }));
        if sizes.len() > 1 {
            notes.push(format!("The size of an object is the sum of {}.", series(&sizes)));
        }
        for (index, column) in self.columns.iter().enumerate() {
            if let ColumnRole::Size { unit_bytes, .. } | ColumnRole::Sent { unit_bytes } = column.role
                && unit_bytes > 1.0
            {
                let unit = count(unit_bytes as u64);
                notes.push(format!("The sizes in {} count {unit} bytes each.", self.named(index)));
            }
        }
        let unused = self.unused();
        if !unused.is_empty() {
            notes.push(format!("Columns that were not used: {}.", unused.join(", ")));
        }
        notes
    }
}

/// The columns that are the object together.
struct Objects {
    parts: Vec<usize>,
    /// The one that must not be empty.
    whole: usize,
}

/// The columns that are the object. `is_path`: true for a column with paths in it, to which a host belongs.
fn objects(names: &[ColumnName], is_path: impl Fn(usize) -> bool) -> Option<Objects> {
    let first = |meaning| names.iter().position(|name| name.meaning == meaning);
    let indices_of = |semantics: &[ColumnMeaning]| {
        let indices = names.iter().enumerate().filter(|(_, name)| semantics.contains(&name.meaning));
        indices.map(|(index, _)| index).collect::<Vec<_>>()
    };
    if let Some(whole) = first(ColumnMeaning::Object) {
        // One that is named twice is a pair.
        let mut parts = indices_of(&[ColumnMeaning::Bucket, ColumnMeaning::Object]);
        let is_other =
            |name: &ColumnName| name.meaning == ColumnMeaning::Object && name.words != names[whole].words;
        parts.retain(|index| !is_other(&names[*index]));
        parts.extend(first(ColumnMeaning::Host).filter(|_| is_path(whole)));
        return Some(Objects { parts, whole });
    }
    if let Some(whole) = first(ColumnMeaning::Address) {
        let parts = [indices_of(&[ColumnMeaning::Volume, ColumnMeaning::Host]), vec![whole]].concat();
        return Some(Objects { parts, whole });
    }
    if let Some(whole) = first(ColumnMeaning::Url) {
        let host = first(ColumnMeaning::Host).filter(|_| is_path(whole));
        let parts = [first(ColumnMeaning::Bucket), host, Some(whole), first(ColumnMeaning::Query)];
        return Some(Objects { parts: parts.into_iter().flatten().collect(), whole });
    }
    let whole = first(ColumnMeaning::Path)?;
    let parts = [ColumnMeaning::Bucket, ColumnMeaning::Host, ColumnMeaning::Path, ColumnMeaning::Query];
    Some(Objects { parts: parts.iter().filter_map(|meaning| first(*meaning)).collect(), whole })
}

/// Values of a line's columns.
#[derive(Debug)]
struct ParsedLine<'l> {
    key: Option<u64>,
    record: Record,
    count: Option<u64>,
    operation: Option<Cow<'l, [u8]>>,
    range_start: Option<u64>,
    range_end: Option<u64>,
    lacks_value: bool,
}

impl Default for ParsedLine<'_> {
    fn default() -> Self {
        Self {
            key: None,
            record: Record::plain(0, None, None),
            count: None,
            operation: None,
            range_start: None,
            range_end: None,
            lacks_value: false,
        }
    }
}

impl<'l> ParsedLine<'l> {
    /// Takes the value of a column.
    fn parse(
        &mut self,
        role: ColumnRole,
        field: Cow<'l, [u8]>,
        has_decimal_comma: bool,
    ) -> Result<(), ValueError> {
        let record = &mut self.record;
        match role {
            ColumnRole::Unused => {}
            ColumnRole::Object { is_part: false } if field.is_empty() => return Err(ValueError::Empty),
            ColumnRole::Object { .. } => {
                self.key = Some(self.key.map_or_else(|| hash(&field), |key| hash_on(key, &field)))
            }
            ColumnRole::Time(unit_ms) => record.at_ms = Some(time_ms(&field, has_decimal_comma, unit_ms)?),
            ColumnRole::Size { unit_bytes, is_value } => {
                let bytes = size(&field, has_decimal_comma, unit_bytes)?;
                self.lacks_value |= is_value && bytes == 0;
                let sum = record.bytes.unwrap_or(0) + bytes;
                record.bytes = Some(sum).filter(|sum| *sum <= LARGEST_BYTES);
                record.bytes.ok_or(ValueError::TooLarge)?;
            }
            ColumnRole::Sent { .. } if field.is_empty() || *field == *b"-" => {}
            ColumnRole::Sent { unit_bytes } => {
                record.sent_bytes = Some(size(&field, has_decimal_comma, unit_bytes)?)
            }
            // Anything else, such as -1: no part was requested.
            ColumnRole::RangeStart => self.range_start = digits(&field),
            ColumnRole::RangeEnd => self.range_end = digits(&field),
            ColumnRole::Life(unit_ms) => {
                let life_ms = above_0(&field, has_decimal_comma).map(|life| life * unit_ms);
                record.life_s = life_ms.map(|life_ms| (life_ms / 1e3).min(MAX_LIFE_S) as u32);
            }
            ColumnRole::Takes(unit_ms) => {
                let takes_ms = above_0(&field, has_decimal_comma).map(|takes| takes * unit_ms);
                record.takes_ms = takes_ms.map(|takes_ms| takes_ms.min(MAX_LIFE_S).round() as u32);
            }
            ColumnRole::Operation if field.is_empty() => return Err(ValueError::Empty),
            ColumnRole::Operation => self.operation = Some(field),
            ColumnRole::Count => {
                let count = digits(field.strip_suffix(b".0").unwrap_or(&field));
                let count = count.filter(|count| (1..=MAX_REQUESTS).contains(count));
                self.count = Some(count.ok_or(if field.is_empty() {
                    ValueError::Empty
                } else {
                    ValueError::NoCount
                })?);
            }
        }
        Ok(())
    }

    /// One of the requests.
    fn record(&self) -> Record {
        let part = self.range_start.zip(self.range_end).filter(|(start, end)| start <= end);
        let part_bytes = part.map(|(start, end)| (end - start).saturating_add(1));
        let part_bytes = part_bytes.map(|bytes| bytes.min(self.record.bytes.unwrap_or(bytes)));
        Record {
            key: self.key.unwrap_or_default(),
            sent_bytes: self.record.sent_bytes.or(part_bytes),
            ..self.record
        }
    }
}

fn above_0(field: &[u8], has_decimal_comma: bool) -> Option<f64> {
    decimal(field, has_decimal_comma).filter(|number| *number > 0.0)
}
