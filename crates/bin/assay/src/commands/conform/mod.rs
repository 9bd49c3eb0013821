//! `assay conform`: cases of conformance, tried on proxies and caches.

mod labels;
mod subject;
mod switch;
mod targets;

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use anyhow::{Context, anyhow};
use assay_conform::case::Case;
use assay_conform::document::{Conclusion, Document};
use assay_conform::known;
use assay_conform::show;
use assay_conform::suite::Suite;
use clap::{Args, Subcommand};

use super::spe::targets::{ProxySetting, setting};
use crate::commands::schema;
use crate::exit::{Exit, Failure};
use crate::{leftovers, output, units};

const CASES: &str = "Cases";
const TARGETS: &str = "Targets";
const RESULTS: &str = "Results";

const EXAMPLES: &str = "\
Examples:
  assay conform varnish nginx squid --report-only
      what do they do, and where do they disagree?
  assay conform builtin --case freshness --case vary
      two topics only
  assay conform old=squid new=squid --set new:ttl=0
      one proxy against itself with another setting
  assay conform 127.0.0.1:8080 --origin-listen 127.0.0.1:9000
      a cache that is already running, with 127.0.0.1:9000 as its origin
  assay conform switch
      framing and forwarding by the web switch, which stores nothing
  assay conform varnish --tls --case http2 --case http2-frames
      HTTP/2, and all else, over TLS
  assay conform varnish --case http2 --tries 20
      what holds only sometimes?
  assay conform --topology pair.toml
      caches that work together, as `assay run --topology` starts them
  assay conform varnish --json -o before.json
  assay conform varnish --baseline before.json
      what has changed since? exit code 99 if a MUST fails that passed
  assay conform show no-store-response/plain
      what a case requires, sends and expects
  assay conform list       all topics and cases

Exit code 99: a MUST is not met that neither --known-failures nor \
--baseline excuses; with --report-only this is no reason to fail. 96: too many cases say nothing.";

/// Flags of `assay conform`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES, arg_required_else_help = true, args_conflicts_with_subcommands = true)]
pub struct ConformArgs {
    /// What to do instead.
    #[command(subcommand)]
    pub what: Option<ConformCommand>,
    /// What to try: `builtin`, `switch` (the web switch), names from `assay proxies`, descriptions FILE.toml, or the HOST:PORT
    /// of one that is already running; with a label of your own, if you like
    #[arg(value_name = "[LABEL=]PROXY", required_unless_present_any = ["schema", "topologies"], help_heading = TARGETS)]
    pub targets: Vec<String>,
    /// Try the caches that FILE.toml describes as one target (docs/reference/experiments.md): requests go to the first that has
    /// robots of its own, and its origin is behind all of them. Its label is the name of the file; may be given more than once
    #[arg(long = "topology", value_name = "[LABEL=]FILE.toml", help_heading = TARGETS)]
    pub topologies: Vec<String>,
    /// Choose one of a proxy's own settings, as `assay spe --set` does, or its `memory` or `disk`; may be given more than once
    #[arg(long = "set", value_name = "[LABEL:]NAME=VALUE", value_parser = setting, help_heading = TARGETS)]
    pub settings: Vec<ProxySetting>,
    /// Memory for the cache of each proxy that is started
    #[arg(long, value_name = "SIZE", default_value = "64MB", value_parser = units::size, help_heading = TARGETS)]
    pub memory: u64,
    /// Disk for the cache of each proxy that is started
    #[arg(long, value_name = "SIZE", default_value = "256MB", value_parser = units::size, help_heading = TARGETS)]
    pub disk: u64,
    /// Look for proxy descriptions in DIR too; they win over bundled ones of the same name
    #[arg(long, value_name = "DIR", help_heading = TARGETS)]
    pub proxy_dir: Vec<PathBuf>,
    /// Where the origin listens that a proxy that is already running is configured to use
    #[arg(long, value_name = "ADDR:PORT", help_heading = TARGETS)]
    pub origin_listen: Option<SocketAddr>,
    /// The targets are forward proxies: requests carry whole URLs. Cases that only a gateway gets do not apply
    #[arg(long, help_heading = TARGETS)]
    pub forward: bool,
    /// Clients speak TLS to the targets, over HTTP/1.1 and, where both sides agree on it, over HTTP/2. Certificates are not verified
    #[arg(long, conflicts_with = "forward", help_heading = TARGETS)]
    pub tls: bool,
    /// The targets store nothing: only cases for any intermediary apply
    #[arg(long, help_heading = TARGETS)]
    pub no_cache: bool,
    /// What clients write in `Host` [default: the address of the origin]
    #[arg(long, value_name = "HOST", help_heading = TARGETS)]
    pub host: Option<String>,
    /// You may send requests to targets with a public address: they are yours
    #[arg(long, help_heading = TARGETS)]
    pub i_own_this_target: bool,

