//! What an object is called ([`ObjectId`]), and what never changes about it ([`Object`]).

use serde::{Deserialize, Serialize};

use crate::model::{ContentIndex, OriginIndex, RobotIndex};

/// Ids of embedded objects have room for this many places.
pub const MOST_EMBEDDED: u16 = 255;

/// The identity of an object. Everything else about it is hashed from this and the seed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct ObjectId {
    pub origin: OriginIndex,
    pub content: ContentIndex,
    /// World that the object belongs to.
    pub space: Space,
    /// Number within (origin, content, space). For an embedded object: its page's serial × 256 + place + 1.
    pub serial: u64,
}

/// The part of the universe that an object lives in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Space {
    /// Public world: shared by all robots; `serial` is the slot.
    Public,
    /// One robot's private world.
    Private(RobotIndex),
    /// Body of a robot's request. `serial` is the robot's request number, or that of a body that it sends again.
    RequestBody(RobotIndex),
    /// Introduced by a best-effort robot; `serial` is phase × 2^40 + number within the phase.
    BestEffort(RobotIndex),
    /// A URL of the workload's trace; `serial` is its line, that of the first if it stands there more than once.
    Foreign,
    /// Part of a page of content type `page` that lives in the public world.
    InPublicPage {
        /// The page's content type.
        page: ContentIndex,
    },
    /// Part of a page in a robot's space (private, of a request or best effort: told by `kind`, 1 to 3).
    InRobotPage {
        /// The page's content type.
        page: ContentIndex,
        robot: RobotIndex,
        /// 1 private, 2 once, 3 best effort.
        kind: u8,
    },
}

impl Space {
    /// True when a page in this space brings its embedded objects.
    pub(crate) fn holds_pages(self) -> bool {
        matches!(self, Space::Public | Space::Private(_) | Space::RequestBody(_) | Space::BestEffort(_))
    }
}

/// Everything about an object that never changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Object {
    pub id: ObjectId,
    /// The hash that all else follows from; responses carry it.
    pub key: u64,
    /// Size of the body.
    pub size_bytes: u64,
    /// Whether it may be cached.
    pub cachable: bool,
    /// Whether it is served with a checksum of its body.
    pub checksum: bool,
}
