//! Detection of the format that a log is written in. The one that fits most of its first lines.

use std::net::IpAddr;

use super::known::WITH_HOST_FIRST;
use super::{Current, Format, KNOWN, Known, w3c};
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

/// Of ten lines so many must have a host first: a line may be broken, or have the name of a client for its address.
const NEARLY_ALL_OF_10: usize = 9;

/// Finds the format of the lines in `head`, the beginning of a log. The last line may be cut off, and is left out
/// unless it is the only one.
pub fn recognise(head: &[u8]) -> Option<Recognised> {
    let mut lines: Vec<&[u8]> = head.split(|byte| *byte == b'\n').map(trim).collect();
    if lines.len() > 1 {
        lines.pop();
    }
    // A log that names its fields itself is read by that, if it can be.
    if let Some(recognised) = named_by_itself(&lines) {
        return recognised;
    }
    lines.retain(|line| !line.is_empty() && line[0] != b'#');
    lines.truncate(LINES);
    let mut best: Option<(usize, usize, Format)> = None;
    for format in KNOWN.iter().filter(|known| !is_host_first(known)).map(Known::format) {
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
    let (fit, format) = with_host_first(&format, fit, &lines).unwrap_or((fit, format));
    (fit * ONE_IN >= lines.len()).then_some(Recognised { format, tried: lines.len(), fit })
}

/// True for a format that is taken for what the same lines are without their host only if the lines say so.
fn is_host_first(known: &Known) -> bool {
    WITH_HOST_FIRST.iter().any(|(_, with_host)| known.names.contains(with_host))
}

/// Which of the lines that fit a format have a host before them; none: too few. The name of a user (`ident`), which stands second
/// without a host, is never an address; where the first word is mostly an address too, it is rather that of a client in front of a proxy
/// (`X-Forwarded-For`).
fn with_host_first(format: &Format, fit: usize, lines: &[&[u8]]) -> Option<(usize, Format)> {
    let (_, name) = WITH_HOST_FIRST.iter().find(|(without, _)| *without == format.name)?;
    let format = KNOWN.iter().find(|known| known.names.contains(name))?.format();
    let (mut with_host, mut with_name) = (0, 0);
    for line in lines {
        let mut access = Access::default();
        if read_line(&format, line, &mut access).is_ok() && is_address(access.client) {
            with_host += 1;
            with_name += usize::from(!access.host.is_empty() && !is_address(access.host));
        }
    }
    let is_host = with_host * 10 >= fit * NEARLY_ALL_OF_10 && with_name * 2 > with_host;
    is_host.then_some((with_host, format))
}

fn is_address(text: &[u8]) -> bool {
    std::str::from_utf8(text).is_ok_and(|text| text.parse::<IpAddr>().is_ok())
}

/// Lines of a log that names its fields itself (W3C extended), read by these; none: it does not. No format is in it when no line
/// fits.
fn named_by_itself(lines: &[&[u8]]) -> Option<Option<Recognised>> {
    let first = lines.iter().find_map(|line| w3c::named(line)?.ok())?;
    let mut current = Current::new(&first);
    let (mut format, mut tried, mut fit) = (None, 0, 0);
    for line in lines.iter().filter(|line| !line.is_empty()) {
        if line[0] == b'#' {
            // No line fits after one that cannot be used.
            let _ = current.remark(line);
        } else if tried < LINES {
            tried += 1;
            if current.read(line, &mut Access::default()).is_ok() {
                fit += 1;
                format.get_or_insert_with(|| current.format().clone());
            }
        }
    }
    let enough = fit * ONE_IN >= tried;
    Some(format.filter(|_| enough).map(|format| Recognised { format, tried, fit }))
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
