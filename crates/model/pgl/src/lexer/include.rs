//! `#include`, the only directive of the language.

use super::Scanner;
use crate::diagnostic::{Code, Diagnostic};
use crate::source::Source;

const MAX_DEPTH: usize = 32;
/// Upper bound on the inclusions of a program.
const MAX_INCLUDES: usize = 1000;

impl Scanner<'_, '_, '_> {
    /// A `#` at the start of a line, with the included file. The rest of the line is read after that file.
    pub(super) fn directive(&mut self) {
        let start = self.at;
        if !self.fresh_line {
            self.at += 1;
            let span = self.span(start);
            self.lexer.diagnostics.add(
                Diagnostic::error(Code::StrayCharacter, span, "`#` means nothing here")
                    .label("expected only at the start of a line")
                    .help("a comment begins with `//`"),
            );
            self.take_while(|c| c != '\n');
            return;
        }
        let line = self.take_while(|c| c != '\n');
        // A lone `#` does nothing, as in C.
        if line[1..].trim().is_empty() {
            return;
        }
        let Some((name, length)) = included_name(line) else {
            let span = self.span(start);
            self.lexer.diagnostics.add(
                Diagnostic::error(Code::Directive, span, "this line is not an `#include`")
                    .label("expected `#include \"file\"`")
                    .help("there is no other directive; a comment begins with `//`"),
            );
            return;
        };
        self.at = start + length;
        self.fresh_line = false;
        let span = self.span(start);
        self.lexer.includes += 1;
        if self.lexer.chain.len() >= MAX_DEPTH || self.lexer.includes > MAX_INCLUDES {
            self.error(Code::TooDeep, span, "too many files are included", "this one is not read");
            return;
        }
        let including = self.lexer.sources.get(self.source as usize).map(|source| source.name.clone());
        match self.lexer.resolver.read(name, including.as_deref()) {
            Err(why) => self.lexer.diagnostics.add(
                Diagnostic::error(Code::Directive, span, format!("cannot include `{name}`"))
                    .label(why.to_string())
                    .help("name the directory it is in with -I DIR"),
            ),
            Ok(found) => {
                let sources = &self.lexer.sources;
                let open = |index: &&u32| sources.get(**index as usize).is_some_and(|s| s.name == found.name);
                if self.lexer.chain.iter().find(open).is_some() {
                    let label = format!("`{}` is being read already", found.name);
                    self.error(Code::Directive, span, "a file includes itself", label);
                    return;
                }
                let index = self.lexer.sources.len() as u32;
                self.lexer.sources.push(Source {
                    name: found.name,
                    text: found.text,
                    included_from: Some(span),
                });
                self.lexer.source(index);
            }
        }
    }
}

/// `name` of `#include "name"`, with the length of the directive in bytes.
fn included_name(line: &str) -> Option<(&str, usize)> {
    let after =
        line.strip_prefix('#')?.trim_start().strip_prefix("include")?.trim_start().strip_prefix('"')?;
    let (name, rest) = after.split_once('"')?;
    (!name.is_empty()).then_some((name, line.len() - rest.len()))
}
