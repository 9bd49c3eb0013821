//! The trace of a workload: its lines, and the way back from a path to its line.

use std::collections::HashMap;

use crate::model::{ContentIndex, OriginIndex, Server, Workload};
use crate::picker::Picker;

/// The trace of a workload.
#[derive(Debug, Default)]
pub(crate) struct Trace {
    /// For each line, the first line with the same URL; none: the URL has a number, and is another with each visit.
    first: Vec<Option<u32>>,
    has_numbers: bool,
    lines: HashMap<(OriginIndex, String), u32>,
    /// For each kind of server, the types that its URLs may be of.
    contents: Vec<Picker<ContentIndex>>,
}

impl Trace {
    pub(crate) fn new(workload: &Workload) -> Self {
        let mut this = Self::default();
        if workload.foreign.is_empty() {
            return this;
        }
        for (line, url) in (0..u32::MAX).zip(&workload.foreign) {
            let first = || *this.lines.entry((url.origin, url.path.clone())).or_insert(line);
            let first = (!url.is_numbered()).then(first);
            this.has_numbers |= first.is_none();
            this.first.push(first);
        }
        this.contents = workload.servers.iter().map(types).collect();
        this
    }

    pub(crate) fn len(&self) -> u64 {
        self.first.len() as u64
    }

    /// The first line with the same URL as this one; none: its URL has a number.
    pub(crate) fn first(&self, line: u64) -> Option<u64> {
        self.first[line as usize].map(u64::from)
    }

    /// True if some URLs have numbers.
    pub(crate) fn has_numbers(&self) -> bool {
        self.has_numbers
    }

    /// The type of a URL at a kind of server, chosen by `unit`; none: such servers hold nothing.
    pub(crate) fn content(&self, server: usize, unit: f64) -> Option<ContentIndex> {
        self.contents[server].pick(unit)
    }

    /// The first line with this URL.
    pub(crate) fn line(&self, origin: OriginIndex, path: &str) -> Option<u32> {
        self.lines.get(&(origin, path.to_owned())).copied()
    }
}

/// The types that a server's URLs of a trace may be of.
pub(crate) fn types(server: &Server) -> Picker<ContentIndex> {
    match Picker::from_weighted(&server.direct_access) {
        direct if direct.sum() > 0.0 => direct,
        _ => Picker::from_weighted(&server.contents),
    }
}
