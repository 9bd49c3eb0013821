//! A body, put together. By its type's source: data, text, words or files, with the links of a page and injected lines.

use std::sync::Arc;

use super::overlay::Overlay;
use super::pool::{CircleIndex, DATA, Needs, POOL_BYTES, TEXT, WORDS};
use super::{Body, STAMP_BYTES};
use crate::Purpose;
use crate::distribution::Sampler;
use crate::model::{BodySource, BodySpec, ContentIndex, FileSet, FileSetIndex, Workload};
use crate::universe::{Object, Universe};
use assay_random::{Rng, finalize, hash};

/// More lines are not put into one body.
const MOST_LINES: usize = 65_536;

/// What the bodies of a content type are made of, ready for use.
#[derive(Debug)]
pub(crate) struct BodyTable {
    /// Cut from this circle, with a key of its own and nothing put in: the fast path.
    plain: Option<CircleIndex>,
    source: BodySource,
    unique: Option<f64>,
    injection: Option<Injected>,
    /// Markup around the path of a link to an object of this type.
    link: (&'static str, &'static str),
    /// Bytes that each link of a page of this type may take, with room for a stamp; none: it is no page.
    link_room: Option<u64>,
}

#[derive(Debug)]
struct Injected {
    lines: Option<FileSetIndex>,
    gap: Sampler,
    share: f64,
}

/// What the bodies of a workload need of the pool.
pub(crate) fn needs(workload: &Workload) -> Needs {
    let mut needs = Needs { sets: vec![(false, false); workload.files.len()], ..Needs::default() };
    for content in &workload.contents {
        needs.text |= content.embedded.is_some() || content.body.source == BodySource::Text;
        needs.words |= content.body.source == BodySource::Words;
        // Sets exist: the workload has been validated.
        match content.body.source {
            BodySource::Files(set) => needs.sets[usize::from(set)].0 = true,
            BodySource::Database(set) => needs.sets[usize::from(set)].1 = true,
            BodySource::Data | BodySource::Text | BodySource::Words => {}
        }
        if let Some(set) = content.body.injection.as_ref().and_then(|i| i.lines) {
            needs.sets[usize::from(set)].1 = true;
        }
    }
    needs
}

impl BodyTable {
    pub(crate) fn new(workload: &Workload, index: ContentIndex) -> Self {
        let content = &workload.contents[usize::from(index)];
        let BodySpec { source, unique, injection, .. } = &content.body;
        let link_room = content.embedded.as_ref().map(|embedded| {
            let types = embedded.contents.items().iter().filter(|(_, share)| *share > 0.0);
            let longest = types.map(|(embedded, _)| longest_link(workload, index, *embedded)).max();
            longest.unwrap_or(0) + STAMP_BYTES as u64
        });
        let injection = injection.as_ref().filter(|injection| injection.share > 0.0).map(|injection| {
            Injected { lines: injection.lines, gap: injection.gap_bytes.sampler(), share: injection.share }
        });
        let bare =
            unique.is_none_or(|share| share >= 1.0) && injection.is_none() && content.embedded.is_none();
        Self {
            plain: match source {
                BodySource::Data if bare => Some(DATA),
                BodySource::Text if bare => Some(TEXT),
                BodySource::Words if bare => Some(WORDS),
                _ => None,
            },
            source: *source,
            unique: *unique,
            injection,
            link: markup(content.mime_type.as_deref()),
            link_room,
        }
    }

    /// Bytes that a page with so many links must have; 0 for what is no page.
    #[inline]
    pub(crate) fn least_bytes(&self, links: u16) -> u64 {
        match self.link_room {
            Some(room) if links > 0 => room * (u64::from(links) + 1),
            _ => 0,
        }
    }
}

/// What stands before and after a path, so that a browser (or a proxy that fetches ahead) takes it for a link
/// to that type.
fn markup(mime_type: Option<&str>) -> (&'static str, &'static str) {
    let mime_type = mime_type.unwrap_or_default();
    let essence = mime_type.split(';').next().unwrap_or_default().trim();
    match essence {
        "text/css" => ("<link rel=\"stylesheet\" href=\"", "\">"),
        "text/html" | "application/xhtml+xml" => ("<iframe src=\"", "\"></iframe>"),
        script if script.ends_with("javascript") => ("<script src=\"", "\"></script>"),
        image if image.is_empty() || image.starts_with("image/") => ("<img src=\"", "\">"),
        _ => ("<embed src=\"", "\">"),
    }
}

/// Bytes of the longest link from a page type to a type that it embeds, in any space.
fn longest_link(workload: &Workload, page: ContentIndex, embedded: ContentIndex) -> u64 {
    let content = &workload.contents[usize::from(embedded)];
    let longest = |texts: &[(String, f64)]| texts.iter().map(|(text, _)| text.len()).max().unwrap_or(0);
    let (before, after) = markup(content.mime_type.as_deref());
    let extension = match content.body.source {
        BodySource::Files(set) => {
            let files = &workload.files[usize::from(set)];
            (0..files.files.len()).map(|file| extension(files, file).len()).max().unwrap_or(0)
        }
        _ => longest(content.extensions.items()),
    };
    let digits = |value: u64| (16 - value.leading_zeros() as usize / 4).max(1);
    let kind = 1 + digits(u64::from(page)) + 1 + digits(u64::from(workload.robot_count()));
    let fixed =
        "/w".len() + 8 + "/t".len() + digits(u64::from(embedded)).max(2) + "/".len() + kind + "_".len() + 16;
    let length = before.len() + longest(content.prefixes.items()) + fixed + extension + after.len();
    length as u64
}

/// The extension of a file's name with its dot, if it is one that a path can carry.
pub(crate) fn extension(set: &FileSet, file: usize) -> &str {
    let path = set.files.get(file).map(|entry| match entry.path.as_os_str().is_empty() {
        true => set.root.as_path(),
        false => entry.path.as_path(),
    });
    let Some(name) = path.and_then(|path| path.file_name()).and_then(|name| name.to_str()) else { return "" };
    match name.rfind('.') {
        Some(dot) if name[dot + 1..].bytes().all(|b| b.is_ascii_alphanumeric()) => &name[dot..],
        _ => "",
    }
}

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

    /// The set and number of the file that an object with this key is; none: it is not a whole file.
    #[inline]
    pub(crate) fn file_of(&self, content: ContentIndex, key: u64) -> Option<(&FileSet, usize)> {
        let BodySource::Files(set) = self.content(content).body.source else { return None };
        let set = self.workload().files.get(usize::from(set))?;
        let mut rng = Rng::new(key ^ const { finalize(Purpose::File as u64) });
        Some((set, rng.below(set.files.len() as u64) as usize))
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
                match circle.zip(self.file_of(object.id.content, object.key)) {
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
        let links: Vec<(u64, u64)> = overlay.places().collect();
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
                    lines.put(at, (circle, from), length);
                    at = end;
                }
            }
        }
        overlay.merge(lines);
    }
}

/// Keeps the arithmetic of places in a pool in whole numbers.
const _: () = assert!(POOL_BYTES.is_power_of_two());
