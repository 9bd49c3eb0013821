//! A body, put together. By its type's source: data, text, words or files, with the links of a page and injected lines.

use std::sync::Arc;

use super::Body;
use super::overlay::Overlay;
use super::pool::{CircleIndex, DATA, POOL_BYTES, TEXT, WORDS};
use super::table::Injected;
use crate::Purpose;
use crate::model::BodySource;
use crate::object::Object;
use crate::universe::Universe;
use assay_base::random::{Rng, hash};

/// More lines are not put into one body.
const MOST_LINES: usize = 65_536;

impl Universe {
    /// The bytes of a version of an object.
    #[inline]
    pub fn body(&self, object: &Object, version: u64) -> Body {
        match self.content(object.id.content).body.plain {
            Some(circle) => Body::of_circle(object.key, version, object.size_bytes, circle),
            None => self.special_body(object, version),
        }
    }

    /// The key that an object's bytes follow from: its own, or that of the body which its type's objects share.
    pub fn body_key(&self, object: &Object) -> u64 {
        if self.has_own_body(object) {
            object.key
        } else {
            hash(Purpose::SharedBody, &[self.seed(), u64::from(object.id.content)])
        }
    }

    /// True when an object shares its body with no other.
    pub fn has_own_body(&self, object: &Object) -> bool {
        let unique = self.content(object.id.content).body.unique;
        unique.is_none_or(|share| self.unit(Purpose::Unique, object) < share)
    }

    /// True when lines (or the request's path) are put into an object's body.
    pub fn is_infected(&self, object: &Object) -> bool {
        let injection = self.content(object.id.content).body.injection.as_ref();
        injection.is_some_and(|injection| self.unit(Purpose::Injection, object) < injection.share)
    }

    #[cold]
    fn special_body(&self, object: &Object, version: u64) -> Body {
        let table = &self.content(object.id.content).body;
        // A shared body never changes: its objects' versions differ.
        let (key, version) = match self.has_own_body(object) {
            true => (object.key, version),
            false => (self.body_key(object), 0),
        };
        let (circle, place) = self.source(object, key);
        let mut body = Body::of_circle(key, version, object.size_bytes, circle);
        if let Some(place) = place {
            // Of files, the bytes are theirs alone.
            (body.offset, body.stamp_bytes) = (place, 0);
        }
        let mut overlay = Overlay::default();
        if table.link_room.is_some() {
            self.put_links(object, &mut overlay);
        }
        if let Some(injection) = table.injection.as_ref().filter(|_| self.is_infected(object)) {
            self.inject(object, injection, u64::from(body.stamp_bytes), &mut overlay);
        }
        body.overlay = (!overlay.is_empty()).then(|| Arc::new(overlay));
        body
    }

    /// The circle that a body is cut from, and where in it a body of files begins.
    fn source(&self, object: &Object, key: u64) -> (CircleIndex, Option<u64>) {
        let table = &self.content(object.id.content).body;
        match table.source {
            BodySource::Data if table.link_room.is_some() => (TEXT, None),
            BodySource::Data => (DATA, None),
            BodySource::Text => (TEXT, None),
            BodySource::Words => (WORDS, None),
            BodySource::Files(set) => {
                let circle = self.pool().set(set).and_then(|circles| circles.first);
                match circle.zip(table.file_of(self.workload(), object.key)) {
                    Some((first, (_, file))) => (first + file as CircleIndex, Some(0)),
                    None => (TEXT, None),
                }
            }
            BodySource::Database(set) => {
                let set = self.pool().set(set);
                match set.and_then(|circles| circles.all.zip(Some(circles.entries.as_slice()))) {
                    Some((circle, entries)) => {
                        let entry = Rng::of(Purpose::File, &[key]).below(entries.len() as u64);
                        (circle, Some(entries[entry as usize]))
                    }
                    None => (TEXT, None),
                }
            }
        }
    }

    /// Puts a page's links where they end.
    fn put_links(&self, page: &Object, overlay: &mut Overlay) {
        let count = self.embedded_count(page);
        for place in 1..=count {
            let Some(id) = self.embedded(page, place) else { continue };
            let (before, after) = self.content(id.content).body.link;
            overlay.end_at(crate::page::link_end(page.size_bytes, place, count), |out| {
                out.extend_from_slice(before.as_bytes());
                self.write_path(&self.object(id), out);
                out.extend_from_slice(after.as_bytes());
            });
        }
    }

    /// Puts lines into a body, a gap after each; or, without lines, the path of the object at its end.
    fn inject(&self, object: &Object, injection: &Injected, stamp_bytes: u64, overlay: &mut Overlay) {
        let links: Vec<(u64, u64)> = overlay.ranges().collect();
        let mut lines = Overlay::default();
        match injection.lines {
            None => {
                let last_link = links.last().map_or(stamp_bytes, |link| link.1);
                let path = self.path(object);
                if last_link + path.len() as u64 <= object.size_bytes {
                    lines.end_at(object.size_bytes, |out| out.extend_from_slice(path.as_bytes()));
                }
            }
            Some(set) => {
                let Some((circle, all)) =
                    self.pool().set(set).and_then(|set| set.all.zip(Some(set.lines.as_slice())))
                else {
                    return;
                };
                let mut rng = Rng::of(Purpose::Injection, &[object.key, 1]);
                let mut at = stamp_bytes;
                let mut next_link = 0;
                for _ in 0..MOST_LINES {
                    at = at.saturating_add(injection.gap.size(&mut rng).max(1));
                    let Some((from, length)) = all.get(rng.below(all.len() as u64) as usize).copied() else {
                        break;
                    };
                    // A line that would cover a link goes behind it.
                    while let Some((begin, end)) = links.get(next_link).copied() {
                        if at + u64::from(length) <= begin {
                            break;
                        }
                        at = at.max(end);
                        next_link += 1;
                    }
                    let end = at + u64::from(length);
                    if end > object.size_bytes {
                        break;
                    }
                    lines.put(at, circle, from, length);
                    at = end;
                }
            }
        }
        overlay.merge(lines);
    }
}

/// Keeps the arithmetic of places in a pool in whole numbers.
const _: () = assert!(POOL_BYTES.is_power_of_two());
