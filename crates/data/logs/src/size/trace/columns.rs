//! The columns of a trace, and what a line says in them.

use std::borrow::Cow;

use crate::hash::{hash, hash_on};

use super::Record;
use super::name::{Meaning, Name};
use super::number::{Problem, decimal, digits, size, time_ms};
use super::operation::{self, Explained, Operations};
use super::separator::Separator;
use crate::size::requests::LARGEST_BYTES;

/// The longest lifetime that is told from for ever.
const LONGEST_S: f64 = (u32::MAX - 1) as f64;
/// A line that stands for more requests is damaged.
const MOST_REQUESTS: u64 = 1_000_000;

/// What is read from a column.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Role {
    Unused,
    Object {
        /// It may be empty, where others are the object with it.
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
    role: Role,
}

/// Which columns lines have, and what each stands for.
#[derive(Debug, Clone, PartialEq)]
pub struct Columns {
    separator: Separator,
    columns: Vec<Column>,
    /// The columns that every line must have.
    least: usize,
    /// Lines may have more of them, which are not read.
    has_more: bool,
    explained: Vec<Explained>,
}

/// None of the columns stands for the object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NoObject;

/// What a line says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Line {
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

/// Why a line is not a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Malformed {
    /// It has another number of columns: this one.
    Columns(usize),
    /// Something is wrong with a column.
    Column {
        /// Its place, from 0.
        place: usize,
        problem: Problem,
    },
}

impl Columns {
    /// The columns with these names. `example`: a line, which says whether a `type` is an operation.
    pub fn of(names: &[Name], separator: Separator, example: Option<&[u8]>) -> Result<Self, NoObject> {
        let mut roles = vec![Role::Unused; names.len()];
        let first = |meaning| names.iter().position(|name| name.meaning == meaning);
        let objects = objects(names).ok_or(NoObject)?;
        for place in &objects.parts {
            roles[*place] = Role::Object { is_part: *place != objects.whole };
        }
        let unit_bytes = |place: usize| names[place].unit.unwrap_or(1.0);
        let value = first(Meaning::ValueSize);
        let whole = first(Meaning::Size);
        let key = first(Meaning::KeySize);
        // `size` beside the size of a key is that of the value; an object's own size has both.
        let has_parts =
            whole.or(value).is_some_and(|place| ["size", "valuesize"].contains(&&*names[place].words))
                && key.is_some()
                && (whole.is_none() || value.is_none());
        if let Some(place) = whole.or(value) {
            roles[place] = Role::Size { unit_bytes: unit_bytes(place), is_value: has_parts };
        }
        if let Some(place) = key.filter(|_| has_parts) {
            roles[place] = Role::Size { unit_bytes: unit_bytes(place), is_value: false };
        }
        if let Some(place) = first(Meaning::Sent) {
            let unit_bytes = unit_bytes(place);
            roles[place] = match whole.or(value) {
                Some(_) => Role::Sent { unit_bytes },
                None => Role::Size { unit_bytes, is_value: false },
            };
        } else if let (Some(start), Some(end)) = (first(Meaning::RangeStart), first(Meaning::RangeEnd)) {
            (roles[start], roles[end]) = (Role::RangeStart, Role::RangeEnd);
        }
        let is_operation = |place: &usize| {
            let field = example.and_then(|line| separator.fields(line).nth(*place));
            field.is_some_and(|field| operation::is_known(&String::from_utf8_lossy(&field)))
        };
        let operation = first(Meaning::Operation).or(first(Meaning::PerhapsOperation).filter(is_operation));
        if let Some(place) = first(Meaning::Time) {
            roles[place] = Role::Time(names[place].unit);
        }
        if let Some(place) = first(Meaning::Life) {
            roles[place] = Role::Life(names[place].unit.unwrap_or(1e3));
        }
        if let Some(place) = first(Meaning::Takes) {
            roles[place] = Role::Takes(names[place].unit.unwrap_or(1e3));
        }
        if let Some(place) = operation {
            roles[place] = Role::Operation;
        }
        if let Some(place) = first(Meaning::Count) {
            roles[place] = Role::Count;
        }
        let columns = names.iter().zip(roles).map(|(name, role)| Column { name: name.text.clone(), role });
        Ok(Self {
            separator,
            columns: columns.collect(),
            least: names.len(),
            has_more: false,
            explained: operation.map_or(Vec::new(), |place| names[place].explained.clone()),
        })
    }

