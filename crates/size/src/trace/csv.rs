//! Text with a line for each request, whose first line names the columns. Separated by commas, tabs or semicolons, whichever
//! the first line contains.
//!
//! Columns are known by usual names, upper or lower case, with or without underscores: those of the published traces of
//! Wikimedia's and Meta's content delivery networks are among them. Other columns are ignored.

use assay_logs::printable;
use thiserror::Error;

use super::Record;
use crate::requests::LARGEST_BYTES;

/// Names of the column that stands for the object, of its size, of the bytes of the response, and of the time.
const KEYS: [&str; 8] =
    ["object", "objectid", "objid", "id", "key", "cachekey", "hashedpathquery", "hashedhostpathquery"];
const SIZES: [&str; 5] = ["size", "bytes", "objectsize", "objsize", "sizebytes"];
/// Also a name of the column of sizes, if there is none of the others.
const SENT: &str = "responsesize";
const TIMES: [&str; 6] = ["time", "timestamp", "times", "clocktime", "relativeunix", "atunixs"];
/// Also a name of the column of objects, if there is none of the others.
const URL: &str = "url";
/// Names of the columns of lifetimes, and of times until a response began, in seconds.
const LIVES: [&str; 1] = ["ttl"];
const TAKES: [&str; 1] = ["timefirstbyte"];
/// Times above this count milliseconds: in seconds, they would be in the year 5138.
const MOST_SECONDS: f64 = 1e11;
/// Times above this count microseconds.
const MOST_MILLISECONDS: f64 = 1e14;
/// The longest lifetime that is told from for ever.
const LONGEST_S: f64 = (u32::MAX - 1) as f64;

/// Where the columns are that are read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Columns {
    separator: u8,
    key: usize,
    bytes: Option<usize>,
    sent: Option<usize>,
    at: Option<usize>,
    life: Option<usize>,
    takes: Option<usize>,
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
            let shown = printable(&line[..line.len().min(100)]).chars().take(100).collect();
            return Err(ColumnsError::NoObject { found: shown });
        };
        let (size, sent) = (place(&SIZES), place(&[SENT]));
        Ok(Self {
            separator,
            key,
            bytes: size.or(sent),
            sent: sent.filter(|_| size.is_some()),
            at: place(&TIMES),
            life: place(&LIVES),
            takes: place(&TAKES),
        })
    }

    /// True if a line is the first of a trace, whatever its file is called: it names the column of objects, and one of sizes or of times.
    pub fn are_named_in(line: &[u8]) -> bool {
        Self::of(line).is_ok_and(|columns| columns.bytes.is_some() || columns.at.is_some())
    }

    /// True if there is a column of sizes.
    pub fn has_sizes(&self) -> bool {
        self.bytes.is_some()
    }

    /// True if there is a column of lifetimes.
    pub fn has_lives(&self) -> bool {
        self.life.is_some()
    }

    /// True if there is a column of times until a response began.
    pub fn has_response_times(&self) -> bool {
        self.takes.is_some()
    }

    /// Reads a line after the first.
    ///
    /// # Errors
    /// If a column that is read is missing, empty (the object's), negative, not a number (size and time), or a size above
    /// [`LARGEST_BYTES`]. A lifetime or a response time
    /// that is not a number above 0 is not known.
    pub fn record(&self, line: &[u8], hash: impl Fn(&[u8]) -> u64) -> Result<Record, Malformed> {
        let (mut key, mut record) = (None, Record::plain(0, None, None));
        for (place, field) in fields(line, self.separator).enumerate() {
            let place = Some(place);
            if place == Some(self.key) {
                key = (!field.is_empty()).then(|| hash(&field));
            }
            if place == self.bytes {
                record.bytes = size(&field);
            }
            if place == self.sent {
                record.sent_bytes = size(&field);
            }
            if place == self.at {
                record.at_ms = number(&field).map(milliseconds);
            }
            if place == self.life {
                record.life_s = above_0(&field).map(|life_s| life_s.min(LONGEST_S) as u32);
            }
            if place == self.takes {
                record.takes_ms =
                    above_0(&field).map(|takes_s| (takes_s * 1000.0).min(LONGEST_S).round() as u32);
            }
        }
        let is_whole =
            record.bytes.is_some() == self.bytes.is_some() && record.at_ms.is_some() == self.at.is_some();
        key.filter(|_| is_whole).map(|key| Record { key, ..record }).ok_or(Malformed)
    }
}

