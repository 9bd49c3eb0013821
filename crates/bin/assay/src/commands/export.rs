//! `assay report --csv` and the like: the numbers of a run for the tools of others.

use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use assay_record::dir::RunDir;
use assay_report::ReportError;
use assay_report::compare::{self as compare, Comparison};
use assay_report::export::{self, Exported, TableForm};
use assay_report::figure;
use clap::Args;

use crate::exit::{Exit, Failure};
use crate::output;

/// Flags that write something else than the report.
#[derive(Debug, Args)]
#[command(next_help_heading = "Export (no report is made then)")]
pub struct ExportArgs {
    /// Write every table into DIR as CSV, and the summary in long form
    #[arg(long, value_name = "DIR")]
    pub csv: Option<PathBuf>,
    /// Write every table into DIR as JSON lines, and the summary in long form
    #[arg(long, value_name = "DIR")]
    pub ndjson: Option<PathBuf>,
    /// Print one table as CSV, or with --json as JSON lines
    #[arg(long, value_name = "NAME", conflicts_with_all = ["csv", "ndjson", "hdr", "figures"])]
    pub table: Option<String>,
    /// Write all times as a log for HdrHistogram's tools
    #[arg(long, value_name = "FILE")]
    pub hdr: Option<PathBuf>,
    /// Draw every chart into DIR as SVG for a paper, with its numbers as CSV
    #[arg(long, value_name = "DIR")]
    pub figures: Option<PathBuf>,
}

impl ExportArgs {
    /// Something is to be taken along.
    pub fn any(&self) -> bool {
        let files = [&self.csv, &self.ndjson, &self.hdr, &self.figures];
        self.table.is_some() || files.iter().any(|path| path.is_some())
    }

    /// Finds out before the work that something could not be written.
    pub fn check(&self) -> Result<(), Failure> {
        output::check_result(self.hdr.as_deref())?;
        for directory in [&self.csv, &self.ndjson, &self.figures] {
            output::check_directory(directory.as_deref())?;
        }
        check_figures(self.figures.as_deref())
    }
}

/// Flags that write the charts and numbers of a comparison beside its result.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Export")]
pub struct ExportComparisonArgs {
    /// Write the values and the differences of all metrics into DIR as CSV
    #[arg(long, value_name = "DIR")]
    pub csv: Option<PathBuf>,
    /// Draw every chart, subjects over each other, into DIR as SVG for a paper, with its numbers as CSV
    #[arg(long, value_name = "DIR")]
    pub figures: Option<PathBuf>,
}

impl ExportComparisonArgs {
    /// Finds out before the work that something could not be written.
    pub fn check(&self) -> Result<(), Failure> {
        output::check_directory(self.csv.as_deref())?;
        output::check_directory(self.figures.as_deref())?;
        check_figures(self.figures.as_deref())
    }

    /// Writes the files that were requested.
    pub fn write(&self, comparison: &Comparison) -> Result<(), Failure> {
        let mut said = String::new();
        if let Some(out) = &self.csv {
            let files = comparison.write_csv(out).map_err(Failure::failed)?;
            said.push_str(&format!("{} tables are in {}\n", files.len(), out.display()));
        }
        if let Some(out) = &self.figures {
            let names = comparison.write_figures(out).map_err(Failure::failed)?;
            said.push_str(&figures_message(&names, out));
        }
        output::eprint(&said);
        Ok(())
    }
}

/// Refuses the name of a picture where a directory is meant.
pub fn check_figures(directory: Option<&Path>) -> Result<(), Failure> {
    let picture = |path: &&Path| {
        let extension = path.extension().and_then(|extension| extension.to_str()).unwrap_or_default();
        ["png", "jpg", "pdf", "svg"].iter().any(|form| extension.eq_ignore_ascii_case(form))
    };
    let Some(path) = directory.filter(picture) else { return Ok(()) };
    Err(Failure::usage(anyhow::anyhow!(
        "cannot draw all figures into {}: they are written as SVG files into a directory; name a directory, and convert \
         the files that are needed as pixels (`rsvg-convert -d 300 -p 300 rate.svg -o rate.png`)",
        path.display()
    )))
}

