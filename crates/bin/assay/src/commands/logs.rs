//! `assay logs`: analysis of the access logs of a proxy.

use std::io;
use std::path::{Path, PathBuf};

use anyhow::anyhow;
use assay_lab::caches::BUILTIN_LOG;
use assay_lab::description::Description;
use assay_lab::units;
use assay_logs::analysis::AnalysisOptions;
use assay_logs::document::LogsDocument;
use assay_logs::error::LogsError;
use assay_logs::format::{DetectError, Format, KNOWN_FORMATS};
use assay_logs::terminal::{self, TextStyle};
use assay_logs::{run, table};
use assay_proxy::spec::ACCESS_LOG_FORMAT;
use assay_record::dir::RunDir;
use assay_record::run::{CacheInfo, RunInfo};
use assay_report::sheet;
use assay_workload::model::Workload;
use clap::Args;

use crate::commands::form_args::FormArgs;
use crate::commands::schema;
use crate::exit::{Exit, Failure};
use crate::output;

const EXAMPLES: &str = "\
Examples:
  assay logs /var/log/squid/access.log
      what became of requests, how fast, by peer, type, time;
      user agents, referrers and failing URLs, where logged
  assay logs '/var/log/squid/access.log*' --cache 1GB --cache 8GB
      a rotated set; what LRU caches would have hit
  zcat access.log.gz | assay logs -   from another program
  assay logs access.log --format '%h %t \"%r\" %>s %b %D'
      a format of your own, as the proxy is configured
  assay logs runs/demo-squid-20260102-030405
      the log of a run: by phase, and against its robots";

/// Flags of `assay logs`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct LogsArgs {
    /// Access logs, plain, gzip, zstd, bzip2 or xz; `*` and `?` in a name; `-` is standard input; or a run's directory
    #[arg(value_name = "FILE", required_unless_present_any = ["schema", "formats"])]
    pub files: Vec<PathBuf>,
    /// Name of a format, or a format string as the proxy itself takes it; without, it is recognised
    #[arg(short, long, value_name = "NAME|STRING")]
    pub format: Option<String>,
    /// Of a run with several caches: the log of this one
    #[arg(long, value_name = "CACHE")]
    pub of: Option<String>,
    /// Only requests from this time on: Unix seconds, or 2026-01-31T12:00:00 (UTC)
    #[arg(long, value_name = "TIME", value_parser = time)]
    pub from: Option<i64>,
    /// Only requests before this time
    #[arg(long, value_name = "TIME", value_parser = time)]
    pub to: Option<i64>,
    /// Width of a step in time, like 5m
    #[arg(long, value_name = "TIME", value_parser = units::duration)]
    pub every: Option<std::time::Duration>,
    /// What would an LRU cache of this size have hit? Can be given several times
    #[arg(long, value_name = "SIZE", value_parser = units::size)]
    pub cache: Vec<u64>,
    /// How many URLs and user agents to list in each table
    #[arg(long, value_name = "N", default_value_t = 10)]
    pub top: usize,
    /// Write the figures as a Parquet file
    #[arg(long, value_name = "FILE")]
    pub parquet: Option<PathBuf>,
    /// Where the result goes.
    #[command(flatten)]
    pub form: FormArgs,
    /// Take the first lines of a log apart, field by field, and say what each is used for
    #[arg(long, conflicts_with_all = ["json", "of", "cache", "parquet"])]
    pub explain: bool,
    /// List the formats that have a name
    #[arg(long, conflicts_with_all = ["files", "json"])]
    pub formats: bool,
    /// Print the JSON Schema of the document instead
    #[arg(long, conflicts_with_all = ["files", "json", "formats"])]
    pub schema: bool,
}

pub fn logs(args: &LogsArgs) -> Result<Exit, Failure> {
    if args.schema {
        output::result(&schema::of_document("logs"), args.form.output.as_deref())?;
        return Ok(Exit::Fine);
    }
    if args.formats {
        output::result(&formats(), args.form.output.as_deref())?;
        return Ok(Exit::Fine);
    }
    output::check_results(args.form.output.as_deref(), [args.form.html.as_deref(), args.parquet.as_deref()])?;
    check_flags(args)?;
    if args.explain {
        return explained(args);
    }
    let document = match args.files.as_slice() {
        [dir] if is_run(&args.files) => of_run(dir, args)?,
        files => {
            let format = args.format.as_deref().map(Format::parse).transpose().map_err(Failure::usage)?;
            assay_logs::analyse(files, format.as_ref(), options(args)).map_err(failure)?
        }
    };
    if let Some(path) = &args.form.html {
        let page = sheet::page(&assay_logs::sheet(&document)).map_err(Failure::failed)?;
        output::result(&page, Some(path))?;
    }
    if let Some(path) = &args.parquet {
        table::write(&document, path).map_err(Failure::failed)?;
    }
    let file = args.form.output.as_deref();
    if args.form.json {
        output::result(&document.to_json().map_err(Failure::failed)?, file)?;
    } else {
        output::drawn(file, |style| {
            terminal::render(&document, TextStyle { colour: style.colour, width: style.width })
        })?;
    }
    Ok(Exit::Fine)
}

