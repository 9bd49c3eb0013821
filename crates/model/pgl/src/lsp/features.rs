//! Translation of the analysis of a document to the protocol.

use std::collections::HashMap;

use crate::{Analysis, Code, CompletionKind, Diagnostic, Severity, Source, Span, Symbol, SymbolKind};
use serde_json::{Value, json};

use crate::lsp::protocol::RequestError;
use crate::lsp::server::{Document, Host};
use crate::lsp::text::{self, Lines, Range};
use crate::lsp::uri;

/// Diagnostics of a document; those of an included file are placed at its `#include`.
pub(crate) fn diagnostics(
    document: &Document,
    analysis: &Analysis,
    uri: &str,
    host: &impl Host,
) -> Vec<Value> {
    analysis
        .diagnostics
        .iter()
        .map(|diagnostic| diagnostic_json(document, analysis, uri, diagnostic, host))
        .collect()
}

fn diagnostic_json(
    document: &Document,
    analysis: &Analysis,
    uri: &str,
    diagnostic: &Diagnostic,
    host: &impl Host,
) -> Value {
    let span = diagnostic.span.unwrap_or_default();
    let own = in_main(&analysis.sources, span);
    let mut message = diagnostic.message.clone();
    if own != span {
        message = format!("in {}: {message}", diagnostic.location(&analysis.sources));
    }
    for line in [Some(&diagnostic.label), diagnostic.help.as_ref()].into_iter().flatten() {
        if !line.is_empty() {
            message.push('\n');
            message.push_str(line);
        }
    }
    let severity = match diagnostic.severity {
        Severity::Error => 1,
        Severity::Warning => 2,
        Severity::Note => 3,
    };
    let mut locations = Locations::new(analysis, uri, host);
    let related: Vec<Value> = diagnostic
        .notes
        .iter()
        .filter_map(|(span, text)| Some(json!({ "location": locations.location(*span)?, "message": text })))
        .collect();
    let mut out = json!({
        "range": range(document, own),
        "severity": severity,
        "code": diagnostic.code.to_string(),
        "source": "assay",
        "message": message,
    });
    if !related.is_empty() {
        out["relatedInformation"] = related.into();
    }
    if diagnostic.code == Code::Unused {
        // DiagnosticTag.Unnecessary, which editors render faded.
        out["tags"] = json!([1]);
    }
    out
}

/// A span in the main file: the given one, or that of the `#include` it came through.
fn in_main(sources: &[Source], span: Span) -> Span {
    let mut at = span;
    // More than the depth to which the lexer follows inclusions.
    for _ in 0..64 {
        if at.source == 0 {
            return at;
        }
        match sources.get(at.source as usize).and_then(|source| source.included_from) {
            Some(from) => at = from,
            None => break,
        }
    }
    Span::default()
}

fn range(document: &Document, span: Span) -> Range {
    document.lines.range(&document.text, span.start as usize, span.end as usize)
}

pub(crate) fn hover(document: &Document, analysis: &Analysis, offset: usize) -> Option<Value> {
    let hover = analysis.hover(offset)?;
    Some(json!({
        "contents": { "kind": "markdown", "value": hover.text },
        "range": range(document, hover.span),
    }))
}

pub(crate) fn completion(document: &Document, analysis: &Analysis, offset: usize) -> Value {
    let item = |completion: crate::Completion| {
        let kind = match completion.kind {
            CompletionKind::Field => 5,
            CompletionKind::Name => 6,
            CompletionKind::Type => 7,
            CompletionKind::Call => 3,
            CompletionKind::Value => 12,
            CompletionKind::Unit => 11,
            CompletionKind::Keyword => 14,
            CompletionKind::File => 17,
        };
        let mut out = json!({
            "label": completion.label,
            "kind": kind,
            "sortText": format!("{}{}", completion.rank, completion.label),
            "textEdit": { "range": range(document, completion.replaces), "newText": completion.label },
        });
        if !completion.detail.is_empty() {
            out["detail"] = completion.detail.into();
        }
        if !completion.documentation.is_empty() {
            out["documentation"] = json!({ "kind": "markdown", "value": completion.documentation });
        }
        out
    };
    let items: Vec<Value> = analysis.completions(offset).into_iter().map(item).collect();
    json!({ "isIncomplete": false, "items": items })
}

pub(crate) fn definition(analysis: &Analysis, uri: &str, offset: usize, host: &impl Host) -> Option<Value> {
    Locations::new(analysis, uri, host).location(analysis.definition(offset)?)
}

pub(crate) fn references(analysis: &Analysis, uri: &str, offset: usize, host: &impl Host) -> Value {
    let mut locations = Locations::new(analysis, uri, host);
    analysis.references(offset).into_iter().filter_map(|span| locations.location(span)).collect()
}

