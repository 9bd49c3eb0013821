//! `assay schema`: the JSON Schemas of settings files, for editors, and of the documents that commands write, for programs.
//!
//! Those of settings files are kept in the reference; those of documents are made from the types that are written.

use anyhow::anyhow;
use assay_base::settings::suggest::or_did_you_mean;
use assay_load::replay::results::ReplayResults;
use assay_report::compare::Comparison;
use assay_report::summary::Summary;
use assay_report::{policies, spe};
use clap::Args;
use serde_json::Value;

use crate::exit::{Exit, Failure};
use crate::output;

const EXAMPLES: &str = "\
Examples:
  assay schema                                    which there are
  assay schema experiment > experiment.schema.json
      then, as the first line of a file: #:schema experiment.schema.json
  assay schema summary                            of what each run leaves";

/// A kind of file.
struct SchemaKind {
    name: &'static str,
    about: &'static str,
    schema: SchemaSource,
}

/// Source of the schema of a kind of file.
enum SchemaSource {
    /// A text of the reference.
    Text(&'static str),
    /// Made from the type of the document.
    OfType(fn() -> Value),
}

impl SchemaKind {
    const fn document(name: &'static str, about: &'static str, schema: fn() -> Value) -> Self {
        Self { name, about, schema: SchemaSource::OfType(schema) }
    }

    fn text(&self) -> String {
        match self.schema {
            SchemaSource::Text(text) => text.to_owned(),
            SchemaSource::OfType(schema) => format!("{:#}\n", schema()),
        }
    }
}

macro_rules! settings {
    ($name:literal, $about:literal) => {{
        let text = include_str!(concat!("../../../../../docs/reference/", $name, ".schema.json"));
        SchemaKind { name: $name, about: $about, schema: SchemaSource::Text(text) }
    }};
}

const SETTINGS: [SchemaKind; 7] = [
    settings!("experiment", "experiments (`assay lab`)"),
    settings!("topology", "caches that work together (`assay run --topology`)"),
    settings!("cluster", "clusters (`assay simulate`, `assay cluster`)"),
    settings!("switch", "configurations of the switch (`assay switch`)"),
    settings!("rules", "rules of comparison (`assay spe --rules`)"),
    settings!("proxy", "descriptions of proxies (`--proxy FILE.toml`)"),
    settings!("case", "conformance cases (`assay conform --cases`)"),
];

const DOCUMENTS: [SchemaKind; 8] = [
    SchemaKind::document(
        "summary",
        "the summary of a run (`summary.json`, `assay report --json`)",
        Summary::json_schema,
    ),
    SchemaKind::document(
        "comparison",
        "comparisons (`comparison.json`, `assay compare --json`)",
        Comparison::json_schema,
    ),
    SchemaKind::document(
        "conform",
        "results of conformance cases (`assay conform --json`)",
        assay_conform::document::Document::json_schema,
    ),
    SchemaKind::document(
        "logs",
        "analyses of access logs (`assay logs --json`)",
        assay_logs::document::LogsDocument::json_schema,
    ),
    SchemaKind::document(
        "size",
        "sizes of caches (`assay size --json`)",
        assay_logs::size::document::SizeDocument::json_schema,
    ),
    SchemaKind::document("replay", "results of a replay (`assay replay --json`)", ReplayResults::json_schema),
    SchemaKind::document("spe", "evaluations (`assay spe report --json`)", spe::Evaluation::json_schema),
    SchemaKind::document(
        "policies",
        "policies on a cluster (`assay simulate --json`)",
        policies::json_schema,
    ),
];

/// The schema of a kind of document, which the commands that write it print with `--schema`.
///
/// # Panics
///
/// If there is no such kind: it is a name in the code.
pub fn of_document(name: &str) -> String {
    DOCUMENTS.iter().find(|kind| kind.name == name).expect("the name is one of those above").text()
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
            let found = kinds().find(|kind| kind.name == wanted);
            let meant = or_did_you_mean(wanted, kinds().map(|kind| kind.name));
            let kind = found.ok_or_else(|| {
                Failure::usage(anyhow!("there is no schema `{wanted}`{meant}"))
                    .hint("`assay schema` lists them")
            })?;
            kind.text()
        }
    };
    output::stdout(&text)?;
    Ok(Exit::Fine)
}

fn lines(kinds: &[SchemaKind]) -> String {
    kinds.iter().map(|kind| format!("  {:<12} {}\n", kind.name, kind.about)).collect()
}
