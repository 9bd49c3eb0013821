//! Names of columns: what they stand for, and in what unit.

use super::operation::{OperationName, operation_names};
use super::separator::{CLOSING, OPENING};

/// Meaning of a column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ColumnMeaning {
    Object,
    /// Where objects of a store lie, whose keys are unique there.
    Bucket,
    /// The object's place on a volume, if there is no name of an object; and the volume.
    Address,
    Volume,
    /// The object, if none of these is there, with its query, and with its host if it has none itself.
    Url,
    /// Parts of a URL, which are the object together.
    Path,
    Host,
    Query,
    /// Time of the request.
    Time,
    /// Bytes of the object.
    Size,
    /// Bytes of its key, in a cache of keys and values.
    KeySize,
    /// Bytes of its value.
    ValueSize,
    /// Bytes of the response.
    Sent,
    /// First byte of the part that was requested.
    RangeStart,
    /// Last byte of that part.
    RangeEnd,
    /// Freshness lifetime.
    Life,
    /// Time until the response began.
    Takes,
    Operation,
    /// The same, if its values say so.
    PerhapsOperation,
    /// Requests that a line stands for.
    Count,
    /// Nothing that is read.
    Unknown,
}

use ColumnMeaning::{
    Address, Bucket, Count, Host, KeySize, Life, Object, Operation, Path, PerhapsOperation, Query, RangeEnd,
    RangeStart, Sent, Size, Takes, Time, Url, ValueSize, Volume,
};

/// Names without marks between their words, by what they stand for.
const NAMES: [(ColumnMeaning, &str); 20] = [
    (
        Object,
        "object objectid objid obj id key cachekey objectkey objectname anonymizedkey \
         hashedpathquery hashedhostpathquery itemid item contentid fileid filename photoid \
         videoid blockid",
    ),
    (Bucket, "bucket bucketname bucketid"),
    (Address, "lba lbn offset sector blocknumber address"),
    (Volume, "asu disk disknumber diskid volume volumeid device deviceid lun"),
    (Url, "url uri requesturl requesturi"),
    (Path, "path urlpath uripath uristem hashedhostandpath hashedhostpath"),
    (Host, "host hostname urihost"),
    (Query, "query uriquery querystring"),
    (
        Time,
        "time timestamp ts clocktime relativeunix atunix optime unixtime unixtimestamp unix epoch \
         datetime",
    ),
    (
        Size,
        "size bytes objectsize objsize sizebytes length len filesize contentlength bodysize \
         iosize transfersize",
    ),
    (KeySize, "keysize keylength keylen"),
    (ValueSize, "valuesize valsize valuelength valuelen"),
    (Sent, "responsesize returnsize bytessent sentbytes responsebytes bodybytessent"),
    (RangeStart, "rangestart startoffset"),
    (RangeEnd, "rangeend endoffset"),
    (Life, "ttl timetolive lifetime maxage"),
    (Takes, "timefirstbyte timetofirstbyte ttfb"),
    (
        Operation,
        "op operation optype operationtype opcode opname operationname method requestmethod \
         httpmethod verb command cmd requesttype iotype rw",
    ),
    (PerhapsOperation, "type"),
    (Count, "count opcount requestcount requests repeats repetitions"),
];

/// A column as its name describes it.
#[derive(Debug, Clone, PartialEq)]
pub struct ColumnName {
    /// The name as it was written.
    pub text: String,
    pub meaning: ColumnMeaning,
    /// Unit: bytes (of sizes), milliseconds (of times); none: the name does not state it.
    pub unit: Option<f64>,
    /// Words of the name, joined without marks.
    pub words: String,
    /// Meanings of its values.
    pub operation_names: Vec<OperationName>,
}

/// Of a size, a unit that is not known.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnknownUnit {
    /// The name of the column.
    pub name: String,
}

impl ColumnName {
    /// Reads the name of a column.
    ///
    /// # Errors
    /// If the brackets behind a size hold no unit of sizes.
    pub fn of(text: &str) -> Result<Self, UnknownUnit> {
        let text = text.trim_matches(|c: char| c.is_whitespace() || matches!(c, '\u{feff}' | '#'));
        let (before, within) = bracketed(text);
        let parse_names = words(before);
        let joined = parse_names.concat();
        let (meaning, unit) = match (meaning(&joined), parse_names.split_last()) {
            (ColumnMeaning::Unknown, Some((last, first))) => {
                let first = first.strip_suffix(&["in".to_owned()]).unwrap_or(first);
                let shorter = meaning(&first.concat());
                match unit(shorter, last) {
                    Some(unit) => (shorter, Some(unit)),
                    None => (ColumnMeaning::Unknown, None),
                }
            }
            (found, _) => (found, None),
        };
        let in_brackets = words(within);
        let explains = in_brackets.iter().find_map(|word| self::unit(meaning, word));
        let is_size = matches!(meaning, Size | KeySize | ValueSize | Sent);
        if is_size && explains.is_none() && !in_brackets.is_empty() {
            return Err(UnknownUnit { name: text.to_owned() });
        }
        let is_operation = matches!(meaning, Operation | PerhapsOperation);
        Ok(Self {
            text: text.to_owned(),
            meaning,
            unit: explains.or(unit),
            words: joined,
            operation_names: if is_operation { operation_names(within) } else { Vec::new() },
        })
    }

    /// Names that are offered for a misspelt one.
    pub const USUAL: [&'static str; 17] = [
        "object",
        "time",
        "size",
        "op",
        "ttl",
        "count",
        "key",
        "id",
        "url",
        "timestamp",
        "key_size",
        "value_size",
        "response_size",
        "time_firstbyte",
        "lba",
        "volume",
        "op_count",
    ];
}

