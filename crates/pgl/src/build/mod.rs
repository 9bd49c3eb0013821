//! What a program registered, as a workload.
//!
//! Types were checked when fields were set; here it is checked that everything is there, makes sense and fits
//! together, and every field that has no effect is named. A broken value was reported and is passed over.

use std::collections::{HashMap, HashSet};
use std::rc::Rc;

use assay_workload::model::{Content, ContentIndex, Origin, RobotGroup, Server, ServerIndex, Workload};

use crate::diagnostic::{Code, Diagnostic};
use crate::diagnostics::Diagnostics;
use crate::eval::Registered;
use crate::schema::{Effect, RecordKind};
use crate::source::Span;
use crate::value::{Record, Value};

mod agents;
mod content;
mod fields;
mod origins;
mod robots;
mod schedule;
mod selectors;
mod servers;

/// Makes the workload. It is whole only if nothing was reported as an error.
pub(crate) fn build(name: &str, registered: &Registered, diagnostics: &mut Diagnostics) -> Workload {
    let mut builder = Builder {
        diagnostics,
        contents: Vec::new(),
        known_contents: HashMap::new(),
        pages: Vec::new(),
        kinds: HashSet::new(),
        servers: Vec::new(),
        origins: Vec::new(),
        origin_places: HashMap::new(),
        maps: Vec::new(),
        robots: Vec::new(),
    };
    for (record, span) in &registered.used {
        match record.kind {
            RecordKind::Server => builder.server(record, *span),
            RecordKind::AddrMap => builder.map(record, *span),
            _ => {}
        }
    }
    for (record, span) in registered.used.iter().filter(|(record, _)| record.kind == RecordKind::Robot) {
        builder.robot(record, *span);
    }
    builder.check_agents(registered);
    let schedule = builder.schedule(registered);
    Workload {
        name: name.to_owned(),
        contents: builder.contents,
        servers: builder.servers,
        origins: builder.origins,
        robots: builder.robots,
        schedule,
        ..Workload::default()
    }
}

/// A workload in the making.
struct Builder<'a> {
    diagnostics: &'a mut Diagnostics,
    contents: Vec<Content>,
    /// Content types by what they say: alike is the same.
    known_contents: HashMap<u64, ContentIndex>,
    /// Content types whose embedded types have not been looked at.
    pages: Vec<(ContentIndex, Rc<Record>)>,
    /// Labels of content types in use.
    kinds: HashSet<String>,
    servers: Vec<Server>,
    origins: Vec<Origin>,
    /// Index and place of each origin by its authority.
    origin_places: HashMap<String, (usize, Span)>,
    maps: Vec<origins::Names>,
    robots: Vec<RobotGroup>,
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
            if let Effect::None(instead) = field.effect
                && !asks_for_nothing(&slot.value)
            {
                self.not_acted_on(&format!("{kind}.{}", field.name), slot.span, instead);
            }
        }
    }

    /// Says once that something has no effect.
    fn not_acted_on(&mut self, what: &str, span: Span, instead: &str) {
        self.diagnostics.add_once(
            what,
            Diagnostic::warning(
                Code::NotActedOn,
                span,
                format!("`{what}` is accepted, but not acted on yet"),
            )
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

    /// A program without mistakes must still ask for something.
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

/// True for a value that asks for nothing to be done: a field without effect that says so is no news.
fn asks_for_nothing(value: &Value) -> bool {
    match value {
        Value::Broken | Value::Bool(false) | Value::Int(0) => true,
        Value::Float(x) => *x == 0.0,
        Value::Array(array) => array.count() == 0,
        _ => false,
    }
}