/// Sentence with the number of figures and their directory.
pub fn figures_message(names: &[String], out: &Path) -> String {
    format!("{} figures are in {}\n", names.len(), out.display())
}

/// Writes the files that were requested.
pub fn export(args: &ExportArgs, run_dir: &Path, json: bool, file: Option<&Path>) -> Result<Exit, Failure> {
    if compare::is_experiment(run_dir) {
        return of_experiment(args, run_dir);
    }
    let dir = RunDir::open(run_dir).map_err(Failure::usage)?;
    if let Some(name) = &args.table {
        return table(&dir, name, if json { TableForm::JsonLines } else { TableForm::Csv }, file);
    }
    let mut said = String::new();
    for (out, form) in [(&args.csv, TableForm::Csv), (&args.ndjson, TableForm::JsonLines)] {
        if let Some(out) = out {
            let exported = export::tables(&dir, out, form).map_err(Failure::failed)?;
            said.push_str(&message(&exported, out));
        }
    }
    if let Some(out) = &args.hdr {
        let log = |to: &mut dyn Write| export::hdr_log(&dir, to);
        write_to(out, log)?;
        said.push_str(&format!("all times are in {}\n", out.display()));
    }
    if let Some(out) = &args.figures {
        let names = figure::write(&dir, out).map_err(Failure::failed)?;
        said.push_str(&figures_message(&names, out));
    }
    output::eprint(&said);
    Ok(Exit::Fine)
}

/// An experiment has the charts and numbers of its comparison; what else can be taken along is of one run.
fn of_experiment(args: &ExportArgs, dir: &Path) -> Result<Exit, Failure> {
    let of_a_run = [
        ("--ndjson", args.ndjson.is_some()),
        ("--table", args.table.is_some()),
        ("--hdr", args.hdr.is_some()),
    ];
    if let Some((flag, _)) = of_a_run.iter().find(|(_, given)| *given) {
        let why = anyhow::anyhow!("{flag} is of one run, and {} is an experiment", dir.display());
        return Err(Failure::usage(why)
            .hint("name one of the run directories in its cells/; an experiment has --csv and --figures"));
    }
    let comparison = compare::experiment(dir).map_err(Failure::failed)?;
    ExportComparisonArgs { csv: args.csv.clone(), figures: args.figures.clone() }.write(&comparison)?;
    Ok(Exit::Fine)
}

fn message(exported: &Exported, out: &Path) -> String {
    let mut text = format!("{} tables are in {}\n", exported.files.len(), out.display());
    for sentence in &exported.left_out {
        text.push_str(&format!("left out: {sentence}\n"));
    }
    text
}

fn table(dir: &RunDir, name: &str, form: TableForm, file: Option<&Path>) -> Result<Exit, Failure> {
    let write = |to: &mut dyn Write| export::table(dir, name, form, to);
    match file.filter(|path| *path != Path::new("-")) {
        Some(path) => write_to(path, write)?,
        None => {
            let mut out = BufWriter::new(io::stdout().lock());
            let written = write(&mut out).and_then(|()| out.flush().map_err(to_stdout));
            match written {
                // A reader that has seen enough (`| head`) is no error.
                Err(ReportError::Export { cause, .. }) if cause.kind() == io::ErrorKind::BrokenPipe => {}
                Err(error @ ReportError::NoSuchTable { .. }) => return Err(Failure::usage(error)),
                other => other.map_err(Failure::failed)?,
            }
        }
    }
    Ok(Exit::Fine)
}

fn to_stdout(cause: io::Error) -> ReportError {
    ReportError::Export { path: PathBuf::from("standard output"), cause }
}

fn write_to(
    path: &Path,
    write: impl FnOnce(&mut dyn Write) -> Result<(), ReportError>,
) -> Result<(), Failure> {
    let cannot = |cause| ReportError::Export { path: path.to_owned(), cause };
    let written = std::fs::File::create(path).map_err(cannot).and_then(|file| {
        let mut out = BufWriter::new(file);
        write(&mut out)?;
        out.flush().map_err(cannot)
    });
    written.map_err(|error| match error {
        error @ ReportError::NoSuchTable { .. } => Failure::usage(error),
        error => Failure::failed(error),
    })
}
