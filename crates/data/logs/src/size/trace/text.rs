//! Text with a line for each request: which columns its lines have, from its first lines or from what is said of it.

use assay_base::settings::suggest::or_did_you_mean;
use thiserror::Error;

use crate::printable;
use crate::size::error::ArgumentError;

use super::columns::{Columns, NoObjectColumn};
use super::name::{ColumnMeaning, ColumnName, UnknownUnit};
use super::number::decimal;
use super::published::PublishedTrace;
use super::separator::Separator;

/// Lines that are looked at to find out how many columns lines have.
const EXAMPLES: usize = 100;
/// Of a line, so much is shown.
const MAX_SHOWN_BYTES: usize = 100;
/// Names in a list of them are separated by commas.
const LIST: Separator = Separator::Byte(b',');

/// Source of the names of columns.
#[derive(Debug, Clone)]
pub enum ColumnNaming {
    /// The first line, or one before it that begins with `#`.
    FirstLine,
    /// A published form; the first line, if that names columns all the same.
    PublishedTrace(&'static PublishedTrace),
    /// Somebody: the names in order, separated by commas.
    Given(String),
}

/// Reason for which the columns of a trace are not known.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum ColumnsError {
    /// No column stands for the object.
    #[error(
        "cannot read the trace: none of its columns ({found}) stands for the object; name one of them `object`, `id`, `key` or `url` \
         in the first line, or name them in order with --columns"
    )]
    NoObjectColumn {
        /// The line that names them.
        found: String,
    },
    /// The first line is already a request.
    #[error(
        "cannot read the trace: its first line (`{line}`) names no columns; name them in order, with `-` for one that is not used, \
         like --columns {example}"
    )]
    NoNames {
        line: String,
        /// Suggested `--columns`.
        example: String,
    },
    /// Lines have another number of columns than there are names.
    #[error(
        "cannot read the trace: {named_by} names {named}, and lines have {found}, like `{line}`; name the columns of a line in order, \
         with `-` for one that is not used, like --columns {example}"
    )]
    Different {
        named_by: String,
        /// Number of names.
        named: String,
        /// Number of columns.
        found: usize,
        /// The first of the lines.
        line: String,
        /// Suggested `--columns`.
        example: String,
    },
    /// A size in a unit that is not known.
    #[error(
        "cannot read the trace: `{name}` does not say how many bytes its numbers count; name the columns in order, and this one with its \
         unit, like --columns 'object,size (KB)'"
    )]
    Unit {
        /// Name of the column.
        name: String,
    },
}

impl From<UnknownUnit> for ColumnsError {
    fn from(unit: UnknownUnit) -> Self {
        Self::Unit { name: shown(unit.name.as_bytes()) }
    }
}

/// Form of a text trace.
#[derive(Debug, Clone, PartialEq)]
pub struct TextTrace {
    pub columns: Columns,
    /// Lines before the first request.
    pub head_lines: usize,
    /// The columns were given, and the first line names them too.
    pub skips_names: bool,
    /// An object that may stand for several ([`Columns::rounded_object`]).
    pub rounded: Option<String>,
}

impl TextTrace {
    /// From the beginning of a trace. `is_whole`: that is all of it.
    pub fn of(head: &[u8], is_whole: bool, naming: &ColumnNaming) -> Result<Self, ColumnsError> {
        let mut lines: Vec<&[u8]> = head.split(|byte| *byte == b'\n').map(trim).collect();
        if !is_whole && lines.len() > 1 {
            lines.pop();
        }
        let first = lines.iter().position(|line| !line.is_empty() && !is_remark(line)).unwrap_or(lines.len());
        let lines = lines.into_iter().filter(|line| !line.is_empty());
        let (remarks, lines) = lines.partition::<Vec<_>, _>({
            let mut is_before = true;
            move |line| {
                is_before &= is_remark(line);
                is_before
            }
        });
        let head = TraceHead { first, remarks, lines };
        let text = match naming {
            ColumnNaming::Given(names) => head.named_as(names),
            ColumnNaming::PublishedTrace(known) if head.lines.first().is_none_or(|line| known.fits(line)) => {
                head.known(known)
            }
            ColumnNaming::PublishedTrace(known) => match head.named() {
                Err(ColumnsError::NoNames { .. } | ColumnsError::NoObjectColumn { .. }) => head.known(known),
                found => found,
            },
            ColumnNaming::FirstLine => head.named(),
        }?;
        let rounded = head.lines.iter().take(EXAMPLES).find_map(|line| text.columns.rounded_object(line));
        Ok(Self { rounded, ..text })
    }
}

