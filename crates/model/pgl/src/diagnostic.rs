//! Errors, warnings and notes about a workload, and their rendering for terminals.

use crate::source::{Source, Span};

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Severity {
    /// Output of `print`.
    Note,
    /// The workload compiles, but may not mean what it seems to.
    Warning,
    /// The workload does not compile.
    Error,
}

/// Declares [`Code`] with the meaning of each of its variants.
macro_rules! codes {
    ($($name:ident = $number:literal, $meaning:literal;)*) => {
        /// Code of a diagnostic; a number never changes its meaning.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[repr(u16)]
        pub enum Code {
            $(#[doc = $meaning] $name = $number,)*
        }

        impl Code {
            pub const ALL: &[Code] = &[$(Code::$name),*];

            /// Description of the code, as a sentence.
            pub fn meaning(self) -> &'static str {
                match self {
                    $(Code::$name => $meaning,)*
                }
            }
        }
    };
}

codes! {
    StrayCharacter = 1, "A character that starts nothing.";
    Unterminated = 2, "A comment or literal without its end.";
    BadNumber = 3, "A number that cannot be read, or with a unit that does not exist.";
    BadLiteral = 4, "A literal in quotes that cannot be read: an address, a date, a pattern, a regular expression.";
    Directive = 5, "A `#` line that is not `#include`, or a file that cannot be included.";
    NestedComment = 6, "A comment inside a comment.";
    Syntax = 10, "Something else was expected here.";
    TooDeep = 11, "Nested too deeply.";
    PercentNotRemainder = 12, "`7%2`, which reads as seven percent.";
    UnknownName = 20, "A name that was never declared.";
    UnknownType = 21, "A type that does not exist.";
    UnknownField = 22, "A field that its type does not have.";
    UnknownFunction = 23, "A function or procedure that does not exist.";
    Redeclared = 24, "A name declared twice.";
    Shadowed = 25, "A name that hides another.";
    NoValue = 26, "A name or field that has no value yet.";
    TypeMismatch = 30, "A value of the wrong type.";
    NoOperator = 31, "An operator that these operands do not have.";
    Arithmetic = 32, "Overflow, or division by zero.";
    Arguments = 33, "Arguments of a call that do not fit.";
    Misplaced = 34, "A statement that is not allowed here.";
    TooMany = 35, "Too many items.";
    GroupAssignment = 36, "A group assignment that does not come out even.";
    Probabilities = 40, "Probabilities that do not add up.";
    Unsupported = 50, "Accepted, and not acted on.";
    Refused = 51, "Understood, and not done on purpose.";
    OutOfScope = 52, "Something that Assay leaves out on purpose: FTP, NTLM, SOCKS and the like.";
    Required = 60, "A field that must have a value.";
    OutOfRange = 61, "A value outside of what makes sense.";
    NoAddresses = 62, "Agents that have no addresses.";
    BadAddress = 63, "An address that cannot be used as it is.";
    UnknownOrigin = 64, "An address of no server.";
    Duplicate = 65, "The same thing twice.";
    Conflict = 66, "Settings that exclude each other.";
    Schedule = 67, "Phases and the working set.";
    Empty = 68, "Nothing to run.";
    NoEffect = 69, "A setting that cannot have an effect.";
    Files = 70, "A file or directory that cannot be used.";
    ForeignHost = 71, "A URL of a host that is no origin of the workload.";
    NeverRequested = 80, "A content type that can never be requested.";
    Endless = 81, "A phase, or a fill, that can never end.";
    RateTooHigh = 82, "A rate that the connections of a robot cannot carry.";
    Unused = 83, "Something that is declared and never used.";
    FrozenEmpty = 84, "A working set that is frozen before anything is in it.";
    CachingField = 85, "An added header field that changes what caches may do.";
    Print = 90, "Output of `print`.";
    TooManyErrors = 99, "More was wrong than is shown.";
}

impl std::fmt::Display for Code {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "PGL{:03}", *self as u16)
    }
}

/// An error, warning or note about a place in a workload.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Diagnostic {
    pub severity: Severity,
    pub code: Code,
    /// Description of the problem: one sentence without a full stop.
    pub message: String,
    /// Place; none for a diagnostic about no place, as for a main file that cannot be read.
    pub span: Option<Span>,
    /// Text beside the caret: what was expected or found there.
    pub label: String,
    /// Advice on what to write instead.
    pub help: Option<String>,
    /// Correct text for `span`, if replacing it corrects the problem.
    pub replacement: Option<String>,
    /// Related places, each with an explanation.
    pub notes: Vec<(Span, String)>,
}