pub(crate) fn highlights(document: &Document, analysis: &Analysis, offset: usize) -> Value {
    let own = analysis.references(offset).into_iter().filter(|span| span.source == 0);
    own.map(|span| json!({ "range": range(document, span) })).collect()
}

/// Renames a declaration that stands in the document itself, with its uses.
pub(crate) fn rename(
    document: &Document,
    analysis: &Analysis,
    uri: &str,
    offset: usize,
    name: &str,
) -> Result<Value, RequestError> {
    let all = analysis.references(offset);
    if all.is_empty() {
        return Err(RequestError::Rename("only a name that the workload declares can be changed"));
    }
    if all.iter().any(|span| span.source != 0) {
        return Err(RequestError::Rename("this name stands in an included file too; change it there first"));
    }
    if !crate::is_name(name) {
        return Err(RequestError::Rename(
            "a name begins with a letter or `_`, goes on with digits too, and is no word of the language",
        ));
    }
    let edits: Vec<Value> =
        all.into_iter().map(|span| json!({ "range": range(document, span), "newText": name })).collect();
    Ok(json!({ "changes": { uri: edits } }))
}

pub(crate) fn symbols(document: &Document, analysis: &Analysis) -> Value {
    fn one(document: &Document, symbol: &Symbol) -> Value {
        let kind = match symbol.kind {
            SymbolKind::Object => 19,
            SymbolKind::List => 18,
            SymbolKind::Number => 16,
            SymbolKind::Text => 15,
            SymbolKind::Truth => 17,
            SymbolKind::Other => 13,
        };
        let children: Vec<Value> = symbol.children.iter().map(|child| one(document, child)).collect();
        json!({
            "name": symbol.name,
            "detail": symbol.ty,
            "kind": kind,
            "range": range(document, symbol.full_span),
            "selectionRange": range(document, symbol.span),
            "children": children,
        })
    }
    analysis.symbols().iter().map(|symbol| one(document, symbol)).collect()
}

/// Quick fixes by the compiler's suggestions, for the diagnostics in a range.
pub(crate) fn corrections(
    document: &Document,
    analysis: &Analysis,
    uri: &str,
    within: Range,
    host: &impl Host,
) -> Value {
    let correction = |diagnostic: &Diagnostic| {
        let span = diagnostic.span.filter(|span| span.source == 0)?;
        let text = diagnostic.replacement.as_ref()?;
        let place = range(document, span);
        if place.end < within.start || within.end < place.start {
            return None;
        }
        let title =
            if span.start == span.end { format!("Insert `{text}`") } else { format!("Write `{text}`") };
        Some(json!({
            "title": title,
            "kind": "quickfix",
            "isPreferred": true,
            "diagnostics": [diagnostic_json(document, analysis, uri, diagnostic, host)],
            "edit": { "changes": { uri: [{ "range": place, "newText": text }] } },
        }))
    };
    analysis.diagnostics.iter().filter_map(correction).collect()
}

/// Edits that lay out a document, which may be none; null if it cannot be parsed.
pub(crate) fn formatting(document: &Document) -> Option<Value> {
    let formatted = crate::format(&document.name, &document.text).ok()?;
    let edit = text::edit(&document.text, &formatted);
    Some(edit.into_iter().map(|(range, text)| json!({ "range": range, "newText": text })).collect())
}

/// Conversion of spans in any source of an analysis to locations of the protocol.
struct Locations<'a, H> {
    sources: &'a [Source],
    uri: &'a str,
    host: &'a H,
    /// URIs and lines of the sources seen so far.
    known: HashMap<u32, Option<(String, Lines)>>,
}

impl<'a, H: Host> Locations<'a, H> {
    fn new(analysis: &'a Analysis, uri: &'a str, host: &'a H) -> Self {
        Self { sources: &analysis.sources, uri, host, known: HashMap::new() }
    }

    /// The location of a span; none in a text that is no file.
    fn location(&mut self, span: Span) -> Option<Value> {
        let source = self.sources.get(span.source as usize)?;
        let (main, host) = (self.uri, self.host);
        let (uri, lines) = self
            .known
            .entry(span.source)
            .or_insert_with(|| {
                let uri = match source.name.strip_prefix("<bundled>/") {
                    _ if span.source == 0 => Some(main.to_owned()),
                    Some(name) => host.bundled_path(name).and_then(|path| uri::of_path(&path)),
                    None => uri::of_path(&source.name),
                };
                uri.map(|uri| (uri, Lines::new(&source.text)))
            })
            .as_ref()?;
        let range = lines.range(&source.text, span.start as usize, span.end as usize);
        Some(json!({ "uri": uri, "range": range }))
    }
}