/// Shows what is read of the first lines of each log.
fn explained(args: &LogsArgs) -> Result<Exit, Failure> {
    let format = args.format.as_deref().map(Format::parse).transpose().map_err(Failure::usage)?;
    let text = assay_logs::explain(&args.files, format.as_ref()).map_err(failure)?;
    output::result(&text, args.form.output.as_deref())?;
    Ok(Exit::Fine)
}

/// Refuses flags that would leave nothing, or do nothing.
fn check_flags(args: &LogsArgs) -> Result<(), Failure> {
    if let (Some(from), Some(to)) = (args.from, args.to)
        && from >= to
    {
        let failure = anyhow!("--from is no earlier than --to: no request is between them");
        return Err(Failure::usage(failure).hint("exchange them, or leave one of them out"));
    }
    if args.of.is_some() && !is_run(&args.files) {
        let failure = anyhow!("--of names a cache of a run, and no run's directory is given");
        return Err(Failure::usage(failure).hint("`assay logs RUN_DIR --of CACHE`, or leave --of out"));
    }
    Ok(())
}

/// One file, and that is the directory of a run.
fn is_run(files: &[PathBuf]) -> bool {
    matches!(files, [dir] if dir.join("run.json").is_file())
}

fn options(args: &LogsArgs) -> AnalysisOptions {
    AnalysisOptions {
        from_us: args.from,
        to_us: args.to,
        every_us: args.every.map(|every| every.as_micros() as i64),
        cache_bytes: args.cache.clone(),
        top: args.top,
        ..AnalysisOptions::default()
    }
}

/// Analyses the access log of a run: its robots' requests, by phase, against what they counted.
fn of_run(path: &Path, args: &LogsArgs) -> Result<LogsDocument, Failure> {
    let dir = RunDir::open(path).map_err(Failure::usage)?;
    let info = dir.read_info().map_err(Failure::usage)?;
    let (log, format) = log_of(&dir, &info, args.of.as_deref())?;
    let format = match &args.format {
        Some(own) => Format::parse(own).map_err(Failure::usage)?,
        None => format,
    };
    let options = AnalysisOptions {
        phases: run::phases(&info),
        url_contains: run::mark(&info, has_foreign_urls(&dir)),
        ..options(args)
    };
    let mut document = assay_logs::analyse(&[log], Some(&format), options).map_err(failure)?;
    // Neither a part of the time nor one of several caches can be held against the whole run.
    if args.from.is_none() && args.to.is_none() && args.of.is_none() {
        let series = dir.read_series().map_err(Failure::failed)?;
        document.reconciliation = Some(run::reconcile(&document, &info, &series, format.counts_bodies()));
    }
    Ok(document)
}

/// Path of the log of a run, or of one of its caches, with the format of the description that was used.
fn log_of(dir: &RunDir, info: &RunInfo, cache: Option<&str>) -> Result<(PathBuf, Format), Failure> {
    let none = |why: &str| {
        let (name, path) = (&info.target.name, dir.path().display());
        Failure::usage(anyhow::anyhow!("the run in {path} has no access log: its target `{name}` {why}"))
    };
    let place = match cache_of(info, cache)? {
        Some(cache) => dir.proxy_dir().join(&cache.name),
        None => dir.proxy_dir(),
    };
    let file = place.join("description.toml");
    let own = place.join(BUILTIN_LOG);
    let text = match assay_base::files::text(&file, assay_base::files::SETTINGS_MAX) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            if !own.exists() {
                return Err(none("is no proxy that Assay started from a description"));
            }
            return Ok((regular(own)?, Format::parse(ACCESS_LOG_FORMAT).map_err(Failure::failed)?));
        }
        Err(error) => return Err(Failure::usage(anyhow!("cannot read {}: {error}", file.display()))),
    };
    let description = Description::read(&file.display().to_string(), &text).map_err(Failure::usage)?;
    let Some(log) = &description.access_log else { return Err(none("is described without one")) };
    let name = Path::new(&log.path).file_name().unwrap_or_default();
    let format = Format::parse(&log.format).map_err(Failure::usage)?;
    Ok((regular(place.join(name))?, format))
}

/// A log in a run's directory, where nobody writes into a pipe; others may be anything that can be read. That it is missing is said
/// where it is opened.
fn regular(log: PathBuf) -> Result<PathBuf, Failure> {
    match assay_base::files::open(&log) {
        Err(error) if error.kind() == io::ErrorKind::InvalidInput => {
            Err(Failure::usage(anyhow!("cannot read {}: {error}", log.display())))
        }
        _ => Ok(log),
    }
}

