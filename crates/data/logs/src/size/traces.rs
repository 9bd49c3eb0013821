//! Traces and their requests.

use std::path::{Path, PathBuf};

use crate::document::MalformedLine;
use crate::error::LogsError;
use crate::input::{Input, LINE_BYTES, LineChunk};
use crate::remarks::Copies;
use assay_base::settings::show::{count, several, verb};

use crate::size::error::SizeError;
use crate::size::form::Form;
use crate::size::http::{AS_ALL_MS, FOREVER_S, RequestSemantics};
use crate::size::input::{IN_OBJECTS, ReadOptions, SizeInput, ends_early};
use crate::size::requests::{LARGEST_BYTES, RequestCollector, Sizes};
use crate::size::trace::Record;
use crate::size::trace::columns::TraceLine;
use crate::size::trace::lcs::Lcs;
use crate::size::trace::operation::{OperationCount, Operations};
use crate::size::trace::oracle::{Oracle, RECORD_BYTES};
use crate::size::trace::text::{ColumnNaming, TextTrace, shown, trim};
use crate::size::trace::vscsi::Vscsi;

/// Lines that could not be read and are shown.
const SHOWN_MALFORMED: usize = 5;
/// Operations that a note names.
const NAMED_OPERATIONS: usize = 10;

/// Reads traces in the given order.
pub(crate) fn traces(
    files: Vec<PathBuf>,
    forms: &[Form],
    options: ReadOptions,
) -> Result<SizeInput, SizeError> {
    let mut collector = RequestCollector::new(Sizes::Within(0), options.sampling);
    if options.response.is_some() {
        collector.set_http(options.http());
    }
    let mut traces = TraceReader { options, collector, summary: TraceSummary::default(), expires: false };
    for (path, form) in files.iter().zip(forms) {
        let mut input = Input::open(path)?;
        if options.is_logged() && !form.is_text() {
            return Err(no_response_times(path));
        }
        match form {
            Form::Oracle => traces.oracle(&mut input)?,
            Form::Lcs => traces.lcs(path, &mut input)?,
            Form::Vscsi => traces.vscsi(path, &mut input)?,
            Form::Text(naming) => traces.text(path, naming, &mut input)?,
            Form::Log(_) => {}
        }
        traces.summary.copies.add(&input);
        traces.summary.ends.extend(input.read_error.as_ref().map(|why| ends_early(path, why)));
    }
    let mut names: Vec<&str> = forms.iter().map(Form::name).collect();
    names.dedup();
    let TraceReader { collector, mut summary, .. } = traces;
    let requests = collector.finish();
    Ok(SizeInput {
        files,
        form: names.join(", "),
        is_log: false,
        malformed: summary.malformed,
        malformed_lines: std::mem::take(&mut summary.malformed_lines),
        other_operations: summary.others.clone(),
        suggestions: None,
        notes: summary.notes(requests.has_sizes),
        requests,
    })
}

/// Statistics of traces, for notes.
#[derive(Debug, Default)]
struct TraceSummary {
    copies: Copies,
    malformed: u64,
    malformed_lines: Vec<MalformedLine>,
    others: Vec<OperationCount>,
    /// Numbers of operations of which nothing says what they mean.
    unexplained: Vec<String>,
    /// Columns that say how many requests a line stands for; such lines, and their requests.
    counts: Vec<String>,
    lines: u64,
    requests: u64,
    /// Reads of values that were not in the cache that was traced.
    lacking: u64,
    /// Others than reads that say a lifetime.
    lifetimes: u64,
    /// Traces that have sizes, and columns that are not used in others.
    sized: usize,
    unused: bool,
    /// Notes on columns.
    columns: Vec<String>,
    /// Traces that end early.
    ends: Vec<String>,
}

impl TraceSummary {
    /// Takes note of the columns of a trace.
    fn begin(&mut self, text: &TextTrace) {
        let columns = &text.columns;
        self.sized += usize::from(columns.has_sizes());
        self.unused |= !columns.unused().is_empty();
        let mut notes = columns.notes();
        if text.skips_names {
            notes.push("The first line names columns too, and is no request.".into());
        }
        if let Some(object) = &text.rounded {
            let object = assay_base::quote::line::line(object);
            notes.push(format!(
                "Objects are numbers with a power of ten (`{object}`), as spreadsheets shorten long ones: several that differ may have \
                 become one."
            ));
        }
        notes.retain(|note| !self.columns.contains(note));
        self.columns.extend(notes);
        self.counts.extend(columns.count().filter(|name| !self.counts.contains(name)));
    }

    /// Takes note of a line that is so many requests.
    fn take(&mut self, count: u64, lacks_value: bool) {
        self.lines += 1;
        self.requests += count;
        self.lacking += if lacks_value { count } else { 0 };
    }

