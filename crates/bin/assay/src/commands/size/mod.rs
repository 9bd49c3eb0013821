//! `assay size`: hit ratio over cache size, from traces, access logs and workloads.

mod cache_size;
mod model;
mod prove;
mod prove_log;
mod rules;
mod together;
mod workload;

use std::path::PathBuf;

use anyhow::anyhow;
use assay_cache::behaviour::CacheBehaviour;
use assay_logs::error::LogsError;
use assay_logs::format::DetectError;
use assay_logs::size::document::{SizeDocument, SizeOptions};
use assay_logs::size::error::{ArgumentError, SizeError};
use assay_logs::size::form::Form;
use assay_logs::size::group_by::GroupBy;
use assay_logs::size::input::{ReadOptions, SizeInput, read};
use assay_logs::size::policy::{Policy, Replacement};
use assay_logs::size::proof::Proof;
use assay_logs::size::sample::{SampleSize, Sampling};
use assay_logs::size::simulate::Admission;
use assay_logs::size::trace::text::{ColumnNaming, check_names};
use assay_logs::size::{csv, terminal};
use assay_logs::terminal::TextStyle;
use assay_report::sheet;
use clap::Args;

use self::cache_size::CacheSize;
use self::model::CacheModel;
use self::prove::{ProveArgs, ProvedPolicies};
use self::prove_log::ReplayedLog;
use self::rules::RuleArgs;
use self::together::TogetherArgs;
use self::workload::WorkloadArgs;
use crate::commands::form_args::FormArgs;
use crate::commands::logs;
use crate::commands::schema;
use crate::exit::{Exit, Failure};
use crate::output;

const EXAMPLES: &str = "\
Examples:
  assay size access.log    how large a cache these requests need
  assay size 'access.log*' --policy lru,sieve,gdsf --html size.html
      other policies, and a page with charts
  assay size cluster52.oracleGeneral.zst --sizes 1GB,4GB,16GB
      a trace of research, at given sizes
  assay size requests.txt --columns time,object,size,-
      a trace whose lines do not name their columns
  assay size image --rehearse 10m
      a workload: its robots' requests, without a proxy or a network
  assay size access.log --suggest-keys
      which parameters of URLs cost hits
  assay size demo --prove varnish,nginx,builtin --at 8MB,32MB
      predicted beside measured: real proxies at these sizes
  assay size image --prove builtin --at 16MB --policy sieve,s3-fifo
      policies that the built-in proxy can have, each on itself
  assay size access.log --sample 1%
      a hundredth of the objects, with the error that this causes
  assay size access.log --layers 256MB,4GB --edges 4
      four caches with one behind them
  assay size access.log --prove nginx --at 1GB --speed 10
      the same for a log, which is replayed ten times as fast
  assay size requests.csv --warm-up 10% --json
      the first tenth fills the caches and is not counted";

/// Remedy where the sizes of objects are not known.
const NAME_SIZES: &str = "write a number of objects, like --sizes 1000; or if a trace has a column of sizes, name its columns with \
                          --columns";

/// Policies that are simulated if none is named.
const USUAL_POLICIES: [Policy; 4] =
    [Policy::LRU, Policy::FIFO, Policy::Online(Replacement::S3Fifo), Policy::Online(Replacement::Gdsf)];

