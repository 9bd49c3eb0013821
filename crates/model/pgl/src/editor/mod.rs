//! What an editor asks about a program: mistakes, what a word means, what can follow, where a name is declared.
//!
//! An [`Analysis`] is made of the text of one file and all that it includes. Places are byte offsets in that file.
//!
//! *Does not:* know a protocol, keep an analysis up to date while the text changes, or judge what cannot be known from the text.

use crate::diagnostic::{Code, Diagnostic};
use crate::diagnostics::Diagnostics;
use crate::lexer::{self, Literal, Token, TokenKind};
use crate::schema::Base;
use crate::source::{Resolver, Source, Span};
use crate::{build, eval, parser, stem};

mod complete;
mod hover;
mod names;
#[cfg(test)]
mod tests;

pub use complete::{Completion, CompletionKind};
pub use hover::Hover;
use names::{Meaning, Names};

/// What is known about a program.
pub struct Analysis {
    /// All texts that took part; the main file first. Empty if that cannot be read.
    pub sources: Vec<Source>,
    /// Errors, warnings and notes, in order of appearance.
    pub diagnostics: Vec<Diagnostic>,
    tokens: Vec<Token>,
    names: Names,
}

/// A declaration, for an outline.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Symbol {
    pub name: String,
    /// Its type, as written.
    pub ty: String,
    /// What kind of thing that is.
    pub kind: SymbolKind,
    /// Where the name stands.
    pub span: Span,
    pub whole: Span,
    /// Declarations in its block.
    pub children: Vec<Symbol>,
}

/// A kind of declaration.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SymbolKind {
    /// An object: a robot, a phase.
    Object,
    List,
    /// A number, time, size, rate, or a distribution of them.
    Number,
    Text,
    Truth,
    Other,
}

/// Analyses the program that the resolver knows as `main`.
///
/// A file in which nothing is used is one that others include: it is compiled as far as that goes, and not held to be a workload.
pub fn analyse(main: &str, resolver: &dyn Resolver) -> Analysis {
    let found = match resolver.read(main, None) {
        Ok(found) => found,
        Err(why) => {
            let message = format!("cannot read the workload: {why}");
            let diagnostics = vec![Diagnostic::placeless(Code::Directive, message)];
            let names = names::names(&[]);
            return Analysis { sources: vec![], diagnostics, tokens: vec![], names };
        }
    };
    let name = stem(&found.name).to_owned();
    let mut sources = vec![Source { name: found.name, text: found.text, included_from: None }];
    let mut diagnostics = Diagnostics::default();
    let tokens = lexer::lex(&mut sources, resolver, &mut diagnostics);
    let parsed = parser::parse(&tokens, &mut diagnostics);
    let registered = eval::run(&parsed.program, &parsed.skipped, &sources, resolver, &mut diagnostics);
    if uses_something(&tokens) {
        build::build(&name, &registered, &sources, resolver, &mut diagnostics);
    }
    let names = names::names(&tokens);
    Analysis { diagnostics: diagnostics.finish(), sources, tokens, names }
}

/// True if a program has a call of `use()` anywhere.
fn uses_something(tokens: &[Token]) -> bool {
    tokens.windows(2).any(|pair| {
        matches!(&pair[0].kind, TokenKind::Word(word) if **word == *"use")
            && matches!(pair[1].kind, TokenKind::Mark("("))
    })
}

impl Analysis {
    /// The text of the main file.
    fn text(&self) -> &str {
        self.sources.first().map_or("", |source| &source.text)
    }

    /// The token of the main file at an offset, or one that ends there.
    fn token_at(&self, offset: usize) -> Option<usize> {
        let main = self.tokens.iter().enumerate().filter(|(_, token)| token.span.source == 0);
        let touching = main
            .filter(|(_, token)| (token.span.start as usize) <= offset && offset <= token.span.end as usize);
        // Of two that touch there, the one that begins, unless that is a mark.
        touching
            .filter(|(_, token)| !matches!(token.kind, TokenKind::End))
            .max_by_key(|(at, token)| {
                let inside = offset < token.span.end as usize;
                (!matches!(token.kind, TokenKind::Mark(_)), inside, *at)
            })
            .map(|(at, _)| at)
    }

    fn meaning_at(&self, offset: usize) -> Option<(usize, Meaning)> {
        let at = self.token_at(offset)?;
        self.names.meanings.get(at).copied().flatten().map(|meaning| (at, meaning))
    }

    /// Where the name at an offset is declared, or the file that an `#include` there reads.
    pub fn definition(&self, offset: usize) -> Option<Span> {
        let included = self.sources.iter().position(|source| {
            source.included_from.is_some_and(|from| {
                from.source == 0 && (from.start as usize) <= offset && offset <= from.end as usize
            })
        });
        if let Some(source) = included {
            return Some(Span { source: source as u32, start: 0, end: 0 });
        }
        match self.meaning_at(offset)? {
            (_, Meaning::Declared(number)) => self.names.declared.get(number).map(|declared| declared.span),
            _ => None,
        }
    }

    /// All places where the declared name at an offset stands, its declaration included.
    pub fn references(&self, offset: usize) -> Vec<Span> {
        let Some((_, Meaning::Declared(number))) = self.meaning_at(offset) else { return vec![] };
        let all = self.names.meanings.iter().zip(&self.tokens);
        all.filter(|(meaning, _)| **meaning == Some(Meaning::Declared(number)))
            .map(|(_, token)| token.span)
            .collect()
    }

    /// The declarations of the main file, those in blocks below those that they are in.
    pub fn symbols(&self) -> Vec<Symbol> {
        self.symbols_inside(None, 0)
    }

    fn symbols_inside(&self, parent: Option<usize>, depth: u32) -> Vec<Symbol> {
        let own = self.names.declared.iter().enumerate();
        own.filter(|(_, declared)| declared.span.source == 0 && declared.inside == parent && depth < 64)
            .map(|(number, declared)| Symbol {
                name: declared.name.to_string(),
                ty: declared.ty.map_or_else(String::new, |ty| ty.name()),
                kind: symbol_kind(declared),
                span: declared.span,
                whole: declared.whole,
                children: self.symbols_inside(Some(number), depth + 1),
            })
            .collect()
    }
}

fn symbol_kind(declared: &names::Declared) -> SymbolKind {
    let Some(ty) = declared.ty else { return SymbolKind::Other };
    match ty.base {
        _ if ty.arrays > 0 => SymbolKind::List,
        Base::Record(_) => SymbolKind::Object,
        Base::Int | Base::Float | Base::Time | Base::Size | Base::Rate | Base::Bandwidth => {
            SymbolKind::Number
        }
        Base::Text => SymbolKind::Text,
        Base::Bool => SymbolKind::Truth,
        Base::Address | Base::Regex | Base::Id | Base::Popularity | Base::Code => SymbolKind::Other,
    }
}

/// A value as written, if a token is one.
fn literal(token: &Token) -> Option<&Literal> {
    match &token.kind {
        TokenKind::Literal(literal) => Some(literal),
        _ => None,
    }
}
