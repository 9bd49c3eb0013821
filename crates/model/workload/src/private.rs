//! What a robot requests in its own world. Its own history decides, and no one else's.

use crate::Purpose;
use crate::mix::DirectMix;
use crate::model::RobotIndex;
use crate::object::{ObjectId, Space};
use crate::popularity::{HotSet, Window};
use crate::universe::Universe;
use assay_base::random::{Rng, fold, hash, unit_of};

/// One robot's private objects of one content type, at all origins together.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct PrivateWorld {
    introduced: u32,
    /// Size when the working set froze, plus 1; 0: not yet.
    frozen: u32,
}

impl PrivateWorld {
    /// Hash of the robot and the type of a world.
    pub(crate) fn identity(seed: u64, robot: RobotIndex, direct: &DirectMix) -> u64 {
        hash(Purpose::PrivateOrigin, &[seed, u64::from(robot), u64::from(direct.content)])
    }

    /// A visit: a revisit if it is to recur and there is something to revisit, else a new object. None only
    /// when no origin has the type.
    pub(crate) fn visit(
        &mut self,
        universe: &Universe,
        robot: RobotIndex,
        direct: &DirectMix,
        frozen: bool,
        recur: bool,
        rng: &mut Rng,
    ) -> Option<(ObjectId, bool)> {
        let identity = Self::identity(universe.seed(), robot, direct);
        if frozen && self.frozen == 0 {
            self.frozen = self.introduced.saturating_add(1);
        }
        let size = self.frozen.checked_sub(1).map(u64::from);
        let window = Window::new(u64::from(self.introduced), size).filter(|_| recur);
        let serial = match &window {
            // The history is short, so its hot set is found from the start each time.
            Some(window) => {
                let picked = window.pick(&direct.popularity, &mut HotSet::default(), identity, rng);
                window.prefer(picked, direct.popularity.size_preference, rng, |serial| {
                    Self::object(identity, robot, direct, serial).map(|id| universe.object(id))
                })
            }
            None => {
                self.introduced = self.introduced.saturating_add(1);
                u64::from(self.introduced) - 1
            }
        };
        Some((Self::object(identity, robot, direct, serial)?, window.is_some()))
    }

    /// An object of a robot's world by its serial.
    pub(crate) fn object(
        identity: u64,
        robot: RobotIndex,
        direct: &DirectMix,
        serial: u64,
    ) -> Option<ObjectId> {
        let origin = direct.origins.pick(unit_of(fold(identity, serial)))?;
        Some(ObjectId { origin, content: direct.content, space: Space::Private(robot), serial })
    }
}
