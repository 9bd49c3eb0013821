//! Formats of access logs. A format, compiled from the words that the proxy itself is configured with.
//!
//! A format string is a row of literals and fields. It is compiled once, to steps that cut a line without copying
//! anything; one blank in a format stands for any number of them in a line, because proxies pad.

mod assay;
mod current;
mod detect;
mod extra;
mod field;
mod haproxy;
mod known;
mod ncsa;
mod nginx;
mod piece;
mod says;
mod squid;
mod time;
mod trafficserver;
mod w3c;

use std::fmt;

use thiserror::Error;

pub use assay::FIELDS as ASSAY_FIELDS;
pub(crate) use current::Current;
pub use detect::{Recognised, instant_us, recognise};
pub(crate) use detect::{read_line, trim};
pub use extra::{Extra, how_to_log, title};
pub use known::{KNOWN, Known};
pub use says::{Fact, Says};

use crate::access::Access;
use crate::hash::hash;
use field::Field;
use piece::Piece;
use time::Clock;

/// A format string that cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("`{format}` cannot be used as a log format: {why}")]
pub struct FormatError {
    /// The format, as given.
    pub format: String,
    /// What is wrong and what to do.
    pub why: String,
}

/// Whose words a format string uses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Dialect {
    /// Squid's `logformat`.
    Squid,
    /// Apache httpd's `LogFormat`, and varnishncsa's `-F`.
    Ncsa,
    /// nginx's `log_format`.
    Nginx,
    /// HAProxy's `log-format`.
    Haproxy,
    /// Traffic Server's `logging.yaml`.
    TrafficServer,
    /// `{field}`, as descriptions of proxies have it.
    Assay,
    /// W3C extended: the line `#Fields: …` of the log itself.
    W3c,
}

/// A compiled format.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Format {
    /// Name, or the format string.
    pub name: String,
    /// What it is, for people.
    pub about: String,
    steps: Vec<Step>,
    /// How many fields there are.
    parts: usize,
    dialect: Dialect,
    says: Says,
    counts_bodies: bool,
    duration_unit_us: u64,
    key: u64,
    /// The log itself names its fields, and may name others later.
    is_of_log: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Step {
    /// What must stand there; blanks in it are as many as there are.
    Text(Box<[u8]>),
    Field(Field, Until),
    /// The same, in quotes if it begins with one.
    Quoted(Field, Until),
}

/// Where a field ends.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Until {
    /// At the end of the line.
    End,
    /// There too, and no blank is in it.
    EndOfWord,
    /// Before this text.
    Text(Box<[u8]>),
    /// Before this text, which begins with a quote that no backslash takes the meaning from.
    Quote(Box<[u8]>),
}

/// Why a line could not be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Malformed {
    step: usize,
    /// Where in the line.
    pub at: usize,
    problem: Problem,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Problem {
    /// A text of the format does not stand there.
    NotThere,
    /// The field has no end.
    NoEnd,
    /// What stands there cannot be that.
    Wrong,
    /// There is more than the format says.
    More,
}

impl Format {
    /// Reads a format: the name of a known one, or a format string in the words of any of the proxies.
    pub fn parse(text: &str) -> Result<Self, FormatError> {
        if let Some(known) = KNOWN.iter().find(|known| known.names.contains(&text)) {
            return Ok(known.format());
        }
        let Some(dialect) = dialect_of(text) else {
            let names: Vec<&str> = KNOWN.iter().filter_map(|known| known.names.first().copied()).collect();
            let why = format!(
                "it is no format string (nothing in it begins with `%`, `$` or `{{`), and there is no format of that \
                 name; there are {}",
                names.join(", ")
            );
            return Err(FormatError { format: text.to_owned(), why });
        };
        Self::compile(dialect, text)
    }

    /// Compiles a format string.
    pub fn compile(dialect: Dialect, text: &str) -> Result<Self, FormatError> {
        let pieces = match dialect {
            Dialect::Squid => squid::pieces(text),
            Dialect::Ncsa => ncsa::pieces(text),
            Dialect::Nginx => nginx::pieces(text),
            Dialect::Haproxy => haproxy::pieces(text),
            Dialect::TrafficServer => trafficserver::pieces(text),
            Dialect::Assay => assay::pieces(text),
            Dialect::W3c => w3c::pieces(text),
        };
        pieces
            .and_then(assemble)
            .map(|steps| Self::of(text, dialect, steps))
            .map_err(|why| FormatError { format: text.to_owned(), why })
    }

