//! Completions.

use super::names::{self, ADDRESS_PARTS, NameResolution, resolve_member};
use super::{Analysis, hover};
use crate::eval::{FUNCTIONS, PROCEDURES};
use crate::lexer::{Literal, TokenKind};
use crate::schema::{self, Base, RecordKind, Ty};
use crate::source::{self, Span};
use crate::units;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Completion {
    /// Text that is shown and inserted.
    pub label: String,
    pub kind: CompletionKind,
    /// Type, or parameters.
    pub detail: String,
    /// Markdown; may be empty.
    pub documentation: String,
    /// Span to replace: the word that is being typed.
    pub replaces: Span,
    /// Sort key; lower ranks come first.
    pub rank: u8,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CompletionKind {
    Field,
    Name,
    Type,
    /// A function or procedure.
    Call,
    /// A string that a field accepts, or a Boolean.
    Value,
    Unit,
    Keyword,
    /// A bundled file, in an `#include`.
    File,
}

/// The place of a completion.
struct CursorPlace {
    /// Index of the first token that is not before the cursor.
    at: usize,
    replaces: Span,
}

impl Analysis {
    /// Completions at an offset of the main file.
    pub fn completions(&self, offset: usize) -> Vec<Completion> {
        let text = self.text();
        let mut offset = offset.min(text.len());
        while !text.is_char_boundary(offset) {
            offset -= 1;
        }
        if let Some(files) = self.include_completions(offset) {
            return files;
        }
        let place = self.place(offset);
        if self.is_in_comment(&place, offset) {
            return vec![];
        }
        if let Some(token) = self.tokens.get(place.at)
            && token.span.source == 0
            && matches!(token.kind, TokenKind::Literal(_))
            && (token.span.start as usize) < offset
            && offset <= token.span.end as usize
        {
            return self.literal_completions(&place, offset);
        }
        let names = names::names(&self.tokens[..place.at]);
        let before = place.at.checked_sub(1).map(|at| &self.tokens[at].kind);
        if matches!(before, Some(TokenKind::Mark("."))) {
            return self.member_completions(&names, &place);
        }
        let begins = names.begins_statement
            || matches!(before, Some(TokenKind::Word(word)) if matches!(&**word, "then" | "do"));
        if begins {
            statement_completions(&names, place.replaces)
        } else {
            value_completions(&names, place.replaces)
        }
    }

    fn place(&self, offset: usize) -> CursorPlace {
        let after = |span: Span, word: bool| {
            span.source == 0
                && ((span.start as usize) >= offset
                    || (word && offset <= span.end as usize)
                    || (!word && offset < span.end as usize))
        };
        let at = self.tokens.iter().position(|token| {
            let touches = matches!(token.kind, TokenKind::Word(_) | TokenKind::Literal(_));
            matches!(token.kind, TokenKind::End) || after(token.span, touches)
        });
        let at = at.unwrap_or(self.tokens.len());
        let here = Span { source: 0, start: offset as u32, end: offset as u32 };
        let typed = self
            .tokens
            .get(at)
            .filter(|token| matches!(token.kind, TokenKind::Word(_)) && (token.span.start as usize) < offset);
        CursorPlace { at, replaces: typed.map_or(here, |token| token.span) }
    }

    /// True between tokens, after the start of a comment and before its end.
    fn is_in_comment(&self, place: &CursorPlace, offset: usize) -> bool {
        if place.replaces.start != place.replaces.end {
            return false;
        }
        let before = self.tokens[..place.at].iter().rev().find(|token| token.span.source == 0);
        let start = before.map_or(0, |token| token.span.end as usize);
        let Some(mut gap) = self.text().get(start..offset) else { return false };
        while let Some(found) = gap.find('/') {
            gap = &gap[found..];
            if gap.starts_with("//") {
                let Some(end) = gap.find('\n') else { return true };
                gap = &gap[end..];
            } else if gap.starts_with("/*") {
                let Some(end) = gap.find("*/") else { return true };
                gap = &gap[end + 2..];
            } else {
                gap = &gap[1..];
            }
        }
        false
    }

    /// The bundled files, in the quotes of an `#include`.
    fn include_completions(&self, offset: usize) -> Option<Vec<Completion>> {
        let text = self.text();
        let start = text[..offset].rfind('\n').map_or(0, |at| at + 1);
        let typed = text[start..offset].trim_start().strip_prefix('#')?;
        let name = typed.trim_start().strip_prefix("include")?.trim_start().strip_prefix('"')?;
        if name.contains('"') {
            return None;
        }
        let replaces = Span { source: 0, start: (offset - name.len()) as u32, end: offset as u32 };
        let file = |name: &str| Completion {
            label: name.to_owned(),
            kind: CompletionKind::File,
            detail: "comes with Assay".to_owned(),
            documentation: String::new(),
            replaces,
            rank: 0,
        };
        Some(source::bundled_names().map(file).collect())
    }

    /// In a string, the strings that its field accepts; in a number with letters behind it, units.
    fn literal_completions(&self, place: &CursorPlace, offset: usize) -> Vec<Completion> {
        let token = &self.tokens[place.at];
        let (start, end) = (token.span.start as usize, token.span.end as usize);
        let Some(written) = self.text().get(start..end) else { return vec![] };
        if let Some(parent) = written.strip_prefix('"') {
            let closed = parent.ends_with('"') && matches!(token.kind, TokenKind::Literal(Literal::Text(_)));
            // An unterminated string extends to the end of the line; replace only up to the cursor.
            let last = if closed { end - 1 } else { offset };
            if offset > last {
                return vec![];
            }
            let replaces = Span { source: 0, start: start as u32 + 1, end: last as u32 };
            let names = names::names(&self.tokens[..place.at]);
            return known_strings(&names).iter().map(|word| value_completion(word, replaces)).collect();
        }
        let digits = written.trim_end_matches(|c: char| c.is_ascii_alphabetic());
        let is_number = digits.starts_with(|c: char| c.is_ascii_digit()) && digits.len() < written.len();
        if !is_number || offset <= start + digits.len() {
            return vec![];
        }
        let replaces = Span { source: 0, start: (start + digits.len()) as u32, end: end as u32 };
        units::names().map(|name| unit_completion(name, replaces)).collect()
    }

    /// After a point, the fields of the expression before it.
    fn member_completions(&self, names: &NameResolution, place: &CursorPlace) -> Vec<Completion> {
        let word = |at: usize| match self.tokens.get(at).map(|token| &token.kind) {
            Some(TokenKind::Word(word)) => Some(word.clone()),
            _ => None,
        };
        let mut path = Vec::new();
        let mut at = place.at;
        while at >= 2
            && matches!(self.tokens[at - 1].kind, TokenKind::Mark("."))
            && let Some(name) = word(at - 2)
        {
            path.push(name);
            at -= 2;
        }
        let mut path = path.into_iter().rev();
        let mut resolution = path.next().and_then(|first| names.lookup(&first));
        for name in path {
            resolution = resolve_member(resolution.and_then(|resolution| names.type_of(resolution)), &name);
        }
        let Some(ty) = resolution.and_then(|resolution| names.type_of(resolution)) else { return vec![] };
        match ty.record() {
            Some(kind) => field_completions(kind, place.replaces).collect(),
            None if ty == Ty::one(Base::Address) => ADDRESS_PARTS
                .into_iter()
                .map(|part| completion(part, CompletionKind::Field, 0, place.replaces))
                .collect(),
            None => vec![],
        }
    }
}

/// Strings that the field being assigned accepts.
fn known_strings(names: &NameResolution) -> &'static [&'static str] {
    match names.target {
        Some((_, Some((kind, field)))) => schema::keywords(kind, field.name),
        _ => &[],
    }
}

