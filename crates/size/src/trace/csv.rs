//! Text with a line for each request, whose first line names the columns. Separated by commas, tabs or semicolons, whichever
//! the first line contains.
//!
//! Columns are known by usual names, upper or lower case, with or without underscores: those of the published traces of
//! Wikimedia's and Meta's content delivery networks are among them. Other columns are ignored.

use thiserror::Error;

use super::Record;

/// Names of the column that stands for the object, of its size and of the time.
const KEYS: [&str; 8] =
    ["object", "objectid", "objid", "id", "key", "cachekey", "hashedpathquery", "hashedhostpathquery"];
const SIZES: [&str; 6] = ["size", "bytes", "objectsize", "objsize", "responsesize", "sizebytes"];
const TIMES: [&str; 6] = ["time", "timestamp", "times", "clocktime", "relativeunix", "atunixs"];
/// Also a name of the column of objects, if there is none of the others.
const URL: &str = "url";

/// Where the columns are that are read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Columns {
    separator: u8,
    key: usize,
    bytes: Option<usize>,
    at: Option<usize>,
}

/// Why columns were not understood.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum ColumnsError {
    /// No column stands for the object.
    #[error(
        "cannot read the trace: none of its columns ({found}) stands for the object; name one of them `object`, `id`, `key` or `url` \
         in the first line"
    )]
    NoObject {
        /// The names that were found.
        found: String,
    },
}

/// Why a line is not a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Malformed;

impl Columns {
    /// Reads the first line.
    pub fn of(line: &[u8]) -> Result<Self, ColumnsError> {
        let separator = *[b'\t', b',', b';'].iter().find(|byte| line.contains(byte)).unwrap_or(&b',');
        let names: Vec<String> = fields(line, separator).map(|field| normal(&field)).collect();
        let place = |known: &[&str]| names.iter().position(|name| known.contains(&name.as_str()));
        let Some(key) = place(&KEYS).or(place(&[URL])) else {
            let shown: String =
                String::from_utf8_lossy(line).chars().filter(|c| !c.is_control()).take(100).collect();
            return Err(ColumnsError::NoObject { found: shown });
        };
        Ok(Self { separator, key, bytes: place(&SIZES), at: place(&TIMES) })
    }

    /// True if there is a column of sizes.
    pub fn has_sizes(&self) -> bool {
        self.bytes.is_some()
    }

    /// Reads a line after the first.
    ///
    /// # Errors
    /// If a column that is read is missing, empty (the object's), negative, or not a number (size and time).
    pub fn record(&self, line: &[u8], hash: impl Fn(&[u8]) -> u64) -> Result<Record, Malformed> {
        let (mut key, mut bytes, mut at_s) = (None, None, None);
        for (place, field) in fields(line, self.separator).enumerate() {
            if place == self.key {
                key = (!field.is_empty()).then(|| hash(&field));
            }
            if Some(place) == self.bytes {
                bytes = number(&field).filter(|bytes| *bytes >= 0.0).map(|bytes| bytes as u64);
            }
            if Some(place) == self.at {
                at_s = number(&field).map(|at_s| at_s as i64);
            }
        }
        let is_whole = bytes.is_some() == self.bytes.is_some() && at_s.is_some() == self.at.is_some();
        key.filter(|_| is_whole).map(|key| Record { key, bytes, at_s }).ok_or(Malformed)
    }
}

fn number(field: &[u8]) -> Option<f64> {
    std::str::from_utf8(field).ok()?.trim().parse().ok().filter(|number: &f64| number.is_finite())
}

/// A name without what writers of traces disagree on.
fn normal(field: &[u8]) -> String {
    let letters = field.iter().filter(|byte| byte.is_ascii_alphanumeric());
    letters.map(|byte| char::from(byte.to_ascii_lowercase())).collect()
}

/// The fields of a line. A field in quotation marks may contain the separator, and a mark as two of them (RFC 4180).
fn fields(line: &[u8], separator: u8) -> impl Iterator<Item = std::borrow::Cow<'_, [u8]>> {
    let mut rest = Some(line);
    std::iter::from_fn(move || {
        let line = rest?;
        if line.first() != Some(&b'"') {
            let end = memchr::memchr(separator, line);
            rest = end.map(|end| &line[end + 1..]);
            return Some(line[..end.unwrap_or(line.len())].into());
        }
        let (mut field, mut at) = (Vec::new(), 1);
        while at < line.len() {
            match (line[at], line.get(at + 1)) {
                (b'"', Some(b'"')) => at += 1,
                (b'"', _) => break,
                _ => {}
            }
            field.push(line[at]);
            at += 1;
        }
        let after = line.get(at + 1..).unwrap_or_default();
        rest = memchr::memchr(separator, after).map(|end| &after[end + 1..]);
        Some(field.into())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(head: &str, line: &str) -> Result<Record, Malformed> {
        let length = |key: &[u8]| key.iter().map(|byte| u64::from(*byte)).sum();
        Columns::of(head.as_bytes()).unwrap().record(line.as_bytes(), length)
    }

    #[test]
    fn columns_are_known_by_the_names_of_published_traces_in_any_order() {
        let expected = Ok(Record { key: 97, bytes: Some(5), at_s: Some(3) });
        for (head, line) in [
            ("time,object,size", "3,a,5"),
            ("Timestamp;Other;KEY;Bytes", "3.9;x;a;5"),
            (
                "relative_unix\thashed_path_query\timage_type\tresponse_size\ttime_firstbyte",
                "3\ta\tjpeg\t5\t0.1",
            ),
            ("timestamp,cacheKey,OpType,objectSize,responseSize", "3,a,1,5,4"),
            ("url,size,time", "\"a\",5,3"),
        ] {
            assert_eq!(read(head, line), expected, "{head}");
        }
        assert_eq!(read("id", "a"), Ok(Record { key: 97, bytes: None, at_s: None }));
        assert_eq!(read("id,size", "\"a,\"\"\",7").map(|record| record.key), Ok(97 + 44 + 34));
    }

    #[test]
    fn a_line_without_a_field_that_is_read_is_malformed() {
        for line in ["", "a", "a,x,3", "a,-1,3", ",5,3", "a,5,", "a,inf,3"] {
            assert_eq!(read("id,size,time", line), Err(Malformed), "{line}");
        }
        let error = Columns::of(b"when,what").unwrap_err().to_string();
        assert!(error.contains("(when,what)") && error.contains("`object`"), "{error}");
    }
}