    /// The same of lines that may have fewer columns, but not fewer than so many, and more.
    #[must_use]
    pub fn of_different_lengths(self, least: usize, has_more: bool) -> Self {
        Self { least: least.min(self.columns.len()), has_more, ..self }
    }

    /// True if there is a column of sizes.
    pub fn has_sizes(&self) -> bool {
        self.place(|role| matches!(role, Role::Size { .. })).is_some()
    }

    /// True if there is a column of times until a response began.
    pub fn has_response_times(&self) -> bool {
        self.place(|role| matches!(role, Role::Takes(_))).is_some()
    }

    /// What the values of its operations mean.
    pub fn operations(&self) -> Operations {
        Operations::new(&self.explained)
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
        let mut objects = fields.filter(|(column, _)| matches!(column.role, Role::Object { .. }));
        let rounded = objects.find(|(_, field)| is_rounded(field));
        rounded.map(|(_, field)| String::from_utf8_lossy(&field).into_owned())
    }

    /// True if a line names columns rather than to have values in them: none of its numbers is one.
    pub fn are_named_in(&self, line: &[u8]) -> bool {
        let fields: Vec<_> = self.separator.fields(line).collect();
        let has_letter = |field: &[u8]| field.iter().any(u8::is_ascii_alphabetic);
        let of = |is_one: fn(Role) -> bool| {
            let columns = self.columns.iter().zip(&fields).filter(move |(column, _)| is_one(column.role));
            columns.map(|(_, field)| field).collect::<Vec<_>>()
        };
        let numbers = of(|role| !matches!(role, Role::Unused | Role::Object { .. } | Role::Operation));
        if !numbers.is_empty() {
            let is_number =
                |field: &[u8]| decimal(field, true).is_some() || time_ms(field, true, None).is_ok();
            return numbers.iter().all(|field| !is_number(field) && has_letter(field));
        }
        let object = of(|role| matches!(role, Role::Object { .. }));
        object.iter().any(|field| {
            let name = Name::of(&String::from_utf8_lossy(field));
            name.is_ok_and(|name| name.meaning == Meaning::Object || name.meaning == Meaning::Url)
        })
    }

    /// Reads a line, and counts its operation.
    ///
    /// # Errors
    /// If it has more columns; or if it is a request, and has fewer, or a column that is read is empty or no number of its kind. A lifetime
    /// or a response time that is not a number above 0 is not known.
    pub fn read(&self, line: &[u8], operations: &mut Operations) -> Result<Line, Malformed> {
        let mut found = Found::default();
        let (mut number, mut problem, mut is_empty) = (0, None, false);
        for field in self.separator.fields(line) {
            is_empty = field.is_empty();
            if let Some(column) = self.columns.get(number)
                && let Err(wrong) = found.take(column.role, field, !self.separator.is_comma())
            {
                problem = problem.or(Some(Malformed::Column { place: number, problem: wrong }));
            }
            number += 1;
        }
        let (least, most) = (self.least, self.columns.len());
        // A separator at the end of a line begins no column.
        if number > most + usize::from(is_empty) && !self.has_more {
            return Err(Malformed::Columns(number));
        }
        let count = found.count.unwrap_or(1);
        if let Some(value) = &found.operation
            && !operations.take(value, count)
        {
            operations.lifetimes += if found.record.life_s.is_some() { count } else { 0 };
            return Ok(Line::Other);
        }
        if number < least {
            return Err(Malformed::Columns(number));
        }
        match problem.or_else(|| if number < most { self.missing(&found) } else { None }) {
            Some(problem) => Err(problem),
            None => Ok(Line::Requests { record: found.record(), count, lacks_value: found.lacks_value }),
        }
    }

