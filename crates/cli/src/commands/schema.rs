//! `assay schema`: the JSON Schemas of settings files, for editors.

use anyhow::anyhow;
use assay_settings::suggest::or_did_you_mean;
use clap::Args;

use crate::exit::{Exit, Failure};
use crate::output;

const EXAMPLES: &str = "\
Examples:
  assay schema                                    which there are
  assay schema experiment > experiment.schema.json
      then, as the first line of a file: #:schema experiment.schema.json";

/// A kind of settings file: its name, what it is, and its schema.
type Kind = (&'static str, &'static str, &'static str);

macro_rules! schema {
    ($name:literal, $about:literal) => {
        ($name, $about, include_str!(concat!("../../../../docs/reference/", $name, ".schema.json")))
    };
}

const KINDS: [Kind; 7] = [
    schema!("experiment", "experiments (`assay lab`)"),
    schema!("topology", "caches that work together (`assay run --topology`)"),
    schema!("cluster", "clusters (`assay simulate`, `assay cluster`)"),
    schema!("switch", "configurations of the switch (`assay switch`)"),
    schema!("rules", "rules of comparison (`assay spe --rules`)"),
    schema!("proxy", "descriptions of proxies (`--proxy FILE.toml`)"),
    schema!("case", "conformance cases (`assay conform --cases`)"),
];

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
            let lines = KINDS.iter().map(|(name, about, _)| format!("  {name:<12} {about}\n"));
            format!("Schemas of settings files (TOML), for editors\n{}", lines.collect::<String>())
        }
        Some(wanted) => {
            let found = KINDS.iter().find(|(name, ..)| name == wanted);
            let meant = or_did_you_mean(wanted, KINDS.iter().map(|(name, ..)| *name));
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
