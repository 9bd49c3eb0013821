//! The URL of the workload's trace that is meant, and the object that it names.

use crate::Purpose;
use crate::model::{OriginIndex, RobotIndex};
use crate::object::{ObjectId, Space};
use crate::universe::Universe;
use assay_random::{hash, unit_of};

impl Universe {
    /// The object of a line of the trace, counted round and round, and whether an earlier line (or round)
    /// named it; none when there is no trace, or when its origin holds nothing.
    pub(crate) fn foreign(&self, line: u64) -> Option<(ObjectId, bool)> {
        let trace = self.trace();
        let at = line.checked_rem(trace.len())?;
        let first = trace.first(at);
        let origin = self.workload().foreign[first as usize].origin;
        let server = self.workload().origins.get(usize::from(origin))?.server;
        let unit = unit_of(hash(Purpose::Foreign, &[self.seed(), first]));
        let content = trace.content(usize::from(server), unit)?;
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
