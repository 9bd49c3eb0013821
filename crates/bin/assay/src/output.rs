//! Output: results to standard output (or a file), everything else to standard error.

use std::ffi::OsString;
use std::io::{self, IsTerminal, Write};
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::process::ExitCode;

use anyhow::Context;
use rustix::fs::{Access, access};

use assay_base::quote::line::{line, lines};
use assay_report::terminal::Style;

use crate::exit::Failure;
use crate::shown::{on_terminal, with_styles};

/// Columns of a summary that goes to no terminal, and the most that are good to read.
const WIDTH: usize = 100;

/// Prints a failure: what was attempted and seen, and what to try.
pub fn complain(failure: &Failure) {
    let mut text = format!("error: {}\n", lines(&format!("{:#}", failure.error)));
    if let Some(hint) = &failure.hint {
        text.push_str(&format!(" help: {}\n", lines(hint)));
    }
    eprint(&text);
}

/// Prints a message of one line, with its line end. What else is a line in it stands further in, and looks like no message.
pub fn say(text: &str) {
    eprint(&format!("{}\n", lines(text)));
}

/// Prints what is wrong with a command line, or the help that it asks for. Arguments may be names of files, which others chose.
pub fn mistyped(error: &clap::Error) -> ExitCode {
    if !error.use_stderr() {
        error.exit();
    }
    let text = error.render();
    let has_colours = is_watched() && !no_colour();
    eprint_drawn(|styled| if styled && has_colours { text.ansi().to_string() } else { text.to_string() });
    ExitCode::from(u8::try_from(error.exit_code()).unwrap_or(2))
}

/// Prints to standard error, where what others have named or sent must neither move the cursor nor colour anything. That nobody reads it
/// is no reason to fail.
pub fn eprint(text: &str) {
    draw(&on_terminal(&names_in_line(text, std::env::args_os().skip(1))));
}

/// Prints to standard error what can be drawn with our styles and without, like [`drawn`].
pub fn eprint_drawn(text: impl Fn(bool) -> String) {
    let plain = text(false);
    match names_in_line(&plain, std::env::args_os().skip(1)) {
        shown if shown == plain => draw(&with_styles(&plain, || text(true))),
        shown => draw(&on_terminal(&shown)),
    }
}

/// Prints to standard error as it is: for views that move the cursor themselves, and hold nobody else's text.
pub fn draw(text: &str) {
    let _ = io::stderr().lock().write_all(text.as_bytes());
}

/// A text in which those of these arguments that hold line ends are on one line: names of files, which others may have chosen.
fn names_in_line(text: &str, arguments: impl Iterator<Item = OsString>) -> String {
    let broken = arguments.map(|argument| argument.to_string_lossy().into_owned());
    let broken = broken.filter(|argument| argument.contains('\n'));
    broken.fold(text.to_owned(), |text, argument| {
        let value = argument.strip_prefix("--").and_then(|flag| flag.split_once('='));
        let name = value.map_or(argument.as_str(), |(_, value)| value);
        text.replace(name, &line(name))
    })
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
    if is_record(path) {
        return refuse("is a file of a record, which would be lost; name another", path);
    }
    if is_input(path, std::env::args_os().skip(1)) {
        return refuse("is what this command reads, and would be lost; name another file", path);
    }
    let touched = if path.exists() { path } else { parent };
    match access(touched, Access::WRITE_OK) {
        Ok(()) => Ok(()),
        Err(_) => refuse("may not be written to; name another place, or fix its permissions", touched),
    }
}

/// The same for all results of a command: `result`, which goes to standard output unless a file is named, and each of `others` that
/// is wanted. No two go to one place, where they would be mixed.
pub fn check_results<'a>(
    result: Option<&'a Path>,
    others: impl IntoIterator<Item = Option<&'a Path>>,
) -> Result<(), Failure> {
    let standard = Path::new("-");
    let mut taken: Vec<&Path> = Vec::new();
    for path in std::iter::once(Some(result.unwrap_or(standard))).chain(others).flatten() {
        check_result(Some(path))?;
        let is_file = path == standard || path.is_file() || !path.exists();
        if is_file
            && taken.iter().any(|other| std::path::absolute(other).ok() == std::path::absolute(path).ok())
        {
            let destination =
                if path == standard { "standard output".into() } else { path.display().to_string() };
            let failure = anyhow::anyhow!("two results would be mixed in {destination}");
            return Err(
                Failure::usage(failure).hint("name a file of its own for each (-o FILE for the first)")
            );
        }
        taken.push(path);
    }
    Ok(())
}

/// Files that say what a directory is a record of.
const HEADS: [&str; 3] = ["run.json", "spe.json", "experiment.json"];
/// Other parts of a record that cannot be made again.
const PARTS: [&str; 3] = ["workload.json", "caches.json", "examples.json"];