impl Diagnostic {
    fn new(severity: Severity, code: Code, span: Span, message: impl Into<String>) -> Self {
        Self {
            severity,
            code,
            message: message.into(),
            span: Some(span),
            label: String::new(),
            help: None,
            replacement: None,
            notes: Vec::new(),
        }
    }

    pub fn error(code: Code, span: Span, message: impl Into<String>) -> Self {
        Self::new(Severity::Error, code, span, message)
    }

    pub fn warning(code: Code, span: Span, message: impl Into<String>) -> Self {
        Self::new(Severity::Warning, code, span, message)
    }

    pub fn note(code: Code, span: Span, message: impl Into<String>) -> Self {
        Self::new(Severity::Note, code, span, message)
    }

    pub fn without_span(code: Code, message: impl Into<String>) -> Self {
        Self { span: None, ..Self::error(code, Span::default(), message) }
    }

    /// Sets the text beside the caret.
    pub fn label(mut self, label: impl Into<String>) -> Self {
        self.label = label.into();
        self
    }

    /// Sets the advice.
    pub fn help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(help.into());
        self
    }

    /// Sets the advice, if there is any.
    pub fn maybe_help(mut self, help: Option<String>) -> Self {
        self.help = help.or(self.help);
        self
    }

    /// Suggests the name that was probably meant, if there is one.
    pub fn suggest(self, name: Option<&str>) -> Self {
        match name {
            Some(name) => self.help(format!("did you mean `{name}`?")).replacement(name),
            None => self,
        }
    }

    /// Sets the correct text for the span.
    pub fn replacement(mut self, text: impl Into<String>) -> Self {
        self.replacement = Some(text.into());
        self
    }

    /// Adds a related place.
    pub fn secondary(mut self, span: Span, text: impl Into<String>) -> Self {
        self.notes.push((span, text.into()));
        self
    }

    pub fn is_error(&self) -> bool {
        self.severity == Severity::Error
    }

    /// `file:line:column`; empty for a diagnostic about no place.
    pub fn location(&self, sources: &[Source]) -> String {
        self.span.map_or_else(String::new, |span| location(sources, span))
    }

    /// Renders for a terminal: headline, source line with the span underlined, related places, and advice.
    pub fn render(&self, sources: &[Source], colour: bool) -> String {
        let style = Style { on: colour };
        let word = match self.severity {
            Severity::Error => "error",
            Severity::Warning => "warning",
            Severity::Note => "note",
        };
        let mut out = style.severity(self.severity, &format!("{word}[{}]", self.code));
        out.push_str(&style.bold(&format!(": {}", self.message)));
        out.push('\n');
        if let Some(span) = self.span {
            excerpt(&mut out, sources, span, &self.label, &style, self.severity);
            for (span, text) in self.notes.iter().filter(|(other, _)| *other != span) {
                excerpt(&mut out, sources, *span, text, &style, Severity::Note);
            }
            for (depth, from) in inclusions(sources, span).into_iter().enumerate() {
                let verb = if depth == 0 { "included" } else { "which is included" };
                out.push_str(&format!("   {} {verb} from {}\n", style.dim("="), location(sources, from)));
            }
        }
        if let Some(help) = &self.help {
            out.push_str(&format!("   {} {}: {help}\n", style.dim("="), style.bold("help")));
        }
        out
    }
}

/// `file:line:column` of a span.
fn location(sources: &[Source], span: Span) -> String {
    let Some(source) = sources.get(span.source as usize) else {
        return String::new();
    };
    let (line, column) = source.position(span.start as usize);
    format!("{}:{line}:{column}", source.name)
}

/// The `#include`s of the source of a span, innermost first.
fn inclusions(sources: &[Source], span: Span) -> Vec<Span> {
    let mut chain = Vec::new();
    let mut at = span;
    while let Some(from) = sources.get(at.source as usize).and_then(|source| source.included_from) {
        chain.push(from);
        at = from;
        if chain.len() > 64 {
            break;
        }
    }
    chain
}

