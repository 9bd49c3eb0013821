//! Source text as it is to be laid out: [`format()`] changes blanks and the ends of lines, and nothing else.
//!
//! The text is cut into pieces that together are all of it: tokens, comments and `#include` lines. The layout decides what stands
//! between them. Line breaks in lists and expressions are the author's, and so is whether a block stands on one line (unless it is
//! too long for that); indentation, blanks and empty lines follow rules. The result is read again: if its tokens or comments
//! differed from those of the original, it would be refused.
//!
//! *Does not:* read included files, change a name, a number or a comment, put statements into another order, or lay out a text
//! that cannot be parsed.

use crate::diagnostic::{Code, Diagnostic};
use crate::diagnostics::Diagnostics;
use crate::lexer::{self, Token};
use crate::source::{ResolvedSource, Resolver, Source};
use crate::{Failure, parser};

mod layout;
mod pieces;
#[cfg(test)]
mod tests;

use pieces::{Kind, Piece};

/// Lays out the source text of the file `name`. A text with mistakes in its syntax is refused with the compiler's own errors.
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
    if diagnostics.failed() {
        return Err(Failure { diagnostics: diagnostics.finish(), sources: source() });
    }
    let pieces = pieces::pieces(text, &tokens);
    let laid_out = layout::lay_out(&pieces);
    if !same(name, &pieces, &laid_out) {
        let message =
            "the layout would have changed the program, so the text was left as it is; please report this";
        return Err(Failure {
            diagnostics: vec![Diagnostic::placeless(Code::Syntax, message)],
            sources: source(),
        });
    }
    // Line ends as they were.
    let line_end = text.find('\n').filter(|at| text[..*at].ends_with('\r'));
    Ok(if line_end.is_some() { laid_out.replace('\n', "\r\n") } else { laid_out })
}

/// The tokens of a text itself, without those of what it includes.
fn tokens(name: &str, text: &str) -> (Vec<Token>, Diagnostics) {
    let mut sources = vec![Source { name: name.to_owned(), text: text.to_owned(), included_from: None }];
    let mut diagnostics = Diagnostics::default();
    let tokens = lexer::lex(&mut sources, &NothingIncluded, &mut diagnostics);
    (tokens, diagnostics)
}

/// True if a text consists of these tokens and comments.
fn same(name: &str, pieces: &[Piece<'_>], text: &str) -> bool {
    let (tokens, diagnostics) = tokens(name, text);
    let again = pieces::pieces(text, &tokens);
    !diagnostics.failed()
        && again.len() == pieces.len()
        && again.iter().zip(pieces).all(|(a, b)| match (a.kind, b.kind) {
            // Their lines may have moved.
            (Kind::BlockComment, Kind::BlockComment) => {
                a.text.split_whitespace().eq(b.text.split_whitespace())
            }
            (a_kind, b_kind) => a_kind == b_kind && a.text == b.text,
        })
}

/// Every file that is included is there, and empty.
struct NothingIncluded;

impl Resolver for NothingIncluded {
    fn read(&self, name: &str, _including: Option<&str>) -> Result<ResolvedSource, String> {
        // No path looks like this, so none is taken for a file that includes itself.
        Ok(ResolvedSource { name: format!("<not read>\n{name}"), text: String::new() })
    }
}