    /// Only this case, all rows of a case, or all cases of a topic, and what they rely on; may be given more than once
    #[arg(long = "case", value_name = "NAME|TOPIC", help_heading = CASES)]
    pub chosen: Vec<String>,
    /// The case files in DIR (*.toml) instead of those that come with Assay
    #[arg(long, value_name = "DIR", help_heading = CASES)]
    pub cases: Option<PathBuf>,
    /// Try every case at least N times: what depends on a race is found as *sometimes*, with its counts
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=100), help_heading = CASES)]
    pub tries: u16,
    /// Failures that are accepted, with their reasons (docs/reference/conformance.md)
    #[arg(long, value_name = "FILE", help_heading = CASES)]
    pub known_failures: Option<PathBuf>,
    /// Results of before (--json): only a MUST fails that did not fail then, and changes are listed
    #[arg(long, value_name = "FILE", help_heading = CASES)]
    pub baseline: Option<PathBuf>,
    /// End with exit code 0 whatever the targets do
    #[arg(long, help_heading = CASES)]
    pub report_only: bool,

    /// The results as one JSON document
    #[arg(long, help_heading = RESULTS)]
    pub json: bool,
    /// Write the results to FILE; `-` is standard output
    #[arg(short, long, value_name = "FILE", help_heading = RESULTS)]
    pub output: Option<PathBuf>,
    /// Write the results as one HTML page that needs no network, with the exchanges as evidence
    #[arg(long, value_name = "FILE", help_heading = RESULTS)]
    pub html: Option<PathBuf>,
    /// Write the results as Markdown
    #[arg(long, value_name = "FILE", help_heading = RESULTS)]
    pub markdown: Option<PathBuf>,
    /// Write the results as JUnit's XML
    #[arg(long, value_name = "FILE", help_heading = RESULTS)]
    pub junit: Option<PathBuf>,
    /// Keep configurations and logs of the proxies in DIR; it must be empty or not be there [default: they are removed]
    #[arg(long, value_name = "DIR", help_heading = RESULTS)]
    pub dir: Option<PathBuf>,
    /// Say nothing of the progress
    #[arg(short, long, help_heading = RESULTS)]
    pub quiet: bool,
    /// Print the JSON Schema of the document instead
    #[arg(long, help_heading = RESULTS)]
    pub schema: bool,
}

/// What else can be done with cases.
#[derive(Debug, Subcommand)]
pub enum ConformCommand {
    /// Explain a case: what it requires, sends and expects
    Show {
        /// Its name, or the name of a case with rows, or a topic
        #[arg(value_name = "CASE")]
        case: String,
        /// The case files in DIR instead of those that come with Assay
        #[arg(long, value_name = "DIR")]
        cases: Option<PathBuf>,
        /// Print the file of the topic, as an example to write your own from
        #[arg(long)]
        toml: bool,
    },
    /// List topics and cases
    List {
        /// Only this topic
        #[arg(value_name = "TOPIC")]
        topic: Option<String>,
        /// The case files in DIR instead of those that come with Assay
        #[arg(long, value_name = "DIR")]
        cases: Option<PathBuf>,
    },
}

/// Tries cases, or shows them.
pub fn conform(args: &ConformArgs) -> Result<Exit, Failure> {
    match &args.what {
        Some(ConformCommand::Show { case, cases, toml }) => return shown(case, cases.as_deref(), *toml),
        Some(ConformCommand::List { topic, cases }) => return listed(topic.as_deref(), cases.as_deref()),
        None => {}
    }
    if args.schema {
        output::result(&schema::of_document("conform"), args.output.as_deref())?;
        return Ok(Exit::Fine);
    }
    let others = [&args.html, &args.markdown, &args.junit].map(Option::as_deref);
    output::check_results(args.output.as_deref(), others)?;
    let suite = suite(args.cases.as_deref())?;
    let mut cases = suite.chosen(&args.chosen).map_err(Failure::usage)?;
    for case in &mut cases {
        let case = Rc::make_mut(case);
        case.tries = case.tries.max(args.tries.into());
    }
    let known = args.known_failures.as_deref().map(known_failures).transpose()?.unwrap_or_default();
    let baseline = args.baseline.as_deref().map(read_baseline).transpose()?;
    tell_unknown(&suite, &known);
    leftovers::clear();
    let Some(mut document) = targets::tried(args, &cases)? else { return Ok(Exit::Interrupted) };
    for unused in known::apply(&mut document, &known) {
        output::say(&format!("note: the known failure of `{}` was not seen", unused.case));
    }
    write(args, &document, baseline.as_ref())?;
    if !document.has_decided() {
        output::eprint(
            "warning: nothing was found out: none of the cases applies to a target, or could be decided; choose others with --case \
             (`assay conform list` lists them), or leave out --no-cache or --forward if that is why\n",
        );
    }
    Ok(match document.conclusion(baseline.as_ref()) {
        _ if args.report_only => Exit::Fine,
        Conclusion::Fine => Exit::Fine,
        Conclusion::Failed => Exit::Unmet,
        Conclusion::Undecided => Exit::Undecided,
    })
}