/// The first lines of a trace, without empty ones.
struct TraceHead<'l> {
    /// Lines before the first one that is no remark, empty ones among them.
    first: usize,
    /// Remarks before all others.
    remarks: Vec<&'l [u8]>,
    lines: Vec<&'l [u8]>,
}

impl TraceHead<'_> {
    /// The lines of a published trace.
    fn known(&self, known: &PublishedTrace) -> Result<TextTrace, ColumnsError> {
        let number = |line: &&[u8]| known.separator().fields(line).count();
        let most = self.lines.iter().take(EXAMPLES).filter(|line| known.fits(line)).map(number).max();
        let mut names = known.columns(most.unwrap_or(0));
        let least = known.least(names.len());
        if let Some(most) = most.filter(|most| *most > names.len() && known.has_more) {
            names.resize(most, String::new());
        }
        let columns = Columns::of(&parse_names(&names)?, known.separator(), &[])
            .map_err(|NoObjectColumn| no_object(b""))?;
        let columns = columns.of_different_lengths(least, known.has_more);
        Ok(TextTrace { columns, head_lines: self.first, skips_names: false, rounded: None })
    }

    /// The lines of a trace whose columns somebody names.
    fn named_as(&self, names: &str) -> Result<TextTrace, ColumnsError> {
        let names = parse_names(&LIST.names(names))?;
        let Some(first) = self.lines.first().copied() else {
            let columns = Columns::of(&names, LIST, &[]).map_err(|NoObjectColumn| no_object(b""))?;
            return Ok(TextTrace { columns, head_lines: self.first, skips_names: false, rounded: None });
        };
        let Some(separator) = best_separator(names.len(), Separator::ALL, &self.lines) else {
            return Err(different_number("--columns".into(), names.len(), likely_separator(first), first));
        };
        let columns =
            Columns::of(&names, separator, examples(&self.lines)).map_err(|NoObjectColumn| no_object(b""))?;
        let skips_names = columns.are_named_in(first);
        Ok(TextTrace {
            columns,
            head_lines: self.first + usize::from(skips_names),
            skips_names,
            rounded: None,
        })
    }

    /// The lines of a trace whose columns are named by the first one, or by a remark before it.
    fn named(&self) -> Result<TextTrace, ColumnsError> {
        let first = self.lines.first().copied();
        let remark = self.remarks.iter().rev().copied().find(|line| !separators(line).is_empty());
        let (line, lines, head_lines) = match (first, remark) {
            (Some(line), _) if !separators(line).is_empty() => (line, &self.lines[1..], self.first + 1),
            (_, Some(line)) => (line, &self.lines[..], self.first),
            (Some(line), None) if is_record(line) => {
                return Err(ColumnsError::NoNames { line: shown(line), example: example_of(line) });
            }
            (line, None) => return Err(no_object(line.or(self.remarks.last().copied()).unwrap_or_default())),
        };
        let text = String::from_utf8_lossy(line);
        // What separates the names usually separates the values too.
        let pairs = separators(line).into_iter().map(|of_names| {
            let names = of_names.names(&text);
            let others = Separator::ALL.into_iter().filter(move |other| *other != of_names);
            let of_lines = best_separator(names.len(), std::iter::once(of_names).chain(others), lines);
            (names, of_names, of_lines)
        });
        let pairs: Vec<_> = pairs.collect();
        let agreed = pairs.iter().find_map(|(names, _, of_lines)| Some((names, (*of_lines)?)));
        let (names, separator) = match (agreed, lines.first(), &pairs[..]) {
            (Some(agreed), ..) => agreed,
            (None, Some(example), [(names, of_names, _), ..]) => {
                let named_by = format!("its first line (`{}`)", shown(line));
                let separator = if names.len() == 1 { likely_separator(example) } else { *of_names };
                return Err(different_number(named_by, names.len(), separator, example));
            }
            (None, None, [(names, of_names, _), ..]) => (names, *of_names),
            (None, _, []) => return Err(no_object(line)),
        };
        let columns = Columns::of(&parse_names(names)?, separator, examples(lines));
        let columns = columns.map_err(|NoObjectColumn| no_object(line))?;
        Ok(TextTrace { columns, head_lines, skips_names: false, rounded: None })
    }
}

