//! Where do words go? Results to standard output (or a file), everything else to standard error.

use std::io::{self, IsTerminal, Write};
use std::path::Path;

use anyhow::Context;

use assay_report::terminal::Style;

use crate::exit::Failure;

/// Columns of a summary that goes to no terminal, and the most that are good to read.
const WIDTH: usize = 100;

/// Prints a failure: what was attempted and seen, and what to try.
pub fn complain(failure: &Failure) {
    let mut text = format!("error: {:#}\n", failure.error);
    if let Some(hint) = &failure.hint {
        text.push_str(&format!(" help: {hint}\n"));
    }
    eprint(&text);
}

/// Prints to standard error. That nobody reads it is no reason to fail.
pub fn eprint(text: &str) {
    let _ = io::stderr().lock().write_all(text.as_bytes());
}

/// Finds out before the work, rather than after it, that a result could not be written to `file`.
pub fn check_result(file: Option<&Path>) -> Result<(), Failure> {
    let Some(path) = file.filter(|path| *path != Path::new("-")) else { return Ok(()) };
    let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let refuse = |why: &str, what: &Path| {
        let path = path.display();
        Err(Failure::usage(anyhow::anyhow!("cannot write the result to {path}: {} {why}", what.display())))
    };
    if path.is_dir() {
        return refuse("is a directory; name a file in it", path);
    }
    if !parent.is_dir() {
        return refuse("is no directory; make it first", parent);
    }
    Ok(())
}

/// Writes a result to a file, or to standard output when there is no file or it is called `-`.
pub fn result(text: &str, file: Option<&Path>) -> Result<(), Failure> {
    match file {
        Some(path) if path != Path::new("-") => std::fs::write(path, text)
            .with_context(|| format!("cannot write the result to {}", path.display()))
            .map_err(Failure::failed),
        _ => stdout(text),
    }
}

/// Writes to standard output. A reader that has seen enough (`| head`) is no error.
pub fn stdout(text: &str) -> Result<(), Failure> {
    let mut out = io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            Err(Failure::failed(anyhow::Error::new(error).context("cannot write to standard output")))
        }
        _ => Ok(()),
    }
}

/// One JSON document, readable, with a line end.
pub fn json(value: &impl serde::Serialize) -> Result<String, Failure> {
    serde_json::to_string_pretty(value).map(|text| text + "\n").map_err(|error| {
        Failure::failed(anyhow::Error::new(error).context("cannot write the result as JSON"))
    })
}

/// How a summary is written to `file` (none or `-`: standard output).
pub fn style(file: Option<&Path>) -> Style {
    let stdout = io::stdout();
    let on_terminal = file.is_none_or(|path| path == Path::new("-")) && stdout.is_terminal();
    let columns = rustix::termios::tcgetwinsize(&stdout).map_or(0, |size| usize::from(size.ws_col));
    Style {
        colour: on_terminal && !no_colour(),
        // Some terminals do not know their size and say 0.
        width: if on_terminal && columns > 0 { columns.min(WIDTH) } else { WIDTH },
    }
}

/// True when somebody looks at what is said aside.
pub fn is_watched() -> bool {
    io::stderr().is_terminal()
}

/// True when the user asked for no colour (<https://no-color.org>).
pub fn no_colour() -> bool {
    std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty())
}
