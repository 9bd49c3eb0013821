//! Hover texts, in Markdown.

use std::fmt::Write;

use super::Analysis;
use super::names::Resolution;
use crate::lexer::{Literal, TokenKind};
use crate::schema::{self, Base, Field, RecordKind, Support, Ty};
use crate::source::Span;

/// Text about a token.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hover {
    pub span: Span,
    pub text: String,
}

impl Analysis {
    /// The hover text of the token at an offset.
    pub fn hover(&self, offset: usize) -> Option<Hover> {
        let at = self.token_at(offset)?;
        let token = &self.tokens[at];
        let resolution = self.names.resolutions.get(at).copied().flatten();
        let text = match resolution {
            Some(resolution) => self.describe(resolution)?,
            None => match &token.kind {
                TokenKind::Literal(literal) => describe_literal(literal)?,
                _ => return None,
            },
        };
        Some(Hover { span: token.span, text })
    }

    fn describe(&self, resolution: Resolution) -> Option<String> {
        Some(match resolution {
            Resolution::Type(ty) => describe_type(ty),
            Resolution::Field(kind, field) => describe_field(kind, field),
            Resolution::Call(name, arguments) => describe_call(name, arguments),
            Resolution::Declaration(number) => self.describe_declaration(number)?,
            Resolution::AddressPart => {
                "a part of an address: `host`, `port`, `if_name` or `subnet`".to_owned()
            }
            Resolution::Unit => "one of this unit".to_owned(),
            Resolution::Moment => {
                "for `expires`: from the response (`now`), the last (`lmt`) or the next modification (`nmt`)"
                    .to_owned()
            }
        })
    }

    fn describe_declaration(&self, number: usize) -> Option<String> {
        let declared = self.names.declared.get(number)?;
        let ty = declared.ty.map_or_else(|| "?".to_owned(), Ty::name);
        let mut text = format!("```pgl\n{ty} {}\n```\n", declared.name);
        let source = self.sources.get(declared.span.source as usize)?;
        if let Some(comment) = declaration_comment(&source.text, declared.full_span) {
            // Writing to a string cannot fail.
            let _ = write!(text, "\n{comment}\n");
        }
        if let Some(kind) = declared.ty.and_then(|ty| Ty { arrays: 0, ..ty }.record()) {
            let _ = write!(text, "\n`{}`: {}\n", kind.name(), schema::type_doc(kind));
        } else if let Some(written) = declared.ty.and_then(literal_syntax) {
            let _ = write!(text, "\nWritten {written}\n");
        }
        if declared.span.source != 0 {
            let _ = write!(text, "\nFrom `{}`\n", source.name);
        }
        Some(text)
    }
}

pub(super) fn describe_field(kind: RecordKind, field: &Field) -> String {
    let mut text = format!("```pgl\n{}.{}: {}\n```\n", kind.name(), field.name, field.ty.name());
    if let Some(resolution) = schema::field_doc(kind, field.name) {
        let _ = write!(text, "\n{}\n", sentence(resolution));
    }
    let words = schema::keywords(kind, field.name);
    if !words.is_empty() {
        let words: Vec<String> = words.iter().map(|word| format!("`\"{word}\"`")).collect();
        let _ = write!(text, "\nOne of {}.\n", words.join(", "));
    } else if let Some(written) = literal_syntax(field.ty) {
        let _ = write!(text, "\nWritten {written}\n");
    }
    text.push_str(&describe_support(field.support));
    if field.assay_only {
        text.push_str("\nAssay's own: not in Web Polygraph.\n");
    }
    text
}

fn describe_type(ty: Ty) -> String {
    let Base::Record(kind) = ty.base else {
        let written = literal_syntax(ty).map_or_else(String::new, |written| format!("\nWritten {written}\n"));
        return format!("```pgl\n{}\n```\n{written}", ty.name());
    };
    let fields: Vec<&str> = kind.fields().map(|field| field.name).collect();
    let mut text = format!("```pgl\n{}\n```\n\n{}\n", ty.name(), sentence(schema::type_doc(kind)));
    text.push_str(&describe_support(kind.definition().support));
    if !fields.is_empty() {
        let _ = write!(text, "\nFields: `{}`\n", fields.join("`, `"));
    }
    text
}

pub(super) fn describe_call(name: &str, arguments: &str) -> String {
    let resolution = schema::call_doc(name).map_or_else(String::new, sentence);
    format!("```pgl\n{name}({arguments})\n```\n\n{resolution}\n")
}

fn describe_support(support: Support) -> String {
    match support {
        Support::Full => String::new(),
        Support::Partial(remark) => format!("\n*Partly supported:* {remark}.\n"),
        Support::Ignored(instead) => format!("\n*Accepted without effect:* {instead}.\n"),
        Support::OutOfScope(feature) => {
            format!("\n*Left out on purpose:* {}; {}.\n", feature.name(), feature.replacement())
        }
    }
}

/// A literal in its base unit.
fn describe_literal(literal: &Literal) -> Option<String> {
    Some(match literal {
        Literal::Time(seconds) => format!("a time: {seconds} s"),
        Literal::Size(bytes) => format!("a size: {bytes} bytes"),
        Literal::Percent(percents) => format!("a share: {}", percents / 100.0),
        Literal::Address(range) if range.count() > 1 => format!("{} addresses: {range}", range.count()),
        _ => return None,
    })
}

/// The notation of values of a type, with their units.
fn literal_syntax(ty: Ty) -> Option<&'static str> {
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

/// A phrase with a capital and a full stop.
pub(super) fn sentence(phrase: &str) -> String {
    let mut letters = phrase.chars();
    let first = letters.next().map(|c| c.to_uppercase().collect::<String>()).unwrap_or_default();
    let end = if phrase.ends_with('.') { "" } else { "." };
    format!("{first}{}{end}", letters.as_str())
}

/// The comment on a declaration, from the lines before it and the rest of its last line.
fn declaration_comment(text: &str, full_span: Span) -> Option<String> {
    let (start, end) = (full_span.start as usize, full_span.end as usize);
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
