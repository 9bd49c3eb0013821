//! The URL of the workload's trace that is meant, and the object that it names.
//!
//! # Foreign URLs
//!
//! *Foreign URLs* (`foreign_trace`) keep the trace's own path: they carry no world, and the origin that stands for their host finds the
//! object by the path. The number of an object (`${url_number}`), modulo the number of lines, is its line. *Bodies of files* carry no stamp: they are the bytes of the file in every version. Bodies that
//! objects share (`unique` below 1) do not change with the version either.

use std::borrow::Cow;

use crate::Purpose;
use crate::model::{ForeignUrl, OriginIndex, RobotIndex};
use crate::object::{ObjectId, Space};
use crate::universe::Universe;
use assay_base::random::{hash, unit_of};

/// Fewest digits of a number in a URL.
const NUMBER_DIGITS: usize = 8;

impl Universe {
    /// Object of a line of the trace, counted modulo its length, and whether an earlier line (or round) named it; none without a trace, or if
    /// its origin holds nothing.
    pub(crate) fn foreign(&self, line: u64) -> Option<(ObjectId, bool)> {
        self.foreign_of_walk(line, 0)
    }

    /// The object that a robot's own walk has reached at its request `number`. Requests for other things pass lines by.
    pub(crate) fn walked(&self, robot: RobotIndex, number: u64) -> Option<ObjectId> {
        let begin = unit_of(hash(Purpose::Foreign, &[self.seed(), u64::from(robot), 1]));
        let line = (begin * self.trace().len() as f64) as u64 + number;
        self.foreign_of_walk(line, u64::from(robot) + 1).map(|(object, _)| object)
    }

    /// Walks are that of all robots with a rate (0), and those of best-effort robots. Each numbers its visits by itself.
    fn foreign_of_walk(&self, line: u64, walk: u64) -> Option<(ObjectId, bool)> {
        let trace = self.trace();
        let at = line.checked_rem(trace.len())?;
        let (serial, was_named) = match trace.first(at) {
            Some(first) => (first, line >= trace.len() || first < at),
            None => {
                let walks = if self.has_closed_robots() { u64::from(self.robot_count()) + 1 } else { 1 };
                let round = (line / trace.len()).wrapping_mul(walks).wrapping_add(walk);
                (round.wrapping_mul(trace.len()).wrapping_add(at), false)
            }
        };
        Some((self.foreign_object(serial)?, was_named))
    }

    fn foreign_object(&self, serial: u64) -> Option<ObjectId> {
        let origin = self.foreign_url(serial)?.origin;
        let server = self.workload().origins.get(usize::from(origin))?.server;
        let unit = unit_of(hash(Purpose::Foreign, &[self.seed(), serial]));
        let content = self.trace().content(usize::from(server), unit)?;
        Some(ObjectId { origin, content, space: Space::Foreign, serial })
    }

    /// The line of the trace that an object is of.
    fn foreign_url(&self, serial: u64) -> Option<&ForeignUrl> {
        let lines = &self.workload().foreign;
        lines.get(serial.checked_rem(lines.len() as u64)? as usize)
    }

    /// The object of the trace that a path names at an origin.
    pub(crate) fn foreign_at(&self, origin: OriginIndex, path: &[u8]) -> Option<ObjectId> {
        let text = std::str::from_utf8(path).ok()?;
        if let Some(line) = self.trace().line(origin, text) {
            return self.foreign_object(u64::from(line));
        }
        if !self.trace().has_numbers() {
            return None;
        }
        // Nothing but the number tells the line, and nothing but the line where the number is.
        let ends =
            |from: usize| (from + NUMBER_DIGITS..=text.len().min(from + 16)).map(move |end| (from, end));
        (0..text.len()).flat_map(ends).find_map(|(from, end)| {
            let serial = u64::from_str_radix(text.get(from..end)?, 16).ok()?;
            let url = self.foreign_url(serial).filter(|url| url.origin == origin)?;
            let is_there = url.path.find(ForeignUrl::NUMBER) == Some(from);
            (is_there && numbered(url, serial) == text).then(|| self.foreign_object(serial)).flatten()
        })
    }

    /// The path of an object of the trace.
    pub(crate) fn foreign_path(&self, id: &ObjectId) -> Cow<'_, str> {
        match self.foreign_url(id.serial) {
            Some(url) if url.is_numbered() => numbered(url, id.serial).into(),
            Some(url) => url.path.as_str().into(),
            None => "/".into(),
        }
    }
}

fn numbered(url: &ForeignUrl, serial: u64) -> String {
    url.path.replace(ForeignUrl::NUMBER, &format!("{serial:0NUMBER_DIGITS$x}"))
}
