//! Objects, written into URLs and read back. `[prefix]/w<world>/t<type>/<space>_<serial>[extension]`.
//!
//! The space is a letter, where needed with hexadecimal numbers: `p` public, `s<robot>` private (the robot's
//! own self), `o<robot>` bodies of its requests, `u<robot>` best effort (unscheduled), `i<page type>` in a public page,
//! `i<page type>s|o|u<robot>` in a page of a robot's space. Objects of a trace have the paths that the trace says.

use crate::Purpose;
use crate::body::extension;
use crate::model::OriginIndex;
use crate::object::{Object, ObjectId, Space};
use crate::universe::Universe;
use crate::validate::id_exists;
use assay_base::random::{fold, unit_of};

/// A path that names no object of this universe.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum PathError {
    /// The path is of the right form, but of another run.
    #[error("the path belongs to world {seen:08x}, not to {ours:08x}: it was made by another run")]
    OtherWorld {
        /// The tag in the path.
        seen: u32,
        /// The tag of this run.
        ours: u32,
    },
    /// Nothing that this universe would have written.
    #[error("the path names no object of this workload")]
    Unknown,
}

/// Length of `/w<world>/t`.
const MARK: usize = 12;

impl Universe {
    /// The path of an object.
    pub fn path(&self, object: &Object) -> String {
        let mut bytes = Vec::with_capacity(64);
        self.write_path(object, &mut bytes);
        String::from_utf8_lossy(&bytes).into_owned()
    }

    /// Appends the path of an object.
    pub fn write_path(&self, object: &Object, out: &mut Vec<u8>) {
        self.emit_path(&object.id, object.key, out);
    }

    /// The id that a path names at an origin; refuses what [`Universe::path`] would not have written.
    pub fn parse_path(&self, origin: OriginIndex, path: &[u8]) -> Result<ObjectId, PathError> {
        let mut seen = None;
        // A prefix may look like a mark itself, so every place is tried; there is but one in sane workloads.
        for at in (0..path.len().saturating_sub(MARK)).filter(|at| path[*at] == b'/') {
            let Some(world) = mark(&path[at..]) else { continue };
            if world != self.world() {
                seen = seen.or(Some(world));
                continue;
            }
            let Some(id) = parse_tail(origin, &path[at + MARK..]) else { continue };
            if id_exists(self.workload(), self.robot_count(), &id) && self.writes(&id, path) {
                return Ok(id);
            }
        }
        if let Some(id) = self.foreign_at(origin, path) {
            return Ok(id);
        }
        Err(seen.map_or(PathError::Unknown, |seen| PathError::OtherWorld { seen, ours: self.world() }))
    }

    fn writes(&self, id: &ObjectId, path: &[u8]) -> bool {
        let mut rest = PathMatcher(Some(path));
        self.emit_path(id, self.key(id), &mut rest);
        rest.0 == Some(b"")
    }

    fn emit_path(&self, id: &ObjectId, key: u64, out: &mut impl PathSink) {
        if id.space == Space::Foreign {
            return out.put(self.foreign_path(id).as_bytes());
        }
        let (table, content) = (self.content(id.content), &self.workload().contents[usize::from(id.content)]);
        let choice = |purpose: Purpose| unit_of(fold(key, purpose as u64));
        if let Some(index) = table.prefixes.pick(choice(Purpose::Prefix)) {
            out.put(content.prefixes.items()[index].0.as_bytes());
        }
        let mut text = PathBuffer::default();
        text.put(b"/w");
        text.hex(u64::from(self.world()), 8);
        text.put(b"/t");
        text.hex(u64::from(id.content), 2);
        text.put(b"/");
        text.space(id.space);
        text.put(b"_");
        text.hex(id.serial, 16);
        out.put(&text.bytes[..text.length]);
        if let Some((set, file)) = self.content(id.content).body.file_of(self.workload(), key) {
            out.put(extension(set, file).as_bytes());
        } else if let Some(index) = table.extensions.pick(choice(Purpose::Extension)) {
            out.put(content.extensions.items()[index].0.as_bytes());
        }
    }
}

/// The middle of a path while it is put together: world, type, space and serial.
struct PathBuffer {
    bytes: [u8; PathBuffer::ROOM],
    length: usize,
}

impl Default for PathBuffer {
    fn default() -> Self {
        Self { bytes: [0; PathBuffer::ROOM], length: 0 }
    }
}

impl PathBuffer {
    /// More than the longest takes, with all digits of its last number.
    const ROOM: usize = 96;

    #[inline]
    fn put<const N: usize>(&mut self, bytes: &[u8; N]) {
        self.bytes[self.length..self.length + N].copy_from_slice(bytes);
        self.length += N;
    }

    /// Writes at least `width` digits.
    #[inline]
    fn hex(&mut self, value: u64, width: usize) {
        let needed = (16 - value.leading_zeros() as usize / 4).max(width).max(1);
        // All sixteen are written, those that count first; what follows writes over the rest.
        self.put(&hex_digits(value << (64 - 4 * needed)));
        self.length -= 16 - needed;
    }