    fn of(text: &str, dialect: Dialect, steps: Vec<Step>) -> Self {
        let fields = || {
            steps.iter().filter_map(|step| match step {
                Step::Field(field, _) | Step::Quoted(field, _) => Some(field),
                Step::Text(_) => None,
            })
        };
        Self {
            name: text.to_owned(),
            about: format!("a format of your own, in the words of {}", dialect.owner()),
            parts: fields().count(),
            dialect,
            says: Says::of(fields()),
            counts_bodies: fields().any(|field| *field == Field::Body),
            duration_unit_us: fields().filter_map(Field::duration_unit_us).max().unwrap_or(1),
            key: hash(text.as_bytes()),
            is_of_log: false,
            steps,
        }
    }

    /// Stands for its format string: formats of logs that name their fields themselves all have the same name.
    pub fn key(&self) -> u64 {
        self.key
    }

    /// True when bytes are those of bodies alone; otherwise heads may be among them.
    pub fn counts_bodies(&self) -> bool {
        self.counts_bodies
    }

    /// What its lines say of requests.
    pub fn says(&self) -> Says {
        self.says
    }

    /// The unit of durations in microseconds; lines may have fractions of it.
    pub(crate) fn duration_unit_us(&self) -> u64 {
        self.duration_unit_us
    }

    /// Whose notation it is written in.
    pub fn dialect(&self) -> Dialect {
        self.dialect
    }

    /// How many fields a line has: of two formats that fit, the one with more says more.
    pub fn fields(&self) -> usize {
        self.parts
    }

    /// Reads a line (without its end).
    pub fn read<'a>(&self, line: &'a [u8], access: &mut Access<'a>) -> Result<(), Malformed> {
        *access = Access::default();
        self.fill(line, access)
    }

    /// Reads a line into an access that holds nothing yet.
    fn fill<'a>(&self, line: &'a [u8], access: &mut Access<'a>) -> Result<(), Malformed> {
        let clock = self.walk(line, |field, value, clock| field.take(value, access, clock))?;
        access.time_us = clock.unix_us();
        access.line = line;
        Ok(())
    }

    /// What lines say beside what an access holds.
    pub fn extras(&self) -> impl Iterator<Item = Extra<'_>> {
        self.steps.iter().filter_map(|step| match step {
            Step::Field(field, _) | Step::Quoted(field, _) => field.extra(),
            Step::Text(_) => None,
        })
    }

    /// Hands over what a line ([`Access::line`]) says beside what its access holds; what it leaves out is not among that.
    pub fn each_extra<'f, 'a>(&'f self, line: &'a [u8], mut each: impl FnMut(Extra<'f>, &'a [u8])) {
        let read = self.walk(line, |field, value, _| {
            if let Some(extra) = field.extra().filter(|_| !matches!(value, b"" | b"-")) {
                each(extra, value);
            }
            Some(())
        });
        debug_assert!(read.is_ok(), "the line was read before");
    }

    /// Cuts a line into its fields, and hands over each with what stands in it; none: it cannot be that.
    #[inline(always)]
    fn walk<'f, 'a>(
        &'f self,
        line: &'a [u8],
        mut take: impl FnMut(&'f Field, &'a [u8], &mut Clock) -> Option<()>,
    ) -> Result<Clock, Malformed> {
        let mut clock = Clock::default();
        let mut rest = line;
        for (index, step) in self.steps.iter().enumerate() {
            let stop = |problem, rest: &[u8]| Malformed { step: index, at: line.len() - rest.len(), problem };
            let (field, until, quoted) = match step {
                Step::Text(text) => {
                    rest = skip_text(text, rest).ok_or_else(|| stop(Problem::NotThere, rest))?;
                    continue;
                }
                Step::Field(field, until) => (field, until, false),
                Step::Quoted(field, until) => (field, until, rest.first() == Some(&b'"')),
            };
            if let Field::Time(pattern) = field {
                let from = if quoted { &rest[1..] } else { rest };
                rest = pattern.read(from, &mut clock).ok_or_else(|| stop(Problem::Wrong, rest))?;
                if quoted {
                    rest = rest.strip_prefix(b"\"").ok_or_else(|| stop(Problem::NoEnd, rest))?;
                }
                continue;
            }
            let cut = if quoted {
                cut_quoted(rest)
            } else if *field == Field::Braces {
                Some(cut_braces(rest))
            } else if matches!(field, Field::PeerList | Field::SkipList) {
                cut_list(until, rest)
            } else {
                until.cut(rest)
            };
            let (value, after) = cut.ok_or_else(|| stop(Problem::NoEnd, rest))?;
            take(field, value, &mut clock).ok_or_else(|| stop(Problem::Wrong, rest))?;
            rest = after;
        }
        if !rest.is_empty() {
            let at = line.len() - rest.len();
            return Err(Malformed { step: self.steps.len(), at, problem: Problem::More });
        }
        Ok(clock)
    }

    /// Why a line could not be read, in words.
    pub fn explain(&self, malformed: &Malformed) -> String {
        let at = malformed.at + 1;
        match (self.steps.get(malformed.step), malformed.problem) {
            (Some(Step::Text(text)), _) if text.iter().all(|byte| *byte == b' ') => {
                format!("the line ends where another field should follow (character {at})")
            }
            (Some(Step::Text(text)), _) => {
                format!("`{}` does not stand at character {at}", String::from_utf8_lossy(text))
            }
            (Some(Step::Field(field, _) | Step::Quoted(field, _)), Problem::NoEnd) => {
                format!(
                    "the {} at character {at} has no end: the line is cut off, or not of this format",
                    field.name()
                )
            }
            (Some(Step::Field(field, _) | Step::Quoted(field, _)), _) => {
                format!("what stands at character {at} is no {}", field.name())
            }
            (None, _) => format!("there is more in the line than the format says, from character {at} on"),
        }
    }
}