/// The lines that show what columns hold.
fn examples<'l, 's>(lines: &'s [&'l [u8]]) -> &'s [&'l [u8]] {
    &lines[..lines.len().min(EXAMPLES)]
}

/// Checks what is given as names of columns.
///
/// # Errors
/// What is wrong with them, in words.
pub fn check_names(text: &str) -> Result<(), ArgumentError> {
    let names = parse_names(&LIST.names(text)).map_err(Box::new)?;
    let is_unknown = |name: &&ColumnName| name.meaning == ColumnMeaning::Unknown && name.text != "-";
    if let Some(unknown) = names.iter().find(is_unknown) {
        let near = or_did_you_mean(&unknown.text, ColumnName::USUAL);
        return Err(ArgumentError::ColumnName { name: unknown.text.clone(), near });
    }
    Columns::of(&names, LIST, &[]).map(|_| ()).map_err(|NoObjectColumn| ArgumentError::NoObjectColumn)
}

/// True if a line says something of those after it: a spreadsheet says what separates columns (`sep=;`).
fn is_remark(line: &[u8]) -> bool {
    line.starts_with(b"#") || (line.starts_with(b"sep=") && line.len() == 5)
}

/// The separator with which most lines have so many columns, the first of several; none: no line has.
fn best_separator(
    columns: usize,
    separators: impl IntoIterator<Item = Separator>,
    lines: &[&[u8]],
) -> Option<Separator> {
    // A column alone is the line; but not if all lines have several, as many in each.
    let are_several = |separator: &Separator| {
        let mut counts = lines.iter().take(EXAMPLES).map(|line| separator.fields(line).count());
        counts.next().is_some_and(|first| first > 1 && counts.all(|count| count == first))
    };
    if columns == 1 && Separator::ALL.iter().any(are_several) {
        return None;
    }
    let agreeing = |separator: Separator| {
        let has_as_many = |line: &&&[u8]| {
            let (mut number, mut is_empty) = (0, false);
            for field in separator.fields(line) {
                (number, is_empty) = (number + 1, field.is_empty());
            }
            number == columns || (number == columns + 1 && is_empty)
        };
        lines.iter().take(EXAMPLES).filter(has_as_many).count()
    };
    let mut found = None;
    for separator in separators {
        let lines = agreeing(separator);
        if found.is_none_or(|(most, _)| lines > most) && lines > 0 {
            found = Some((lines, separator));
        }
    }
    found.map(|(_, separator)| separator)
}

/// The separators by which a line names a column of objects, the likely one first.
fn separators(line: &[u8]) -> Vec<Separator> {
    let text = String::from_utf8_lossy(line);
    let has_object = |separator: &Separator| match parse_names(&separator.names(&text)) {
        Ok(names) => Columns::of(&names, *separator, &[]).is_ok(),
        // A size has a unit that is not known.
        Err(_) => true,
    };
    let mut found: Vec<Separator> = Separator::ALL.into_iter().filter(has_object).collect();
    found.sort_by_key(|separator| separator.names(&text).len() == 1);
    found
}

