//! Analysis of a program for editors: diagnostics, hover texts, completions, declarations and references.
//!
//! An [`Analysis`] is of the text of one file and the files it includes. Positions are byte offsets in that file.
//!
//! *Does not:* know a protocol, keep an analysis up to date while the text changes, or evaluate the program for names.

use crate::diagnostic::{Code, Diagnostic};
use crate::diagnostics::Diagnostics;
use crate::lexer::{self, Token, TokenKind};
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
use names::{NameResolution, Resolution};

/// An analysed program.
pub struct Analysis {
    /// All source texts, the main file first; empty if that cannot be read.
    pub sources: Vec<Source>,
    /// Errors, warnings and notes, in order of appearance.
    pub diagnostics: Vec<Diagnostic>,
    tokens: Vec<Token>,
    names: NameResolution,
}

/// A declaration, for an outline.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Symbol {
    pub name: String,
    /// Type as written.
    pub ty: String,
    pub kind: SymbolKind,
    /// Place of the name.
    pub span: Span,
    pub full_span: Span,
    /// Declarations in the block of this one.
    pub children: Vec<Symbol>,
}

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
/// A file without a call of `use()` is one that others include: it is executed, but no workload is built from it.
pub fn analyse(main: &str, resolver: &dyn Resolver) -> Analysis {
    let found = match resolver.read(main, None) {
        Ok(found) => found,
        Err(why) => {
            let message = format!("cannot read the workload: {why}");
            let diagnostics = vec![Diagnostic::without_span(Code::Directive, message)];
            let names = names::names(&[]);
            return Analysis { sources: vec![], diagnostics, tokens: vec![], names };
        }
    };
    let name = stem(&found.name).to_owned();
    let mut sources = vec![Source { name: found.name, text: found.text, included_from: None }];
    let mut diagnostics = Diagnostics::default();
    let tokens = lexer::lex(&mut sources, resolver, &mut diagnostics);
    let parsed = parser::parse(&tokens, &mut diagnostics);
    let registrations = eval::run(&parsed.program, &parsed.skipped, &sources, resolver, &mut diagnostics);
    if calls_use(&tokens) {
        build::build(&name, &registrations, &sources, resolver, &mut diagnostics);
    }
    let names = names::names(&tokens);
    Analysis { diagnostics: diagnostics.finish(), sources, tokens, names }
}

/// True if a program calls `use()` anywhere.
fn calls_use(tokens: &[Token]) -> bool {
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
        // Between two adjacent tokens, prefer the second one, unless it is a mark.
        touching
            .filter(|(_, token)| !matches!(token.kind, TokenKind::End))
            .max_by_key(|(at, token)| {
                let parent = offset < token.span.end as usize;
                (!matches!(token.kind, TokenKind::Mark(_)), parent, *at)
            })
            .map(|(at, _)| at)
    }

    fn resolution_at(&self, offset: usize) -> Option<(usize, Resolution)> {
        let at = self.token_at(offset)?;
        self.names.resolutions.get(at).copied().flatten().map(|resolution| (at, resolution))
    }

    /// Declaration of the name at an offset, or the file of an `#include` there.
    pub fn definition(&self, offset: usize) -> Option<Span> {
        let included = self.sources.iter().position(|source| {
            source.included_from.is_some_and(|from| {
                from.source == 0 && (from.start as usize) <= offset && offset <= from.end as usize
            })
        });
        if let Some(source) = included {
            return Some(Span { source: source as u32, start: 0, end: 0 });
        }
        match self.resolution_at(offset)? {
            (_, Resolution::Declaration(number)) => {
                self.names.declared.get(number).map(|declared| declared.span)
            }
            _ => None,
        }
    }

    /// All occurrences of the declared name at an offset, with its declaration.
    pub fn references(&self, offset: usize) -> Vec<Span> {
        let Some((_, Resolution::Declaration(number))) = self.resolution_at(offset) else { return vec![] };
        let all = self.names.resolutions.iter().zip(&self.tokens);
        all.filter(|(resolution, _)| **resolution == Some(Resolution::Declaration(number)))
            .map(|(_, token)| token.span)
            .collect()
    }

    /// The declarations of the main file, nested like their blocks.
    pub fn symbols(&self) -> Vec<Symbol> {
        self.symbols_inside(None, 0)
    }

    fn symbols_inside(&self, parent: Option<usize>, depth: u32) -> Vec<Symbol> {
        let own = self.names.declared.iter().enumerate();
        own.filter(|(_, declared)| declared.span.source == 0 && declared.parent == parent && depth < 64)
            .map(|(number, declared)| Symbol {
                name: declared.name.to_string(),
                ty: declared.ty.map_or_else(String::new, |ty| ty.name()),
                kind: symbol_kind(declared),
                span: declared.span,
                full_span: declared.full_span,
                children: self.symbols_inside(Some(number), depth + 1),
            })
            .collect()
    }
}

fn symbol_kind(declared: &names::Declaration) -> SymbolKind {
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