fn suite(directory: Option<&Path>) -> Result<Suite, Failure> {
    match directory {
        Some(directory) => Suite::in_directory(directory),
        None => Suite::bundled(),
    }
    .map_err(Failure::usage)
}

fn known_failures(file: &Path) -> Result<Vec<known::KnownFailure>, Failure> {
    let text = read(file, assay_base::files::SETTINGS_MAX)?;
    known::read(&file.display().to_string(), &text).map_err(Failure::usage)
}

/// A name that no case has is likely misspelt, and accepts nothing.
fn tell_unknown(suite: &Suite, known: &[known::KnownFailure]) {
    for known in known.iter().filter(|known| !suite.cases.iter().any(|case| known.names(&case.name))) {
        output::eprint(&format!(
            "note: --known-failures: no case is called `{}`; `assay conform list` lists them\n",
            known.case
        ));
    }
}

fn read_baseline(file: &Path) -> Result<Document, Failure> {
    Document::from_json(&read(file, assay_base::files::DOCUMENT_MAX)?).map_err(|why| {
        Failure::usage(anyhow!("{} has no results of `assay conform`: {why}", file.display()))
            .hint("make it with --json -o FILE")
    })
}

fn read(file: &Path, most_bytes: u64) -> Result<String, Failure> {
    assay_base::files::text(file, most_bytes)
        .with_context(|| format!("cannot read {}", file.display()))
        .map_err(Failure::usage)
}

fn write(args: &ConformArgs, document: &Document, baseline: Option<&Document>) -> Result<(), Failure> {
    let others = [(&args.markdown, show::markdown as fn(&Document) -> String), (&args.junit, show::junit)];
    for (file, render) in others {
        if let Some(file) = file {
            output::result(&render(document), Some(file))?;
        }
    }
    if let Some(file) = &args.html {
        let page = assay_report::conform::page(document).map_err(Failure::failed)?;
        output::result(&page, Some(file))?;
    }
    let text = match args.json {
        true => document.to_json().map_err(Failure::failed)?,
        false => output::fitted(&show::terminal(document, baseline)),
    };
    output::result(&text, args.output.as_deref())
}

fn shown(name: &str, directory: Option<&Path>, is_toml: bool) -> Result<Exit, Failure> {
    let suite = suite(directory)?;
    let found: Vec<&Rc<Case>> = suite.cases.iter().filter(|case| case.is_called(name)).collect();
    let Some(first) = found.first() else {
        // The message with what may have been meant.
        return Err(suite
            .chosen(&[name.to_owned()])
            .map_or_else(Failure::usage, |_| Failure::usage(anyhow!("{name}"))));
    };
    if is_toml {
        let file = first.location.rsplit_once(':').map_or(first.location.as_str(), |(file, _)| file);
        let bundled = assay_conform::suite::BUNDLED.iter().find(|(name, _)| *name == file);
        let text = bundled.map_or_else(
            || read(Path::new(file), assay_base::files::SETTINGS_MAX),
            |(_, text)| Ok((*text).to_owned()),
        )?;
        output::stdout(&text)?;
        return Ok(Exit::Fine);
    }
    let texts: Vec<String> = found.iter().map(|case| show::case(case)).collect();
    output::stdout(&texts.join("\n"))?;
    Ok(Exit::Fine)
}

fn listed(topic: Option<&str>, directory: Option<&Path>) -> Result<Exit, Failure> {
    let suite = suite(directory)?;
    if let Some(topic) = topic {
        // Refuses one that is not there.
        suite.chosen(&[topic.to_owned()]).map_err(Failure::usage)?;
    }
    let mut out = String::new();
    for (name, about) in suite.topics.iter().filter(|(name, _)| topic.is_none_or(|topic| topic == name)) {
        let of_topic: Vec<&Rc<Case>> = suite.cases.iter().filter(|case| case.topic == *name).collect();
        out.push_str(&format!("{name}: {about} ({} cases)\n", of_topic.len()));
        for case in of_topic {
            out.push_str(&format!("  {:<9} {:<44} {}\n", case.level.word(), case.name, case.reference()));
        }
    }
    output::stdout(&out)?;
    Ok(Exit::Fine)
}