/// Separator of a line's columns, if it has several.
fn likely_separator(line: &[u8]) -> Separator {
    let found = Separator::ALL.into_iter().find(|separator| separator.fields(line).count() > 1);
    found.unwrap_or(Separator::Nothing)
}

fn parse_names(names: &[String]) -> Result<Vec<ColumnName>, ColumnsError> {
    names.iter().map(|name| ColumnName::of(name).map_err(ColumnsError::from)).collect()
}

fn no_object(line: &[u8]) -> ColumnsError {
    ColumnsError::NoObjectColumn { found: shown(line) }
}

fn different_number(named_by: String, named: usize, separator: Separator, line: &[u8]) -> ColumnsError {
    ColumnsError::Different {
        named_by,
        named: assay_base::settings::show::several(named as u64, "column"),
        found: separator.fields(line).count(),
        line: shown(line),
        example: example_of(line),
    }
}

/// The beginning of a line, as it can be shown.
pub fn shown(line: &[u8]) -> String {
    printable(&line[..line.len().min(MAX_SHOWN_BYTES)]).chars().take(MAX_SHOWN_BYTES).collect()
}

/// True if a line looks like one of a trace: half of its columns, or more, are numbers.
pub fn is_record(line: &[u8]) -> bool {
    let is_number = |field: &[u8]| {
        decimal(field, true).is_some() || (field.len() >= 8 && field.iter().all(u8::is_ascii_hexdigit))
    };
    let fields: Vec<_> = likely_separator(line).fields(line).collect();
    let numbers = fields.iter().filter(|field| is_number(field)).count();
    numbers > 0 && numbers * 2 >= fields.len() && !line.iter().any(|byte| b"\"[{".contains(byte))
}

/// Names for the columns of a line, for example.
pub fn example_of(line: &[u8]) -> String {
    let count = likely_separator(line).fields(line).count();
    let first: &[&str] = match count {
        0 | 1 => &["object"],
        2 => &["object", "size"],
        _ => &["time", "object", "size"],
    };
    let further = std::iter::repeat_n("-", count.saturating_sub(first.len()));
    first.iter().copied().chain(further).collect::<Vec<_>>().join(",")
}

/// True if a line names the columns of a trace, whatever its file is called: one of objects, and one of sizes or of times.
pub fn are_columns_named_in(line: &[u8]) -> bool {
    let text = String::from_utf8_lossy(line);
    let are_columns = |separator: Separator| {
        let written = separator.names(&text);
        // Neither a line of a log nor its own list of fields (`#Fields: date time …`).
        if written
            .iter()
            .any(|name| name.split(['(', '[']).next().is_some_and(|name| name.contains(['/', ':', '{', '"'])))
        {
            return false;
        }
        let is_when_or_how_much = |name: &ColumnName| {
            matches!(
                name.meaning,
                ColumnMeaning::Size | ColumnMeaning::ValueSize | ColumnMeaning::Sent | ColumnMeaning::Time
            )
        };
        match parse_names(&written) {
            Ok(names) => names.iter().any(is_when_or_how_much) && Columns::of(&names, separator, &[]).is_ok(),
            Err(_) => false,
        }
    };
    separators(line).into_iter().any(are_columns)
}

/// A line without its end. Tabs stay: they may end an empty column.
pub fn trim(line: &[u8]) -> &[u8] {
    let mut line = line;
    while let [before @ .., b'\r' | b'\n' | b' '] = line {
        line = before;
    }
    line
}

#[cfg(test)]
mod tests {
    use super::super::Record;
    use super::super::columns::{TraceLine, TraceLineError};
    use super::super::number::ValueError;
    use super::*;

    fn text(head: &str, naming: &ColumnNaming) -> Result<TextTrace, ColumnsError> {
        TextTrace::of(head.as_bytes(), true, naming)
    }

    /// Bytes, milliseconds, and how many requests.
    type Requests = (Option<u64>, Option<i64>, u64);

