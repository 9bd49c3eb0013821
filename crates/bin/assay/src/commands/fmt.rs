//! `assay fmt`: the source text of workloads, laid out by one set of rules.

use std::io::{self, IsTerminal, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, anyhow};
use clap::Args;

use crate::exit::{Exit, Failure};
use crate::file_kind::{self, FileKind};
use crate::output;

const EXAMPLES: &str = "\
Examples:
  assay fmt mine.pg
  assay fmt --check *.pg   in CI: exit code 1 if one is laid out in another way
  assay fmt - < mine.pg    in an editor: the text laid out, on standard output";

/// Flags of `assay fmt`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct FmtArgs {
    /// PGL files, which are written where their layout changes; `-`: standard input to standard output
    #[arg(required = true, value_name = "FILE")]
    pub files: Vec<PathBuf>,
    /// Write nothing; list the files whose layout would change, and exit with 1 if there are any
    #[arg(long)]
    pub check: bool,
}

/// Result for one file.
enum FormatOutcome {
    /// Formatted already.
    Same,
    /// Formatted now, or would be.
    Changed,
}

/// Lays out files, or says which are not. All are tried, whatever is wrong with one of them.
pub fn fmt(args: &FmtArgs) -> Result<Exit, Failure> {
    let (mut changed, mut failures) = (0, Vec::new());
    for file in &args.files {
        match format_file(file, args.check) {
            Ok(FormatOutcome::Same) => {}
            Ok(FormatOutcome::Changed) => {
                changed += 1;
                if file != Path::new("-") {
                    output::stdout(&format!("{}\n", file.display()))?;
                }
            }
            Err(failure) => failures.push(failure),
        }
    }
    // The last is told by whoever called.
    match failures.pop() {
        Some(last) => {
            failures.iter().for_each(output::complain);
            Err(last)
        }
        None => Ok(if args.check && changed > 0 { Exit::Failed } else { Exit::Fine }),
    }
}

fn format_file(file: &Path, check: bool) -> Result<FormatOutcome, Failure> {
    let is_input = file == Path::new("-");
    let name = file.display().to_string();
    if !is_input
        && file.is_file()
        && let Some(other) = file_kind::from_name(&name).filter(|kind| *kind != FileKind::Workload)
    {
        return Err(other.refused(&name, FileKind::Workload));
    }
    let text = if is_input {
        standard_input()
    } else {
        assay_base::files::text(file, assay_base::files::SOURCE_MAX)
    };
    let text = text.map_err(|error| {
        let is_no_text = error.kind() == io::ErrorKind::InvalidData;
        let failure = Failure::usage(anyhow!(error).context(format!("cannot read {name}")));
        // What is passed over in comments when a workload is run would be lost when it is written.
        if is_no_text { failure.hint("save it as UTF-8 first: `iconv -f LATIN1 -t UTF-8`") } else { failure }
    })?;
    let formatted = assay_pgl::format(&name, &text).map_err(|failure| {
        let colour = io::stderr().is_terminal() && !output::no_colour();
        let said: String =
            failure.diagnostics.iter().map(|d| d.render(&failure.sources, colour) + "\n").collect();
        output::eprint(&said);
        Failure::usage(anyhow!("{name} was not formatted: it cannot be parsed"))
    })?;
    let outcome = if formatted == text { FormatOutcome::Same } else { FormatOutcome::Changed };
    match outcome {
        _ if is_input && !check => output::stdout(&formatted)?,
        FormatOutcome::Changed if !check => replace(file, &formatted)
            .with_context(|| format!("cannot write {name}; it is as it was"))
            .map_err(Failure::failed)?,
        _ => {}
    }
    Ok(outcome)
}

fn standard_input() -> io::Result<String> {
    assay_base::files::utf8(assay_base::files::limited(io::stdin(), assay_base::files::SOURCE_MAX)?)
}

/// Puts a text in place of a file, whole or not at all: a full disk must not cost a workload.
fn replace(file: &Path, text: &str) -> io::Result<()> {
    let file = file.canonicalize()?;
    let permissions = file.metadata()?.permissions();
    if permissions.readonly() {
        return Err(io::Error::new(io::ErrorKind::PermissionDenied, "it may not be written to"));
    }
    let directory = file.parent().unwrap_or(Path::new("."));
    let mut written = tempfile::NamedTempFile::new_in(directory)?;
    written.write_all(text.as_bytes())?;
    written.as_file().set_permissions(permissions)?;
    written.persist(&file).map_err(|error| error.error)?;
    Ok(())
}
