//! Detection of the format that a log is written in. The one that fits most of its first lines.

use super::{Dialect, Format, KNOWN, w3c};
use crate::access::Access;
use crate::class::{self, Word};

/// A format that was recognised.
#[derive(Debug, Clone)]
pub struct Recognised {
    /// The format.
    pub format: Format,
    /// Lines that were looked at.
    pub tried: usize,
    /// Lines of them that fit.
    pub fit: usize,
}

/// Lines that are looked at.
const LINES: usize = 200;
/// Of so many lines one must fit: fewer, and it is chance.
const ONE_IN: usize = 10;

/// Finds the format of the lines in `head`, the beginning of a log. The last line may be cut off, and is left out
/// unless it is the only one.
pub fn recognise(head: &[u8]) -> Option<Recognised> {
    let mut lines: Vec<&[u8]> = head.split(|byte| *byte == b'\n').map(trim).collect();
    if lines.len() > 1 {
        lines.pop();
    }
    lines.retain(|line| !line.is_empty() && line[0] != b'#');
    lines.truncate(LINES);
    let mut best: Option<(usize, usize, Format)> = None;
    // A log that names its fields itself is read by that, if it can be.
    let own = named_by_itself(head);
    let formats = KNOWN.iter().map(super::Known::format);
    for format in own.clone().into_iter().chain(formats.filter(|_| own.is_none())) {
        let (mut fit, mut told) = (0, 0);
        for line in &lines {
            let mut access = Access::default();
            if read_line(&format, line, &mut access).is_ok() {
                fit += 1;
                told += usize::from(class::word(access.outcome) != Word::Unknown);
            }
        }
        // Fits equally well: the one whose words for what became of requests are understood, then the one that says more.
        let rank = (fit, told + format.fields());
        if fit > 0 && best.as_ref().is_none_or(|(fit, more, _)| rank > (*fit, *more)) {
            best = Some((rank.0, rank.1, format));
        }
    }
    let (fit, _, format) = best?;
    (fit * ONE_IN >= lines.len()).then_some(Recognised { format, tried: lines.len(), fit })
}

/// The format that a line of the log itself names (W3C extended).
fn named_by_itself(head: &[u8]) -> Option<Format> {
    let mut lines = head.split(|byte| *byte == b'\n').map(trim);
    let line = lines.find(|line| line.starts_with(w3c::DIRECTIVE.as_bytes()))?;
    let mut format = Format::compile(Dialect::W3c, std::str::from_utf8(line).ok()?).ok()?;
    "w3c".clone_into(&mut format.name);
    "W3C extended, as the log itself names its fields".clone_into(&mut format.about);
    Some(format)
}

/// Without what other systems put before the end of a line.
pub(crate) fn trim(line: &[u8]) -> &[u8] {
    line.strip_suffix(b"\r").unwrap_or(line)
}

/// Reads a line into an access that holds nothing yet; also one that has the head of a syslog message before it
/// (`Feb  6 12:14:14 host haproxy[14389]: `).
#[inline]
pub(crate) fn read_line<'a>(
    format: &Format,
    line: &'a [u8],
    access: &mut Access<'a>,
) -> Result<(), super::Malformed> {
    let plain = format.fill(line, access);
    let Err(malformed) = plain else { return Ok(()) };
    let head = &line[..line.len().min(128)];
    for (at, _) in head.iter().enumerate().filter(|(_, byte)| **byte == b':') {
        if head[at..].starts_with(b": ") && format.read(&line[at + 2..], access).is_ok() {
            return Ok(());
        }
    }
    Err(malformed)
}

/// Reads an instant that a person wrote: Unix seconds, or a date with or without a time of day and a zone.
pub fn instant_us(text: &str) -> Option<i64> {
    use super::time::{Clock, TimePattern};
    [
        "%Y-%m-%dT%H:%M:%S%z",
        "%Y-%m-%dT%H:%M:%S",
        "%Y-%m-%dT%H:%M",
        "%Y-%m-%d %H:%M:%S",
        "%Y-%m-%d %H:%M",
        "%s.%f",
        "%s",
    ]
    .iter()
    .find_map(|pattern| {
        let mut clock = Clock::default();
        let rest = TimePattern::known(pattern).read(text.as_bytes(), &mut clock)?;
        rest.is_empty().then(|| clock.unix_us()).flatten()
    })
    .or_else(|| {
        if text.len() == 10 && text.contains('-') { instant_us(&format!("{text}T00:00:00")) } else { None }
    })
}
