//! What each word of a program means, from its tokens alone: so that it is known while half a statement is typed.
//!
//! Scopes are those of the interpreter: in the block of an object its fields come first, then names declared there, then names
//! from outside. Types are those that are declared; no value is computed.

use std::collections::HashMap;
use std::rc::Rc;

use crate::eval::{FUNCTIONS, PROCEDURES};
use crate::lexer::{Token, TokenKind};
use crate::schema::{Base, Field, RecordKind, Ty};
use crate::source::Span;
use crate::units;

/// What a word means.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Meaning {
    Type(Ty),
    /// A declared name, by its number.
    Declared(usize),
    /// A field of a type of objects.
    Field(RecordKind, &'static Field),
    /// A part of an address.
    AddressPart,
    /// A function or procedure, with its arguments.
    Call(&'static str, &'static str),
    /// A unit that stands alone.
    Unit,
    /// `now`, `lmt` or `nmt`.
    Moment,
}

/// A name that a program declares.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Declared {
    pub name: Rc<str>,
    /// None: of a type that does not exist.
    pub ty: Option<Ty>,
    /// Where the name stands.
    pub span: Span,
    pub whole: Span,
    /// The declaration in whose block it is.
    pub inside: Option<usize>,
}

/// What is known after some tokens of a program.
pub(super) struct Names {
    /// In order of appearance.
    pub declared: Vec<Declared>,
    /// What each token means that was walked over.
    pub meanings: Vec<Option<Meaning>>,
    frames: Vec<Frame>,
    /// The next token begins a statement.
    pub begins: bool,
    /// The type of what the current statement assigns, and the field it is.
    pub target: Option<(Ty, Option<(RecordKind, &'static Field)>)>,
}

#[derive(Default)]
struct Frame {
    /// The object that it fills.
    object: Option<RecordKind>,
    /// Names that it declares belong to the block around it.
    transparent: bool,
    names: HashMap<Rc<str>, usize>,
    /// The declaration that is being read.
    current: Option<usize>,
}

/// Words that belong to statements.
const KEYWORDS: [&str; 5] = ["if", "then", "else", "every", "do"];

pub(super) fn names(tokens: &[Token]) -> Names {
    let names = Names {
        declared: Vec::new(),
        meanings: vec![None; tokens.len()],
        frames: vec![Frame::default()],
        begins: true,
        target: None,
    };
    let mut walker = Walker { tokens, at: 0, names, unknown: Vec::new() };
    while walker.at < tokens.len() {
        walker.token();
    }
    walker.finish()
}

impl Names {
    /// What a name means at the end of what was walked over.
    pub fn lookup(&self, name: &str) -> Option<Meaning> {
        self.frames.iter().rev().find_map(|frame| {
            let field =
                frame.object.and_then(|kind| kind.field(name).map(|(_, field)| Meaning::Field(kind, field)));
            field.or_else(|| frame.names.get(name).map(|at| Meaning::Declared(*at)))
        })
    }

    /// The type of what a meaning is about.
    pub fn type_of(&self, meaning: Meaning) -> Option<Ty> {
        match meaning {
            Meaning::Type(ty) => Some(ty),
            Meaning::Declared(at) => self.declared.get(at).and_then(|declared| declared.ty),
            Meaning::Field(_, field) => Some(field.ty),
            Meaning::AddressPart | Meaning::Call(..) | Meaning::Unit | Meaning::Moment => None,
        }
    }

    /// The object in whose block the end is.
    pub fn object(&self) -> Option<RecordKind> {
        self.frames.iter().rev().find(|frame| !frame.transparent).and_then(|frame| frame.object)
    }

    /// All names that are known at the end, innermost first; one that is hidden by another is left out.
    pub fn visible(&self) -> Vec<&Declared> {
        let mut seen = HashMap::new();
        for frame in self.frames.iter().rev() {
            for (name, at) in &frame.names {
                seen.entry(name.clone()).or_insert(*at);
            }
        }
        let mut all: Vec<usize> = seen.into_values().collect();
        all.sort_unstable();
        all.into_iter().filter_map(|at| self.declared.get(at)).collect()
    }
}

/// What a member of something of a type is.
pub(super) fn member(ty: Option<Ty>, name: &str) -> Option<Meaning> {
    let ty = ty?;
    match ty.record() {
        Some(kind) => kind.field(name).map(|(_, field)| Meaning::Field(kind, field)),
        None if ty == Ty::one(Base::Address) && ADDRESS_PARTS.contains(&name) => Some(Meaning::AddressPart),
        None => None,
    }
}

/// Members of an address.
pub(super) const ADDRESS_PARTS: [&str; 4] = ["host", "port", "if_name", "subnet"];

struct Walker<'a> {
    tokens: &'a [Token],
    at: usize,
    names: Names,
    /// Words at which no name was known; scripts know those that are declared after them.
    unknown: Vec<(usize, Rc<str>)>,
}

impl Walker<'_> {
    fn mark(&self, at: usize, mark: &str) -> bool {
        self.tokens.get(at).is_some_and(|token| matches!(token.kind, TokenKind::Mark(m) if m == mark))
    }

    fn word(&self, at: usize) -> Option<Rc<str>> {
        match &self.tokens.get(at)?.kind {
            TokenKind::Word(word) => Some(word.clone()),
            _ => None,
        }
    }

    fn frame(&mut self) -> Option<&mut Frame> {
        self.names.frames.last_mut()
    }

    fn token(&mut self) {
        let token = &self.tokens[self.at];
        match &token.kind {
            TokenKind::Mark("{") => self.open(),
            TokenKind::Mark("}") => self.close(token.span),
            TokenKind::Mark(";") => {
                self.end_declaration(token.span);
                self.names.begins = true;
                self.names.target = None;
                self.at += 1;
            }
            TokenKind::Word(word) => self.a_word(&word.clone()),
            _ => {
                self.names.begins = false;
                self.at += 1;
            }
        }
    }