    /// Takes note of a line that could not be read.
    #[cold]
    fn malformed(&mut self, path: &Path, line: u64, text: &[u8], reason: impl FnOnce() -> String) {
        self.malformed += 1;
        if self.malformed_lines.len() < SHOWN_MALFORMED {
            let (input, text) = (path.display().to_string(), shown(text));
            self.malformed_lines.push(MalformedLine { input, line, reason: reason(), text });
        }
    }

    /// Takes note of a binary trace, and of the bytes of its last record if that is not whole, of so many.
    fn binary(&mut self, input: &Input, left_over: Option<(usize, usize)>) {
        self.sized += 1;
        if let Some((left_over, record_bytes)) = left_over {
            self.malformed += 1;
            self.ends.push(format!(
                "{} ends in the middle of a record ({left_over} of {record_bytes} bytes): the records before it are simulated.",
                input.name
            ));
        }
    }

    /// Takes note of what was done with the objects of a trace.
    fn operations(&mut self, operations: Operations) {
        self.lifetimes += operations.lifetimes;
        for seen in operations.operations {
            if seen.is_unexplained && !self.unexplained.contains(&seen.name) {
                self.unexplained.push(seen.name);
            } else if !seen.is_read {
                match self.others.iter_mut().find(|other| other.name == seen.name) {
                    Some(other) => other.count += seen.count,
                    None => self.others.push(OperationCount { name: seen.name, count: seen.count }),
                }
            }
        }
        self.others.sort_by(|one, other| other.count.cmp(&one.count).then(one.name.cmp(&other.name)));
    }

    fn notes(self, has_sizes: bool) -> Vec<String> {
        let mut notes = [self.copies.notes(), self.ends].concat();
        let mut note = |is_so: bool, text: String| {
            if is_so {
                notes.push(text);
            }
        };
        let why = match (self.sized, self.unused) {
            (1.., _) => "Not all of the traces have sizes:",
            (0, true) => "None of the columns is known as one of sizes (if one is, name it with --columns):",
            (0, false) => "The input has no sizes:",
        };
        note(!has_sizes, format!("{why} {IN_OBJECTS}"));
        let quoted = |name: &str| assay_base::quote::line::line(name).into_owned();
        let named = |other: &OperationCount| format!("{} {}", quoted(&other.name), count(other.count));
        let mut others: Vec<String> = self.others.iter().take(NAMED_OPERATIONS).map(named).collect();
        let further = self.others.iter().skip(NAMED_OPERATIONS).map(|other| other.count).sum::<u64>();
        others.extend((further > 0).then(|| format!("others {}", count(further))));
        let options = if self.requests > 0 {
            ""
        } else {
            " If one of them is a read, say so in the name of the column, like `op[get:NAME]`."
        };
        note(
            !others.is_empty(),
            format!(
                "Requests are reads. Other operations are not among them: {}.{options}",
                others.join(", ")
            ),
        );
        let values: Vec<_> =
            self.unexplained.iter().take(NAMED_OPERATIONS).map(|name| quoted(name)).collect();
        note(
            !values.is_empty(),
            format!(
                "Operations are numbers ({}), and nothing says which are reads: all lines are taken for requests. Say it in the name of the \
                 column, like `op[get:1,put:0]`.",
                values.join(", ")
            ),
        );
        note(
            !self.counts.is_empty(),
            format!(
                "Lines stand for as many requests as {} says: {} {} {}.",
                self.counts.join(", "),
                several(self.lines, "line"),
                verb(self.lines, "is", "are"),
                several(self.requests, "request")
            ),
        );
        note(
            self.lacking > 0,
            format!(
                "{} for a value without bytes: it was not in the cache that was traced, and its object takes the bytes of its key. \
                 libCacheSim leaves these out.",
                if self.lacking == 1 {
                    "1 read is".into()
                } else {
                    format!("{} reads are", count(self.lacking))
                }
            ),
        );
        note(
            self.lifetimes > 0,
            format!(
                "{} a lifetime, which is not simulated: only those of reads are.",
                if self.lifetimes == 1 {
                    "1 other operation says".into()
                } else {
                    format!("{} other operations say", count(self.lifetimes))
                }
            ),
        );
        notes.extend(self.columns);
        notes
    }
}

fn no_response_times(path: &Path) -> SizeError {
    SizeError::NoResponseTimes { input: path.display().to_string() }
}

/// Traces that are being read.
struct TraceReader {
    options: ReadOptions,
    collector: RequestCollector,
    summary: TraceSummary,
    /// A copy has a lifetime.
    expires: bool,
}

impl TraceReader {
    fn add(&mut self, record: Record) -> Result<(), SizeError> {
        if record.life_s.is_some() && !self.expires {
            self.expires = true;
            self.collector.set_http(self.options.http());
        }
        let bytes = record.bytes.unwrap_or(1);
        let at_s = record.at_ms.map(|at_ms| at_ms.div_euclid(1000));
        if !self.collector.add_known(record.key, bytes, record.sent_bytes.unwrap_or(bytes), at_s) {
            return Err(SizeError::TooManyObjects);
        }
        self.collector.set_semantics(RequestSemantics {
            life_s: record.life_s.unwrap_or(FOREVER_S),
            takes_ms: record.takes_ms.unwrap_or(AS_ALL_MS),
            ms: record.at_ms.map_or(0, |at_ms| at_ms.rem_euclid(1000) as u16),
            ..RequestSemantics::PLAIN
        });
        Ok(())
    }