/// Flags of `assay size`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct SizeArgs {
    /// Access logs or traces (CSV and other tables, oracleGeneral, published ones), plain, gzip or zstd; `*` and `?` in a name; `-` is
    /// standard input. Or a workload: a PGL file, or a bundled one (`assay workloads`)
    #[arg(value_name = "FILE", required_unless_present = "schema")]
    pub files: Vec<PathBuf>,
    /// Form of the input: csv, oracleGeneral, lcs, vscsi, twitter, cachelib, meta-cdn, wikimedia, ibm, msr, spc, alibaba-block,
    /// tencent-cbs, tencent-photo, webcachesim, or a format of access logs; without, the name or the first lines decide
    #[arg(short, long, value_name = "NAME|STRING")]
    pub format: Option<String>,
    /// Columns of a trace in text, in order: object, time, size, op, ttl, count, with units and words like `size (KB)` and
    /// `op[get:1,put:0]`; `-` for one that is not used [default: the first line names them]
    #[arg(long, value_name = "NAME,…", value_parser = columns)]
    pub columns: Option<String>,
    /// Replacement policies: lru, fifo, clock, sieve, slru, s3-fifo, 2q, arc, w-tinylfu, lfu, lfuda, gds, gdsf, random; with
    /// knowledge of the future: belady, belady-size, bound-above, bound-below [default: lru,fifo,s3-fifo,gdsf]
    #[arg(long, value_name = "NAME,…", value_delimiter = ',', value_parser = Policy::parse)]
    pub policy: Vec<Policy>,
    /// Sizes of the cache; a number without a unit is in bytes, or in objects if the input has no sizes
    #[arg(long, value_name = "SIZE,…", value_delimiter = ',', value_parser = CacheSize::parse)]
    pub sizes: Vec<CacheSize>,
    /// Share of the requests that fill the caches before any is counted, like 10%
    #[arg(long, value_name = "SHARE", value_parser = share, default_value = "0%")]
    pub warm_up: f64,
    /// Which objects are stored: all, those of at most a size (`64KB`), those that were requested before (`second`), or those that
    /// were requested more often lately than what would have to go for them (`tinylfu`)
    #[arg(long, value_name = "all|SIZE|second|tinylfu", value_parser = admission, default_value = "all")]
    pub admission: Admission,
    /// Simulate a sample: a share of the objects (`0.01`, `1%`), or at most so many objects (`200000`), each with all of its requests
    /// [default: all requests, where there is memory for them]
    #[arg(long, value_name = "SHARE|OBJECTS", value_parser = sample)]
    pub sample: Option<SampleSize>,
    /// Write the curves as CSV
    #[arg(long, value_name = "FILE")]
    pub csv: Option<PathBuf>,
    /// Divide the hits by host, content type, or class: what a log says became of the request
    #[arg(long, value_name = "host|type|class", value_parser = GroupBy::parse)]
    pub by: Option<GroupBy>,
    /// Where the result goes.
    #[command(flatten)]
    pub form: FormArgs,
    /// Print the JSON Schema of the document instead
    #[arg(long, conflicts_with_all = ["files", "json"])]
    pub schema: bool,
    /// Access logs.
    #[command(flatten)]
    pub rules: RuleArgs,
    /// Workloads.
    #[command(flatten)]
    pub workload: WorkloadArgs,
    /// Several caches.
    #[command(flatten)]
    pub together: TogetherArgs,
    /// The proof.
    #[command(flatten)]
    pub proof: ProveArgs,
}

