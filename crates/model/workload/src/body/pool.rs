//! The static bytes that bodies are cut from: circles of random data, text and words, and the files of the
//! workload.

use std::fmt;
use std::sync::Arc;

use crate::Purpose;
use crate::model::{FileEntry, Workload};
use crate::validate::UniverseError;
use assay_base::random::Rng;

/// Length of the circles of data, text and words.
pub const POOL_BYTES: usize = 256 * 1024;
/// Any slice up to this length is contiguous, wherever in a circle it starts.
pub const LONGEST_CHUNK: usize = 64 * 1024;

/// Index of the circle that a body is cut from.
pub(crate) type CircleIndex = u16;
/// Any byte.
pub(crate) const DATA: CircleIndex = 0;
pub(crate) const TEXT: CircleIndex = 1;
pub(crate) const WORDS: CircleIndex = 2;

/// The bytes of the files that a workload names: for each of its file sets, the bytes of each file in the
/// set's order.
pub type FileBytes = Vec<Vec<Arc<[u8]>>>;

/// All bytes that bodies are cut from; a pure function of the seed and the files.
#[derive(Clone)]
pub struct Pool {
    /// Data, text, words; then those of files. Those that nothing is cut from are empty.
    circles: Vec<Circle>,
    /// For each file set: its circles and the lines or entries in them.
    sets: Vec<FileCircles>,
}

/// Bytes that are read round and round.
#[derive(Clone)]
struct Circle {
    /// The circle, then its beginning once more, so that a chunk need not wrap.
    bytes: Arc<[u8]>,
    length: u64,
}

/// Circles and offsets of the files of a set.
#[derive(Debug, Clone, Default)]
pub(crate) struct FileCircles {
    /// The circle of the first file, if each has its own.
    pub(crate) first: Option<CircleIndex>,
    /// The circle of all files one after another.
    pub(crate) all: Option<CircleIndex>,
    /// Start of each file in that circle.
    pub(crate) entries: Vec<u64>,
    /// First byte and length of each line, in that circle.
    pub(crate) lines: Vec<(u64, u32)>,
}

/// Contents of the pool that a workload needs.
#[derive(Debug, Clone, Default)]
pub(crate) struct PoolNeeds {
    pub(crate) text: bool,
    pub(crate) words: bool,
    /// For each file set: whole files; entries one after another, or lines.
    pub(crate) sets: Vec<(bool, bool)>,
}

impl Pool {
    /// The pool of a seed with data alone, as most workloads need it.
    pub fn new(seed: u64) -> Self {
        Self { circles: vec![data(seed)], sets: Vec::new() }
    }

    /// With what a workload needs. Without the bytes of its files, their place is taken by text.
    pub(crate) fn with_files(
        seed: u64,
        needs: &PoolNeeds,
        workload: &Workload,
        files: Option<&FileBytes>,
    ) -> Result<Self, UniverseError> {
        let none = Circle { bytes: Arc::default(), length: 1 };
        let without = files.is_none() && needs.sets.iter().any(|(whole, all)| *whole || *all);
        let mut this = Self::new(seed);
        this.circles.push(if needs.text || without { text(seed) } else { none.clone() });
        this.circles.push(if needs.words { words(seed) } else { none });
        let Some(files) = files else { return Ok(this) };
        check(workload, files)?;
        for (index, set) in files.iter().enumerate() {
            let (whole, all) = needs.sets.get(index).copied().unwrap_or_default();
            let circles = this.add_set(set, whole, all)?;
            this.sets.push(circles);
        }
        Ok(this)
    }

    fn add_set(&mut self, set: &[Arc<[u8]>], whole: bool, all: bool) -> Result<FileCircles, UniverseError> {
        let mut circles = FileCircles::default();
        if whole {
            circles.first = Some(self.next_circle()?);
            let circle = |bytes: &Arc<[u8]>| Circle { bytes: bytes.clone(), length: bytes.len() as u64 };
            self.circles.extend(set.iter().map(circle));
            self.next_circle()?;
        }
        if all {
            circles.all = Some(self.next_circle()?);
            let mut at = 0;
            for file in set {
                circles.entries.push(at);
                at += file.len() as u64;
            }
            let bytes: Vec<u8> = set.iter().flat_map(|file| file.iter().copied()).collect();
            circles.lines = lines(&bytes);
            self.circles.push(Circle::closed(bytes));
        }
        Ok(circles)
    }

    fn next_circle(&self) -> Result<CircleIndex, UniverseError> {
        let count = self.circles.len();
        CircleIndex::try_from(count).map_err(|_| UniverseError::TooMany {
            what: "files that are bodies",
            count: count as u64,
            most: u64::from(CircleIndex::MAX),
        })
    }

    /// Circles of a set of files; none if their bytes were not given.
    pub(crate) fn set(&self, index: u16) -> Option<&FileCircles> {
        self.sets.get(usize::from(index))
    }

    /// Up to `max` bytes of a circle from a place on, counted round and round.
    #[inline]
    pub(crate) fn slice(&self, circle: CircleIndex, at: u64, max: usize) -> &[u8] {
        let Circle { bytes, length } = &self.circles[usize::from(circle)];
        // The length of the circles that nearly all bodies are cut from is a power of two.
        let at = if circle <= WORDS { at % POOL_BYTES as u64 } else { at % length } as usize;
        &bytes[at..at + max]
    }
}