    /// The first of the columns that must have a value and have none.
    fn missing(&self, found: &Found<'_>) -> Option<Malformed> {
        let place = self.place(|role| match role {
            Role::Object { .. } => found.key.is_none(),
            Role::Size { .. } => found.record.bytes.is_none(),
            Role::Time(_) => found.record.at_ms.is_none(),
            Role::Operation => found.operation.is_none(),
            Role::Count => found.count.is_none(),
            _ => false,
        });
        place.map(|place| Malformed::Column { place, problem: Problem::Empty })
    }

    fn place(&self, is_one: impl Fn(Role) -> bool) -> Option<usize> {
        self.columns.iter().position(|column| is_one(column.role))
    }

    /// Why a line is not a request, in words.
    pub fn reason(&self, malformed: Malformed) -> String {
        match malformed {
            Malformed::Columns(found) => {
                let expected = match self.least {
                    least if least == self.columns.len() && !self.has_more => format!("not {least}"),
                    least => format!("not {least} or more"),
                };
                format!("it has {}, {expected}", assay_base::settings::show::several(found as u64, "column"))
            }
            Malformed::Column { place, problem } => {
                let what = match problem {
                    Problem::Empty => "is empty",
                    Problem::NoNumber => "is no number",
                    Problem::Fraction => {
                        "is no whole number of bytes: neither fractions nor marks between thousands are read"
                    }
                    Problem::Negative => "is below 0",
                    Problem::TooLarge => "is more than 256 TB",
                    Problem::NoTime => "is no time: numbers are read, and dates like 2026-01-31 12:00:00",
                    Problem::NoCount => "is no number of requests from 1 to 1,000,000",
                };
                format!("{} {what}", self.named(place))
            }
        }
    }

    /// A column, as it is called in a message.
    fn named(&self, place: usize) -> String {
        match self.columns.get(place).map(|column| column.name.as_str()) {
            Some(name) if !name.is_empty() && name != "-" => {
                format!("`{}`", assay_base::quote::line::line(name))
            }
            _ => format!("column {}", place + 1),
        }
    }

    /// The columns of a kind, as they are called.
    fn all_named(&self, is_one: impl Fn(Role) -> bool) -> Vec<String> {
        let places = self.columns.iter().enumerate().filter(|(_, column)| is_one(column.role));
        places.map(|(place, _)| self.named(place)).collect()
    }

    /// Names of the columns that are not read.
    pub fn unused(&self) -> Vec<String> {
        self.all_named(|role| role == Role::Unused)
    }

    /// What a column of operations is called; none: there is none.
    pub fn operation(&self) -> Option<String> {
        self.all_named(|role| role == Role::Operation).pop()
    }

    /// What a column of how many requests a line stands for is called; none: there is none.
    pub fn count(&self) -> Option<String> {
        self.all_named(|role| role == Role::Count).pop()
    }

    /// What a reader should know of how columns are read, a sentence each.
    pub fn notes(&self) -> Vec<String> {
        let mut notes = Vec::new();
        let objects = self.all_named(|role| matches!(role, Role::Object { .. }));
        if objects.len() > 1 {
            notes.push(format!("An object is what has the same {}.", joined(&objects)));
        }
        let sizes = self.all_named(|role| matches!(role, Role::Size { .. }));
        if sizes.len() > 1 {
            notes.push(format!("The size of an object is the sum of {}.", joined(&sizes)));
        }
        for (place, column) in self.columns.iter().enumerate() {
            if let Role::Size { unit_bytes, .. } | Role::Sent { unit_bytes } = column.role
                && unit_bytes > 1.0
            {
                let unit = assay_base::settings::show::count(unit_bytes as u64);
                notes.push(format!("The sizes in {} count {unit} bytes each.", self.named(place)));
            }
        }
        let unused = self.unused();
        if !unused.is_empty() {
            notes.push(format!("Columns that were not used: {}.", unused.join(", ")));
        }
        notes
    }
}

/// `a`, `b` and `c`.
fn joined(names: &[String]) -> String {
    match names {
        [first @ .., last] if !first.is_empty() => format!("{} and {last}", first.join(", ")),
        _ => names.concat(),
    }
}