pub fn size_caches(args: &SizeArgs) -> Result<Exit, Failure> {
    if args.schema {
        output::result(&schema::of_document("size"), args.form.output.as_deref())?;
        return Ok(Exit::Fine);
    }
    output::check_results(args.form.output.as_deref(), [args.form.html.as_deref(), args.csv.as_deref()])?;
    let named = workload::named_workload(&args.files, &args.workload)?;
    prove::check(named.as_deref(), &args.proof, &args.workload)?;
    let stored_as = args.proof.as_proxy.as_deref();
    let model = stored_as.map_or_else(
        || Ok(CacheModel::plain()),
        |name| CacheModel::from_description(name, &args.proof.proxy_dir),
    )?;
    let several = together::several(&args.together, named.as_deref(), &args.workload, &args.proof)?
        .map(|several| several.replacing_by(&args.policy));
    let proved = ProvedPolicies::new(&args.policy, args.admission, &args.proof)?;
    let model = several.as_ref().and_then(|several| several.model.as_ref()).unwrap_or(&model);
    let acts_as_proxy =
        stored_as.is_some() || several.as_ref().is_some_and(|several| several.model.is_some());
    let behaviour = Some(model.behaviour).filter(|_| acts_as_proxy && args.proof.prove.is_empty());
    let input = requests(args, named.as_deref(), model, behaviour)?;
    check_units(args, &input)?;
    if named.is_none() && !args.proof.prove.is_empty() {
        check_replay(args, &input)?;
    }
    let options = SizeOptions { stored_as: stored_as.map(|_| model.stored_as()), ..options(args) };
    let mut document = SizeDocument::of(&input, &options).map_err(failure)?;
    if let Some(several) = &several {
        document.cooperate(&input.requests, &several.hierarchy, args.warm_up);
    }
    if !args.proof.prove.is_empty() {
        document.prove(prove(args, &proved, named.as_deref())?);
    }
    if let Some(path) = &args.form.html {
        let page = sheet::page(&assay_logs::size::sheet(&document)).map_err(Failure::failed)?;
        output::result(&page, Some(path))?;
    }
    if let Some(path) = &args.csv {
        output::result(&csv::write(&document), Some(path))?;
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

/// Runs the workload, or replays the log, through real proxies.
fn prove(args: &SizeArgs, proved: &ProvedPolicies, workload: Option<&str>) -> Result<Proof, Failure> {
    match workload {
        Some(name) => {
            prove::prove(name, &args.proof, proved, &args.workload, args.sample.unwrap_or_default())
        }
        None => {
            let log = ReplayedLog { files: &args.files, format: args.format.as_deref() };
            prove_log::prove(&log, &args.proof, proved, |model| requests(args, None, model, None))
        }
    }
}

/// Refuses what cannot be replayed.
fn check_replay(args: &SizeArgs, read: &SizeInput) -> Result<(), Failure> {
    let refused = |what: &str, hint: &'static str| Err(Failure::usage(anyhow!("{what}")).hint(hint));
    if !read.is_log {
        return refused(
            "--prove is for workloads and access logs: a trace has no URLs to request",
            "leave it out",
        );
    }
    if !args.rules.rules().is_empty() {
        return refused(
            "--prove replays a log as it is, and rules for it say otherwise",
            "leave out the rules",
        );
    }
    if args.files.iter().any(|file| file.as_os_str() == "-") {
        return refused("--prove reads a log several times, and standard input is read once", "name a file");
    }
    Ok(())
}

/// Refuses sizes in bytes where objects have none.
fn check_units(args: &SizeArgs, read: &SizeInput) -> Result<(), Failure> {
    if read.requests.has_sizes {
        return Ok(());
    }
    let needing = [
        ("--admission with a size", matches!(args.admission, Admission::UpTo(_))),
        ("--topology", args.together.topology.is_some()),
    ];
    if let Some((flag, _)) = needing.iter().find(|(_, is_given)| *is_given) {
        let error = anyhow!("{flag} needs the sizes of objects, and they are not known");
        return Err(Failure::usage(error).hint(NAME_SIZES));
    }
    let mut sizes = args.sizes.iter().chain(&args.together.layers);
    match sizes.find(|size| size.has_unit()) {
        Some(size) => Err(failure(SizeError::NoSizes { size: size.typed.clone() })),
        None => Ok(()),
    }
}

/// The requests, with the room that objects have in a proxy; `behaviour`: and those of a log act as they do on it.
fn requests(
    args: &SizeArgs,
    workload: Option<&str>,
    model: &CacheModel,
    behaviour: Option<CacheBehaviour>,
) -> Result<SizeInput, Failure> {
    // Another seed draws another sample of any input, and other requests of a workload.
    let sampling = Sampling { take: args.sample.unwrap_or_default(), seed: args.workload.planned.seed };
    let how = ReadOptions {
        sampling,
        by: args.by,
        clients: args.together.needs_clients(),
        behaviour,
        response: args.workload.response_time,
        as_replayed: !args.proof.prove.is_empty(),
    };
    if let Some(name) = workload {
        if args.columns.is_some() {
            let error = anyhow!("{name} is a workload, and --columns is for traces in text");
            return Err(Failure::usage(error).hint("leave it out"));
        }
        if !args.rules.rules().is_empty() {
            return Err(Failure::usage(anyhow!(
                "{name} is a workload, and rules for hosts, keys and lifetimes are for access logs"
            ))
            .hint("a workload says itself what may be stored and for how long"));
        }
        return workload::read(name, &args.workload, model, how);
    }
    let form = args.format.as_deref().map(Form::parse).transpose().map_err(failure)?;
    let form = match (&args.columns, form) {
        (Some(names), None | Some(Form::Text(ColumnNaming::FirstLine))) => {
            Some(Form::Text(ColumnNaming::Given(names.clone())))
        }
        (Some(_), Some(_)) => {
            let error = anyhow!("--columns is for traces in text whose columns --format does not name");
            return Err(Failure::usage(error).hint("leave one of them out, or take --format csv"));
        }
        (None, form) => form,
    };
    let mut read = read(&args.files, form.as_ref(), args.rules.rules(), how).map_err(failure)?;
    read.requests.lay_out(model.layout);
    Ok(read)
}

fn options(args: &SizeArgs) -> SizeOptions {
    let mut policies = if args.policy.is_empty() { USUAL_POLICIES.to_vec() } else { args.policy.clone() };
    // A policy that is named twice gets one curve.
    let mut seen = Vec::new();
    policies.retain(|policy| {
        !seen.contains(policy) && {
            seen.push(*policy);
            true
        }
    });
    SizeOptions {
        policies,
        sizes: args.sizes.iter().map(|size| size.size).collect(),
        warm_up: args.warm_up,
        admission: args.admission,
        stored_as: None,
    }
}

fn failure(error: SizeError) -> Failure {
    let hint = match &error {
        SizeError::Logs(LogsError::Unrecognised { why: DetectError::Unknown { .. }, .. }) => Some(
            "say how lines are written with --format (`assay logs --formats` lists the names of logs; `csv` is a trace \
             whose first line names its columns), or name the columns of a trace with --columns"
                .into(),
        ),
        SizeError::NoNames { example, .. } => Some(format!(
            "name the columns in order, with `-` for one that is not used, like --columns {example}; of a log, say how its lines are written \
             with --format"
        )),
        SizeError::NoText { .. } => Some(
            "of binary traces, oracleGeneral, lcs and vscsi are read: --format oracleGeneral if it is that".into(),
        ),
        SizeError::NoSizes { .. } => Some(NAME_SIZES.into()),
        SizeError::Logs(error) => {
            logs::hint(error).map(|hint| hint.replace("assay logs -`", "assay size -`"))
        }
        SizeError::Mixed { .. } => Some("simulate them one after the other".into()),
        SizeError::ClientsOfTrace => {
            Some("take an access log or a workload, or --layers without --edges".into())
        }
        SizeError::NoResponseTimes { .. } => {
            Some("write how long they take, like --response-time 100ms".into())
        }
        SizeError::ClassOfWorkload => Some("divide them by host or type".into()),
        SizeError::SampleTooSmall { .. } => Some("take a larger --sample, or none".into()),
        SizeError::SizesTooSmall { .. } => Some("take larger --sizes, a larger --sample, or none".into()),
        SizeError::NoRequests { notes, malformed, .. } if notes.is_empty() || *malformed > 0 => {
            Some("check that the input is what --format or --columns says".into())
        }
        _ => None,
    };
    match hint {
        Some(hint) => Failure::usage(error).hint(hint),
        None => Failure::usage(error),
    }
}

/// Checks what was typed as names of columns.
fn columns(text: &str) -> Result<String, ArgumentError> {
    check_names(text).map(|()| text.to_owned())
}

/// Reads `all`, `second`, `tinylfu` or a size.
fn admission(text: &str) -> Result<Admission, String> {
    match text {
        "all" => Ok(Admission::All),
        "second" => Ok(Admission::SecondRequest),
        "tinylfu" => Ok(Admission::TinyLfu),
        _ => CacheSize::parse(text).map(|size| Admission::UpTo(size.size)).map_err(|_| {
            format!(
                "`{text}` does not say what is stored; write `all`, `second`, `tinylfu`, or a size like 64KB"
            )
        }),
    }
}

/// Reads `1%`, `0.01` or a number of objects.
fn sample(text: &str) -> Result<SampleSize, String> {
    let unknown = || {
        format!(
            "`{text}` is not a sample; write a share of the objects like 1% or 0.01, or a number of objects like 200000"
        )
    };
    let share =
        |share: f64| if share > 0.0 && share < 1.0 { Ok(SampleSize::Share(share)) } else { Err(unknown()) };
    if let Some(percent) = text.strip_suffix('%') {
        return percent.trim().parse().map_err(|_| unknown()).and_then(|percent: f64| share(percent / 100.0));
    }
    match text.parse::<usize>() {
        Ok(objects) if objects > 1 => Ok(SampleSize::Objects(objects)),
        _ => text.parse().map_err(|_| unknown()).and_then(share),
    }
}

/// Reads `10%`.
fn share(text: &str) -> Result<f64, String> {
    let percent = text.strip_suffix('%').and_then(|number| number.trim().parse::<f64>().ok());
    percent.filter(|percent| (0.0..100.0).contains(percent)).map(|percent| percent / 100.0).ok_or_else(|| {
        format!("`{text}` is not a share of the requests; write a percentage from 0% to below 100%, like 10%")
    })
}
