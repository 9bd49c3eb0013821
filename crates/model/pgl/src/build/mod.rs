//! Builder of the workload from the objects that a program has registered.
//!
//! The interpreter has checked types. The builder checks presence, ranges and consistency, and warns about fields that have no
//! effect. It skips broken values, whose errors were reported.

use std::collections::{HashMap, HashSet};
use std::path::PathBuf;
use std::rc::Rc;

use assay_workload::model::{
    Content, ContentIndex, Distribution, FileSet, FileSetIndex, ForeignUrl, Goal, Origin, RobotGroup, Server,
    ServerIndex, Workload,
};

use crate::diagnostic::{Code, Diagnostic};
use crate::diagnostics::Diagnostics;
use crate::eval::Registrations;
use crate::schema::{RecordKind, Support};
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

/// Builds the workload, which is complete only if `diagnostics` has no errors.
pub(crate) fn build(
    name: &str,
    registrations: &Registrations,
    sources: &[Source],
    resolver: &dyn Resolver,
    diagnostics: &mut Diagnostics,
) -> Workload {
    let mut builder = Builder::new(diagnostics, sources, resolver);
    let used = |kind: RecordKind| registrations.used.iter().filter(move |(record, _)| record.kind == kind);
    for (record, span) in used(RecordKind::Server) {
        builder.add_server(record, *span);
    }
    for (record, span) in used(RecordKind::AddrMap) {
        builder.add_address_map(record, *span);
    }
    for (record, span) in used(RecordKind::Robot) {
        builder.add_robot(record, *span);
    }
    let tls = builder.tls(registrations);
    let links = builder.links(registrations);
    let substitutes = builder.substitutes(&registrations.substitutes);
    builder.check_substitution(&substitutes);
    builder.check_agents(registrations);
    let schedule = builder.schedule(registrations);
    if !builder.diagnostics.has_errors() {
        builder.lint(&schedule, registrations);
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
        requirements: registrations.requirements.iter().map(|(text, _)| text.clone()).collect(),
    }
}

/// The goal of a phase or sample.
pub(crate) fn goal(goal: &Record, diagnostics: &mut Diagnostics) -> Goal {
    Goal {
        duration: fields::duration(diagnostics, goal, "duration", false),
        transactions: fields::integer(diagnostics, goal, "xactions", 1).map(u64::from),
        fill_bytes: fields::quantity(diagnostics, goal, "fill_size", false)
            .map(|bytes| bytes.round().max(1.0) as u64),
        errors: fields::non_negative(diagnostics, goal, "errors"),
    }
}

/// A workload under construction.
struct Builder<'a> {
    diagnostics: &'a mut Diagnostics,
    sources: &'a [Source],
    resolver: &'a dyn Resolver,
    contents: Vec<Content>,
    /// First use of each content type.
    content_spans: Vec<Span>,
    /// Content types by fingerprint: equal ones are one.
    known_contents: HashMap<u64, ContentIndex>,
    /// Content types whose embedded types have not been built yet.
    pending_pages: Vec<(ContentIndex, Rc<Record>)>,
    content_labels: UniqueNames,
    files: Vec<FileSet>,
    known_files: HashMap<PathBuf, FileSetIndex>,
    servers: Vec<Server>,
    server_spans: Vec<Span>,
    origins: Vec<Origin>,
    /// Index and span of each origin by the address at which it listens.
    origins_by_address: HashMap<String, (usize, Span)>,
    /// Addresses by the names of address maps.
    mapped_names: HashMap<String, Vec<String>>,
    /// Origins by the addresses and names that robots have used for them.
    origins_by_name: HashMap<String, Vec<usize>>,
    /// Origins whose authority is fixed, because robots have used them.
    named_origins: HashSet<usize>,
    /// Further origins of servers that robots use under several names, by name.
    alias_origins: HashMap<String, usize>,
    robots: Vec<RobotGroup>,
    robot_spans: Vec<RobotSpans>,
    robot_count: u64,
    /// Content types that robots can request, by the servers that they use.
    reachable_by_servers: HashMap<Vec<ServerIndex>, Rc<[ContentIndex]>>,
    foreign: Vec<ForeignUrl>,
    /// Traces that have been read.
    trace_names: HashSet<String>,
}

