//! Formats of access logs. A format, compiled from the words that the proxy itself is configured with.
//!
//! A format string is a row of literals and fields. It is compiled once, to steps that cut a line without copying
//! anything; one blank in a format stands for any number of them in a line, because proxies pad.

mod assay;
mod choice;
mod detect;
mod error;
mod extra;
mod facts;
mod field;
mod find;
mod haproxy;
mod json;
mod known;
mod ncsa;
mod nginx;
pub(crate) mod prefix;
mod squid;
mod time;
mod token;
mod tracker;
mod trafficserver;
mod w3c;

use std::fmt;

pub use assay::FIELDS as ASSAY_FIELDS;
pub use choice::UnusedField;
pub use detect::{DetectError, DetectedFormats, detect, instant_us};
pub(crate) use detect::{SAMPLE_LINES, read_line, trim};
pub use error::{DirectiveError, FormatError, SyntaxError};
pub use extra::{ExtraField, canonical_field_name, logging_hint};
pub use facts::{Fact, FactSet};
pub use known::{KNOWN_FORMATS, KnownFormat};
pub use time::ticks_in_second;
pub(crate) use tracker::FormatTracker;

use crate::access::{Access, LineKind};
use crate::hash::hash;
use field::{Field, FieldSource};
use find::{find, find_either, is_without};
use time::{Clock, TimePattern};
use token::Token;

