//! What a program registered, as a workload.
//!
//! Types were checked when fields were set; here it is checked that everything is there, makes sense and fits
//! together, and every field that has no effect is named. A broken value was reported and is passed over.

use std::collections::{HashMap, HashSet};
use std::path::PathBuf;
use std::rc::Rc;

use assay_workload::model::{
    Content, ContentIndex, Distribution, FileSet, FileSetIndex, ForeignUrl, Goal, Origin, RobotGroup, Server,
    ServerIndex, Workload,
};

use crate::diagnostic::{Code, Diagnostic};
use crate::diagnostics::Diagnostics;
use crate::eval::Registered;
use crate::schema::{Effect, RecordKind};
use crate::source::{Resolver, Source, Span};
use crate::value::{Record, Slot, Value};

mod agents;
mod bodies;
mod content;
mod faults;
mod fields;
mod foreign;
mod headers;
mod identity;
mod lints;
mod origins;
mod pipes;
mod ranges;
mod requests;
mod robots;
mod schedule;
mod selectors;
mod servers;
mod tls;

/// Makes the workload. It is whole only if nothing was reported as an error.
pub(crate) fn build(
    name: &str,
    registered: &Registered,
    sources: &[Source],
    resolver: &dyn Resolver,
    diagnostics: &mut Diagnostics,
) -> Workload {
    let mut builder = Builder::new(diagnostics, sources, resolver);
    let used = |kind: RecordKind| registered.used.iter().filter(move |(record, _)| record.kind == kind);
    for (record, span) in used(RecordKind::Server) {
        builder.server(record, *span);
    }
    for (record, span) in used(RecordKind::AddrMap) {
        builder.map(record, *span);
    }
    for (record, span) in used(RecordKind::Robot) {
        builder.robot(record, *span);
    }
    let tls = builder.tls(registered);
    let links = builder.links(registered);
    let substitutes = builder.substitutes(&registered.substitutes);
    builder.check_substitution(&substitutes);
    builder.check_agents(registered);
    let schedule = builder.schedule(registered);
    if !builder.diagnostics.failed() {
        builder.lint(&schedule, registered);
    }
    Workload {
        name: name.to_owned(),
        contents: builder.contents,
        servers: builder.servers,
        origins: builder.origins,
        robots: builder.robots,
        schedule,
        files: builder.files,
        foreign: builder.foreign,
        tls,
        links,
        substitutes,
        requirements: registered.requirements.iter().map(|(text, _)| text.clone()).collect(),
    }
}

/// A goal, of a phase or of a sample.
pub(crate) fn goal(goal: &Record, diagnostics: &mut Diagnostics) -> Goal {
    Goal {
        duration: fields::duration(diagnostics, goal, "duration", false),
        transactions: fields::whole(diagnostics, goal, "xactions", 1).map(u64::from),
        fill_bytes: fields::quantity(diagnostics, goal, "fill_size", false)
            .map(|bytes| bytes.round().max(1.0) as u64),
        errors: fields::amount(diagnostics, goal, "errors"),
    }
}

/// A workload in the making.
struct Builder<'a> {
    diagnostics: &'a mut Diagnostics,
    sources: &'a [Source],
    resolver: &'a dyn Resolver,
    contents: Vec<Content>,
    /// Where each of them is listed first.
    content_places: Vec<Span>,
    /// Content types by what they say: alike is the same.
    known_contents: HashMap<u64, ContentIndex>,
    /// Content types whose embedded types have not been looked at.
    pages: Vec<(ContentIndex, Rc<Record>)>,
    /// Labels of content types in use.
    kinds: Names,
    files: Vec<FileSet>,
    known_files: HashMap<PathBuf, FileSetIndex>,
    servers: Vec<Server>,
    server_places: Vec<Span>,
    origins: Vec<Origin>,
    /// Index and place of each server by the address it listens at.
    origin_places: HashMap<String, (usize, Span)>,
    /// Addresses behind the names of address maps.
    names: HashMap<String, Vec<String>>,
    /// What addresses and names have turned out to stand for.
    visible: HashMap<String, Vec<usize>>,
    /// Origins that robots see, so that what they are called is settled.
    seen: HashSet<usize>,
    /// Origins that are there because a server is seen under several names.
    extra_origins: HashMap<String, usize>,
    robots: Vec<RobotGroup>,
    /// Where each group is used, and where it says how often idle connections to substitutes are taken.
    robot_places: Vec<(Span, Option<Span>)>,
    robot_count: u64,
    /// Content types that robots can come to request, by the kinds of servers they see.
    reachable: HashMap<Vec<ServerIndex>, Rc<[ContentIndex]>>,
    foreign: Vec<ForeignUrl>,
    /// Traces that have been read.
    traces: HashSet<String>,
}

/// Names in use, each once.
#[derive(Debug, Default)]
struct Names {
    used: HashSet<String>,
    /// The last number that was put behind a name.
    numbers: HashMap<String, u32>,
}

