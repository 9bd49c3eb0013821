//! Detection of the formats that a log is written in: those of which the values of the first lines are such values.

use std::fmt::{self, Write};
use std::net::IpAddr;

use super::field::{DurationUnit, Field};
use super::known::{WITH_HOST_FIRST, WITH_HOST_SECOND};
use super::prefix::begins_with_day;
use super::{
    Fact, FieldValue, Format, FormatTracker, KNOWN_FORMATS, KnownFormat, LineError, Mismatch, json, w3c,
};
use crate::access::Access;
use crate::class::{self, OutcomeWord};
use crate::json_escape;

/// The formats of a log.
#[derive(Debug, Clone)]
pub struct DetectedFormats {
    /// The format of most lines.
    pub format: Format,
    /// Formats of other lines, where a log has several.
    pub others: Vec<Format>,
    /// Lines that were looked at; 0: the format was given.
    pub tried: usize,
    /// Lines of them that fit one of the formats.
    pub fit: usize,
}

impl DetectedFormats {
    /// The format that somebody gave.
    pub fn given(format: &Format) -> Self {
        Self { format: format.clone(), others: Vec::new(), tried: 0, fit: 0 }
    }
}

/// Reason for which no format was detected.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DetectError {
    /// No line fits any known format.
    Unknown {
        /// The format that explains most of the first line; none: not even its first field fits any.
        nearest: Option<Nearest>,
    },
    /// Lines fit two formats equally well, and mean different things in them.
    Ambiguous { names: [String; 2] },
    /// Lines are JSON, and their keys are not known.
    Json {
        keys: String,
        /// A format string for them, in nginx's words; none: objects lie in one another.
        template: Option<String>,
    },
    /// The log names its fields itself, and no line after that fits them.
    Fields {
        /// Defect of the first of these lines; empty: there is none.
        why: String,
    },
}

/// A format, and why a line does not fit it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Nearest {
    /// Name of the format.
    pub name: String,
    /// Format string to start from; none: JSON, or the line fits too few fields.
    pub text: Option<&'static str>,
    /// Position at which the line ceases to fit, and the reason.
    pub why: String,
}

impl fmt::Display for DetectError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unknown { nearest: None } => write!(f, "it begins like a line of no known format"),
            Self::Unknown { nearest: Some(Nearest { name, text, why }) } => {
                write!(f, "the nearest format is {name}, but {why}")?;
                text.map_or(Ok(()), |text| write!(f, "; {name} is --format '{text}'"))
            }
            Self::Ambiguous { names: [one, other] } => {
                write!(f, "it fits {one} and {other}, in which it means different things")
            }
            Self::Json { keys, .. } => write!(
                f,
                "it is JSON, but its keys ({keys}) do not tell which are the time of a request, and its URL or status"
            ),
            Self::Fields { why } if why.is_empty() => write!(f, "the log names its fields, but has no lines"),
            Self::Fields { why } => write!(f, "the log names its fields, but the lines do not fit: {why}"),
        }
    }
}

/// Lines at the beginning of a log that are looked at to find out how it is written.
pub(crate) const SAMPLE_LINES: usize = 200;
/// Lines of which at least one must fit: with fewer, it is chance.
const ONE_IN: usize = 10;
/// Lines out of ten matching ones that must have meaningful values, and that must begin with a host: a line may be broken, or have
/// the name of a client for its address.
const NEARLY_ALL_OF_10: usize = 9;
/// Lines that another format than the first must explain.
pub(super) const OTHERS_LINES: usize = 3;
/// Lines of which at least one must be of another format, if its lines could be truncated lines of the first.
const CUT_ONE_IN: usize = 5;

/// Bytes of a line that are shown from where it ceases to fit.
const SHOWN_BYTES: usize = 24;

/// Fields of the nearest format of which a line must fit at least one for that format's string to be shown.
const NEAR_ONE_IN: usize = 3;

#[derive(Debug, Default)]
struct Fit<'l> {
    /// Lines that fit and mean something.
    lines: usize,
    /// Words for outcomes that are understood.
    outcomes: usize,
    fields: usize,
    /// The first line that fits, as it was read.
    first: Option<Access<'l>>,
}