    fn oracle(&mut self, input: &mut Input) -> Result<(), SizeError> {
        let (mut oracle, mut result) = (Oracle::default(), Ok(()));
        while let Some(chunk) = input.next_bytes() {
            oracle.read(chunk, |record| {
                if result.is_ok() {
                    result = self.add(record);
                }
            });
        }
        result?;
        let left_over = Some(oracle.left_over()).filter(|left_over| *left_over > 0);
        self.summary.binary(input, left_over.map(|left_over| (left_over, RECORD_BYTES)));
        Ok(())
    }

    fn lcs(&mut self, path: &Path, input: &mut Input) -> Result<(), SizeError> {
        let (mut lcs, mut result) = (Lcs::default(), Ok(()));
        while let Some(chunk) = input.next_bytes() {
            let read = lcs.read(chunk, |record| match record.bytes {
                Some(bytes) if bytes > LARGEST_BYTES => self.summary.malformed += 1,
                _ if result.is_ok() => {
                    self.summary.take(1, false);
                    result = self.add(record);
                }
                _ => {}
            });
            read.map_err(|source| SizeError::Lcs { path: path.to_owned(), source })?;
        }
        result?;
        self.summary.binary(input, lcs.left_over());
        self.summary.operations(lcs.operations);
        Ok(())
    }

    fn vscsi(&mut self, path: &Path, input: &mut Input) -> Result<(), SizeError> {
        let (mut vscsi, mut result) = (Vscsi::default(), Ok(()));
        while let Some(chunk) = input.next_bytes() {
            let read = vscsi.read(chunk, |record| {
                if result.is_ok() {
                    self.summary.take(1, false);
                    result = self.add(record);
                }
            });
            read.map_err(|source| SizeError::Vscsi { path: path.to_owned(), source })?;
        }
        result?;
        self.summary.binary(input, vscsi.left_over());
        self.summary.operations(vscsi.operations);
        Ok(())
    }

    fn text(&mut self, path: &Path, naming: &ColumnNaming, input: &mut Input) -> Result<(), SizeError> {
        input.head();
        if let Some(what) = input.unreadable {
            return Err(LogsError::Unreadable { name: path.display().to_string(), what }.into());
        }
        let head = input.head();
        // Of an input that is empty, that is said elsewhere.
        if head.trim_ascii().is_empty() {
            return Ok(());
        }
        let text = TextTrace::of(head, head.len() < LINE_BYTES, naming)
            .map_err(|source| SizeError::Columns { path: path.to_owned(), source: Box::new(source) })?;
        let columns = &text.columns;
        if !columns.has_sizes() {
            self.collector.set_sizes(Sizes::Unknown);
        }
        if self.options.is_logged() && !columns.has_response_times() {
            return Err(no_response_times(path));
        }
        self.summary.begin(&text);
        let mut operations = columns.operations();
        let mut number = 0;
        while let Some(chunk) = input.next_chunk() {
            let mut rest = match chunk {
                LineChunk::Lines(text) | LineChunk::Unended { line: text, cut: false } => text,
                // Of a line that was cut, the end of a number may be missing.
                LineChunk::Unended { line, cut: true } => {
                    self.summary.malformed(path, number + 1, line, || "the trace breaks off in it".into());
                    continue;
                }
                LineChunk::TooLong(line) => {
                    number += 1;
                    let reason = || format!("it is longer than {} bytes", count(LINE_BYTES as u64));
                    self.summary.malformed(path, number, line, reason);
                    continue;
                }
                LineChunk::Torn(line) => {
                    number += 1;
                    self.summary.malformed(path, number, line, || "there are NULs in it".into());
                    continue;
                }
            };
            while !rest.is_empty() {
                let end = memchr::memchr(b'\n', rest).unwrap_or(rest.len());
                let line = trim(&rest[..end]);
                rest = rest.get(end + 1..).unwrap_or_default();
                number += 1;
                if line.is_empty() || number <= text.head_lines as u64 {
                    continue;
                }
                match columns.read(line, &mut operations) {
                    Ok(TraceLine::Requests { record, count, lacks_value }) => {
                        self.summary.take(count, lacks_value);
                        let takes_ms = record.takes_ms.filter(|_| self.options.is_logged());
                        for _ in 0..count {
                            self.add(Record { takes_ms, ..record })?;
                        }
                    }
                    Ok(TraceLine::Other) => {}
                    Err(malformed) => {
                        self.summary.malformed(path, number, line, || columns.reason(malformed))
                    }
                }
            }
        }
        self.summary.operations(operations);
        Ok(())
    }
}
