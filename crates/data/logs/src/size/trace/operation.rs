//! What was done with objects: reads are requests, all else is counted under its own name.

use schemars::JsonSchema;
use serde::Serialize;

/// Words for reads, as capitals without marks between.
const READS: [&str; 14] = [
    "GET", "GETS", "GETLEASE", "MGET", "MULTIGET", "READ", "READS", "R", "RD", "RS", "RA", "DISKREAD",
    "FETCH", "LOOKUP",
];
/// Words for what is no read. Others are none either; these are known where a column may or may not be one of operations.
const OTHERS: [&str; 31] = [
    "SET",
    "SETLEASE",
    "PUT",
    "POST",
    "PATCH",
    "HEAD",
    "COPY",
    "DELETE",
    "DEL",
    "REMOVE",
    "ADD",
    "CAS",
    "REPLACE",
    "APPEND",
    "PREPEND",
    "INCR",
    "DECR",
    "TOUCH",
    "UPDATE",
    "INSERT",
    "WRITE",
    "WRITES",
    "W",
    "WS",
    "DISKWRITE",
    "TRIM",
    "DISCARD",
    "UNMAP",
    "FLUSH",
    "OPTIONS",
    "LIST",
];
/// As many operations are told apart; more are no operations.
const MOST: usize = 64;
const REST: &str = "(others)";

/// Meaning of a value of a column of operations, where the column's name states it: `[Put:0, Get:1]`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OperationName {
    /// As it stands in lines.
    pub value: Vec<u8>,
    pub name: String,
}

/// Reads `Put:0, Get:1`, and the other way round, or with `=`.
pub fn operation_names(text: &str) -> Vec<OperationName> {
    let pair = |pair: &str| {
        let (one, other) = pair.split_once([':', '='])?;
        let (one, other) = (one.trim(), other.trim());
        let is_value_first = !is_known(one) && (is_known(other) || is_number(one.as_bytes()));
        let (name, value) = if is_value_first { (other, one) } else { (one, other) };
        Some(OperationName { value: value.as_bytes().to_vec(), name: name.to_owned() })
    };
    text.split([',', ';']).filter_map(pair).collect()
}

/// True if a word means a read.
fn is_read(word: &str) -> bool {
    READS.contains(&plain(word).as_str())
}

/// True if a word is known to mean an operation.
pub fn is_known(word: &str) -> bool {
    is_read(word) || OTHERS.contains(&plain(word).as_str())
}

/// Without what names of operations disagree on; `REST.GET.OBJECT` of S3's logs is its method.
fn plain(word: &str) -> String {
    let upper = word.to_ascii_uppercase();
    let method = upper.strip_prefix("REST.").and_then(|word| word.strip_suffix(".OBJECT"));
    method.unwrap_or(&upper).chars().filter(char::is_ascii_alphanumeric).collect()
}

fn is_number(word: &[u8]) -> bool {
    !word.is_empty() && word.iter().all(u8::is_ascii_digit)
}

/// How often something was done.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(rename = "Counted")]
pub struct OperationCount {
    /// What, as the input calls it.
    pub name: String,
    /// How often.
    pub count: u64,
}

/// An operation of an input.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Operation {
    value: Vec<u8>,
    pub name: String,
    /// True for a request.
    pub is_read: bool,
    /// A number of which nothing says what it means: it is taken for a read.
    pub is_unexplained: bool,
    pub count: u64,
}

/// The operations of an input.
#[derive(Debug, Default)]
pub struct Operations {
    operation_names: Vec<OperationName>,
    /// All that were seen.
    pub operations: Vec<Operation>,
    /// Index of the last operation, which the next one often equals.
    last: usize,
    /// Number of operations other than reads that stated a lifetime.
    pub lifetimes: u64,
}

impl Operations {
    pub fn new(operation_names: &[OperationName]) -> Self {
        Self { operation_names: operation_names.to_vec(), ..Self::default() }
    }

    /// Counts an operation; true if it is a read.
    pub fn parse(&mut self, value: &[u8], count: u64) -> bool {
        if self.operations.get(self.last).is_none_or(|last| last.value != value) {
            let place = self.operations.iter().position(|operations| operations.value == value);
            self.last = place.unwrap_or_else(|| self.add(value));
        }
        let operations = &mut self.operations[self.last];
        operations.count = operations.count.saturating_add(count);
        operations.is_read
    }

    /// The place of one that was not seen before.
    fn add(&mut self, value: &[u8]) -> usize {
        if self.operations.len() > MOST {
            return MOST;
        }
        let found = self.operation_names.iter().find(|operation| operation.value.eq_ignore_ascii_case(value));
        let word = String::from_utf8_lossy(value).into_owned();
        let is_unexplained = self.operation_names.is_empty() && is_number(value);
        let is_rest = self.operations.len() == MOST;
        let name = if is_rest { REST.into() } else { found.map_or(word, |found| found.name.clone()) };
        self.operations.push(Operation {
            value: if is_rest { Vec::new() } else { value.to_vec() },
            is_read: !is_rest && (is_unexplained || is_read(&name)),
            is_unexplained: !is_rest && is_unexplained,
            name,
            count: 0,
        });
        self.operations.len() - 1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_are_requests_and_all_else_is_counted_under_its_own_name() {
        let mut operations = Operations::default();
        for word in ["GET", "gets", "GET_LEASE", "READ", "r", "REST.GET.OBJECT", "Read"] {
            assert!(operations.parse(word.as_bytes(), 1), "{word}");
        }
        for word in ["SET", "REST.HEAD.OBJECT", "REST.GET.BUCKET", "getset", "W", "whatever"] {
            assert!(!operations.parse(word.as_bytes(), 2), "{word}");
        }
        operations.parse(b"SET", 3);
        let set = operations.operations.iter().find(|operations| operations.name == "SET").unwrap();
        assert_eq!((set.count, set.is_read), (5, false));
    }

    #[test]
    fn numbers_mean_what_the_name_of_their_column_says_and_else_nothing() {
        for text in ["Put:0, Get:1", "0=PUT;1=GET", "put:0,get:1", "0:put, 1:get"] {
            let mut operations = Operations::new(&operation_names(text));
            assert_eq!(
                [&b"0"[..], b"1", b"7"].map(|value| operations.parse(value, 1)),
                [false, true, false],
                "{text}"
            );
            assert_eq!(operations.operations[1].name.to_ascii_lowercase(), "get");
            assert!(!operations.operations.iter().any(|operations| operations.is_unexplained));
        }
        let mut operations = Operations::new(&operation_names("get:FETCH-IT"));
        assert!(operations.parse(b"FETCH-IT", 1) && !operations.parse(b"STORE", 1));
        let mut operations = Operations::new(&operation_names("R/W"));
        assert!(operations.parse(b"42", 1) && operations.operations[0].is_unexplained);
    }

    #[test]
    fn what_is_no_operation_does_not_grow_without_bound() {
        let mut operations = Operations::default();
        for number in 0..1000 {
            operations.parse(format!("x{number}").as_bytes(), 1);
        }
        assert_eq!((operations.operations.len(), operations.operations[MOST].count), (65, 936));
        assert_eq!(operations.operations[MOST].name, REST);
    }
}