/// A name, and what is in the brackets behind it.
fn bracketed(text: &str) -> (&str, &str) {
    match (text.find(OPENING), text.rfind(CLOSING)) {
        (Some(from), Some(to)) if from < to => (&text[..from], &text[from + 1..to]),
        _ => (text, ""),
    }
}

/// The words of a name, in lower case: between marks, and where a capital follows.
fn words(text: &str) -> Vec<String> {
    let (mut words, mut was_lower) = (vec![String::new()], false);
    for letter in text.chars() {
        let is_word = letter.is_alphanumeric();
        let last = words.last().map_or("", String::as_str);
        let begins = !is_word || (was_lower && letter.is_uppercase() && !["ki", "mi", "gi"].contains(&last));
        if begins && !last.is_empty() {
            words.push(String::new());
        }
        if let Some(word) = words.last_mut().filter(|_| is_word) {
            word.extend(letter.to_lowercase());
        }
        was_lower = letter.is_lowercase();
    }
    words.retain(|word| !word.is_empty());
    words
}

fn meaning(words: &str) -> ColumnMeaning {
    let found = NAMES.iter().find(|(_, names)| names.split(' ').any(|name| name == words));
    found.map_or(ColumnMeaning::Unknown, |(meaning, _)| *meaning)
}

/// Unit that a word names: bytes of a size, milliseconds of a time.
fn unit(meaning: ColumnMeaning, word: &str) -> Option<f64> {
    match meaning {
        Size | KeySize | ValueSize | Sent => match word {
            "b" | "byte" | "bytes" | "octets" => Some(1.0),
            "sector" | "sectors" => Some(512.0),
            "k" | "kb" | "kib" | "kbyte" | "kbytes" | "kilobytes" => Some(1024.0),
            "m" | "mb" | "mib" | "mbyte" | "mbytes" | "megabytes" => Some(1024f64.powi(2)),
            "g" | "gb" | "gib" | "gbyte" | "gbytes" | "gigabytes" => Some(1024f64.powi(3)),
            _ => None,
        },
        Time | Life | Takes => match word {
            "h" | "hours" => Some(3.6e6),
            "min" | "minutes" => Some(6e4),
            "s" | "sec" | "secs" | "second" | "seconds" => Some(1e3),
            "ms" | "msec" | "msecs" | "millis" | "millisecond" | "milliseconds" => Some(1.0),
            "us" | "µs" | "μs" | "usec" | "usecs" | "micros" | "microsecond" | "microseconds" => Some(1e-3),
            "filetime" => Some(1e-4),
            "ns" | "nsec" | "nsecs" | "nanos" | "nanosecond" | "nanoseconds" => Some(1e-6),
            _ => None,
        },
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> (ColumnMeaning, Option<f64>) {
        let name = ColumnName::of(text).unwrap();
        (name.meaning, name.unit)
    }

    #[test]
    fn names_are_known_however_their_words_are_written() {
        for name in
            ["object", "Object ID", "obj_id", "\u{feff}KEY", "cacheKey", "# object", "hashed_path_query"]
        {
            assert_eq!(read(name), (Object, None), "{name}");
        }
        for (name, meaning) in [
            ("OpType", Operation),
            ("op_count", Count),
            ("key size", KeySize),
            ("valueSize", ValueSize),
            ("responseSize", Sent),
            ("responseHeaderSize", ColumnMeaning::Unknown),
            ("image_type", ColumnMeaning::Unknown),
            ("next_access_vtime", ColumnMeaning::Unknown),
            ("TTL", Life),
            ("LBA", Address),
            ("DiskNumber", Volume),
            ("uri_query", Query),
            ("bytes", Size),
            ("", ColumnMeaning::Unknown),
        ] {
            assert_eq!(read(name).0, meaning, "{name}");
        }
    }

    #[test]
    fn units_behind_a_name_or_in_brackets_are_a_part_of_its_meaning() {
        for (name, meaning, unit) in [
            ("object size (byte)", Size, 1.0),
            ("size_in_bytes", Size, 1.0),
            ("sizeInBytes", Size, 1.0),
            ("size_kb", Size, 1024.0),
            ("SizeKB", Size, 1024.0),
            ("size [MiB]", Size, 1_048_576.0),
            ("sizeInKiB", Size, 1024.0),
            ("offset_size (sectors)", ColumnMeaning::Unknown, 0.0),
            ("length (sectors)", Size, 512.0),
            ("timestamp (ms)", Time, 1.0),
            ("time_ms", Time, 1.0),
            ("time_us", Time, 1e-3),
            ("time (µs)", Time, 1e-3),
            ("time_s", Time, 1e3),
            ("at_unix_s", Time, 1e3),
            ("timestamp_ns", Time, 1e-6),
            ("ttl (min)", Life, 6e4),
            ("time_firstbyte_ms", Takes, 1.0),
        ] {
            assert_eq!(read(name), (meaning, Some(unit).filter(|unit| *unit > 0.0)), "{name}");
        }
        assert_eq!(read("time (UTC)"), (Time, None));
        assert!(ColumnName::of("size (pages)").is_err() && ColumnName::of("id (hash)").is_ok());
        let op = ColumnName::of("op type [Put:0, Get:1, Head: 3]").unwrap();
        assert_eq!((op.meaning, op.operation_names.len()), (Operation, 3));
    }
}