    /// The lines of a trace that are requests, and why others are none.
    fn requests(trace: &str, naming: &ColumnNaming) -> Vec<Result<Requests, String>> {
        let text = text(trace, naming).unwrap();
        let mut operations = text.columns.operations();
        let lines = trace.trim_start_matches('\u{feff}').lines().skip(text.head_lines);
        lines
            .filter_map(|line| match text.columns.read(trim(line.as_bytes()), &mut operations) {
                Ok(TraceLine::Requests { record, count, .. }) => {
                    Some(Ok((record.bytes, record.at_ms, count)))
                }
                Ok(TraceLine::Other) => None,
                Err(malformed) => Some(Err(text.columns.reason(malformed))),
            })
            .collect()
    }

    #[test]
    fn columns_are_read_by_their_names_whatever_separates_them() {
        for trace in [
            "time,object,size\n3,a,5\n",
            "\u{feff}Timestamp;Other;KEY;Bytes\r\n3;x;a;5\r\n",
            "url,size,time\n\"a\",5,3\n",
            "time id size\n3 a 5\n",
            "# time, object, size, next_access_vtime\n3, a, 5, -1\n",
            "# made by hand\n\n# time (s) obj_id obj_size (byte)\n3   a\t5\n",
            "#time id size\n3,a,5\n",
            "time\tid\tttl\tsize\tnote\n3\ta\t\t5\t\n",
            "timestamp (ms),id,size\n3000,a,5\n",
            "time_us,id,size\n3000000,a,5,\n",
            "time,id,size,\n3,a,5\n3,a,5,7\n",
            "sep=;\ntime;id;size\n3,0;a;5\n",
        ] {
            let first = requests(trace, &ColumnNaming::FirstLine).remove(0);
            assert_eq!(first, Ok((Some(5), Some(3000), 1)), "{trace:?}");
        }
        assert_eq!(requests("id\nhttp://a/b,c\nd\n", &ColumnNaming::FirstLine).len(), 2);
        assert_eq!(requests("size_kb,id\n1.5,a", &ColumnNaming::FirstLine), [Ok((Some(1536), None, 1))]);
    }

    #[test]
    fn columns_without_names_are_read_by_those_that_are_given() {
        let given = |names: &str| ColumnNaming::Given(names.into());
        for trace in [
            "3 a 5 x\n",
            "3;a;5;x\n",
            "3,0;a;5;\n",
            "3\ta\t5\tx",
            "when,what,bytes,why\n3,a,5,x\n",
            "# x\n3,a,5,x\n",
        ] {
            assert_eq!(
                requests(trace, &given("time,object,size,-")),
                [Ok((Some(5), Some(3000), 1))],
                "{trace:?}"
            );
        }
        assert_eq!(requests("id\na\nb\n", &given("object")).len(), 2);
        let error = text("1,a,5\n2,b,6\n", &given("object")).unwrap_err().to_string();
        assert!(error.contains("--columns names 1 column, and lines have 3"), "{error}");
        assert!(text("1,a\n", &given("time,object,size")).is_err());
        for (names, said) in [
            ("time,objet", "did you mean `object`?"),
            ("time,size", "`object`"),
            ("id,size (pages)", "how many bytes"),
        ] {
            assert!(check_names(names).unwrap_err().to_string().contains(said), "{names}");
        }
        for names in ["time,object,size,op,ttl,count", "time,op[Put:0, Get:1],object,-", "asu,lba,size_kb"] {
            assert_eq!(check_names(names), Ok(()), "{names}");
        }
    }

    #[test]
    fn names_and_values_of_another_number_are_refused_with_both_numbers() {
        let said = |trace: &str| text(trace, &ColumnNaming::FirstLine).unwrap_err().to_string();
        let error =
            said("# timestamp (ms), op, kind, object id, object size (byte)\n1000,1,A,300\n2000,1,B,300\n");
        assert!(error.contains("names 5 columns, and lines have 4, like `1000,1,A,300`"), "{error}");
        assert!(error.contains("--columns time,object,size,-"), "{error}");
        let trace = "# timestamp (ms), op type [Put:0, Get:1], object id, object size (byte)\n1000,1,A,300\n1001,0,A,3\n";
        assert_eq!(requests(trace, &ColumnNaming::FirstLine), [Ok((Some(300), Some(1000), 1))]);
        let error = said("id\na,1\nb,2\n");
        assert!(error.contains("names 1 column, and lines have 2"), "{error}");
    }

