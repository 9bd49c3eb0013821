//! The URL of the workload's trace that is meant. The lines of the trace, and the way back from a path to its line.

use std::collections::HashMap;

use crate::Purpose;
use crate::model::{ContentIndex, OriginIndex, RobotIndex, Server, Workload};
use crate::object::{ObjectId, Space};
use crate::picker::Picker;
use crate::universe::Universe;
use assay_random::{hash, unit_of};

/// The trace of a workload.
#[derive(Debug, Default)]
pub(crate) struct Trace {
    /// For each line, the first line with the same URL.
    first: Vec<u32>,
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
            let first = *this.lines.entry((url.origin, url.path.clone())).or_insert(line);
            this.first.push(first);
        }
        this.contents = workload.servers.iter().map(types).collect();
        this
    }

    /// Number of lines.
    pub(crate) fn len(&self) -> u64 {
        self.first.len() as u64
    }

    fn line(&self, origin: OriginIndex, path: &str) -> Option<u32> {
        self.lines.get(&(origin, path.to_owned())).copied()
    }
}

/// The types that a server's URLs of a trace may be of.
pub(crate) fn types(server: &Server) -> Picker<ContentIndex> {
    match Picker::of(&server.direct_access) {
        direct if direct.sum() > 0.0 => direct,
        _ => Picker::of(&server.contents),
    }
}

impl Universe {
    /// The object of a line of the trace, counted round and round, and whether an earlier line (or round)
    /// named it; none when there is no trace, or when its origin holds nothing.
    pub(crate) fn foreign(&self, line: u64) -> Option<(ObjectId, bool)> {
        let trace = self.trace();
        let at = line.checked_rem(trace.len())?;
        let first = u64::from(trace.first[at as usize]);
        let origin = self.workload().foreign[first as usize].origin;
        let server = self.workload().origins.get(usize::from(origin))?.server;
        let unit = unit_of(hash(Purpose::Foreign, &[self.seed(), first]));
        let content = trace.contents[usize::from(server)].pick(unit)?;
        let id = ObjectId { origin, content, space: Space::Foreign, serial: first };
        Some((id, line >= trace.len() || first < at))
    }

    /// The line that a robot's own walk has reached at its request `number`. Requests for other things pass
    /// lines by.
    pub(crate) fn walked_line(&self, robot: RobotIndex, number: u64) -> u64 {
        let begin = unit_of(hash(Purpose::Foreign, &[self.seed(), u64::from(robot), 1]));
        (begin * self.trace().len() as f64) as u64 + number
    }

    /// The object of the trace that a path names at an origin.
    pub(crate) fn foreign_at(&self, origin: OriginIndex, path: &[u8]) -> Option<ObjectId> {
        let line = self.trace().line(origin, std::str::from_utf8(path).ok()?)?;
        self.foreign(u64::from(line)).map(|(id, _)| id)
    }

    /// The path of an object of the trace.
    pub(crate) fn foreign_path(&self, id: &ObjectId) -> &str {
        let url = usize::try_from(id.serial).ok().and_then(|line| self.workload().foreign.get(line));
        url.map_or("/", |url| url.path.as_str())
    }
}