/// Places of a group of robots in the source.
struct RobotSpans {
    group: Span,
    /// `minimize_new_conn`, if it is set.
    substitution: Option<Span>,
}

/// Generator of unique names.
#[derive(Debug, Default)]
struct UniqueNames {
    used: HashSet<String>,
    /// The last suffix of each name.
    numbers: HashMap<String, u32>,
}

impl UniqueNames {
    /// The name, with a number as suffix if it is in use.
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
            content_spans: Vec::new(),
            known_contents: HashMap::new(),
            pending_pages: Vec::new(),
            content_labels: UniqueNames::default(),
            files: Vec::new(),
            known_files: HashMap::new(),
            servers: Vec::new(),
            server_spans: Vec::new(),
            origins: Vec::new(),
            origins_by_address: HashMap::new(),
            mapped_names: HashMap::new(),
            origins_by_name: HashMap::new(),
            named_origins: HashSet::new(),
            alias_origins: HashMap::new(),
            robots: Vec::new(),
            robot_spans: Vec::new(),
            robot_count: 0,
            reachable_by_servers: HashMap::new(),
            foreign: Vec::new(),
            trace_names: HashSet::new(),
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

    /// Warns about the fields of an object that are set and have no effect, once per program for each.
    fn warn_unsupported_fields(&mut self, record: &Record) {
        let kind = record.kind.name();
        for (field, slot) in record.set_fields() {
            if is_neutral(&slot.value) || is_unsupported_object(&slot.value) {
                continue;
            }
            match field.support {
                // The type as a whole has no effect: one warning instead of one per field.
                Support::Ignored(instead) if field.support == record.kind.definition().support => {
                    self.warn_unsupported(kind, slot.span, instead);
                }
                Support::Ignored(instead) => {
                    self.warn_unsupported(&format!("{kind}.{}", field.name), slot.span, instead);
                }
                Support::OutOfScope(feature) => self.diagnostics.out_of_scope(feature, slot.span),
                Support::Full | Support::Partial(_) => {}
            }
        }
    }

    /// Warns, once per program, that a setting has no effect.
    fn warn_unsupported(&mut self, setting: &str, span: Span, instead: &str) {
        self.diagnostics.add_once(
            setting,
            Diagnostic::warning(
                Code::Unsupported,
                span,
                format!("`{setting}` is accepted, but has no effect"),
            )
            .label(instead),
        );
    }

    /// Index of the next kind of server; reports when there are too many.
    fn next_server_index(&mut self, span: Span) -> Option<ServerIndex> {
        let index = ServerIndex::try_from(self.servers.len()).ok();
        if index.is_none() {
            self.error(Code::TooMany, span, "too many kinds of servers", "at most 65536 fit into a workload");
        }
        index
    }

    /// Reports a workload without errors that has no robots or no servers.
    fn check_agents(&mut self, registrations: &Registrations) {
        if self.diagnostics.has_errors() {
            return;
        }
        let place = registrations.used.last().map_or(registrations.end, |(_, span)| *span);
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

/// True for an object of a type without an effect, which gets its warning with its own fields.
fn is_unsupported_object(value: &Value) -> bool {
    matches!(value, Value::Record(inner) if matches!(inner.kind.definition().support, Support::Ignored(_)))
}

/// A field that is set to more than a neutral value.
fn active_slot<'r>(record: &'r Record, field: &str) -> Option<&'r Slot> {
    record.get(field).filter(|slot| !is_neutral(&slot.value))
}

/// True for a value that asks for nothing (zero, empty, false), for which a field without an effect needs no warning.
fn is_neutral(value: &Value) -> bool {
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
