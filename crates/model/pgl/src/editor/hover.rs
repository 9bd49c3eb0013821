//! What is said about the word or value under the pointer, as Markdown.

use std::fmt::Write;

use super::names::Meaning;
use super::{Analysis, literal};
use crate::lexer::Literal;
use crate::schema::{self, Base, Effect, Field, RecordKind, Ty};
use crate::source::Span;

/// Something to show about a place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hover {
    /// The word or value it is about.
    pub span: Span,
    pub text: String,
}

impl Analysis {
    /// What is known about the word or value at an offset.
    pub fn hover(&self, offset: usize) -> Option<Hover> {
        let at = self.token_at(offset)?;
        let token = &self.tokens[at];
        let meaning = self.names.meanings.get(at).copied().flatten();
        let text = match meaning {
            Some(meaning) => self.about(meaning)?,
            None => about_literal(literal(token)?)?,
        };
        Some(Hover { span: token.span, text })
    }

    fn about(&self, meaning: Meaning) -> Option<String> {
        Some(match meaning {
            Meaning::Type(ty) => about_type(ty),
            Meaning::Field(kind, field) => about_field(kind, field),
            Meaning::Call(name, arguments) => about_call(name, arguments),
            Meaning::Declared(number) => self.about_declared(number)?,
            Meaning::AddressPart => "a part of an address: `host`, `port`, `if_name` or `subnet`".to_owned(),
            Meaning::Unit => "one of this unit".to_owned(),
            Meaning::Moment => {
                "for `expires`: from the response (`now`), the last (`lmt`) or the next modification (`nmt`)"
                    .to_owned()
            }
        })
    }

    fn about_declared(&self, number: usize) -> Option<String> {
        let declared = self.names.declared.get(number)?;
        let ty = declared.ty.map_or_else(|| "?".to_owned(), Ty::name);
        let mut text = format!("```pgl\n{ty} {}\n```\n", declared.name);
        let source = self.sources.get(declared.span.source as usize)?;
        if let Some(comment) = comment_of(&source.text, declared.whole) {
            // Writing to a string cannot fail.
            let _ = write!(text, "\n{comment}\n");
        }
        if let Some(kind) = declared.ty.and_then(|ty| Ty { arrays: 0, ..ty }.record()) {
            let _ = write!(text, "\n`{}`: {}\n", kind.name(), schema::type_meaning(kind));
        } else if let Some(written) = declared.ty.and_then(written) {
            let _ = write!(text, "\nWritten {written}\n");
        }
        if declared.span.source != 0 {
            let _ = write!(text, "\nFrom `{}`\n", source.name);
        }
        Some(text)
    }
}

/// A field with its type, unit and meaning.
pub(super) fn about_field(kind: RecordKind, field: &Field) -> String {
    let mut text = format!("```pgl\n{}.{}: {}\n```\n", kind.name(), field.name, field.ty.name());
    if let Some(meaning) = schema::meaning(kind, field.name) {
        let _ = write!(text, "\n{}\n", sentence(meaning));
    }
    let words = schema::words(kind, field.name);
    if !words.is_empty() {
        let words: Vec<String> = words.iter().map(|word| format!("`\"{word}\"`")).collect();
        let _ = write!(text, "\nOne of {}.\n", words.join(", "));
    } else if let Some(written) = written(field.ty) {
        let _ = write!(text, "\nWritten {written}\n");
    }
    text.push_str(&about_effect(field.effect));
    if field.own {
        text.push_str("\nAssay's own: not in Web Polygraph.\n");
    }
    text
}

fn about_type(ty: Ty) -> String {
    let Base::Record(kind) = ty.base else {
        let written = written(ty).map_or_else(String::new, |written| format!("\nWritten {written}\n"));
        return format!("```pgl\n{}\n```\n{written}", ty.name());
    };
    let fields: Vec<&str> = kind.fields().map(|field| field.name).collect();
    let mut text = format!("```pgl\n{}\n```\n\n{}\n", ty.name(), sentence(schema::type_meaning(kind)));
    text.push_str(&about_effect(kind.definition().effect));
    if !fields.is_empty() {
        let _ = write!(text, "\nFields: `{}`\n", fields.join("`, `"));
    }
    text
}