    #[test]
    fn what_names_no_object_is_refused_with_what_could_be_said() {
        let said = |trace: &str| text(trace, &ColumnNaming::FirstLine).unwrap_err().to_string();
        let error = said("when,what\n1,2\n");
        assert!(error.contains("(when,what)") && error.contains("`object`"), "{error}");
        let error = said("1 1416 16575 2\n");
        assert!(
            error.contains("`1 1416 16575 2`") && error.contains("--columns time,object,size,-"),
            "{error}"
        );
        assert!(said("id,size (pages)\na,1\n").contains("`size (pages)`"));
    }

    #[test]
    fn lines_say_how_many_requests_they_are_and_reads_alone_are_requests() {
        let trace = "key,op,size,op_count,key_size\nA,GET,300,5,10\nB,SET,9,2,10\nB,DELETE,,1,10\nB,GET,900,1,10\nA,GET,0,1,10\n";
        let found = requests(trace, &ColumnNaming::FirstLine);
        assert_eq!(found, [(310, 5), (910, 1), (10, 1)].map(|(bytes, count)| Ok((Some(bytes), None, count))));
        let found = requests("id,count\na,0\na,2.5\na,1000001\na,\na,2\n", &ColumnNaming::FirstLine);
        assert_eq!(found.iter().filter(|line| line.is_err()).count(), 4);
        let found = requests("time,op,size,lbn\n1,42,5,9\n1,40,5,9\n", &ColumnNaming::FirstLine);
        assert_eq!(found.len(), 2, "numbers that nothing explains");
    }

    #[test]
    fn published_traces_of_content_delivery_networks_are_read_with_all_that_they_say() {
        let read = |head: &str, line: &str| {
            let text = text(&format!("{head}\n{line}\n"), &ColumnNaming::FirstLine).unwrap();
            match text.columns.read(line.as_bytes(), &mut text.columns.operations()).unwrap() {
                TraceLine::Requests { record, .. } => Record { key: 0, ..record },
                TraceLine::Other => panic!("{line}"),
            }
        };
        let upload = "relative_unix\thashed_path_query\timage_type\tresponse_size\ttime_firstbyte";
        let page = "relative_unix\thashed_host_path_query\tresponse_size\ttime_firstbyte";
        let expected = Record { takes_ms: Some(120), ..Record::plain(0, Some(5), Some(3)) };
        assert_eq!(read(upload, "3\ta\tjpeg\t5\t0.12"), expected);
        assert_eq!(read(page, "3\ta\t5\t1.2E-1"), expected);
        let meta = "timestamp,cacheKey,OpType,objectSize,responseSize,responseHeaderSize,rangeStart,rangeEnd,TTL,SamplingRate,\
                    cache_hit,item_value,RequestHandler,cdn_content_type_id,vip_type";
        let part = Record { sent_bytes: Some(4), life_s: Some(60), ..Record::plain(0, Some(5), Some(3)) };
        assert_eq!(read(meta, "3,a,1,5,4,300,0,3,60,1,1,0,7,-,2"), part);
        let in_ms = Record { at_ms: Some(1_678_900_000_123), life_s: None, ..part };
        assert_eq!(read(meta, "1678900000123,a,1,5,4,300,-1,-1,0,1,1,0,7,-,2"), in_ms);
        assert_eq!(read(meta, "1678900000123456,a,1,5,4,300,-1,-1,-,1,1,0,7,-,2"), in_ms);
        assert!([upload, page, meta].iter().all(|head| are_columns_named_in(head.as_bytes())));
        for line in [
            "10.0.0.1 - - [01/Jun/2026:12:00:00 +0000] \"GET /a,b HTTP/1.1\" 200 5",
            "#Fields: date time c-ip cs-method cs-uri-stem sc-status sc-bytes",
            "{\"time\":1,\"url\":\"/a\",\"size\":5}",
            "1 http://a/id 5",
            "id",
            "a,b",
            "",
        ] {
            assert!(!are_columns_named_in(line.as_bytes()), "{line}");
        }
    }