/// A file that a run, an evaluation or an experiment has left.
fn is_record(path: &Path) -> bool {
    let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    let is_kept = HEADS.contains(&name) || PARTS.contains(&name) || name.ends_with(".parquet");
    is_kept && path.exists() && HEADS.iter().any(|head| path.with_file_name(head).exists())
}

/// The file is named by more than one of these arguments: as the result, and as something to read.
fn is_input(path: &Path, arguments: impl Iterator<Item = OsString>) -> bool {
    let file = |path: &Path| std::fs::metadata(path).ok().map(|file| (file.dev(), file.ino()));
    let Some(result) = file(path) else { return false };
    let named = arguments.filter(|argument| {
        let text = argument.to_string_lossy();
        let value = text.strip_prefix("--").and_then(|flag| flag.split_once('='));
        file(value.map_or(Path::new(argument), |(_, value)| Path::new(value))) == Some(result)
    });
    named.count() > 1
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
        Err(_) => refuse("may not be written to; name another place, or fix its permissions"),
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

/// Text drawn for `file` (none or `-`: standard output), with our styles where that is a terminal, unless the text of
/// others has any: then nobody could tell them apart.
pub fn drawn(file: Option<&Path>, draw: impl Fn(&Style) -> String) -> Result<(), Failure> {
    let style = style(file);
    let plain = draw(&Style { colour: false, ..style });
    match style.colour {
        true => written(&with_styles(&plain, || draw(&style))),
        false => result(&plain, file),
    }
}

/// Writes to standard output. A reader that has seen enough (`| head`) is no error.
pub fn stdout(text: &str) -> Result<(), Failure> {
    // What another program reads gets it as it is.
    let text = if io::stdout().is_terminal() { on_terminal(text) } else { text.into() };
    written(&text)
}

fn written(text: &str) -> Result<(), Failure> {
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

/// Style of a summary that is written to `file` (none or `-`: standard output).
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
    use std::path::PathBuf;

    use super::*;

    #[test]
    fn a_name_with_a_line_end_is_on_one_line_wherever_it_is_named() {
        let arguments = ["report", "a\nerror: b", "--output=c\nd", "plain"].map(OsString::from);
        let text = "error: cannot read a\nerror: b/run.json\n help: not c\nd, plain\n";
        let shown = names_in_line(text, arguments.into_iter());
        assert_eq!(shown, "error: cannot read a␊error: b/run.json\n help: not c␊d, plain\n");
    }

    #[test]
    fn no_two_results_go_to_one_place() {
        let tmp = tempfile::tempdir().expect("a temporary directory");
        let (one, other) = (tmp.path().join("one"), tmp.path().join("other"));
        let (one, other, standard) = (one.as_path(), other.as_path(), Path::new("-"));
        assert!(check_results(None, [None, Some(one), Some(other)]).is_ok());
        assert!(check_results(Some(one), [Some(standard), Some(other)]).is_ok());
        assert!(check_results(Some(Path::new("/dev/null")), [Some(Path::new("/dev/null"))]).is_ok());
        for (result, others) in [
            (None, [Some(standard), None]),
            (Some(standard), [None, Some(standard)]),
            (None, [Some(one), Some(one)]),
            (Some(one), [Some(one), None]),
        ] {
            let error = check_results(result, others).expect_err("they would be mixed");
            assert!(error.error.to_string().contains("mixed in"), "{:?}", error.error);
        }
    }

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

    #[test]
    fn what_is_read_or_recorded_is_no_place_for_a_result() {
        let tmp = tempfile::tempdir().unwrap();
        let [log, page] = ["access.log", "page.html"].map(|name| tmp.path().join(name));
        for path in [&log, &page] {
            std::fs::write(path, "").unwrap();
        }
        let said = |arguments: &[&Path]| {
            is_input(&log, arguments.iter().map(|argument| argument.as_os_str().to_owned()))
        };
        let dotted = tmp.path().join("./access.log");
        let flag = PathBuf::from(format!("--output={}", log.display()));
        assert!(said(&[&log, Path::new("-o"), &dotted]) && said(&[&flag, &dotted]));
        assert!(!said(&[Path::new("-o"), &log, &page]) && !said(&[&flag]));
        let run = |name: &str| tmp.path().join(name);
        assert!(!is_record(&run("run.json")), "there is none yet");
        for name in ["run.json", "robots.parquet", "report.html"] {
            std::fs::write(run(name), "").unwrap();
        }
        assert!(is_record(&run("run.json")) && is_record(&run("robots.parquet")));
        assert!(!is_record(&run("report.html")) && !is_record(&run("summary.json")));
    }
}