/// The cache that is meant; none: the run has one proxy. Logs of caches that run side by side are no one log.
fn cache_of<'i>(info: &'i RunInfo, wanted: Option<&str>) -> Result<Option<&'i CacheInfo>, Failure> {
    let caches = &info.target.caches;
    let names: Vec<&str> = caches.iter().map(|cache| cache.name.as_str()).collect();
    match wanted {
        None if caches.is_empty() => Ok(None),
        None => Err(Failure::usage(anyhow::anyhow!(
            "the run has {} caches, and each has a log of its own",
            caches.len()
        ))
        .hint(format!(
            "name one: --of {}; all of them together are in `assay report`",
            names.join(", --of ")
        ))),
        Some(wanted) => match caches.iter().find(|cache| cache.name == wanted) {
            Some(cache) => Ok(Some(cache)),
            None if caches.is_empty() => Err(Failure::usage(anyhow::anyhow!(
                "the run has one proxy, and none called `{wanted}`; leave --of out"
            ))),
            None => Err(Failure::usage(anyhow::anyhow!(
                "the run has no cache called `{wanted}`; it has {}",
                names.join(", ")
            ))),
        },
    }
}

/// True when robots also request URLs of a trace, which do not carry the run's mark.
fn has_foreign_urls(dir: &RunDir) -> bool {
    let text =
        assay_base::files::bytes(&dir.workload_path(), assay_base::files::DOCUMENT_MAX).unwrap_or_default();
    serde_json::from_slice::<Workload>(&text).is_ok_and(|workload| !workload.foreign.is_empty())
}

fn failure(error: LogsError) -> Failure {
    if matches!(error, LogsError::Write { .. } | LogsError::Json(_)) {
        return Failure::failed(error);
    }
    match hint(&error) {
        Some(hint) => Failure::usage(error).hint(hint),
        None => Failure::usage(error),
    }
}

/// Remedy for a log that cannot be read.
pub fn hint(error: &LogsError) -> Option<String> {
    let hint = match error {
        LogsError::Unrecognised { why: DetectError::Json { template: Some(template), .. }, .. } => {
            return Some(format!(
                "write its keys with nginx's variables for what they are: --format '{template}'"
            ));
        }
        LogsError::Unrecognised { why: DetectError::Ambiguous { names: [one, other] }, .. } => {
            return Some(format!("say which it is: --format {one}, or --format {other}"));
        }
        LogsError::Unrecognised { .. } => {
            "say how lines are written with --format; `assay logs --formats` lists names, `--explain` shows what is read"
        }
        LogsError::NoLine { .. } => "`assay logs --explain FILE` takes its first lines apart, field by field",
        LogsError::Unreadable { what, .. } if what.starts_with("UTF-") => {
            return Some(format!("convert it: `iconv -f {what} -t UTF-8 FILE | assay logs -`"));
        }
        LogsError::Unreadable { what, .. } if what.contains("zip") => {
            "take it out of the archive: `unzip -p FILE | assay logs -`"
        }
        LogsError::Unreadable { what, .. } if what.contains("lz4") => {
            "decompress it: `lz4 -dc FILE | assay logs -`"
        }
        LogsError::NoFile { .. } => "check the path; a pattern with `*` and `?` must match at least one file",
        LogsError::Read { source, .. } => match source.kind() {
            io::ErrorKind::IsADirectory => "name the logs in it, like 'DIR/access.log*'",
            io::ErrorKind::PermissionDenied => {
                "logs are often kept for root and one group: `sudo cat FILE | assay logs -`, or join that group"
            }
            _ => return None,
        },
        _ => return None,
    };
    Some(hint.to_owned())
}

fn formats() -> String {
    let mut text = String::new();
    for known in KNOWN_FORMATS {
        text.push_str(&format!("{:24} {}\n{:24} {}\n", known.names[0], known.about, "", known.text));
        if known.names.len() > 1 {
            text.push_str(&format!("{:24} also called {}\n", "", known.names[1..].join(", ")));
        }
    }
    text
}

/// Reads an instant, in microseconds since 1970.
fn time(text: &str) -> Result<i64, String> {
    if text.len() == 4 && text.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(format!("`{text}` may be a year or Unix seconds; write a date, like {text}-01-01"));
    }
    assay_logs::format::instant_us(text)
        .ok_or_else(|| format!("`{text}` is no time; write Unix seconds, or 2026-01-31T12:00:00 (UTC)"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_year_is_not_taken_for_seconds() {
        assert!(time("2026").unwrap_err().ends_with("like 2026-01-01"));
        assert_eq!(time("2026-01-01"), Ok(1_767_225_600_000_000));
        assert_eq!(time("20260"), Ok(20_260_000_000));
    }
}