    #[test]
    fn published_traces_whose_lines_name_nothing_are_read_by_their_form() {
        let known = |name: &str| ColumnNaming::PublishedTrace(PublishedTrace::named(name).unwrap());
        for (name, lines, expected) in [
            ("twitter", "9,k:1,7,93,4,get,0\n9,k:1,7,93,4,set,60\n", [Ok((Some(100), Some(9000), 1))]),
            (
                "ibm",
                "182 REST.GET.OBJECT 6b52 21898\n361 REST.DELETE.OBJECT 91ad\n",
                [Ok((Some(21898), Some(182), 1))],
            ),
            (
                "msr",
                "128166372003061629,hm,0,Read,7014912,4096,26\n",
                [Ok((Some(4096), Some(12_816_637_200_306), 1))],
            ),
            ("spc", "0,20941264,8192,W,0.551706\n0,5,512,r,0.5,x\n", [Ok((Some(512), Some(500), 1))]),
            ("webcachesim", "1 1416 16575 0 3\n", [Ok((Some(16575), Some(1000), 1))]),
            ("cachelib", "1,SET,82,1,40\n1,GET,82,3,40\n", [Ok((Some(122), None, 3))]),
            ("cachelib", "key,op,size,op_count,key_size\n1,GET,82,3,40\n", [Ok((Some(122), None, 3))]),
        ] {
            assert_eq!(requests(lines, &known(name)), expected, "{name}");
        }
        let given = ColumnNaming::Given("time (ms),op,object,size".into());
        let lines = "182 REST.GET.OBJECT 6b52 21898\n361 REST.DELETE.OBJECT 91ad\n400 REST.GET.OBJECT 91ad\n";
        let found = requests(lines, &given);
        assert_eq!((found.len(), found[1].as_ref().unwrap_err().as_str()), (2, "it has 3 columns, not 4"));
        let trace = "5 REST.GET.OBJECT 6b52 1000 0 99\n";
        let columns = text(trace, &known("ibm")).unwrap().columns;
        let line = columns.read(trim(trace.as_bytes()), &mut columns.operations());
        assert!(
            matches!(line, Ok(TraceLine::Requests { record, .. }) if record.sent_bytes == Some(100)),
            "{line:?}"
        );
    }

    #[test]
    fn an_object_may_be_what_several_columns_have_together() {
        let keys = |trace: &str, naming: &ColumnNaming| {
            let text = text(trace, naming).unwrap();
            let mut keys: Vec<u64> = trace
                .lines()
                .skip(text.head_lines)
                .filter_map(|line| match text.columns.read(line.as_bytes(), &mut text.columns.operations()) {
                    Ok(TraceLine::Requests { record, .. }) => Some(record.key),
                    _ => None,
                })
                .collect();
            keys.sort_unstable();
            keys.dedup();
            keys.len()
        };
        assert_eq!(keys("asu,lba,size\n0,5,1\n1,5,1\n0,5,1\n", &ColumnNaming::FirstLine), 2);
        assert_eq!(keys("host,path,query,bytes\na,/x,,1\nb,/x,,1\nb,/x,y,1\n", &ColumnNaming::FirstLine), 3);
        assert_eq!(
            keys("id,key\n1,a\n2,a\n", &ColumnNaming::FirstLine),
            2,
            "the first of them, and a note names the other"
        );
        assert_eq!(keys("1,a,1\n1,b,1\n", &ColumnNaming::Given("object,object,size".into())), 2);
        for (trace, objects) in [
            ("host,url,size\na,/x,1\nb,/x,1\na,/x,1\n", 2),
            ("uri;hostname\n/x;a\n/x;b\n", 2),
            // The host in a URL is the site; the one beside it may be a server.
            ("host,url,size\ncache1,http://a/x,1\ncache2,http://a/x,1\n", 1),
            ("url,query,size\n/x,y,1\n/x,,1\n/x,y,1\n", 2),
            ("bucket,key,size\na,x,1\nb,x,1\na,x,1\n", 2),
            ("host,object\na,/x\nb,/x\n", 2),
            ("host,object\ncache1,6b52\ncache2,6b52\n", 1),
        ] {
            assert_eq!(keys(trace, &ColumnNaming::FirstLine), objects, "{trace}");
        }
        for (trace, expected) in [
            ("id;size\n1,23457E+11;5\n", Some("1,23457E+11")),
            ("id,size\n1.5E+9,5\n", Some("1.5E+9")),
            ("id,size\nE+1,5\n", None),
        ] {
            assert_eq!(
                text(trace, &ColumnNaming::FirstLine).unwrap().rounded.as_deref(),
                expected,
                "{trace}"
            );
        }
    }