impl<'l> Fit<'l> {
    /// Tries a format; none: what its fields would hold is not what they stand for.
    fn of(format: &Format, lines: &[&'l [u8]]) -> Option<Self> {
        let mut fit = Self { fields: format.fields(), ..Self::default() };
        let mut read = 0;
        for line in lines {
            let mut access = Access::default();
            if read_line(format, line, &mut access).is_err() {
                continue;
            }
            read += 1;
            if format.is_plausible(&access) {
                fit.lines += 1;
                fit.outcomes += usize::from(class::parse_outcome(access.outcome) != OutcomeWord::Unknown);
                fit.first.get_or_insert(access);
            }
        }
        (fit.lines > 0 && fit.lines * 10 >= read * NEARLY_ALL_OF_10).then_some(fit)
    }

    /// Of those that fit about equally well: the one whose words for what became of requests are understood, and that says more.
    fn rank(&self) -> (usize, usize) {
        (self.outcomes + self.fields, self.lines)
    }
}

/// Finds the formats of the lines in `head`, the beginning of a log. The last line may be cut off, and is left out unless it is the only
/// one.
pub fn detect(head: &[u8]) -> Result<DetectedFormats, DetectError> {
    let mut lines: Vec<&[u8]> = head.split(|byte| *byte == b'\n').map(trim).collect();
    if lines.len() > 1 {
        // `head` may end within a line.
        lines.pop();
    }
    // A log that names its fields itself is read by that, if it can be. Lines that come before may be of something else.
    let begins_so = lines.iter().find(|line| !line.is_empty()).is_some_and(|line| line[0] == b'#');
    if let Some(recognised) = named_by_itself(&lines).filter(|found| found.is_ok() || begins_so) {
        return recognised;
    }
    lines.retain(|line| !line.is_empty() && line[0] != b'#');
    lines.truncate(SAMPLE_LINES);
    let tried = lines.len();
    let known: Vec<Format> =
        KNOWN_FORMATS.iter().filter(|known| !has_host_added(known)).map(KnownFormat::format).collect();
    if let Some(recognised) = from_json_lines(&known, &lines) {
        return recognised;
    }
    let Some(best) = best_of(&known, &lines)? else {
        return Err(DetectError::Unknown { nearest: lines.first().and_then(|line| nearest(&known, line)) });
    };
    let with_host = with_host_first(&best, &lines).or_else(|| with_host_second(&best, &lines));
    let Best { lines: mut fit, format } = with_host.unwrap_or(best);
    // The lines that fit are looked at again, for ports.
    let sample = lines.clone();
    lines.retain(|line| !is_of(&format, line));
    let others = others_of(&known, &format, &mut lines, &mut fit);
    if fit * ONE_IN < tried {
        return Err(DetectError::Unknown { nearest: lines.first().and_then(|line| nearest(&known, line)) });
    }
    Ok(DetectedFormats { format: format.with_ports(&sample), others, tried, fit })
}

/// Lines that are JSON objects for the most part, by their keys; none: they are not.
fn from_json_lines(known: &[Format], lines: &[&[u8]]) -> Option<Result<DetectedFormats, DetectError>> {
    let objects = lines.iter().filter(|line| object(line).is_some()).count();
    if objects * 2 < lines.len() || objects == 0 {
        return None;
    }
    // As they are read.
    let decoded: Vec<Vec<u8>> = lines.iter().map(|line| json_escape::decoded(line)).collect();
    let lines: Vec<&[u8]> = decoded.iter().map(Vec::as_slice).collect();
    let objects: Vec<&[u8]> = lines.iter().filter_map(|line| object(line)).collect();
    let format = Format::from_json_lines(&objects)?;
    let facts = format.facts();
    if !facts.contains(Fact::Time) || !(facts.contains(Fact::Url) || facts.contains(Fact::Status)) {
        // Requests without any of these cannot be counted, whatever other keys are understood.
        let template = json::template(objects[0]);
        return Some(Err(DetectError::Json { keys: format.keys().join(", "), template }));
    }
    let can_read = |line: &&[u8]| read_line(&format, line, &mut Access::default()).is_ok();
    let mut fit = lines.iter().copied().filter(|line| can_read(line)).count();
    let mut rest: Vec<&[u8]> = lines.iter().copied().filter(|line| !can_read(line)).collect();
    let others = others_of(known, &format, &mut rest, &mut fit);
    if fit * ONE_IN < lines.len() {
        let nearest = rest.first().and_then(|line| nearest(std::slice::from_ref(&format), line));
        return Some(Err(DetectError::Unknown { nearest }));
    }
    Some(Ok(DetectedFormats { format, others, tried: lines.len(), fit }))
}

/// The object in a line, which the head of a syslog message may stand before.
fn object(line: &[u8]) -> Option<&[u8]> {
    let begin = memchr::memchr(b'{', line)?;
    (begin == 0 || line[..begin].ends_with(b": ")).then_some(&line[begin..])
}

/// Formats of the lines that do not fit the first. Adds to the lines that fit.
fn others_of(known: &[Format], first: &Format, lines: &mut Vec<&[u8]>, fit: &mut usize) -> Vec<Format> {
    let tried = *fit + lines.len();
    let mut others: Vec<Format> = Vec::new();
    while let Ok(Some(other)) = best_of(known, lines)
        && other.lines >= OTHERS_LINES
    {
        let own = lines.iter().filter(|line| is_of(&other.format, line));
        // A line that was cut may look like one of a shorter format.
        let cut = own.filter(|line| is_beginning(first, line)).count();
        if cut * 2 > other.lines && other.lines * CUT_ONE_IN < tried {
            break;
        }
        *fit += other.lines;
        lines.retain(|line| !is_of(&other.format, line));
        others.push(other.format);
    }
    others
}

/// True for a line that would fit a format if it went on.
fn is_beginning(format: &Format, line: &[u8]) -> bool {
    let malformed = read_line(format, line, &mut Access::default()).err();
    malformed.is_some_and(|malformed| malformed.problem == Mismatch::NoEnd || malformed.at == line.len())
}

/// A format, and how many lines it fits.
struct Best {
    format: Format,
    lines: usize,
}

/// The format that fits most lines; none fits any.
fn best_of(known: &[Format], lines: &[&[u8]]) -> Result<Option<Best>, DetectError> {
    let mut fits: Vec<(&Format, Fit<'_>)> =
        known.iter().filter_map(|format| Some((format, Fit::of(format, lines)?))).collect();
    let most = fits.iter().map(|(_, fit)| fit.lines).max().unwrap_or_default();
    // A few broken lines decide nothing between formats.
    fits.retain(|(_, fit)| fit.lines * 10 >= most * NEARLY_ALL_OF_10);
    // Of equal ones the first.
    let Some((format, fit)) = fits.iter().rev().max_by_key(|(_, fit)| fit.rank()) else { return Ok(None) };
    // Formats that read the same from the lines may be taken for each other.
    let rival = fits.iter().find(|(_, other)| other.rank() == fit.rank() && other.first != fit.first);
    if let Some((rival, _)) = rival {
        return Err(DetectError::Ambiguous { names: [format.name.clone(), rival.name.clone()] });
    }
    Ok(Some(Best { format: (*format).clone(), lines: fit.lines }))
}

fn is_of(format: &Format, line: &[u8]) -> bool {
    let mut access = Access::default();
    read_line(format, line, &mut access).is_ok() && format.is_plausible(&access)
}

/// The format that explains most of a line.
fn nearest(known: &[Format], line: &[u8]) -> Option<Nearest> {
    struct Failed<'k> {
        format: &'k Format,
        malformed: LineError,
    }
    let failed = known.iter().filter_map(|format| {
        let malformed = read_line(format, line, &mut Access::default()).err()?;
        // A format that fits from no byte on explains nothing.
        (malformed.at > 0).then_some(Failed { format, malformed })
    });
    // One that fits as a whole, with more behind it, before others that come farther; of equal ones the first.
    let rank = |failed: &Failed<'_>| (failed.malformed.problem == Mismatch::More, failed.malformed.at);
    let nearest = failed.reduce(|best, other| if rank(&other) > rank(&best) { other } else { best })?;
    let Failed { format: Format { name, .. }, malformed } = &nearest;
    let mut why = nearest.format.explain(malformed);
    let there = &line[malformed.at.min(line.len())..];
    if !there.is_empty() {
        let shown = String::from_utf8_lossy(&there[..there.len().min(SHOWN_BYTES)]);
        // Writing to a text does not fail.
        let _ = write!(why, " (`{}`)", assay_base::quote::line::line(&shown));
    }
    // Of a line that fits for two fields of twenty, the format is no help.
    let is_near = malformed.step * NEAR_ONE_IN >= nearest.format.fields();
    let known = KNOWN_FORMATS.iter().find(|known| is_near && known.names.contains(&name.as_str()));
    let text = known.map(|known| known.text);
    Some(Nearest { name: name.clone(), text, why })
}

impl Format {
    /// True when what a line holds in each field is what the field stands for, as far as that can be told.
    fn is_plausible(&self, access: &Access<'_>) -> bool {
        let is_plausible = |FieldValue { field, value, .. }: &FieldValue<'_, '_>| match field {
            Field::Outcome(_) => is_nothing(value) || class::parse_outcome(value) != OutcomeWord::Unknown,
            // What is an outcome is no server.
            Field::Server => {
                !value.contains(&b' ')
                    && (value.starts_with(b"<") || class::parse_outcome(value) == OutcomeWord::Unknown)
            }
            Field::Hierarchy => class::is_hierarchy_code(value),
            Field::Client(_) | Field::ClientAndPort | Field::Host(_) => {
                value.iter().all(is_of_address) && !begins_with_day(value)
            }
            Field::Method => value.iter().all(|byte| byte.is_ascii_alphabetic() || b"-_".contains(byte)),
            Field::Url | Field::HostPath => {
                is_nothing(value) || value == b"*" || value.iter().any(|byte| b"/:".contains(byte))
            }
            Field::Path => is_nothing(value) || matches!(value[0], b'/' | b'*'),
            // nginx and CloudFront never leave the fraction out.
            Field::Duration(DurationUnit::Second) => is_nothing(value) || value.contains(&b'.'),
            Field::Xact => is_nothing(value) || value.iter().filter(|byte| **byte == b'-').count() >= 3,
            _ => true,
        };
        let walked = self.walk(access.line, |cut, _| is_plausible(&cut).then_some(()));
        walked.is_ok() && access.time_us.is_none_or(|time_us| (0..LATEST_US).contains(&time_us))
    }
}

/// The year 2100: a later time is a number of something else.
pub(super) const LATEST_US: i64 = 4_102_444_800_000_000;

fn is_nothing(value: &[u8]) -> bool {
    matches!(value, b"" | b"-")
}

/// Letters of addresses and names of hosts, in lists and with ports.
fn is_of_address(byte: &u8) -> bool {
    byte.is_ascii_alphanumeric() || b".:-_%[], ".contains(byte) || !byte.is_ascii()
}

/// True for a format that is taken for what the same lines are without their host only if the lines say so.
fn has_host_added(known: &KnownFormat) -> bool {
    let with_host = WITH_HOST_FIRST.iter().map(|(_, with_host)| with_host);
    with_host.chain([&WITH_HOST_SECOND]).any(|name| known.names.contains(name))
}

/// The format with a host in front, and the lines that have one; none: too few have. The name of a user (`ident`), which
/// stands second without a host, is never an address; where the first word is mostly an address too, it is rather
/// that of a client in front of a proxy (`X-Forwarded-For`).
fn with_host_first(without: &Best, lines: &[&[u8]]) -> Option<Best> {
    let (_, name) = WITH_HOST_FIRST.iter().find(|(name, _)| *name == without.format.name)?;
    let format = KNOWN_FORMATS.iter().find(|known| known.names.contains(name))?.format();
    let (mut with_host, mut with_name) = (0, 0);
    for line in lines {
        let mut access = Access::default();
        if read_line(&format, line, &mut access).is_ok() && is_address(access.client) {
            with_host += 1;
            with_name += usize::from(!access.host.is_empty() && !is_address(access.host));
        }
    }
    let is_host = with_host * 10 >= without.lines * NEARLY_ALL_OF_10 && with_name * 2 > with_host;
    is_host.then_some(Best { format, lines: with_host })
}

/// The format of lighttpd, if the second word is a host and the first the address of a client. Combined has the name of a user there
/// (`ident`), which is missing in most lines and has no domain. Where it is mostly an address, the first one is that of another proxy.
fn with_host_second(without: &Best, lines: &[&[u8]]) -> Option<Best> {
    if without.format.name != "combined" {
        return None;
    }
    let format = KNOWN_FORMATS.iter().find(|known| known.names.contains(&WITH_HOST_SECOND))?.format();
    let (mut with_host, mut with_name) = (0, 0);
    for line in lines {
        let mut access = Access::default();
        if read_line(&format, line, &mut access).is_ok() && is_address(access.client) {
            let is_name = is_domain_name(access.host);
            with_host += usize::from(is_name || is_address(access.host));
            with_name += usize::from(is_name);
        }
    }
    let is_host = with_host * 10 >= without.lines * NEARLY_ALL_OF_10 && with_name * 2 > with_host;
    is_host.then_some(Best { format, lines: without.lines })
}

/// True for a name with a domain, with a port or without, and for `localhost`.
fn is_domain_name(host: &[u8]) -> bool {
    let name = match memchr::memrchr(b':', host) {
        Some(colon) if host[colon + 1..].iter().all(u8::is_ascii_digit) => &host[..colon],
        _ => host,
    };
    let is_label = |label: &[u8]| {
        !label.is_empty() && label.iter().all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(byte))
    };
    let has_domain = name.contains(&b'.') && name.split(|byte| *byte == b'.').all(is_label);
    (has_domain && !is_address(name)) || name == b"localhost"
}

