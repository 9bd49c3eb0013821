//! Formatter of source text: [`format()`] changes blanks and line ends, and nothing else.
//!
//! The text is split into elements that cover all of it: tokens, comments and `#include` lines. The layout decides on the
//! separators between them. Line breaks in lists and expressions are the author's, and so is a block on one line, unless it is
//! too long; indentation, blanks and empty lines follow rules. The result is split again, and rejected if its tokens or
//! comments differ from those of the original.
//!
//! *Does not:* read included files, change a name, a number or a comment, put statements into another order, or lay out a text
//! that cannot be parsed.

use crate::diagnostic::{Code, Diagnostic};
use crate::diagnostics::Diagnostics;
use crate::lexer::{self, Token};
use crate::source::{ResolveError, ResolvedSource, Resolver, Source};
use crate::{Failure, parser};

mod elements;
mod layout;
#[cfg(test)]
mod tests;

use elements::{Element, ElementKind};

/// Formats the source text of the file `name`. A text with syntax errors is rejected with the compiler's diagnostics.
///
/// ```
/// let text = "Phase  p={name=\"p\";\n goal . duration=5min ;};";
/// let formatted = assay_pgl::format("w.pg", text).unwrap();
/// assert_eq!(formatted, "Phase p = {\n    name = \"p\";\n    goal.duration = 5min;\n};\n");
/// assert_eq!(assay_pgl::format("w.pg", &formatted).unwrap(), formatted);
/// ```
pub fn format(name: &str, text: &str) -> Result<String, Failure> {
    let (tokens, mut diagnostics) = tokens(name, text);
    parser::parse(&tokens, &mut diagnostics);
    let source = || vec![Source { name: name.to_owned(), text: text.to_owned(), included_from: None }];
    if diagnostics.has_errors() {
        return Err(Failure { diagnostics: diagnostics.finish(), sources: source() });
    }
    let elements = elements::elements(text, &tokens);
    let laid_out = layout::lay_out(&elements);
    if !is_equivalent(name, &elements, &laid_out) {
        let message =
            "the layout would have changed the program, so the text was left as it is; please report this";
        return Err(Failure {
            diagnostics: vec![Diagnostic::without_span(Code::Syntax, message)],
            sources: source(),
        });
    }
    // The line ends are those of the original, by its first line.
    let line_end = text.find('\n').filter(|at| text[..*at].ends_with('\r'));
    Ok(if line_end.is_some() { laid_out.replace('\n', "\r\n") } else { laid_out })
}

/// The tokens of a text, without those of included files.
fn tokens(name: &str, text: &str) -> (Vec<Token>, Diagnostics) {
    let mut sources = vec![Source { name: name.to_owned(), text: text.to_owned(), included_from: None }];
    let mut diagnostics = Diagnostics::default();
    let tokens = lexer::lex(&mut sources, &NothingIncluded, &mut diagnostics);
    (tokens, diagnostics)
}

/// True if a text consists of these elements, up to the indentation of comments.
fn is_equivalent(name: &str, elements: &[Element<'_>], text: &str) -> bool {
    let (tokens, diagnostics) = tokens(name, text);
    let again = elements::elements(text, &tokens);
    !diagnostics.has_errors()
        && again.len() == elements.len()
        && again.iter().zip(elements).all(|(a, b)| match (a.kind, b.kind) {
            // Lines of a comment may be indented differently.
            (ElementKind::BlockComment, ElementKind::BlockComment) => {
                a.text.split_whitespace().eq(b.text.split_whitespace())
            }
            (a_kind, b_kind) => a_kind == b_kind && a.text == b.text,
        })
}

/// Resolver for which every included file is empty.
struct NothingIncluded;

impl Resolver for NothingIncluded {
    fn read(&self, name: &str, _including: Option<&str>) -> Result<ResolvedSource, ResolveError> {
        // A name that no path has, so that no file seems to include itself.
        Ok(ResolvedSource { name: format!("<not read>\n{name}"), text: String::new() })
    }
}