impl Dialect {
    /// Whose words these are.
    pub fn owner(self) -> &'static str {
        match self {
            Dialect::Squid => "Squid",
            Dialect::Ncsa => "Apache httpd and varnishncsa",
            Dialect::Nginx => "nginx",
            Dialect::Haproxy => "HAProxy",
            Dialect::TrafficServer => "Traffic Server",
            Dialect::Assay => "Assay's descriptions of proxies",
            Dialect::W3c => "W3C extended logs",
        }
    }
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.name)
    }
}

/// Whose words a format string uses: each proxy has signs of its own.
fn dialect_of(text: &str) -> Option<Dialect> {
    if text.starts_with(w3c::DIRECTIVE) {
        return Some(Dialect::W3c);
    }
    let any = |signs: &[&str]| signs.iter().any(|sign| text.contains(sign));
    if any(&["%<"]) && trafficserver::looks_like(text) {
        return Some(Dialect::TrafficServer);
    }
    if any(&["$"]) && !any(&["%"]) {
        return Some(Dialect::Nginx);
    }
    if any(&["%"]) {
        // The first dialect that knows every word of it.
        return Some(
            [Dialect::Squid, Dialect::Haproxy, Dialect::Ncsa]
                .into_iter()
                .find(|dialect| Format::compile(*dialect, text).is_ok())
                .unwrap_or(Dialect::Ncsa),
        );
    }
    any(&["{"]).then_some(Dialect::Assay)
}

/// Pieces to steps: neighbours become one, and every field but the last gets its end.
fn assemble(pieces: Vec<Piece>) -> Result<Vec<Step>, String> {
    let pieces = join(pieces);
    let mut steps = Vec::with_capacity(pieces.len());
    for (index, piece) in pieces.iter().enumerate() {
        let quoted = matches!(piece, Piece::Quoted(_));
        let field = match piece {
            Piece::Text(text) => {
                steps.push(Step::Text(text.as_bytes().into()));
                continue;
            }
            Piece::Field(field) | Piece::Quoted(field) => field.clone(),
        };
        let in_quotes = index > 0 && matches!(&pieces[index - 1], Piece::Text(text) if text.ends_with('"'));
        let until = match pieces.get(index + 1) {
            // Fields that know themselves where they end.
            _ if field == Field::Braces => Until::End,
            None if field.is_one_word() => Until::EndOfWord,
            None => Until::End,
            Some(Piece::Text(text)) if in_quotes && text.starts_with('"') => {
                Until::Quote(text.as_bytes().into())
            }
            Some(Piece::Text(text)) => Until::Text(text.as_bytes().into()),
            Some(Piece::Field(next) | Piece::Quoted(next)) => {
                return Err(format!(
                    "nothing stands between the {} and the {} after it",
                    field.name(),
                    next.name()
                ));
            }
        };
        steps.push(if quoted { Step::Quoted(field, until) } else { Step::Field(field, until) });
    }
    if !steps.iter().any(|step| !matches!(step, Step::Text(_))) {
        return Err("there is no field in it".into());
    }
    Ok(steps)
}

/// Neighbouring texts become one, and so do fields that are written without anything between them.
fn join(pieces: Vec<Piece>) -> Vec<Piece> {
    let mut joined: Vec<Piece> = Vec::new();
    for piece in pieces {
        match (joined.last_mut(), piece) {
            (Some(Piece::Text(before)), Piece::Text(text)) => before.push_str(&text),
            (Some(Piece::Field(Field::Path | Field::HostPath | Field::Url)), Piece::Field(Field::Query)) => {}
            (Some(Piece::Field(before @ Field::Host)), Piece::Field(Field::Path | Field::HostPath)) => {
                *before = Field::HostPath;
            }
            (_, piece) => joined.push(piece),
        }
        match joined.as_slice() {
            // Seconds, a point and their fraction are one number.
            [.., Piece::Field(Field::EpochSeconds), Piece::Text(point), Piece::Field(Field::Fraction)]
                if point == "." =>
            {
                joined.truncate(joined.len() - 2);
            }
            // An address can have colons in it; a port has none.
            [.., Piece::Field(Field::Client), Piece::Text(colon), Piece::Field(Field::Skip)]
                if colon == ":" =>
            {
                joined.truncate(joined.len() - 3);
                joined.push(Piece::Field(Field::ClientAndPort));
            }
            _ => {}
        }
    }
    joined
}