/// A function or procedure.
pub(super) fn about_call(name: &str, arguments: &str) -> String {
    let meaning = schema::call_meaning(name).map_or_else(String::new, sentence);
    format!("```pgl\n{name}({arguments})\n```\n\n{meaning}\n")
}

fn about_effect(effect: Effect) -> String {
    match effect {
        Effect::Full => String::new(),
        Effect::Part(remark) => format!("\n*Partly supported:* {remark}.\n"),
        Effect::None(instead) => format!("\n*Accepted without effect:* {instead}.\n"),
        Effect::LeftOut(topic) => {
            format!("\n*Left out on purpose:* {}; {}.\n", topic.name(), topic.instead())
        }
    }
}

/// A quantity in the base unit.
fn about_literal(literal: &Literal) -> Option<String> {
    Some(match literal {
        Literal::Time(seconds) => format!("a time: {seconds} s"),
        Literal::Size(bytes) => format!("a size: {bytes} bytes"),
        Literal::Percent(percents) => format!("a share: {}", percents / 100.0),
        Literal::Address(range) if range.count() > 1 => format!("{} addresses: {range}", range.count()),
        _ => return None,
    })
}

/// How values of a type are written, with the unit they need.
fn written(ty: Ty) -> Option<&'static str> {
    if ty.arrays > 0 {
        return Some("as a list, `[ a, b: 30% ]`; the shares may be left out.");
    }
    if ty.random {
        return Some(match ty.base {
            Base::Time => "as a distribution of times: `exp(2sec)`, `const(1min)`.",
            Base::Size => "as a distribution of sizes: `exp(13KB)`, `const(1MB)`.",
            _ => "as a distribution: `zipf(16)`, `const(4)`.",
        });
    }
    Some(match ty.base {
        Base::Bool => "`yes` or `no`.",
        Base::Int => "as an integer, `42`.",
        Base::Float => "as a real number or a share: `0.55`, `55%`.",
        Base::Time => "with its unit: `300msec`, `5min`, `4hour`.",
        Base::Size => "with its unit: `13KB`, `1GB`; factors are powers of 1024, and a small `b` means bits.",
        Base::Rate => "as a number per time: `0.4/sec`.",
        Base::Bandwidth => "as a size per time: `10Mb/sec`.",
        Base::Text => "in double quotes.",
        Base::Address => "in single quotes: `'10.0.0.1:80'`.",
        Base::Regex => "with its subject: `url =~/pattern/i`.",
        Base::Popularity => "`popUnif()` or `popZipf(skew)`.",
        Base::Code => "as a block.",
        Base::Id | Base::Record(_) => return None,
    })
}

/// A phrase as a sentence.
pub(super) fn sentence(phrase: &str) -> String {
    let mut letters = phrase.chars();
    let first = letters.next().map(|c| c.to_uppercase().collect::<String>()).unwrap_or_default();
    let end = if phrase.ends_with('.') { "" } else { "." };
    format!("{first}{}{end}", letters.as_str())
}

/// The comment about a declaration: on the lines directly before it, or behind it.
fn comment_of(text: &str, whole: Span) -> Option<String> {
    let (start, end) = (whole.start as usize, whole.end as usize);
    let line_start = text.get(..start)?.rfind('\n').map_or(0, |at| at + 1);
    let mut above: Vec<&str> = Vec::new();
    for line in text[..line_start].lines().rev() {
        match line.trim().strip_prefix("//") {
            Some(comment) => above.push(comment.trim()),
            None => break,
        }
    }
    above.reverse();
    let behind =
        text.get(end..)?.lines().next().and_then(|rest| rest.trim().strip_prefix("//")).map(str::trim);
    let all: Vec<&str> = above.into_iter().chain(behind).filter(|line| !line.is_empty()).collect();
    (!all.is_empty()).then(|| all.join(" "))
}