    fn open(&mut self) {
        let assigned = self.at.checked_sub(1).is_some_and(|before| self.mark(before, "="));
        let target = self.names.target.take().map(|(ty, _)| ty).filter(|_| assigned);
        let object = target.and_then(|ty| Ty { arrays: 0, ..ty }.record());
        self.names.frames.push(Frame { object, transparent: !assigned, ..Frame::default() });
        self.names.begins = true;
        self.at += 1;
    }

    fn close(&mut self, span: Span) {
        if let Some(current) = self.frame().and_then(|frame| frame.current.take()) {
            // Its `;` is missing.
            let end = self.tokens[self.at.saturating_sub(1)].span;
            self.extend(current, end);
        }
        if self.names.frames.len() > 1 {
            self.names.frames.pop();
        }
        if let Some(current) = self.frame().and_then(|frame| frame.current) {
            self.extend(current, span);
        }
        self.names.begins = true;
        self.names.target = None;
        self.at += 1;
    }

    fn end_declaration(&mut self, span: Span) {
        if let Some(current) = self.frame().and_then(|frame| frame.current.take()) {
            self.extend(current, span);
        }
    }

    fn extend(&mut self, declaration: usize, end: Span) {
        if let Some(declared) = self.names.declared.get_mut(declaration) {
            declared.whole = declared.whole.to(end);
        }
    }

    fn a_word(&mut self, word: &Rc<str>) {
        let begins = std::mem::replace(&mut self.names.begins, false);
        if KEYWORDS.contains(&&**word) {
            self.at += 1;
            return;
        }
        let ty = Ty::named(word);
        if let Some((name_at, name, arrays)) = self.declaration().filter(|_| begins || ty.is_some()) {
            self.declare(name_at, name, ty.map(|ty| Ty { arrays, ..ty }));
            return;
        }
        if self.mark(self.at + 1, "(") {
            let function =
                FUNCTIONS.iter().find(|f| *f.name == **word).map(|f| Meaning::Call(f.name, f.arguments));
            let procedure =
                PROCEDURES.iter().find(|p| *p.name == **word).map(|p| Meaning::Call(p.name, p.arguments));
            self.note(self.at, if begins { procedure.or(function) } else { function.or(procedure) });
            self.at += 1;
            return;
        }
        let alone = if units::bare_unit(word).is_some() {
            Some(Meaning::Unit)
        } else {
            matches!(&**word, "now" | "lmt" | "nmt").then_some(Meaning::Moment)
        };
        match alone {
            Some(meaning) => {
                self.note(self.at, Some(meaning));
                self.at += 1;
            }
            None => self.path(word, begins),
        }
    }

    /// `Type name`, `Type[] name` from here on: where the name is, the name, and how many brackets stand before it.
    fn declaration(&self) -> Option<(usize, Rc<str>, u8)> {
        let mut at = self.at + 1;
        let mut arrays = 0_u8;
        while self.mark(at, "[") && self.mark(at + 1, "]") {
            arrays = arrays.saturating_add(1);
            at += 2;
        }
        let name = self.word(at).filter(|name| !KEYWORDS.contains(&&**name))?;
        Some((at, name, arrays))
    }

    fn declare(&mut self, name_at: usize, name: Rc<str>, ty: Option<Ty>) {
        let (start, span) = (self.tokens[self.at].span, self.tokens[name_at].span);
        self.end_declaration(self.tokens[self.at.saturating_sub(1)].span);
        let number = self.names.declared.len();
        let inside = self.names.frames.iter().rev().skip(1).find_map(|frame| frame.current);
        self.names.declared.push(Declared { name: name.clone(), ty, span, whole: start.to(span), inside });
        self.note(self.at, ty.map(|ty| Meaning::Type(Ty { arrays: 0, ..ty })));
        self.note(name_at, Some(Meaning::Declared(number)));
        if let Some(scope) = self.names.frames.iter_mut().rev().find(|frame| !frame.transparent) {
            scope.names.insert(name, number);
        }
        if let Some(frame) = self.frame() {
            frame.current = Some(number);
        }
        self.names.target = ty.map(|ty| (ty, None));
        self.at = name_at + 1;
    }

    /// `a.b.c`.
    fn path(&mut self, first: &Rc<str>, begins: bool) {
        let mut meaning = self.names.lookup(first);
        if meaning.is_none() {
            self.unknown.push((self.at, first.clone()));
        }
        self.note(self.at, meaning);
        self.at += 1;
        while self.mark(self.at, ".")
            && let Some(name) = self.word(self.at + 1)
        {
            meaning = member(meaning.and_then(|meaning| self.names.type_of(meaning)), &name);
            self.note(self.at + 1, meaning);
            self.at += 2;
        }
        if begins {
            let ty = meaning.and_then(|meaning| self.names.type_of(meaning));
            let field = match meaning {
                Some(Meaning::Field(kind, field)) => Some((kind, field)),
                _ => None,
            };
            self.names.target = ty.map(|ty| (ty, field));
        }
    }

    fn note(&mut self, at: usize, meaning: Option<Meaning>) {
        if let Some(place) = self.names.meanings.get_mut(at) {
            *place = meaning;
        }
    }

    /// Gives words their meaning that were used before they were declared, as scripts may.
    fn finish(mut self) -> Names {
        for (at, name) in std::mem::take(&mut self.unknown) {
            let program = self.names.frames.first();
            let known =
                program.and_then(|frame| frame.names.get(&name)).map(|number| Meaning::Declared(*number));
            self.note(at, known);
        }
        self.names
    }
}