fn is_address(text: &[u8]) -> bool {
    std::str::from_utf8(text).is_ok_and(|text| text.parse::<IpAddr>().is_ok())
}

/// Lines of a log that names its fields itself (W3C extended), read by these; none: it does not.
fn named_by_itself(lines: &[&[u8]]) -> Option<Result<DetectedFormats, DetectError>> {
    let first = lines.iter().find_map(|line| w3c::from_directive(line)?.ok())?;
    let mut current = FormatTracker::new(&DetectedFormats::given(&first));
    let (mut format, mut tried, mut fit) = (None, 0, 0);
    let mut why = String::new();
    for line in lines.iter().filter(|line| !line.is_empty()) {
        if line[0] == b'#' {
            // No line fits after one that cannot be used.
            let _ = current.read_remark(line);
        } else if tried < SAMPLE_LINES {
            tried += 1;
            match current.read(line, &mut Access::default()) {
                Ok(()) => {
                    fit += 1;
                    format.get_or_insert_with(|| current.format().clone());
                }
                Err(malformed) if why.is_empty() => why = current.explain(malformed.as_ref()),
                Err(_) => {}
            }
        }
    }
    let enough = fit * ONE_IN >= tried;
    let recognised =
        format.filter(|_| enough).map(|format| DetectedFormats { format, others: Vec::new(), tried, fit });
    Some(recognised.ok_or(DetectError::Fields { why }))
}