/// The columns that are the object together.
struct Objects {
    parts: Vec<usize>,
    /// The one that must not be empty.
    whole: usize,
}

fn objects(names: &[Name]) -> Option<Objects> {
    let first = |meaning| names.iter().position(|name| name.meaning == meaning);
    let all = |meanings: &[Meaning]| {
        let places = names.iter().enumerate().filter(|(_, name)| meanings.contains(&name.meaning));
        places.map(|(place, _)| place).collect::<Vec<_>>()
    };
    if let Some(whole) = first(Meaning::Object) {
        // One that is named twice is a pair.
        let mut parts = all(&[Meaning::Object]);
        parts.retain(|place| names[*place].words == names[whole].words);
        return Some(Objects { parts, whole });
    }
    if let Some(whole) = first(Meaning::Address) {
        let parts = [all(&[Meaning::Volume, Meaning::Host]), vec![whole]].concat();
        return Some(Objects { parts, whole });
    }
    if let Some(whole) = first(Meaning::Url) {
        return Some(Objects { parts: vec![whole], whole });
    }
    let whole = first(Meaning::Path)?;
    let parts = [Meaning::Host, Meaning::Path, Meaning::Query];
    Some(Objects { parts: parts.iter().filter_map(|meaning| first(*meaning)).collect(), whole })
}

/// What was found in a line.
#[derive(Debug)]
struct Found<'l> {
    key: Option<u64>,
    record: Record,
    count: Option<u64>,
    operation: Option<Cow<'l, [u8]>>,
    range_start: Option<u64>,
    range_end: Option<u64>,
    lacks_value: bool,
}

impl Default for Found<'_> {
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

impl<'l> Found<'l> {
    /// Takes the value of a column.
    fn take(&mut self, role: Role, field: Cow<'l, [u8]>, has_decimal_comma: bool) -> Result<(), Problem> {
        let record = &mut self.record;
        match role {
            Role::Unused => {}
            Role::Object { is_part: false } if field.is_empty() => return Err(Problem::Empty),
            Role::Object { .. } => {
                self.key = Some(self.key.map_or_else(|| hash(&field), |key| hash_on(key, &field)))
            }
            Role::Time(unit_ms) => record.at_ms = Some(time_ms(&field, has_decimal_comma, unit_ms)?),
            Role::Size { unit_bytes, is_value } => {
                let bytes = size(&field, has_decimal_comma, unit_bytes)?;
                self.lacks_value |= is_value && bytes == 0;
                let sum = record.bytes.unwrap_or(0) + bytes;
                record.bytes = Some(sum).filter(|sum| *sum <= LARGEST_BYTES);
                record.bytes.ok_or(Problem::TooLarge)?;
            }
            Role::Sent { .. } if field.is_empty() || *field == *b"-" => {}
            Role::Sent { unit_bytes } => {
                record.sent_bytes = Some(size(&field, has_decimal_comma, unit_bytes)?)
            }
            // Anything else, such as -1: no part was requested.
            Role::RangeStart => self.range_start = digits(&field),
            Role::RangeEnd => self.range_end = digits(&field),
            Role::Life(unit_ms) => {
                let life_ms = above_0(&field, has_decimal_comma).map(|life| life * unit_ms);
                record.life_s = life_ms.map(|life_ms| (life_ms / 1e3).min(LONGEST_S) as u32);
            }
            Role::Takes(unit_ms) => {
                let takes_ms = above_0(&field, has_decimal_comma).map(|takes| takes * unit_ms);
                record.takes_ms = takes_ms.map(|takes_ms| takes_ms.min(LONGEST_S).round() as u32);
            }
            Role::Operation if field.is_empty() => return Err(Problem::Empty),
            Role::Operation => self.operation = Some(field),
            Role::Count => {
                let count = digits(field.strip_suffix(b".0").unwrap_or(&field));
                let count = count.filter(|count| (1..=MOST_REQUESTS).contains(count));
                self.count =
                    Some(count.ok_or(if field.is_empty() { Problem::Empty } else { Problem::NoCount })?);
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
