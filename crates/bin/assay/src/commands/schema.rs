//! `assay schema`: the JSON Schemas of settings files, for editors, and of the documents that commands write, for programs.
//!
//! The texts are those of the reference. Tests of the crates that define the documents keep them equal to the types: the program itself
//! carries no code that describes types.

use anyhow::anyhow;
use assay_base::settings::suggest::or_did_you_mean;
use clap::Args;

use crate::exit::{Exit, Failure};
use crate::output;

const EXAMPLES: &str = "\
Examples:
  assay schema                                    which there are
  assay schema experiment > experiment.schema.json
      then, as the first line of a file: #:schema experiment.schema.json
  assay schema summary                            of what each run leaves";

/// A kind of file: its name, what it is, and its schema.
type Kind = (&'static str, &'static str, &'static str);

macro_rules! schema {
    ($name:literal, $about:literal) => {
        ($name, $about, include_str!(concat!("../../../../../docs/reference/", $name, ".schema.json")))
    };
}

const SETTINGS: [Kind; 7] = [
    schema!("experiment", "experiments (`assay lab`)"),
    schema!("topology", "caches that work together (`assay run --topology`)"),
    schema!("cluster", "clusters (`assay simulate`, `assay cluster`)"),
    schema!("switch", "configurations of the switch (`assay switch`)"),
    schema!("rules", "rules of comparison (`assay spe --rules`)"),
    schema!("proxy", "descriptions of proxies (`--proxy FILE.toml`)"),
    schema!("case", "conformance cases (`assay conform --cases`)"),
];

const DOCUMENTS: [Kind; 8] = [
    schema!("summary", "the summary of a run (`summary.json`, `assay report --json`)"),
    schema!("comparison", "comparisons (`comparison.json`, `assay compare --json`)"),
    schema!("conform", "results of conformance cases (`assay conform --json`)"),
    schema!("logs", "analyses of access logs (`assay logs --json`)"),
    schema!("size", "sizes of caches (`assay size --json`)"),
    schema!("replay", "results of a replay (`assay replay --json`)"),
    schema!("spe", "evaluations (`assay spe report --json`)"),
    schema!("policies", "policies on a cluster (`assay simulate --json`)"),
];

/// The schema of a kind of document, which the commands that write it print with `--schema`.
///
/// # Panics
///
/// If there is no such kind: it is a name in the code.
pub fn of_document(name: &str) -> &'static str {
    let found = DOCUMENTS.iter().find(|(known, ..)| *known == name);
    found.map(|(.., text)| *text).expect("the name is one of those above")
}

/// Flags of `assay schema`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct SchemaArgs {
    /// The kind of file; without: list them
    pub kind: Option<String>,
}

/// Prints a schema, or lists them.
pub fn schema(args: &SchemaArgs) -> Result<Exit, Failure> {
    let text = match &args.kind {
        None => {
            let [settings, documents] = [&SETTINGS[..], &DOCUMENTS].map(lines);
            format!(
                "Schemas of settings files (TOML), for editors\n{settings}\nSchemas of documents (JSON) that commands write\n{documents}"
            )
        }
        Some(wanted) => {
            let kinds = || SETTINGS.iter().chain(&DOCUMENTS);
            let found = kinds().find(|(name, ..)| name == wanted);
            let meant = or_did_you_mean(wanted, kinds().map(|(name, ..)| *name));
            let (.., text) = found.ok_or_else(|| {
                Failure::usage(anyhow!("there is no schema `{wanted}`{meant}"))
                    .hint("`assay schema` lists them")
            })?;
            (*text).to_owned()
        }
    };
    output::stdout(&text)?;
    Ok(Exit::Fine)
}

fn lines(kinds: &[Kind]) -> String {
    kinds.iter().map(|(name, about, _)| format!("  {name:<12} {about}\n")).collect()
}