fn statement_completions(names: &NameResolution, replaces: Span) -> Vec<Completion> {
    let own = names.object().into_iter().flat_map(|kind| field_completions(kind, replaces));
    let declared = name_completions(names, replaces, |_| 2);
    let types = Base::all().map(|base| type_completion(base, replaces));
    let procedures = PROCEDURES.iter().map(|p| call_completion(p.name, p.arguments, 4, replaces));
    let keywords = ["if", "every"].map(|word| completion(word, CompletionKind::Keyword, 5, replaces));
    own.chain(declared).chain(types).chain(procedures).chain(keywords).collect()
}

fn value_completions(names: &NameResolution, replaces: Span) -> Vec<Completion> {
    let target = names.target.map(|(ty, _)| ty);
    let fits = |ty: Ty| target.is_some_and(|target| target.base == ty.base && target.random == ty.random);
    let words = known_strings(names).iter().map(|word| value_completion(&format!("\"{word}\""), replaces));
    let truth = target.is_some_and(|ty| ty == Ty::one(Base::Bool));
    let truths = ["yes", "no"].into_iter().filter(|_| truth).map(|word| value_completion(word, replaces));
    let moments = target.is_some_and(|ty| ty.base == Base::Time && ty.random);
    let moments =
        ["now", "lmt", "nmt"].into_iter().filter(|_| moments).map(|word| value_completion(word, replaces));
    let declared = name_completions(names, replaces, |ty| if ty.is_some_and(fits) { 1 } else { 4 });
    let own = names.object().into_iter().flat_map(|kind| field_completions(kind, replaces));
    let own = own.map(|field| Completion { rank: 5, ..field });
    let drawn = target.is_some_and(|ty| ty.random || ty.base == Base::Popularity);
    let functions = FUNCTIONS.iter().filter(|f| f.name != "system").map(|f| {
        let draws = schema::call_doc(f.name).is_some_and(|resolution| {
            resolution.starts_with("a distribution") || resolution.starts_with("for `pop_distr`")
        });
        call_completion(f.name, f.arguments, if drawn && draws { 1 } else { 3 }, replaces)
    });
    words.chain(truths).chain(moments).chain(declared).chain(own).chain(functions).collect()
}

