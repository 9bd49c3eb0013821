//! Where output goes. Results to standard output (or a file), everything else to standard error.

use std::io::{self, IsTerminal, Write};
use std::path::Path;

use anyhow::Context;
use rustix::fs::{Access, access};

use assay_report::terminal::Style;

use crate::exit::Failure;
use crate::shown::on_terminal;

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

/// Prints to standard error, where what others have named or sent must not move the cursor. That nobody reads it is no reason to
/// fail.
pub fn eprint(text: &str) {
    draw(&on_terminal(text));
}

/// Prints to standard error as it is: for views that move the cursor themselves, and hold nobody else's text.
pub fn draw(text: &str) {
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
    let touched = if path.exists() { path } else { parent };
    match access(touched, Access::WRITE_OK) {
        Ok(()) => Ok(()),
        Err(_) => refuse("may not be written to; name another place, or mend its permissions", touched),
    }
}

/// Finds out before the work that files could not be written into `directory`, which may have to be made yet.
pub fn check_directory(directory: Option<&Path>) -> Result<(), Failure> {
    let Some(path) = directory else { return Ok(()) };
    let there = path.ancestors().find(|path| path.exists()).unwrap_or(Path::new("."));
    let refuse = |why: &str| {
        let (path, there) = (path.display(), there.display());
        Err(Failure::usage(anyhow::anyhow!("cannot write into {path}: {there} {why}")))
    };
    if !there.is_dir() {
        return refuse("is a file; name a directory");
    }
    match access(there, Access::WRITE_OK) {
        Ok(()) => Ok(()),
        Err(_) => refuse("may not be written to; name another place, or mend its permissions"),
    }
}

/// Text for standard output with lines that a terminal has room for, broken between words; what goes elsewhere keeps
/// its lines, so that tools find them whole.
pub fn fitted(text: &str) -> String {
    if !io::stdout().is_terminal() {
        return text.to_owned();
    }
    let width = style(None).width;
    text.lines().map(|line| folded(line, width)).collect()
}

/// A line in as many as it takes; those after the first stand a little further in.
fn folded(line: &str, width: usize) -> String {
    let indent = line.chars().take_while(|c| *c == ' ').count();
    let (mut out, mut column) = (String::new(), 0);
    for word in line.split_inclusive(' ') {
        let letters = word.trim_end().chars().count();
        if letters > 0 && column > indent && column + letters > width {
            out.truncate(out.trim_end().len());
            out.push('\n');
            out.push_str(&" ".repeat(indent + 2));
            column = indent + 2;
        }
        out.push_str(word);
        column += word.chars().count();
    }
    out.truncate(out.trim_end().len());
    out + "\n"
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
    // What another program reads gets it as it is.
    let text = if out.is_terminal() { on_terminal(text) } else { text.into() };
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

/// True when the user requested no colour (<https://no-color.org>).
pub fn no_colour() -> bool {
    std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_line_is_broken_between_words_and_goes_on_further_in() {
        assert_eq!(folded("  one two three four", 12), "  one two\n    three\n    four\n");
        assert_eq!(folded("a   b", 12), "a   b\n");
        assert_eq!(folded("", 12), "\n");
        assert_eq!(folded("  unbreakablyLong x", 12), "  unbreakablyLong\n    x\n");
    }

    #[test]
    fn what_cannot_be_written_is_refused_before_the_work_with_the_reason() {
        let tmp = tempfile::tempdir().unwrap();
        let file = tmp.path().join("file");
        std::fs::write(&file, "").unwrap();
        let why = |refused: Result<(), Failure>| refused.unwrap_err().error.to_string();
        assert!(check_directory(Some(&tmp.path().join("new/inner"))).is_ok());
        assert!(why(check_directory(Some(&file.join("inner")))).contains("is a file; name a directory"));
        assert!(check_result(Some(&tmp.path().join("new"))).is_ok());
        assert!(why(check_result(Some(tmp.path()))).contains("is a directory"));
        assert!(why(check_result(Some(&file.join("x")))).contains("is no directory"));
    }
}