/// Notation of a format string.
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
    /// JSON lines: the keys of the log itself.
    Json,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Format {
    /// Name, or the format string.
    pub name: String,
    /// Description for people.
    pub about: String,
    body: LineLayout,
    /// Number of fields.
    parts: usize,
    dialect: Dialect,
    facts: FactSet,
    counts_bodies: bool,
    duration_unit_us: u64,
    unused: Vec<UnusedField>,
    /// Lines are of connections, and say nothing of requests (HAProxy's `option tcplog`).
    describes_connections: bool,
    key: u64,
    /// The log itself names its fields, and may name others later.
    is_self_described: bool,
    /// Day of lines that say none, since 1970; none: not known.
    day: Option<i64>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum LineLayout {
    Steps(Vec<FormatStep>),
    Keys(json::Keys),
}

impl LineLayout {
    fn fields(&self) -> impl Iterator<Item = &Field> {
        let (steps, keys): (&[FormatStep], &[json::Key]) = match self {
            LineLayout::Steps(steps) => (steps, &[]),
            LineLayout::Keys(keys) => (&[], keys.list()),
        };
        steps.iter().filter_map(FormatStep::field).chain(keys.iter().map(|key| &key.field))
    }

    fn fields_mut(&mut self) -> impl Iterator<Item = &mut Field> {
        let (steps, keys): (&mut [FormatStep], &mut [json::Key]) = match self {
            LineLayout::Steps(steps) => (steps, &mut []),
            LineLayout::Keys(keys) => (&mut [], keys.list_mut()),
        };
        let steps = steps.iter_mut().filter_map(|step| match step {
            FormatStep::Literal(_) => None,
            FormatStep::Field(step) => Some(&mut step.field),
        });
        steps.chain(keys.iter_mut().map(|key| &mut key.field))
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum FormatStep {
    /// Fixed text; a blank in it stands for any number of blanks.
    Literal(Box<[u8]>),
    Field(FieldStep),
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct FieldStep {
    field: Field,
    /// The field as the format writes it.
    word: Box<str>,
    until: FieldEnd,
    /// In quotes if it begins with one.
    may_be_quoted: bool,
}

/// End of a field.
#[derive(Debug, Clone, PartialEq, Eq)]
enum FieldEnd {
    /// At the end of the line.
    End,
    /// There too, and no blank is in it.
    EndOfWord,
    /// There too, and this is not in it: it stands between all fields.
    EndWithout(u8),
    /// Before a blank. Blanks behind it are skipped with it: most fields end so.
    Blank,
    Literal(Box<[u8]>),
    /// There too, and no blank is in it.
    TextInWord(Box<[u8]>),
    /// The same, of a single byte.
    ByteInWord(u8),
    /// There too, and no quote is in it that nothing escapes: a line was torn otherwise.
    TextInUrl(Box<[u8]>),
    /// Before this text, which begins with a quote that no backslash takes the meaning from.
    Quote(Box<[u8]>),
    /// Before this text or at the end of the line, behind a list whose parts are joined by `, ` or ` : `.
    List(Box<[u8]>),
    /// Behind braces and the blank after them, if there are any.
    Braces,
}

/// A field of a line, for people.
pub(crate) struct ExplainedField<'f, 'l> {
    /// The field as the format writes it.
    pub word: &'f str,
    /// Purpose of the field; none: it is not used.
    pub what: Option<&'static str>,
    pub value: &'l [u8],
}

/// A field of a line, and what stands in it.
struct FieldValue<'f, 'l> {
    /// Place of the field among the steps of its format, or among the keys of the log.
    index: usize,
    field: &'f Field,
    value: &'l [u8],
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LineError {
    step: usize,
    /// Position in the line.
    pub at: usize,
    problem: Mismatch,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Mismatch {
    /// A text of the format does not stand there.
    NotThere,
    /// The field has no end.
    NoEnd,
    /// The value is none of the field's kind.
    Wrong,
    /// There is more than the format says.
    More,
    NoObject,
    /// A JSON object without the keys of a request.
    NoRequest,
}

impl Format {
    /// Reads a format: the name of a known one, or a format string in the words of any of the proxies.
    pub fn parse(text: &str) -> Result<Self, FormatError> {
        if let Some(known) = KNOWN_FORMATS.iter().find(|known| known.names.contains(&text)) {
            return Ok(known.format());
        }
        let Some(dialect) = detect_dialect(text) else {
            let names: Vec<&str> =
                KNOWN_FORMATS.iter().filter_map(|known| known.names.first().copied()).collect();
            let why = SyntaxError::UnknownName { names: names.join(", ") };
            return Err(FormatError { format: text.to_owned(), why });
        };
        Self::compile(dialect, text)
    }

    /// Compiles a format string.
    pub fn compile(dialect: Dialect, text: &str) -> Result<Self, FormatError> {
        let tokens = match dialect {
            Dialect::Squid => squid::tokenize(text),
            Dialect::Ncsa => ncsa::tokenize(text),
            Dialect::Nginx => nginx::tokenize(text),
            Dialect::Haproxy => haproxy::tokenize(text),
            Dialect::TrafficServer => trafficserver::tokenize(text),
            Dialect::Assay => assay::tokenize(text),
            Dialect::W3c => w3c::tokenize(text),
            Dialect::Json => Err(SyntaxError::Json),
        };
        let compiled = tokens.and_then(|tokens| {
            let mut tokens = join(tokens);
            let unused = choice::drop_redundant(&mut tokens);
            Ok(Self::of(text, dialect, LineLayout::Steps(compile_steps(&tokens, dialect)?), unused))
        });
        compiled.map_err(|why| FormatError { format: text.to_owned(), why })
    }

    /// The format of JSON lines, by their keys; none: they are no objects.
    fn from_json_lines(lines: &[&[u8]]) -> Option<Self> {
        let json::JsonFormat { name, about, mut keys } = json::find(lines)?;
        let has = |field: &Field| keys.list().iter().any(|key| key.field == *field);
        // Apache has the path alone (%U) in what many call the request, and the query (%q) beside it.
        if has(&Field::Query) && !lines.iter().any(|line| memchr::memmem::find(line, b" HTTP/").is_some()) {
            for key in keys.list_mut().iter_mut().filter(|key| key.field == Field::RequestLine) {
                key.field = Field::Url;
            }
        }
        keys.skip_other_times(lines);
        let mut tokens: Vec<Token> =
            keys.list().iter().map(|key| Token::field(key.field.clone(), &*key.path)).collect();
        let unused = choice::drop_redundant(&mut tokens);
        for (key, piece) in keys.list_mut().iter_mut().zip(tokens) {
            if let Token::Field { field, .. } = piece {
                key.field = field;
            }
        }
        let paths: Vec<&str> = keys.list().iter().map(|key| &*key.path).collect();
        let text = paths.join(" ");
        let format = Self::of(&text, Dialect::Json, LineLayout::Keys(keys), unused);
        Some(Self { name: name.into(), about: about.into(), ..format })
    }

    fn of(text: &str, dialect: Dialect, body: LineLayout, unused: Vec<UnusedField>) -> Self {
        let fields = || body.fields();
        let facts = FactSet::of_fields(fields());
        let has_request = [Fact::Status, Fact::Method, Fact::Url].iter().any(|fact| facts.contains(*fact));
        let describes_connections = !has_request && fields().any(|field| *field == Field::Termination);
        let duration_unit_us =
            fields().filter_map(Field::duration_unit).map(field::DurationUnit::us).max().unwrap_or(1);
        let counts_bodies = fields().any(|field| *field == Field::LineLayout);
        let parts = fields().count();
        Self {
            name: text.to_owned(),
            about: format!("a format of your own, in the words of {}", dialect.product()),
            parts,
            dialect,
            facts,
            counts_bodies,
            duration_unit_us,
            unused,
            describes_connections,
            key: hash(text.as_bytes()),
            is_self_described: false,
            day: None,
            body,
        }
    }

    /// The same for lines of which all clients have a port, as far as that can be told: then those with IPv6 addresses have one, too.
    pub(crate) fn with_ports(mut self, lines: &[&[u8]]) -> Self {
        let (mut with, mut without) = (0, 0);
        for line in lines {
            let _ = self.walk(line, |cut, _| {
                if *cut.field == Field::Client(FieldSource::Direct) && cut.value != b"-" {
                    match field::has_port(cut.value) {
                        Some(true) => with += 1,
                        Some(false) => without += 1,
                        None => {}
                    }
                }
                Some(())
            });
        }
        if with > 0 && without == 0 {
            let clients =
                self.body.fields_mut().filter(|field| **field == Field::Client(FieldSource::Direct));
            clients.for_each(|field| *field = Field::ClientAndPort);
        }
        self
    }

    /// The same, of which the last field ends with its word: what follows is no part of it.
    fn ending_at_word(mut self) -> Self {
        if let LineLayout::Steps(steps) = &mut self.body
            && let Some(FormatStep::Field(FieldStep {
                field: Field::Skip, until: until @ FieldEnd::End, ..
            })) = steps.last_mut()
        {
            *until = FieldEnd::EndOfWord;
        }
        self
    }

    /// Stands for its format string: formats of logs that name their fields themselves all have the same name.
    pub fn key(&self) -> u64 {
        self.key
    }

    /// True when bytes are those of bodies alone; otherwise heads may be among them.
    pub fn counts_bodies(&self) -> bool {
        self.counts_bodies
    }

    /// True for a W3C log whose lines have times of day alone.
    fn lacks_day(&self) -> bool {
        let has_day = |field: &Field| matches!(field, Field::Time(pattern) if pattern.has_date());
        self.dialect == Dialect::W3c && !self.body.fields().any(has_day)
    }

    /// True for JSON lines.
    pub(crate) fn is_json(&self) -> bool {
        self.dialect == Dialect::Json
    }

    /// Facts that its lines state about requests.
    pub fn facts(&self) -> FactSet {
        self.facts
    }

    /// The unit of durations in microseconds; lines may have fractions of it.
    pub(crate) fn duration_unit_us(&self) -> u64 {
        self.duration_unit_us
    }

    pub fn dialect(&self) -> Dialect {
        self.dialect
    }

    /// Fields that are not read, because others say the same.
    pub fn unused(&self) -> &[UnusedField] {
        &self.unused
    }

    /// Keys of JSON lines.
    fn keys(&self) -> Vec<&str> {
        match &self.body {
            LineLayout::Steps(_) => Vec::new(),
            LineLayout::Keys(keys) => keys.list().iter().map(|key| &*key.path).collect(),
        }
    }

    /// Number of fields in a line: of two formats that fit, the one with more states more.
    pub fn fields(&self) -> usize {
        self.parts
    }

    /// Reads a line (without its end).
    pub fn read<'a>(&self, line: &'a [u8], access: &mut Access<'a>) -> Result<(), LineError> {
        *access = Access::default();
        self.fill(line, access)
    }

    /// Reads a line into an access that holds nothing yet.
    fn fill<'a>(&self, line: &'a [u8], access: &mut Access<'a>) -> Result<(), LineError> {
        let mut clock = match &self.body {
            LineLayout::Steps(steps) => {
                walk_steps(steps, line, |cut, clock| cut.field.take(cut.value, access, clock))?
            }
            LineLayout::Keys(keys) => {
                let clock =
                    walk_keys(keys, line, &mut |cut, clock| cut.field.take(cut.value, access, clock))?;
                // Programs write other lines to the same log: of errors, of their start.
                if clock.unix_us().is_none() || (access.url.is_empty() && access.status == 0) {
                    return Err(LineError { step: keys.list().len(), at: 0, problem: Mismatch::NoRequest });
                }
                access.duration_us = access.duration_us.or(clock.duration_us());
                clock
            }
        };
        clock.set_day_if_unknown(self.day);
        access.time_us = clock.unix_us();
        // Some write the query twice: by itself, and in the URL.
        if !access.query.is_empty() && memchr::memchr(b'?', access.url).is_some() {
            access.query = b"";
        }
        if clock.lacks_part {
            access.duration_us = None;
        }
        if self.describes_connections {
            access.kind = LineKind::Connection;
        }
        access.line = line;
        Ok(())
    }

    /// Values that lines have and an [`Access`] has not.
    pub fn extras(&self) -> impl Iterator<Item = ExtraField<'_>> {
        self.body.fields().filter_map(Field::extra)
    }

    /// Hands over what a line ([`Access::line`]) says beside what its access holds; what it leaves out is not among that.
    pub fn each_extra<'f, 'a>(&'f self, line: &'a [u8], mut each: impl FnMut(ExtraField<'f>, &'a [u8])) {
        let read = self.walk(line, |cut, _| {
            if let Some(extra) = cut.field.extra().filter(|_| !matches!(cut.value, b"" | b"-")) {
                each(extra, cut.value);
            }
            Some(())
        });
        debug_assert!(read.is_ok(), "the line was read before");
    }

    /// Cuts a line into its fields, and hands over each; none: what stands in it cannot be that.
    fn walk<'f, 'a>(
        &'f self,
        line: &'a [u8],
        mut take: impl FnMut(FieldValue<'f, 'a>, &mut Clock) -> Option<()>,
    ) -> Result<Clock, LineError> {
        match &self.body {
            LineLayout::Steps(steps) => walk_steps(steps, line, take),
            LineLayout::Keys(keys) => walk_keys(keys, line, &mut take),
        }
    }

    /// A line taken apart, field by field.
    pub(crate) fn parts<'f, 'l>(&'f self, line: &'l [u8]) -> Vec<ExplainedField<'f, 'l>> {
        let mut parts = Vec::new();
        // Up to where it ceases to fit.
        let _ = self.walk(line, |cut, _| {
            let word: &str = match &self.body {
                LineLayout::Steps(steps) => match &steps[cut.index] {
                    FormatStep::Field(step) => &step.word,
                    FormatStep::Literal(_) => "",
                },
                LineLayout::Keys(keys) => &keys.list()[cut.index].path,
            };
            parts.push(ExplainedField { word, what: cut.field.purpose(), value: cut.value });
            Some(())
        });
        parts
    }

    /// Reason for which a line could not be read, for people.
    pub fn explain(&self, malformed: &LineError) -> String {
        let at = malformed.at + 1;
        let steps = match &self.body {
            LineLayout::Steps(steps) => steps,
            LineLayout::Keys(keys) => {
                return match (keys.list().get(malformed.step), malformed.problem) {
                    (Some(key), Mismatch::Wrong) => {
                        format!("the value of `{}` at character {at} is no {}", key.path, key.field.name())
                    }
                    (_, Mismatch::NoRequest) => {
                        "it does not say when a request was, and its URL or status, by the keys that other lines have".into()
                    }
                    _ => format!("it is no JSON object from character {at} on"),
                };
            }
        };
        match (steps.get(malformed.step), malformed.problem) {
            (Some(FormatStep::Literal(text)), _) if text.iter().all(|byte| *byte == b' ') => {
                format!("the line ends where another field should follow (character {at})")
            }
            (Some(FormatStep::Literal(text)), _) => {
                format!("`{}` does not stand at character {at}", String::from_utf8_lossy(text))
            }
            (Some(FormatStep::Field(step)), Mismatch::NoEnd) => {
                format!(
                    "the {} at character {at} has no end: the line is cut off, or not of this format",
                    step.field.name()
                )
            }
            (Some(FormatStep::Field(step)), _) => {
                format!("what stands at character {at} is no {}", step.field.name())
            }
            (None, _) => format!("there is more in the line than the format says, from character {at} on"),
        }
    }
}

impl FormatStep {
    fn field(&self) -> Option<&Field> {
        match self {
            FormatStep::Literal(_) => None,
            FormatStep::Field(step) => Some(&step.field),
        }
    }
}

/// Cuts a line by the steps of its format. Inlined with what is done with each field: every field of every line comes here.
#[inline(always)]
fn walk_steps<'f, 'a>(
    steps: &'f [FormatStep],
    line: &'a [u8],
    mut take: impl FnMut(FieldValue<'f, 'a>, &mut Clock) -> Option<()>,
) -> Result<Clock, LineError> {
    let mut clock = Clock::default();
    let mut rest = line;
    for (index, step) in steps.iter().enumerate() {
        let stop = |problem, rest: &[u8]| LineError { step: index, at: line.len() - rest.len(), problem };
        let FieldStep { field, until, may_be_quoted, .. } = match step {
            FormatStep::Literal(text) => {
                rest = skip_text(text, rest).ok_or_else(|| stop(Mismatch::NotThere, rest))?;
                continue;
            }
            FormatStep::Field(step) => step,
        };
        let quoted = *may_be_quoted && rest.first() == Some(&b'"');
        let cut = match field {
            Field::Time(pattern) => cut_time(pattern, rest, quoted, &mut clock),
            Field::UnusedTime(pattern) => cut_unused_time(pattern, rest, quoted),
            _ if quoted => cut_quoted(rest).ok_or(Mismatch::NoEnd),
            _ => until.cut(rest).ok_or(Mismatch::NoEnd),
        };
        let (value, after) = cut.map_err(|problem| stop(problem, rest))?;
        take(FieldValue { index, field, value }, &mut clock).ok_or_else(|| stop(Mismatch::Wrong, rest))?;
        rest = after;
    }
    if !rest.is_empty() {
        let at = line.len() - rest.len();
        return Err(LineError { step: steps.len(), at, problem: Mismatch::More });
    }
    Ok(clock)
}

/// Hands over the values of an object whose keys are known. Not inlined: lines that are none go through the same code otherwise.
#[inline(never)]
fn walk_keys<'f, 'l>(
    keys: &'f json::Keys,
    line: &'l [u8],
    take: &mut dyn FnMut(FieldValue<'f, 'l>, &mut Clock) -> Option<()>,
) -> Result<Clock, LineError> {
    let mut clock = Clock::default();
    let walked = keys.each(line, |json::JsonMember { key, text }| {
        let field = &keys.list()[key].field;
        if let Field::Time(pattern) = field {
            pattern.read(text, &mut clock).filter(|rest| rest.is_empty())?;
        }
        take(FieldValue { index: key, field, value: text }, &mut clock)
    });
    match walked {
        Ok(()) => Ok(clock),
        Err(json::JsonStop::Refused { key, at }) => {
            Err(LineError { step: key, at, problem: Mismatch::Wrong })
        }
        Err(json::JsonStop::NoObject { at }) => Err(LineError { step: 0, at, problem: Mismatch::NoObject }),
    }
}

impl Dialect {
    /// Products that use the notation, for people.
    pub fn product(self) -> &'static str {
        match self {
            Dialect::Squid => "Squid",
            Dialect::Ncsa => "Apache httpd and varnishncsa",
            Dialect::Nginx => "nginx",
            Dialect::Haproxy => "HAProxy",
            Dialect::TrafficServer => "Traffic Server",
            Dialect::Assay => "Assay's descriptions of proxies",
            Dialect::W3c => "W3C extended logs",
            Dialect::Json => "JSON lines",
        }
    }
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.name)
    }
}

