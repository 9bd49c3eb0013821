//! `assay logs`: what do the access logs of a proxy say?

use std::path::PathBuf;

use assay_lab::units;
use assay_logs::analysis::Options;
use assay_logs::document::Document;
use assay_logs::error::LogsError;
use assay_logs::format::{Format, KNOWN};
use assay_logs::terminal::{self, Look};
use clap::Args;

use crate::exit::{Exit, Failure};
use crate::output;

const EXAMPLES: &str = "\
Examples:
  assay logs /var/log/squid/access.log           what became of requests, how fast, by peer, type, time
  assay logs '/var/log/squid/access.log*' --cache 1GB --cache 8GB
                                                 a rotated set; what LRU caches would have hit
  zcat access.log.gz | assay logs -              from another program
  assay logs access.log --format '%h %t \"%r\" %>s %b %D'
                                                 a format of your own, as the proxy is configured
  assay logs runs/demo-squid-20260102-030405     the log of a run: by phase, and against its robots";

/// Flags of `assay logs`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct LogsArgs {
    /// Access logs, plain, gzip or zstd; `*` and `?` in a name; `-` is standard input; or a run's directory
    #[arg(value_name = "FILE", required_unless_present_any = ["schema", "formats"])]
    pub files: Vec<PathBuf>,
    /// Name of a format, or a format string as the proxy itself takes it; without, it is recognised
    #[arg(short, long, value_name = "NAME|STRING")]
    pub format: Option<String>,
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
    /// How many URLs to list
    #[arg(long, value_name = "N", default_value_t = 10)]
    pub top: usize,
    /// The result as one JSON document
    #[arg(long)]
    pub json: bool,
    /// Write the result to FILE; `-` is standard output
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// List the formats that have a name
    #[arg(long, conflicts_with_all = ["files", "json"])]
    pub formats: bool,
    /// Print the JSON Schema of the document instead
    #[arg(long, conflicts_with_all = ["files", "json", "formats"])]
    pub schema: bool,
}

/// Analyses access logs.
pub fn logs(args: &LogsArgs) -> Result<Exit, Failure> {
    if args.schema {
        output::result(&output::json(&Document::json_schema())?, args.output.as_deref())?;
        return Ok(Exit::Fine);
    }
    if args.formats {
        output::result(&formats(), args.output.as_deref())?;
        return Ok(Exit::Fine);
    }
    output::check_result(args.output.as_deref())?;
    let format = args.format.as_deref().map(Format::parse).transpose().map_err(Failure::usage)?;
    let options = Options {
        from_us: args.from,
        to_us: args.to,
        every_us: args.every.map(|every| every.as_micros() as i64),
        cache_bytes: args.cache.clone(),
        top: args.top,
        phases: Vec::new(),
    };
    let document = assay_logs::analyse(&args.files, format.as_ref(), options).map_err(failure)?;
    let text = if args.json {
        document.to_json().map_err(Failure::failed)?
    } else {
        let style = output::style(args.output.as_deref());
        terminal::render(&document, Look { colour: style.colour, width: style.width })
    };
    output::result(&text, args.output.as_deref())?;
    Ok(Exit::Fine)
}

fn failure(error: LogsError) -> Failure {
    let hint = match &error {
        LogsError::Unrecognised { .. } => Some(
            "say how lines are written with --format; `assay logs --formats` lists the names that can be given",
        ),
        LogsError::Write { .. } | LogsError::Page(_) | LogsError::Json(_) => return Failure::failed(error),
        _ => None,
    };
    match hint {
        Some(hint) => Failure::usage(error).hint(hint),
        None => Failure::usage(error),
    }
}

fn formats() -> String {
    let mut text = String::new();
    for known in KNOWN {
        text.push_str(&format!("{:24} {}\n{:24} {}\n", known.names[0], known.about, "", known.text));
        if known.names.len() > 1 {
            text.push_str(&format!("{:24} also called {}\n", "", known.names[1..].join(", ")));
        }
    }
    text
}

/// Reads an instant, in microseconds since 1970.
fn time(text: &str) -> Result<i64, String> {
    assay_logs::format::instant_us(text)
        .ok_or_else(|| format!("`{text}` is no time; write Unix seconds, or 2026-01-31T12:00:00 (UTC)"))
}
