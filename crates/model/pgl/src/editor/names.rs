//! Name resolution for editors, from tokens alone, so that it works on a statement that is half typed.
//!
//! Scopes are those of the interpreter: in the block of an object, its fields come first, then names declared there, then
//! names from outside. Types are the declared ones; nothing is evaluated.

use std::collections::HashMap;
use std::rc::Rc;

use crate::eval::{FUNCTIONS, PROCEDURES};
use crate::lexer::{Token, TokenKind};
use crate::schema::{Base, Field, RecordKind, Ty};
use crate::source::Span;
use crate::units;

/// The entity that a word refers to.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Resolution {
    Type(Ty),
    /// A declared name, by its index.
    Declaration(usize),
    /// A field of a type of objects.
    Field(RecordKind, &'static Field),
    /// A part of an address.
    AddressPart,
    /// A function or procedure, with its parameters.
    Call(&'static str, &'static str),
    /// A unit that stands alone.
    Unit,
    /// `now`, `lmt` or `nmt`.
    Moment,
}

#[derive(Debug, Clone, PartialEq)]
pub(super) struct Declaration {
    pub name: Rc<str>,
    /// None for a type that does not exist.
    pub ty: Option<Ty>,
    /// Place of the name.
    pub span: Span,
    pub full_span: Span,
    /// Index of the declaration whose block contains this one.
    pub parent: Option<usize>,
}

/// Names of a program up to some token, and the scopes there.
pub(super) struct NameResolution {
    /// Declarations in order of appearance.
    pub declared: Vec<Declaration>,
    /// Resolution of each token.
    pub resolutions: Vec<Option<Resolution>>,
    frames: Vec<ScopeFrame>,
    /// The next token begins a statement.
    pub begins_statement: bool,
    /// Type of the variable or field that the current statement assigns, and the field.
    pub target: Option<(Ty, Option<(RecordKind, &'static Field)>)>,
}

#[derive(Default)]
struct ScopeFrame {
    /// Type of the object that the block fills.
    object: Option<RecordKind>,
    /// Names declared in the block belong to the enclosing one.
    transparent: bool,
    names: HashMap<Rc<str>, usize>,
    /// Index of the declaration that is being read.
    current: Option<usize>,
}

const KEYWORDS: [&str; 5] = ["if", "then", "else", "every", "do"];

pub(super) fn names(tokens: &[Token]) -> NameResolution {
    let names = NameResolution {
        declared: Vec::new(),
        resolutions: vec![None; tokens.len()],
        frames: vec![ScopeFrame::default()],
        begins_statement: true,
        target: None,
    };
    let mut walker = NameResolver { tokens, at: 0, names, unresolved: Vec::new() };
    while walker.at < tokens.len() {
        walker.token();
    }
    walker.finish()
}

impl NameResolution {
    /// Resolves a name in the scope at the end of the tokens.
    pub fn lookup(&self, name: &str) -> Option<Resolution> {
        self.frames.iter().rev().find_map(|frame| {
            let field = frame
                .object
                .and_then(|kind| kind.field(name).map(|(_, field)| Resolution::Field(kind, field)));
            field.or_else(|| frame.names.get(name).map(|at| Resolution::Declaration(*at)))
        })
    }

    pub fn type_of(&self, resolution: Resolution) -> Option<Ty> {
        match resolution {
            Resolution::Type(ty) => Some(ty),
            Resolution::Declaration(at) => self.declared.get(at).and_then(|declared| declared.ty),
            Resolution::Field(_, field) => Some(field.ty),
            Resolution::AddressPart | Resolution::Call(..) | Resolution::Unit | Resolution::Moment => None,
        }
    }

    /// Type of the object whose block contains the end of the tokens.
    pub fn object(&self) -> Option<RecordKind> {
        self.frames.iter().rev().find(|frame| !frame.transparent).and_then(|frame| frame.object)
    }

    /// The names in scope at the end of the tokens, without shadowed ones.
    pub fn visible(&self) -> Vec<&Declaration> {
        let mut by_name = HashMap::new();
        for frame in self.frames.iter().rev() {
            for (name, at) in &frame.names {
                by_name.entry(name.clone()).or_insert(*at);
            }
        }
        let mut all: Vec<usize> = by_name.into_values().collect();
        all.sort_unstable();
        all.into_iter().filter_map(|at| self.declared.get(at)).collect()
    }
}

/// Resolves a member of an expression of a type.
pub(super) fn resolve_member(ty: Option<Ty>, name: &str) -> Option<Resolution> {
    let ty = ty?;
    match ty.record() {
        Some(kind) => kind.field(name).map(|(_, field)| Resolution::Field(kind, field)),
        None if ty == Ty::one(Base::Address) && ADDRESS_PARTS.contains(&name) => {
            Some(Resolution::AddressPart)
        }
        None => None,
    }
}

/// Members of an address.
pub(super) const ADDRESS_PARTS: [&str; 4] = ["host", "port", "if_name", "subnet"];

struct NameResolver<'a> {
    tokens: &'a [Token],
    at: usize,
    names: NameResolution,
    /// Unresolved words; in scripts, names may be declared after their use.
    unresolved: Vec<(usize, Rc<str>)>,
}

impl NameResolver<'_> {
    fn is_mark(&self, at: usize, mark: &str) -> bool {
        self.tokens.get(at).is_some_and(|token| matches!(token.kind, TokenKind::Mark(m) if m == mark))
    }