/// Notation of a format string, by the marks that each proxy uses.
fn detect_dialect(text: &str) -> Option<Dialect> {
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

/// Pieces to steps: every field but the last gets its end.
fn compile_steps(tokens: &[Token], dialect: Dialect) -> Result<Vec<FormatStep>, SyntaxError> {
    let mut steps = Vec::with_capacity(tokens.len());
    for (index, piece) in tokens.iter().enumerate() {
        let (field, word, quoted) = match piece {
            Token::Literal(_)
                if matches!(
                    steps.last(),
                    Some(FormatStep::Field(FieldStep { until: FieldEnd::Blank, .. }))
                ) =>
            {
                continue;
            }
            Token::Literal(text) => {
                steps.push(FormatStep::Literal(text.as_bytes().into()));
                continue;
            }
            Token::Field { field, word, quoted } => (field, word, *quoted),
        };
        let in_quotes =
            index > 0 && matches!(&tokens[index - 1], Token::Literal(text) if text.ends_with('"'));
        let until = match tokens.get(index + 1) {
            _ if *field == Field::Braces => FieldEnd::Braces,
            _ if *field == Field::Rest => FieldEnd::End,
            None if let Some(separator) = separator(tokens) => FieldEnd::EndWithout(separator),
            None if field.is_list() => FieldEnd::List((*b" ").into()),
            // Squid's is without parameters; in others a blank may stand before one.
            None if *field == Field::ContentType && dialect == Dialect::Squid => FieldEnd::EndOfWord,
            None if field.is_last_word() => FieldEnd::EndOfWord,
            None => FieldEnd::End,
            Some(Token::Literal(text)) if in_quotes && text.starts_with('"') => {
                FieldEnd::Quote(text.as_bytes().into())
            }
            Some(Token::Literal(text)) => {
                check_duration_unit(field, word, text, dialect)?;
                let bytes = text.as_bytes().into();
                match field {
                    field if field.is_list() => FieldEnd::List(bytes),
                    field if field.is_one_word() && !text.starts_with(' ') => match text.as_bytes() {
                        [byte] => FieldEnd::ByteInWord(*byte),
                        _ => FieldEnd::TextInWord(bytes),
                    },
                    field if field.is_url() && text.len() > 1 => FieldEnd::TextInUrl(bytes),
                    Field::Time(_) | Field::UnusedTime(_) => FieldEnd::Literal(bytes),
                    _ if text == " " && !quoted => FieldEnd::Blank,
                    _ => FieldEnd::Literal(bytes),
                }
            }
            Some(Token::Field { field: next, .. }) => {
                return Err(SyntaxError::Adjacent { field: field.name(), next: next.name() });
            }
        };
        steps.push(FormatStep::Field(FieldStep {
            field: field.clone(),
            word: word.as_str().into(),
            until,
            may_be_quoted: quoted,
        }));
    }
    if steps.iter().all(|step| step.field().is_none()) {
        return Err(SyntaxError::NoField);
    }
    Ok(steps)
}

/// The sign that stands between all fields, as in a table.
fn separator(tokens: &[Token]) -> Option<u8> {
    let mut texts = tokens.iter().filter(|piece| piece.as_field().is_none()).map(Token::text);
    let first = texts.next()?;
    let is_sign = matches!(first, "|" | ";" | "," | "\t");
    (is_sign && texts.all(|text| text == first)).then(|| first.as_bytes()[0])
}

/// Refuses a unit behind a duration that is counted in another one: `%Dms` would be wrong by 1000.
fn check_duration_unit(field: &Field, word: &str, behind: &str, dialect: Dialect) -> Result<(), SyntaxError> {
    let Some(unit) = field.duration_unit() else { return Ok(()) };
    let end = behind.find(|c: char| !c.is_alphabetic()).unwrap_or(behind.len());
    let written = behind[..end].replace('µ', "u");
    if !["s", "ms", "us", "ns"].contains(&written.as_str()) || written == unit.symbol() {
        return Ok(());
    }
    let remedy = match (dialect, written.as_str()) {
        (Dialect::Ncsa, "ms") => "`%{ms}T` is the field for it",
        (Dialect::Ncsa, "us") => "`%D` is the field for it",
        (Dialect::Ncsa, "s") => "`%T` is the field for it",
        (Dialect::Assay, _) => {
            "`{duration-s}`, `{duration-ms}`, `{duration-us}` and `{duration-ns}` are the fields"
        }
        _ => {
            "its words have none for that: write the format with `{duration-s}`, `{duration-ms}`, `{duration-us}` \
              or `{duration-ns}`, and other fields in braces"
        }
    };
    Err(SyntaxError::Unit { written, word: word.to_owned(), counted: unit.symbol(), remedy })
}

/// Neighbouring texts become one, and so do fields that are written without anything between them.
fn join(tokens: Vec<Token>) -> Vec<Token> {
    let mut joined: Vec<Token> = Vec::new();
    for piece in tokens {
        match (joined.last_mut(), piece) {
            (Some(Token::Literal(before)), Token::Literal(text)) => before.push_str(&text),
            (
                Some(Token::Field { field: Field::Path | Field::HostPath | Field::Url, word, .. }),
                Token::Field { field: Field::Query, word: query, .. },
            ) => word.push_str(&query),
            (
                Some(Token::Field { field: before @ Field::Host(_), word, .. }),
                Token::Field { field: Field::Path | Field::HostPath | Field::Url, word: path, .. },
            ) => {
                *before = Field::HostPath;
                word.push_str(&path);
            }
            (_, piece) => joined.push(piece),
        }
        let fused = match joined.as_slice() {
            // Seconds, a point and their fraction are one number.
            [
                ..,
                Token::Field { field: Field::EpochSeconds, .. },
                Token::Literal(point),
                Token::Field { field: Field::Fraction, .. },
            ] if point == "." => Field::EpochSeconds,
            // An address can have colons in it; a port has none.
            [
                ..,
                Token::Field { field: Field::Client(_), .. },
                Token::Literal(colon),
                Token::Field { field: Field::Skip | Field::SkipList, .. },
            ] if colon == ":" => Field::ClientAndPort,
            _ => continue,
        };
        let parts = joined.split_off(joined.len() - 3);
        let word: String = parts.iter().map(Token::text).collect();
        joined.push(Token::field(fused, word));
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

impl FieldEnd {
    /// The field at the beginning of a line, and what is behind it. Every field of every line comes here: a call would cost
    /// as much as the search.
    #[inline(always)]
    fn cut<'a>(&self, rest: &'a [u8]) -> Option<(&'a [u8], &'a [u8])> {
        match self {
            FieldEnd::End => Some((rest, b"")),
            FieldEnd::EndOfWord => is_without(b' ', rest).then_some((rest, b"")),
            FieldEnd::EndWithout(byte) => is_without(*byte, rest).then_some((rest, b"")),
            FieldEnd::Blank => {
                let at = find(b' ', rest)?;
                let mut after = &rest[at + 1..];
                while let [b' ', more @ ..] = after {
                    after = more;
                }
                Some((&rest[..at], after))
            }
            FieldEnd::Literal(text) => cut_before(text, rest),
            FieldEnd::ByteInWord(byte) => {
                let at = find_either(*byte, b' ', rest)?;
                (rest[at] == *byte).then(|| rest.split_at(at))
            }
            FieldEnd::TextInWord(text) => {
                let (value, after) = cut_before(text, rest)?;
                is_without(b' ', value).then_some((value, after))
            }
            FieldEnd::TextInUrl(text) => {
                let (value, after) = cut_before(text, rest)?;
                let bare = |at: usize| at == 0 || value[at - 1] != b'\\';
                (!memchr::memchr_iter(b'"', value).any(bare)).then_some((value, after))
            }
            FieldEnd::List(text) => cut_list(text, rest),
            FieldEnd::Braces => Some(cut_braces(rest)),
            // The first that nothing escapes: where another text follows it, the line was torn.
            FieldEnd::Quote(text) => {
                let mut from = 0;
                loop {
                    let at = from + memchr::memchr(b'"', &rest[from..])?;
                    let backslashes = rest[..at].iter().rev().take_while(|byte| **byte == b'\\').count();
                    if backslashes % 2 == 0 {
                        return skip_text(text, &rest[at..]).map(|_| rest.split_at(at));
                    }
                    from = at + 1;
                }
            }
        }
    }
}

/// Splits before a text, which begins the second part.
#[inline(always)]
fn cut_before<'a>(text: &[u8], rest: &'a [u8]) -> Option<(&'a [u8], &'a [u8])> {
    let mut from = 0;
    loop {
        let at = from + find(text[0], &rest[from..])?;
        if text.len() == 1 || skip_text(text, &rest[at..]).is_some() {
            return Some(rest.split_at(at));
        }
        from = at + 1;
    }
}

/// A time, which knows itself where it ends, and what is behind it.
#[inline(never)]
fn cut_time<'l>(
    pattern: &TimePattern,
    rest: &'l [u8],
    quoted: bool,
    clock: &mut Clock,
) -> Result<(&'l [u8], &'l [u8]), Mismatch> {
    let from = &rest[usize::from(quoted)..];
    let after = pattern.read(from, clock).ok_or(Mismatch::Wrong)?;
    let value = &from[..from.len() - after.len()];
    if !quoted {
        return Ok((value, after));
    }
    Ok((value, after.strip_prefix(b"\"").ok_or(Mismatch::NoEnd)?))
}

/// A time that another field says. Few formats have one: the other way is inlined.
#[cold]
fn cut_unused_time<'l>(
    pattern: &TimePattern,
    rest: &'l [u8],
    quoted: bool,
) -> Result<(&'l [u8], &'l [u8]), Mismatch> {
    cut_time(pattern, rest, quoted, &mut Clock::default())
}

/// Content of quotes, and the rest behind them.
fn cut_quoted(rest: &[u8]) -> Option<(&[u8], &[u8])> {
    let (value, after) = FieldEnd::Quote(b"\"".as_slice().into()).cut(rest.get(1..)?)?;
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

/// A list, and what is behind it.
fn cut_list<'a>(text: &[u8], rest: &'a [u8]) -> Option<(&'a [u8], &'a [u8])> {
    let mut from = 0;
    loop {
        let part = &rest[from..];
        let (value, after) = match cut_before(text, part) {
            Some(cut) => cut,
            // The last of the line.
            None if text == b" " => (part, &b""[..]),
            None => return None,
        };
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