/// Without what other systems put before the end of a line, and without the NULs that a copy left before its beginning when the log was
/// truncated under it.
pub(crate) fn trim(line: &[u8]) -> &[u8] {
    let line = line.strip_suffix(b"\r").unwrap_or(line);
    match line.first() {
        Some(0) => &line[line.iter().position(|byte| *byte != 0).unwrap_or(line.len())..],
        _ => line,
    }
}

/// Reads a line into an access that holds nothing yet; also one that has the head of a syslog message before it
/// (`Feb  6 12:14:14 host haproxy[14389]: `). What is wrong is told of the attempt that came farthest.
#[inline]
pub(crate) fn read_line<'a>(
    format: &Format,
    line: &'a [u8],
    access: &mut Access<'a>,
) -> Result<(), LineError> {
    let plain = format.fill(line, access);
    let Err(mut farthest) = plain else { return Ok(()) };
    let head = &line[..line.len().min(128)];
    for (colon, _) in head.iter().enumerate().filter(|(_, byte)| **byte == b':') {
        if !head[colon..].starts_with(b": ") {
            continue;
        }
        let begin = colon + 2;
        match format.read(&line[begin..], access) {
            Ok(()) => return Ok(()),
            Err(malformed) if malformed.step > farthest.step => {
                farthest = LineError { at: begin + malformed.at, ..malformed };
            }
            Err(_) => {}
        }
    }
    Err(farthest)
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