/// Renders the source line of a span, with carets under it.
fn excerpt(out: &mut String, sources: &[Source], span: Span, label: &str, style: &Style, severity: Severity) {
    let Some(source) = sources.get(span.source as usize) else {
        return;
    };
    let (line, column) = source.position(span.start as usize);
    let (text, start) = source.line(line);
    let number = line.to_string();
    let margin = " ".repeat(number.len().max(3));
    out.push_str(&format!("{margin}{} {}:{line}:{column}\n", style.dim("-->"), source.name));
    out.push_str(&format!("{margin} {}\n", style.dim("|")));
    let ShownLine { text, before, width } =
        show_line(text, column - 1, (span.end as usize).saturating_sub(start), span, start);
    out.push_str(&format!("{} {} {text}\n", style.dim(&format!("{number:>3}")), style.dim("|")));
    let carets = "^".repeat(width.max(1));
    let words = if label.is_empty() { carets } else { format!("{carets} {label}") };
    let under = " ".repeat(before);
    out.push_str(&format!("{margin} {} {under}{}\n", style.dim("|"), style.severity(severity, &words)));
}

/// A source line as it is shown: tabs expanded, control characters replaced, long lines cut.
struct ShownLine {
    text: String,
    /// Columns before the span.
    before: usize,
    /// Columns of the span.
    width: usize,
}

fn show_line(line: &str, first: usize, end_byte: usize, span: Span, line_start: usize) -> ShownLine {
    const BEFORE: usize = 60;
    const SHOWN: usize = 100;
    let start_byte = (span.start as usize).saturating_sub(line_start);
    let skip = if line.chars().count() > SHOWN { first.saturating_sub(BEFORE) } else { 0 };
    let mut text = String::new();
    let (mut before, mut width) = (0, 0);
    if skip > 0 {
        text.push('…');
        before += 1;
    }
    for (shown, (at, c)) in line.char_indices().skip(skip).enumerate() {
        if shown >= SHOWN {
            text.push('…');
            break;
        }
        let columns = if c == '\t' { 4 } else { 1 };
        match c {
            '\t' => text.push_str("    "),
            c if c.is_control() => text.push('\u{fffd}'),
            c => text.push(c),
        }
        if at < start_byte {
            before += columns;
        } else if at < end_byte {
            width += columns;
        }
    }
    ShownLine { text, before, width }
}

/// Terminal styles, or none.
struct Style {
    on: bool,
}

impl Style {
    fn wrap(&self, code: &str, text: &str) -> String {
        if self.on { format!("\x1b[{code}m{text}\x1b[0m") } else { text.to_owned() }
    }

    fn severity(&self, severity: Severity, text: &str) -> String {
        let code = match severity {
            Severity::Error => "1;31",
            Severity::Warning => "1;33",
            Severity::Note => "1;36",
        };
        self.wrap(code, text)
    }

    fn bold(&self, text: &str) -> String {
        self.wrap("1", text)
    }

    fn dim(&self, text: &str) -> String {
        self.wrap("1;34", text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sources(text: &str) -> Vec<Source> {
        vec![Source { name: "w.pg".into(), text: text.into(), included_from: None }]
    }

    #[test]
    fn the_caret_stands_under_the_place_even_after_tabs_and_wide_text() {
        let sources = sources("a\n\tné = 5;\n");
        let span = Span { source: 0, start: 3, end: 6 };
        let shown = Diagnostic::error(Code::UnknownName, span, "`né` is not declared")
            .label("no such name")
            .help("declare it")
            .render(&sources, false);
        let expected = "error[PGL020]: `né` is not declared\n   --> w.pg:2:2\n    |\n  2 |     né = 5;\n    |     ^^ no such name\n   = help: declare it\n";
        assert_eq!(shown, expected);
    }

    #[test]
    fn a_place_outside_of_the_text_is_shown_as_its_end() {
        let span = Span { source: 0, start: 900, end: 901 };
        assert!(
            Diagnostic::error(Code::Syntax, span, "x").render(&sources("ab"), false).contains("w.pg:1:3")
        );
        let span = Span { source: 7, start: 0, end: 1 };
        assert_eq!(Diagnostic::error(Code::Syntax, span, "x").render(&[], false), "error[PGL010]: x\n");
    }

    #[test]
    fn colour_is_only_there_when_chosen() {
        let d = Diagnostic::warning(Code::Unsupported, Span { source: 0, start: 0, end: 1 }, "m");
        assert!(!d.render(&sources("x"), false).contains('\x1b'));
        assert!(d.render(&sources("x"), true).contains("\x1b[1;33m"));
    }
}