    fn word(&self, at: usize) -> Option<Rc<str>> {
        match &self.tokens.get(at)?.kind {
            TokenKind::Word(word) => Some(word.clone()),
            _ => None,
        }
    }

    fn frame(&mut self) -> Option<&mut ScopeFrame> {
        self.names.frames.last_mut()
    }

    fn token(&mut self) {
        let token = &self.tokens[self.at];
        match &token.kind {
            TokenKind::Mark("{") => self.open(),
            TokenKind::Mark("}") => self.close(token.span),
            TokenKind::Mark(";") => {
                self.end_declaration(token.span);
                self.names.begins_statement = true;
                self.names.target = None;
                self.at += 1;
            }
            TokenKind::Word(word) => self.resolve_word(&word.clone()),
            _ => {
                self.names.begins_statement = false;
                self.at += 1;
            }
        }
    }

    fn open(&mut self) {
        let assigned = self.at.checked_sub(1).is_some_and(|before| self.is_mark(before, "="));
        let target = self.names.target.take().map(|(ty, _)| ty).filter(|_| assigned);
        let object = target.and_then(|ty| Ty { arrays: 0, ..ty }.record());
        self.names.frames.push(ScopeFrame { object, transparent: !assigned, ..ScopeFrame::default() });
        self.names.begins_statement = true;
        self.at += 1;
    }

    fn close(&mut self, span: Span) {
        if let Some(current) = self.frame().and_then(|frame| frame.current.take()) {
            // A declaration without `;` ends before the `}`.
            let end = self.tokens[self.at.saturating_sub(1)].span;
            self.extend(current, end);
        }
        if self.names.frames.len() > 1 {
            self.names.frames.pop();
        }
        if let Some(current) = self.frame().and_then(|frame| frame.current) {
            self.extend(current, span);
        }
        self.names.begins_statement = true;
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
            declared.full_span = declared.full_span.to(end);
        }
    }

    fn resolve_word(&mut self, word: &Rc<str>) {
        let begins = std::mem::replace(&mut self.names.begins_statement, false);
        if KEYWORDS.contains(&&**word) {
            self.at += 1;
            return;
        }
        let ty = Ty::named(word);
        if let Some((name_at, name, arrays)) = self.declaration().filter(|_| begins || ty.is_some()) {
            self.declare(name_at, name, ty.map(|ty| Ty { arrays, ..ty }));
            return;
        }
        if self.is_mark(self.at + 1, "(") {
            let function =
                FUNCTIONS.iter().find(|f| *f.name == **word).map(|f| Resolution::Call(f.name, f.arguments));
            let procedure =
                PROCEDURES.iter().find(|p| *p.name == **word).map(|p| Resolution::Call(p.name, p.arguments));
            self.resolve(self.at, if begins { procedure.or(function) } else { function.or(procedure) });
            self.at += 1;
            return;
        }
        let alone = if units::bare_unit(word).is_some() {
            Some(Resolution::Unit)
        } else {
            matches!(&**word, "now" | "lmt" | "nmt").then_some(Resolution::Moment)
        };
        match alone {
            Some(resolution) => {
                self.resolve(self.at, Some(resolution));
                self.at += 1;
            }
            None => self.path(word, begins),
        }
    }

    /// Reads `Type name` or `Type[] name` ahead: index of the name, the name, and the number of brackets.
    fn declaration(&self) -> Option<(usize, Rc<str>, u8)> {
        let mut at = self.at + 1;
        let mut arrays = 0_u8;
        while self.is_mark(at, "[") && self.is_mark(at + 1, "]") {
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
        let parent = self.names.frames.iter().rev().skip(1).find_map(|frame| frame.current);
        self.names.declared.push(Declaration {
            name: name.clone(),
            ty,
            span,
            full_span: start.to(span),
            parent,
        });
        self.resolve(self.at, ty.map(|ty| Resolution::Type(Ty { arrays: 0, ..ty })));
        self.resolve(name_at, Some(Resolution::Declaration(number)));
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
        let mut resolution = self.names.lookup(first);
        if resolution.is_none() {
            self.unresolved.push((self.at, first.clone()));
        }
        self.resolve(self.at, resolution);
        self.at += 1;
        while self.is_mark(self.at, ".")
            && let Some(name) = self.word(self.at + 1)
        {
            resolution =
                resolve_member(resolution.and_then(|resolution| self.names.type_of(resolution)), &name);
            self.resolve(self.at + 1, resolution);
            self.at += 2;
        }
        if begins {
            let ty = resolution.and_then(|resolution| self.names.type_of(resolution));
            let field = match resolution {
                Some(Resolution::Field(kind, field)) => Some((kind, field)),
                _ => None,
            };
            self.names.target = ty.map(|ty| (ty, field));
        }
    }

    fn resolve(&mut self, at: usize, resolution: Option<Resolution>) {
        if let Some(place) = self.names.resolutions.get_mut(at) {
            *place = resolution;
        }
    }

    /// Resolves words that are used before their declaration, as in scripts.
    fn finish(mut self) -> NameResolution {
        for (at, name) in std::mem::take(&mut self.unresolved) {
            let program = self.names.frames.first();
            let known = program
                .and_then(|frame| frame.names.get(&name))
                .map(|number| Resolution::Declaration(*number));
            self.resolve(at, known);
        }
        self.names
    }
}