    #[inline]
    fn space(&mut self, space: Space) {
        let mut letter = |letter: &[u8; 1], number: u32| {
            self.put(letter);
            self.hex(u64::from(number), 1);
        };
        match space {
            Space::Public | Space::Foreign => self.put(b"p"),
            Space::Private(robot) => letter(b"s", robot),
            Space::RequestBody(robot) => letter(b"o", robot),
            Space::BestEffort(robot) => letter(b"u", robot),
            Space::InPublicPage { page } => letter(b"i", u32::from(page)),
            Space::InRobotPage { page, robot, kind } => {
                letter(b"i", u32::from(page));
                let kind = match kind {
                    1 => b"s",
                    2 => b"o",
                    _ => b"u",
                };
                letter(kind, robot);
            }
        }
    }
}

/// The world tag when the bytes start with `/w<world>/t`.
fn mark(bytes: &[u8]) -> Option<u32> {
    let (head, tail) = (bytes.get(..2)?, bytes.get(10..MARK)?);
    if head != b"/w" || tail != b"/t" {
        return None;
    }
    let (world, rest) = number(&bytes[2..10])?;
    if rest.is_empty() { u32::try_from(world).ok() } else { None }
}

/// Reads `<type>/<space>_<serial>`; what follows is checked by writing the path again.
fn parse_tail(origin: OriginIndex, bytes: &[u8]) -> Option<ObjectId> {
    let (content, rest) = number(bytes)?;
    let (space, rest) = parse_space(rest.strip_prefix(b"/")?)?;
    let (serial, rest) = number(rest.strip_prefix(b"_")?.get(..16)?)?;
    let content = u16::try_from(content).ok()?;
    rest.is_empty().then_some(ObjectId { origin, content, space, serial })
}

fn parse_space(bytes: &[u8]) -> Option<(Space, &[u8])> {
    let (letter, rest) = bytes.split_first()?;
    if *letter == b'p' {
        return Some((Space::Public, rest));
    }
    let (first, rest) = number(rest)?;
    let first = u32::try_from(first).ok()?;
    let space = match letter {
        b's' => Space::Private(first),
        b'o' => Space::RequestBody(first),
        b'u' => Space::BestEffort(first),
        b'i' => return parse_in_page(u16::try_from(first).ok()?, rest),
        _ => return None,
    };
    Some((space, rest))
}

fn parse_in_page(page: u16, bytes: &[u8]) -> Option<(Space, &[u8])> {
    let kind = match bytes.first()? {
        b's' => 1,
        b'o' => 2,
        b'u' => 3,
        _ => return Some((Space::InPublicPage { page }, bytes)),
    };
    let (robot, rest) = number(&bytes[1..])?;
    Some((Space::InRobotPage { page, robot: u32::try_from(robot).ok()?, kind }, rest))
}

/// Values of lower-case hexadecimal digits; 16 and more: it is none.
static DIGITS: [u8; 256] = {
    let mut table = [0xff; 256];
    let digits = b"0123456789abcdef";
    let mut value = 0;
    while value < digits.len() {
        table[digits[value] as usize] = value as u8;
        value += 1;
    }
    table
};

/// Reads lower-case hexadecimal digits, at least one and at most 16.
#[inline]
fn number(bytes: &[u8]) -> Option<(u64, &[u8])> {
    let (mut value, mut length) = (0, 0);
    while let Some(byte) = bytes.get(length) {
        let digit = DIGITS[usize::from(*byte)];
        if digit > 15 {
            break;
        }
        if length == 16 {
            return None;
        }
        value = value << 4 | u64::from(digit);
        length += 1;
    }
    if length == 0 { None } else { Some((value, &bytes[length..])) }
}

/// Sixteen lower-case hexadecimal digits, the highest first.
#[inline]
pub const fn hex_digits(value: u64) -> [u8; 16] {
    let (high, low) = (spread((value >> 32) as u32).to_be_bytes(), spread(value as u32).to_be_bytes());
    let [a, b, c, d, e, f, g, h] = high;
    let [i, j, k, l, m, n, o, p] = low;
    [a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p]
}

/// Eight hexadecimal digits, all at once: a byte of the word for each, the highest first.
#[inline]
const fn spread(value: u32) -> u64 {
    const ONES: u64 = 0x0101_0101_0101_0101;
    let word = value as u64;
    let word = (word | word << 16) & 0x0000_ffff_0000_ffff;
    let word = (word | word << 8) & 0x00ff_00ff_00ff_00ff;
    let word = (word | word << 4) & 0x0f0f_0f0f_0f0f_0f0f;
    // 1 in the bytes of digits above 9.
    let letters = ((word + 6 * ONES) >> 4) & ONES;
    word + (b'0' as u64) * ONES + letters * (b'a' - b'9' - 1) as u64
}

/// Receiver of the pieces of a path.
trait PathSink {
    fn put(&mut self, bytes: &[u8]);
}

impl PathSink for Vec<u8> {
    fn put(&mut self, bytes: &[u8]) {
        self.extend_from_slice(bytes);
    }
}

/// A path that should be written next; none once something else was.
struct PathMatcher<'a>(Option<&'a [u8]>);

impl PathSink for PathMatcher<'_> {
    fn put(&mut self, bytes: &[u8]) {
        self.0 = self.0.and_then(|rest| rest.strip_prefix(bytes));
    }
}
