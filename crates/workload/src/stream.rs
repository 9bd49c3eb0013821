//! Who asks for what, when? The pure stream of all scheduled robots, or of a slice of them.

use std::sync::Arc;

use crate::launch::Launch;
use crate::timeline::Timeline;
use crate::universe::Universe;

/// Which robots a stream is for: those whose number modulo `count` is `index`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Slice {
    /// 0 .. count.
    pub index: u32,
    /// Number of slices; at least 1.
    pub count: u32,
}

impl Slice {
    /// All robots.
    pub const ALL: Self = Self { index: 0, count: 1 };

    /// True for robots of this slice.
    pub fn has(&self, robot: u32) -> bool {
        robot % self.count.max(1) == self.index
    }
}

/// The launches of a slice's scheduled robots in order of due time. Best-effort robots are not in it: see
/// [`crate::closed::ClosedRobot`].
#[derive(Debug)]
pub struct Stream {
    universe: Arc<Universe>,
    timeline: Arc<Timeline>,
    slice: Slice,
}

impl Stream {
    /// The stream of a slice.
    pub fn new(universe: Arc<Universe>, timeline: Arc<Timeline>, slice: Slice) -> Self {
        Self { universe, timeline, slice }
    }
}

impl Iterator for Stream {
    type Item = Launch;

    fn next(&mut self) -> Option<Launch> {
        let _ = (&self.universe, &self.timeline, self.slice);
        unimplemented!()
    }
}