impl fmt::Debug for Pool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let bytes: usize = self.circles.iter().map(|circle| circle.bytes.len()).sum();
        f.debug_struct("Pool").field("circles", &self.circles.len()).field("bytes", &bytes).finish()
    }
}

impl Circle {
    /// Of bytes that go on with their beginning; none are as one byte 0.
    fn closed(mut bytes: Vec<u8>) -> Self {
        if bytes.is_empty() {
            bytes.push(0);
        }
        let length = bytes.len();
        while bytes.len() < length + LONGEST_CHUNK {
            let more = length.min(length + LONGEST_CHUNK - bytes.len());
            bytes.extend_from_within(..more);
        }
        Self { bytes: bytes.into(), length: length as u64 }
    }
}

/// The files must be those that the workload was compiled with.
fn check(workload: &Workload, files: &FileBytes) -> Result<(), UniverseError> {
    let count = |what, seen: usize, wanted: usize| match seen == wanted {
        true => Ok(()),
        false => Err(UniverseError::Files { what, seen, wanted }),
    };
    count("file sets".into(), files.len(), workload.files.len())?;
    for (set, bytes) in workload.files.iter().zip(files) {
        count(format!("files below {}", set.root.display()), bytes.len(), set.files.len())?;
        for (entry, bytes) in set.files.iter().zip(bytes) {
            if entry.bytes != bytes.len() as u64 || entry.digest != FileEntry::digest_of(bytes) {
                return Err(UniverseError::FileChanged { path: set.root.join(&entry.path) });
            }
        }
    }
    Ok(())
}

/// Start and length of each line, without its end; empty lines are left out.
fn lines(bytes: &[u8]) -> Vec<(u64, u32)> {
    let mut at = 0;
    let mut lines = Vec::new();
    for line in bytes.split(|byte| *byte == b'\n') {
        let text = line.strip_suffix(b"\r").unwrap_or(line);
        if !text.is_empty() && text.len() <= LONGEST_CHUNK {
            lines.push((at, text.len() as u32));
        }
        at += line.len() as u64 + 1;
    }
    lines
}

fn data(seed: u64) -> Circle {
    let mut rng = Rng::of(Purpose::Pool, &[seed]);
    let mut bytes = Vec::with_capacity(POOL_BYTES + LONGEST_CHUNK);
    while bytes.len() < POOL_BYTES {
        bytes.extend_from_slice(&rng.next_u64().to_le_bytes());
    }
    Circle::closed(bytes)
}

/// Characters 33 to 126 but for those with which markup begins and attributes end.
fn text(seed: u64) -> Circle {
    let letters: Vec<u8> = (33..=126).filter(|c| *c != b'<' && *c != b'"').collect();
    let mut rng = Rng::of(Purpose::TextPool, &[seed]);
    Circle::closed((0..POOL_BYTES).map(|_| letters[rng.below(letters.len() as u64) as usize]).collect())
}

/// Number of different words; the k-th occurs about 1/k as often as the first. With 2,000 words, 16 KB of them compress to two fifths,
/// and large bodies to a third.
const VOCABULARY: u64 = 2000;

/// Made-up words in sentences, as often as words are in prose.
fn words(seed: u64) -> Circle {
    let mut rng = Rng::of(Purpose::WordPool, &[seed]);
    let vocabulary: Vec<String> = (0..VOCABULARY).map(|rank| word(rank, &mut rng)).collect();
    let mut bytes = Vec::with_capacity(POOL_BYTES + LONGEST_CHUNK);
    let log = libm::log(VOCABULARY as f64 + 1.0);
    let (mut in_sentence, mut in_line) = (0, 0);
    while bytes.len() < POOL_BYTES {
        let rank = (libm::exp(log * rng.unit()) as usize).clamp(1, vocabulary.len()) - 1;
        let begin = bytes.len();
        bytes.extend_from_slice(vocabulary[rank].as_bytes());
        if in_sentence == 0 {
            bytes[begin].make_ascii_uppercase();
        }
        in_sentence += 1;
        in_line += bytes.len() - begin + 1;
        if in_sentence > 4 && rng.below(12) == 0 {
            bytes.push(b'.');
            in_sentence = 0;
        } else if rng.below(12) == 0 {
            bytes.push(b',');
        }
        let line_ends = in_line > 72;
        bytes.push(if line_ends { b'\n' } else { b' ' });
        in_line = if line_ends { 0 } else { in_line };
    }
    bytes.truncate(POOL_BYTES);
    Circle::closed(bytes)
}

/// A word of one to five syllables; frequent ones are short.
fn word(rank: u64, rng: &mut Rng) -> String {
    const BEGIN: [&str; 20] = [
        "", "b", "c", "d", "f", "g", "h", "l", "m", "n", "p", "r", "s", "t", "w", "st", "tr", "pr", "ch",
        "th",
    ];
    const MIDDLE: [&str; 10] = ["a", "e", "i", "o", "u", "e", "a", "ea", "io", "ou"];
    const END: [&str; 8] = ["", "", "", "n", "r", "s", "t", "l"];
    let syllables = 1 + rng.below(2 + u64::from(rank > 20) + u64::from(rank > 500));
    let mut part = |parts: &[&'static str]| parts[rng.below(parts.len() as u64) as usize];
    (0..syllables).flat_map(|_| [part(&BEGIN), part(&MIDDLE), part(&END)]).collect()
}