impl Names {
    /// The name, or, when it is in use, the name with a number behind it.
    fn unique(&mut self, name: &str) -> String {
        if self.used.insert(name.to_owned()) {
            return name.to_owned();
        }
        let number = self.numbers.entry(name.to_owned()).or_insert(1);
        loop {
            *number = number.saturating_add(1);
            let unique = format!("{name}-{number}");
            if self.used.insert(unique.clone()) || *number == u32::MAX {
                return unique;
            }
        }
    }
}

impl<'a> Builder<'a> {
    fn new(diagnostics: &'a mut Diagnostics, sources: &'a [Source], resolver: &'a dyn Resolver) -> Self {
        Self {
            diagnostics,
            sources,
            resolver,
            contents: Vec::new(),
            content_places: Vec::new(),
            known_contents: HashMap::new(),
            pages: Vec::new(),
            kinds: Names::default(),
            files: Vec::new(),
            known_files: HashMap::new(),
            servers: Vec::new(),
            server_places: Vec::new(),
            origins: Vec::new(),
            origin_places: HashMap::new(),
            names: HashMap::new(),
            visible: HashMap::new(),
            seen: HashSet::new(),
            extra_origins: HashMap::new(),
            robots: Vec::new(),
            robot_places: Vec::new(),
            robot_count: 0,
            reachable: HashMap::new(),
            foreign: Vec::new(),
            traces: HashSet::new(),
        }
    }
}

impl Builder<'_> {
    fn error(&mut self, code: Code, span: Span, message: impl Into<String>, label: impl Into<String>) {
        self.diagnostics.add(Diagnostic::error(code, span, message).label(label));
    }

    fn warn(&mut self, code: Code, span: Span, message: impl Into<String>, label: impl Into<String>) {
        self.diagnostics.add(Diagnostic::warning(code, span, message).label(label));
    }

    /// Names the fields of an object that are set and have no effect, each once in a program.
    fn note_fields(&mut self, record: &Record) {
        let kind = record.kind.name();
        for (field, slot) in record.set_fields() {
            if requests_nothing(&slot.value) || says_so_itself(&slot.value) {
                continue;
            }
            match field.effect {
                // The whole object has no effect: that is one thing to say.
                Effect::None(instead) if field.effect == record.kind.definition().effect => {
                    self.not_acted_on(kind, slot.span, instead);
                }
                Effect::None(instead) => {
                    self.not_acted_on(&format!("{kind}.{}", field.name), slot.span, instead);
                }
                Effect::LeftOut(topic) => self.diagnostics.left_out(topic, slot.span),
                Effect::Full | Effect::Part(_) => {}
            }
        }
    }

    /// Says once that something has no effect.
    fn not_acted_on(&mut self, what: &str, span: Span, instead: &str) {
        self.diagnostics.add_once(
            what,
            Diagnostic::warning(Code::NotActedOn, span, format!("`{what}` is accepted, but has no effect"))
                .label(instead),
        );
    }

    /// Index for the next server kind.
    fn next_server(&mut self, span: Span) -> Option<ServerIndex> {
        let index = ServerIndex::try_from(self.servers.len()).ok();
        if index.is_none() {
            self.error(Code::TooMany, span, "too many kinds of servers", "at most 65536 fit into a workload");
        }
        index
    }

    /// A program without mistakes must still request something.
    fn check_agents(&mut self, registered: &Registered) {
        if self.diagnostics.failed() {
            return;
        }
        let place = registered.used.last().map_or(registered.end, |(_, span)| *span);
        let missing = match (self.servers.is_empty(), self.robots.is_empty()) {
            (false, false) => return,
            (true, true) => "servers and no robots",
            (true, false) => "servers",
            (false, true) => "robots",
        };
        let expected = missing.replace("and no", "and");
        self.diagnostics.add(
            Diagnostic::error(Code::Empty, place, format!("the workload uses no {missing}"))
                .label(format!("expected {expected} in `use()`"))
                .help("give each agent its addresses and then `use()` it: `use(S, R);`"),
        );
    }
}

/// True for an object of a type that has no effect: it is named where its own fields are looked at.
fn says_so_itself(value: &Value) -> bool {
    matches!(value, Value::Record(inner) if matches!(inner.kind.definition().effect, Effect::None(_)))
}

/// A field whose value is more than "none".
fn wanted<'r>(record: &'r Record, field: &str) -> Option<&'r Slot> {
    record.get(field).filter(|slot| !requests_nothing(&slot.value))
}

/// True for a value that requests nothing to be done: a field without effect that says so is no news.
fn requests_nothing(value: &Value) -> bool {
    match value {
        Value::Broken | Value::Bool(false) | Value::Int(0) => true,
        Value::Float(x)
        | Value::Percent(x)
        | Value::Time(x)
        | Value::Size(x)
        | Value::Rate(x)
        | Value::Bandwidth(x) => *x == 0.0,
        Value::Random(random) => random.moment.is_none() && random.law == Distribution::Constant(0.0),
        Value::Text(text) => text.is_empty(),
        Value::Array(array) => array.count() == 0,
        _ => false,
    }
}