fn name_completions(
    names: &NameResolution,
    replaces: Span,
    rank: impl Fn(Option<Ty>) -> u8,
) -> Vec<Completion> {
    let one = |declared: &&names::Declaration| Completion {
        label: declared.name.to_string(),
        kind: CompletionKind::Name,
        detail: declared.ty.map_or_else(String::new, Ty::name),
        documentation: String::new(),
        replaces,
        rank: rank(declared.ty),
    };
    names.visible().iter().map(one).collect()
}

fn field_completions(kind: RecordKind, replaces: Span) -> impl Iterator<Item = Completion> {
    kind.fields().map(move |field| {
        let has_effect = matches!(field.support, schema::Support::Full | schema::Support::Partial(_));
        Completion {
            label: field.name.to_owned(),
            kind: CompletionKind::Field,
            detail: field.ty.name(),
            documentation: hover::describe_field(kind, field),
            replaces,
            rank: if has_effect { 0 } else { 6 },
        }
    })
}

fn type_completion(base: Base, replaces: Span) -> Completion {
    let documentation = match base {
        Base::Record(kind) => hover::sentence(schema::type_doc(kind)),
        _ => String::new(),
    };
    Completion { documentation, ..completion(base.name(), CompletionKind::Type, 3, replaces) }
}

fn call_completion(name: &'static str, arguments: &'static str, rank: u8, replaces: Span) -> Completion {
    Completion {
        detail: format!("({arguments})"),
        documentation: hover::describe_call(name, arguments),
        ..completion(name, CompletionKind::Call, rank, replaces)
    }
}

fn value_completion(label: &str, replaces: Span) -> Completion {
    completion(label, CompletionKind::Value, 0, replaces)
}

fn unit_completion(label: &str, replaces: Span) -> Completion {
    completion(label, CompletionKind::Unit, 0, replaces)
}

fn completion(label: &str, kind: CompletionKind, rank: u8, replaces: Span) -> Completion {
    Completion {
        label: label.to_owned(),
        kind,
        detail: String::new(),
        documentation: String::new(),
        replaces,
        rank,
    }
}