/// The text at the beginning of a line; what is behind it.
#[inline]
fn skip_text<'a>(text: &[u8], rest: &'a [u8]) -> Option<&'a [u8]> {
    if text == b" " && rest.first() == Some(&b' ') && rest.get(1) != Some(&b' ') {
        return Some(&rest[1..]);
    }
    let mut rest = rest;
    let mut bytes = text.iter().peekable();
    while let Some(byte) = bytes.next() {
        rest = rest.strip_prefix(std::slice::from_ref(byte))?;
        if *byte == b' ' {
            while bytes.next_if(|byte| **byte == b' ').is_some() {}
            while let [b' ', more @ ..] = rest {
                rest = more;
            }
        }
    }
    Some(rest)
}

/// Where a byte stands. Most fields end within sixteen bytes: those are looked at as two numbers, which costs less than to
/// call for help.
#[inline]
fn find(byte: u8, text: &[u8]) -> Option<usize> {
    const ONES: u64 = 0x0101_0101_0101_0101;
    let wanted = u64::from(byte) * ONES;
    let mut at = 0;
    while let Some(word) = text.get(at..).and_then(<[u8]>::first_chunk::<8>).filter(|_| at < 16) {
        // A byte of it is 0 where the text has the byte; the lowest bit that is left belongs to the first of them.
        let apart = u64::from_le_bytes(*word) ^ wanted;
        let zeros = apart.wrapping_sub(ONES) & !apart & (ONES << 7);
        if zeros != 0 {
            return Some(at + (zeros.trailing_zeros() / 8) as usize);
        }
        at += 8;
    }
    memchr::memchr(byte, &text[at..]).map(|found| at + found)
}

impl Until {
    /// The field at the beginning of a line, and what is behind it. Every field of every line comes here: a call would cost
    /// as much as the search.
    #[inline(always)]
    fn cut<'a>(&self, rest: &'a [u8]) -> Option<(&'a [u8], &'a [u8])> {
        match self {
            Until::End => Some((rest, b"")),
            Until::EndOfWord => memchr::memchr(b' ', rest).is_none().then_some((rest, b"")),
            Until::Text(text) => {
                let mut from = 0;
                loop {
                    let at = from + find(text[0], &rest[from..])?;
                    if text.len() == 1 || skip_text(text, &rest[at..]).is_some() {
                        return Some(rest.split_at(at));
                    }
                    from = at + 1;
                }
            }
            Until::Quote(text) => {
                let mut from = 0;
                loop {
                    let at = from + memchr::memchr(b'"', &rest[from..])?;
                    let backslashes = rest[..at].iter().rev().take_while(|byte| **byte == b'\\').count();
                    if backslashes % 2 == 0 && skip_text(text, &rest[at..]).is_some() {
                        return Some(rest.split_at(at));
                    }
                    from = at + 1;
                }
            }
        }
    }
}

/// What stands in quotes, and what is behind them.
fn cut_quoted(rest: &[u8]) -> Option<(&[u8], &[u8])> {
    let (value, after) = Until::Quote(b"\"".as_slice().into()).cut(rest.get(1..)?)?;
    Some((value, &after[1..]))
}

/// Headers in braces with the blank behind them, or nothing.
fn cut_braces(rest: &[u8]) -> (&[u8], &[u8]) {
    if rest.first() != Some(&b'{') {
        return (b"", rest);
    }
    let end = memchr::memchr(b'}', rest).map_or(rest.len(), |at| at + 1);
    let (value, after) = rest.split_at(end);
    (value, after.strip_prefix(b" ").unwrap_or(after))
}

/// A list whose parts are joined by `, ` or ` : `, and what is behind it.
fn cut_list<'a>(until: &Until, rest: &'a [u8]) -> Option<(&'a [u8], &'a [u8])> {
    let mut from = 0;
    loop {
        let (value, after) = until.cut(&rest[from..])?;
        let end = from + value.len();
        let goes_on =
            rest[..end].ends_with(b",") || rest[..end].ends_with(b" :") || after.starts_with(b" : ");
        if !goes_on || after.is_empty() {
            return Some(rest.split_at(end));
        }
        from = end + 1;
    }
}

#[cfg(test)]
mod tests;
