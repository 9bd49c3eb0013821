//! What the bodies of a content type are made of, and what they need of the pool.

use super::STAMP_BYTES;
use super::pool::{CircleIndex, DATA, PoolNeeds, TEXT, WORDS};
use crate::Purpose;
use crate::distribution::Sampler;
use crate::model::{BodySource, BodySpec, ContentIndex, FileSet, FileSetIndex, Workload};
use assay_base::random::{Rng, finalize};

/// Sources of the bodies of a content type, ready for draws.
#[derive(Debug)]
pub(crate) struct BodyTable {
    /// Cut from this circle, with a key of its own and nothing put in: the fast path.
    pub(super) plain: Option<CircleIndex>,
    pub(super) source: BodySource,
    pub(super) unique: Option<f64>,
    pub(super) injection: Option<Injected>,
    /// Markup around the path of a link to an object of this type.
    pub(super) link: (&'static str, &'static str),
    /// Bytes that each link of a page of this type may take, with room for a stamp; none: it is no page.
    pub(super) link_room: Option<u64>,
}

#[derive(Debug)]
pub(super) struct Injected {
    pub(super) lines: Option<FileSetIndex>,
    pub(super) gap: Sampler,
    pub(super) share: f64,
}

/// Contents of the pool that the bodies of a workload need.
pub(crate) fn pool_needs(workload: &Workload) -> PoolNeeds {
    let mut needs = PoolNeeds { sets: vec![(false, false); workload.files.len()], ..PoolNeeds::default() };
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

    /// The set and number of the file that an object with this key is; none: it is not a whole file.
    #[inline]
    pub(crate) fn file_of<'w>(&self, workload: &'w Workload, key: u64) -> Option<(&'w FileSet, usize)> {
        let BodySource::Files(set) = self.source else { return None };
        let set = workload.files.get(usize::from(set))?;
        let mut rng = Rng::new(key ^ const { finalize(Purpose::File as u64) });
        Some((set, rng.below(set.files.len() as u64) as usize))
    }
}

/// Markup before and after a path, by which a browser (or a prefetching proxy) takes it for a link to that type.
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