fn size(field: &[u8]) -> Option<u64> {
    number(field)
        .filter(|bytes| *bytes >= 0.0)
        .map(|bytes| bytes as u64)
        .filter(|bytes| *bytes <= LARGEST_BYTES)
}

fn above_0(field: &[u8]) -> Option<f64> {
    number(field).filter(|number| *number > 0.0)
}

/// Of a time in seconds, milliseconds or microseconds.
fn milliseconds(time: f64) -> i64 {
    match time.abs() {
        large if large > MOST_MILLISECONDS => (time / 1000.0) as i64,
        large if large > MOST_SECONDS => time as i64,
        _ => (time * 1000.0) as i64,
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
        let expected = Record::plain(97, Some(5), Some(3));
        for (head, line) in [
            ("time,object,size", "3,a,5"),
            ("Timestamp;Other;KEY;Bytes", "3;x;a;5"),
            ("url,size,time", "\"a\",5,3"),
        ] {
            assert_eq!(read(head, line), Ok(expected), "{head}");
            assert!(Columns::are_named_in(head.as_bytes()), "{head}");
        }
        assert_eq!(read("time,id", "3.25,a").map(|record| record.at_ms), Ok(Some(3250)));
        assert_eq!(read("id", "a"), Ok(Record::plain(97, None, None)));
        assert_eq!(read("id,size", "\"a,\"\"\",7").map(|record| record.key), Ok(97 + 44 + 34));
    }

    #[test]
    fn published_traces_of_content_delivery_networks_are_read_with_all_that_they_say() {
        let upload = "relative_unix\thashed_path_query\timage_type\tresponse_size\ttime_firstbyte";
        let text = "relative_unix\thashed_host_path_query\tresponse_size\ttime_firstbyte";
        let expected = Record { takes_ms: Some(120), ..Record::plain(97, Some(5), Some(3)) };
        assert_eq!(read(upload, "3\ta\tjpeg\t5\t0.12"), Ok(expected));
        assert_eq!(read(text, "3\ta\t5\t1.2E-1"), Ok(expected));
        let meta = "timestamp,cacheKey,OpType,objectSize,responseSize,responseHeaderSize,rangeStart,rangeEnd,TTL,SamplingRate,\
                    cache_hit,item_value,RequestHandler,cdn_content_type_id,vip_type";
        let part = Record { sent_bytes: Some(4), life_s: Some(60), ..Record::plain(97, Some(5), Some(3)) };
        assert_eq!(read(meta, "3,a,1,5,4,300,0,3,60,1,1,0,7,-,2"), Ok(part));
        let in_ms = Record { at_ms: Some(1_678_900_000_123), life_s: None, ..part };
        assert_eq!(read(meta, "1678900000123,a,1,5,4,300,-1,-1,0,1,1,0,7,-,2"), Ok(in_ms));
        assert_eq!(read(meta, "1678900000123456,a,1,5,4,300,-1,-1,-,1,1,0,7,-,2"), Ok(in_ms));
        assert!([upload, text, meta].iter().all(|head| Columns::are_named_in(head.as_bytes())));
        for line in ["10.0.0.1 - - [01/Jun/2026:12:00:00 +0000] \"GET /a,b HTTP/1.1\" 200 5", "id", "a,b", ""]
        {
            assert!(!Columns::are_named_in(line.as_bytes()), "{line}");
        }
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
