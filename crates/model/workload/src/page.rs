//! What a page contains, and which of it a robot fetches.
//!
//! Contents follow from the page's key, so they are the same for everyone. What is fetched is hashed from
//! (robot, number, place): each embedded object with the robot's `embedded_recurrence`. All are requested by GET,
//! with a type drawn from the robot's request types (or the embedded type's own): a browser that reloads
//! or revalidates does so for images as well, but never posts one. Embedded objects that are pages themselves
//! are fetched as plain objects.

use crate::Purpose;
use crate::launch::{Child, Launch};
use crate::object::{Object, ObjectId, Space};
use crate::universe::{GroupTable, Universe};
use assay_base::random::{Rng, fold, unit_of};

impl Universe {
    /// Number of embedded objects in an object; zero when it is no page.
    pub fn embedded_count(&self, object: &Object) -> u16 {
        if !object.id.space.holds_pages() {
            return 0;
        }
        self.content(object.id.content).link_count(object.key)
    }

    /// The object at a place (from 1) of a page; none when the page has no such place or is no page.
    pub fn embedded(&self, page: &Object, place: u16) -> Option<ObjectId> {
        (1..=self.embedded_count(page)).contains(&place).then(|| self.embedded_id(page, place)).flatten()
    }

    /// The embedded objects that the robot of a launch fetches, in page order. Empty unless the response carries
    /// the page's body.
    pub fn children(&self, launch: &Launch) -> Children<'_> {
        let page = self.object(launch.object);
        let group = self.group_of(launch.robot).map(|group| (group, &self.groups()[group]));
        let count = if launch.carries_body() && group.is_some() { self.embedded_count(&page) } else { 0 };
        let fetched = group.map_or(0.0, |(index, _)| self.workload().robots[index].embedded_recurrence);
        let seed = Rng::of(Purpose::EmbeddedFetch, &[self.seed(), u64::from(launch.robot), launch.number])
            .next_u64();
        Children {
            universe: self,
            launch: *launch,
            page,
            count,
            place: 0,
            fetched,
            seed,
            group: group.map(|g| g.1),
        }
    }

    fn embedded_id(&self, page: &Object, place: u16) -> Option<ObjectId> {
        let (_, contents) = self.content(page.id.content).embedded.as_ref()?;
        let choice = unit_of(fold(fold(page.key, Purpose::EmbeddedType as u64), u64::from(place)));
        let in_robot_page = |robot, kind| Space::InRobotPage { page: page.id.content, robot, kind };
        let space = match page.id.space {
            Space::Public => Space::InPublicPage { page: page.id.content },
            Space::Private(robot) => in_robot_page(robot, 1),
            Space::RequestBody(robot) => in_robot_page(robot, 2),
            Space::BestEffort(robot) => in_robot_page(robot, 3),
            // Pages within pages are plain objects, and so is what a trace names.
            Space::Foreign | Space::InPublicPage { .. } | Space::InRobotPage { .. } => return None,
        };
        let serial = page.id.serial.wrapping_mul(256).wrapping_add(u64::from(place));
        Some(ObjectId { origin: page.id.origin, content: contents.pick(choice)?, space, serial })
    }
}

/// The place in a page behind its link number `place` (from 1) of `count`.
pub(crate) fn link_end(page_bytes: u64, place: u16, count: u16) -> u64 {
    (u128::from(page_bytes) * u128::from(place) / (u128::from(count) + 1)) as u64
}

/// The embedded objects of one launch; see [`Universe::children`].
#[derive(Debug, Clone)]
pub struct Children<'a> {
    universe: &'a Universe,
    launch: Launch,
    page: Object,
    count: u16,
    place: u16,
    fetched: f64,
    seed: u64,
    group: Option<&'a GroupTable>,
}

impl Iterator for Children<'_> {
    type Item = Child;

    fn next(&mut self) -> Option<Child> {
        while self.place < self.count {
            self.place += 1;
            let mut rng = Rng::new(fold(self.seed, u64::from(self.place)));
            if rng.unit() >= self.fetched {
                continue;
            }
            let object = self.universe.embedded_id(&self.page, self.place)?;
            let request_type =
                self.group?.mix.request(object.content).draw_child(self.launch.special, &mut rng);
            return Some(Child {
                place: self.place,
                object,
                request_type,
                link_end: link_end(self.page.size_bytes, self.place, self.count),
                revisit: self.launch.revisit,
            });
        }
        None
    }
}