    #[test]
    fn a_line_without_a_field_that_is_read_is_malformed_and_the_reason_names_the_column() {
        let text = text("id,size,time\n", &ColumnNaming::FirstLine).unwrap();
        let read = |line: &str| text.columns.read(line.as_bytes(), &mut text.columns.operations());
        let column = |index, problem| Err(TraceLineError::Column { index, problem });
        for (line, expected) in [
            ("a", Err(TraceLineError::Columns(1))),
            ("a,1,2,3", Err(TraceLineError::Columns(4))),
            ("a,x,3", column(1, ValueError::NoNumber)),
            ("a,1.000,3", column(1, ValueError::Fraction)),
            ("a,-1,3", column(1, ValueError::Negative)),
            (",5,3", column(0, ValueError::Empty)),
            ("a,5,", column(2, ValueError::Empty)),
            ("a,5,then", column(2, ValueError::NoTime)),
        ] {
            assert_eq!(read(line), expected, "{line}");
        }
        assert_eq!(text.columns.reason(TraceLineError::Columns(4)), "it has 4 columns, not 3");
        let reason = text.columns.reason(TraceLineError::Column { index: 1, problem: ValueError::Fraction });
        assert!(reason.starts_with("`size` is no whole number of bytes"), "{reason}");
    }

    proptest::proptest! {
        #[test]
        fn what_is_written_with_any_separator_is_read_again(
            rows in proptest::collection::vec(("[a-z0-9]{1,8}", 0u64..1 << 40, 0u32.., 1u64..9), 1..20),
            separator in proptest::sample::select(vec![',', ';', '\t', ' ']), is_named: bool
        ) {
            let mut trace = ["count", "id", "time", "size"].join(&separator.to_string()) + "\n";
            if !is_named {
                trace.clear();
            }
            for (key, bytes, at_s, count) in &rows {
                trace += &[count.to_string(), format!("k{key}"), at_s.to_string(), bytes.to_string()].join(&separator.to_string());
                trace.push('\n');
            }
            let naming = if is_named { ColumnNaming::FirstLine } else { ColumnNaming::Given("count,object,time (s),size".into()) };
            let expected: Vec<_> = rows.iter()
                .map(|(_, bytes, at_s, count)| Ok((Some(*bytes), Some(i64::from(*at_s) * 1000), *count)))
                .collect();
            proptest::prop_assert_eq!(requests(&trace, &naming), expected);
        }

        #[test]
        fn no_text_makes_it_panic(head: Vec<u8>, names in "[a-z(\\[\\]), ]{0,30}") {
            for naming in [ColumnNaming::FirstLine, ColumnNaming::PublishedTrace(&super::super::published::PUBLISHED_TRACES[0]), ColumnNaming::Given(names)] {
                if let Ok(text) = TextTrace::of(&head, true, &naming) {
                    for line in head.split(|byte| *byte == b'\n') {
                        let _ = text.columns.read(line, &mut text.columns.operations());
                    }
                }
            }
        }
    }
}
