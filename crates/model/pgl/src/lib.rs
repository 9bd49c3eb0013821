//! The workload language PGL: source text in, [`Workload`] out.
//!
//! [`compile`] executes a PGL program (which has no loops and always ends) and turns what the program registers
//! with `use()` and `schedule()` into a workload. Settings without an effect are named in warnings. Errors point at the
//! source and say what to write instead; one compilation reports as many as it can.
//!
//! [`lsp`] is a language server for editors.
//!
//! *Does not:* touch a file (all text comes through the [`Resolver`] it is given), run a shell command, read
//! a clock, expand a range of addresses that is not needed, or know what becomes of a workload.
//!
//! ```
//! use assay_pgl::{SearchPath, compile};
//!
//! let resolver = SearchPath::from_fn(vec![], |name| (name == "w.pg").then(|| "Phase p = { nam = 3; };".into()));
//! let failure = compile("w.pg", &resolver).unwrap_err();
//! assert!(failure.diagnostics[0].render(&failure.sources, false).contains("did you mean `name`?"));
//! ```

use assay_workload::model::Workload;

mod ast;
mod build;
mod diagnostic;
mod diagnostics;
mod editor;
mod eval;
mod format;
mod lexer;
pub mod lsp;
mod parser;
#[cfg(test)]
mod properties;
#[cfg(test)]
mod reference;
mod schema;
mod source;
mod trace;
mod units;
mod value;

use diagnostics::Diagnostics;

pub use diagnostic::{Code, Diagnostic, Severity};
pub use editor::{Analysis, Completion, CompletionKind, Hover, Symbol, SymbolKind, analyse};
pub use format::format;
pub use source::{
    FileError, Files, Listing, REPLACEMENT, ResolveError, ResolvedFiles, ResolvedSource, Resolver,
    SearchPath, Source, Span, TextFiles, bundled, bundled_names,
};

/// A workload that compiled.
#[derive(Debug, Clone, PartialEq)]
pub struct Compiled {
    pub workload: Workload,
    /// Warnings and notes, in order of appearance.
    pub warnings: Vec<Diagnostic>,
    /// Place of each of the workload's requirements.
    pub requirement_spans: Vec<Span>,
    /// All source texts, the main file first.
    pub sources: Vec<Source>,
}

/// The errors of a workload that does not compile.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}", summary(.diagnostics, .sources))]
pub struct Failure {
    /// Errors, warnings and notes, in order of appearance; at least one is an error.
    pub diagnostics: Vec<Diagnostic>,
    /// All source texts, the main file first.
    pub sources: Vec<Source>,
}

/// The first error in one line, with the number of further errors.
fn summary(diagnostics: &[Diagnostic], sources: &[Source]) -> String {
    let mut errors = diagnostics.iter().filter(|d| d.is_error());
    let Some(first) = errors.next() else {
        return "the workload does not compile".to_owned();
    };
    let more = match errors.count() {
        0 => String::new(),
        1 => " (and another error)".to_owned(),
        n => format!(" (and {n} more errors)"),
    };
    let place = first.location(sources);
    let separator = if place.is_empty() { "" } else { ": " };
    format!("{place}{separator}{}{more}", first.message)
}

/// Compiles the workload that the resolver knows as `main`.
pub fn compile(main: &str, resolver: &dyn Resolver) -> Result<Compiled, Failure> {
    let found = match resolver.read(main, None) {
        Ok(found) => found,
        Err(why) => {
            let message = format!("cannot read the workload: {why}");
            let diagnostics = vec![Diagnostic::without_span(Code::Directive, message)];
            return Err(Failure { diagnostics, sources: vec![] });
        }
    };
    let name = stem(&found.name).to_owned();
    let mut sources = vec![Source { name: found.name, text: found.text, included_from: None }];
    let mut diagnostics = Diagnostics::default();
    let tokens = lexer::lex(&mut sources, resolver, &mut diagnostics);
    let parsed = parser::parse(&tokens, &mut diagnostics);
    let registrations = eval::run(&parsed.program, &parsed.skipped, &sources, resolver, &mut diagnostics);
    let requirement_spans = registrations.requirements.iter().map(|(_, span)| *span).collect();
    let workload = build::build(&name, &registrations, &sources, resolver, &mut diagnostics);
    let failed = diagnostics.has_errors();
    let diagnostics = diagnostics.finish();
    if failed {
        Err(Failure { diagnostics, sources })
    } else {
        Ok(Compiled { workload, warnings: diagnostics, requirement_spans, sources })
    }
}

/// True for a word that can be declared as a name.
pub fn is_name(word: &str) -> bool {
    let mut letters = word.chars();
    letters.next().is_some_and(|c| c.is_ascii_alphabetic() || c == '_')
        && letters.all(|c| c.is_ascii_alphanumeric() || c == '_')
        && !parser::is_reserved(word)
}

/// Name of a workload by its file: `polymix` for `dir/polymix.pg`.
fn stem(path: &str) -> &str {
    let file = path.rsplit('/').next().unwrap_or(path);
    let stem = file.strip_suffix(".pg").unwrap_or(file);
    if stem.is_empty() || stem == "-" { "workload" } else { stem }
}
