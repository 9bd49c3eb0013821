//! The first lines of a log taken apart, so that a person sees what is read of them.

use std::fmt::Write;
use std::path::{Path, PathBuf};

use crate::access::{Access, LineKind};
use crate::analysis::printable;
use crate::error::LogsError;
use crate::format::{ExplainedField, Format, FormatTracker, trim};
use crate::input::{self, Input};
use crate::terminal::date;
use crate::{class, detect_format};

/// Lines that are shown.
const LINES: usize = 3;

/// Shows the first lines of each of these logs, field by field.
pub fn explain(names: &[PathBuf], format: Option<&Format>) -> Result<String, LogsError> {
    let mut texts = Vec::new();
    for name in names {
        for path in input::expand(name)? {
            texts.push(of_file(&path, format)?);
        }
    }
    Ok(texts.join("\n"))
}

fn of_file(path: &Path, format: Option<&Format>) -> Result<String, LogsError> {
    let mut input = Input::open(path)?;
    let name = input.name.clone();
    let Some(recognised) = detect_format(&mut input, format)? else { return Err(LogsError::Empty { name }) };
    let mut current = FormatTracker::new(&recognised);
    let mut text = match format {
        Some(format) => format!("{name}, read as {}: {}\n", format.name, format.about),
        None => format!(
            "{name} is recognised as {} ({} of its first {} lines): {}\n",
            recognised.format.name, recognised.fit, recognised.tried, recognised.format.about
        ),
    };
    let mut shown = 0;
    for (number, line) in (1..).zip(input.head().split(|byte| *byte == b'\n').map(trim)) {
        if line.is_empty() || (line[0] == b'#' && current.read_remark(line).is_ok()) {
            continue;
        }
        if shown == LINES {
            break;
        }
        shown += 1;
        // Writing to a text does not fail.
        let _ = write!(text, "\nline {number}\n{}", taken_apart(&mut current, line));
    }
    for unused in current.unused() {
        let _ = writeln!(text, "\n{} is not used: {} says the {}.", unused.word, unused.used, unused.what);
    }
    Ok(text)
}

fn taken_apart(current: &mut FormatTracker, line: &[u8]) -> String {
    let mut access = Access::default();
    let read = current.read(line, &mut access);
    let own = if read.is_ok() { access.line } else { line };
    let parts = current.format().parts(own);
    let width = parts.iter().map(|part| part.word.chars().count()).max().unwrap_or_default().min(40);
    let mut text = String::new();
    for ExplainedField { word, what, value } in parts {
        let what = what.unwrap_or("(not used)");
        let _ = writeln!(text, "  {word:width$}  {what:20}  {}", printable(&value[..value.len().min(100)]));
    }
    match read {
        Ok(()) => text.push_str(&meaning(&access)),
        Err(malformed) => {
            let _ = writeln!(text, "  cannot be read: {}", current.explain(malformed.as_ref()));
        }
    }
    text
}

/// Summary of a line.
fn meaning(access: &Access<'_>) -> String {
    let mut facts = vec![match access.kind {
        LineKind::Request => class::classify(access).name().to_owned(),
        LineKind::Fetch => "a fetch from a backend, not counted".into(),
        LineKind::Connection => "a connection, not counted".into(),
    }];
    if let Some(time_us) = access.time_us {
        facts.push(format!("at {} UTC", date(time_us as f64 / 1000.0)));
    }
    if let Some(duration_us) = access.duration_us {
        facts.push(format!("in {} ms", duration_us as f64 / 1000.0));
    }
    facts.push(format!("{} bytes", access.bytes));
    format!("  is: {}\n", facts.join(", "))
}
