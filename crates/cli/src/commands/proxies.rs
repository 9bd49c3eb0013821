//! `assay proxies`: which proxies can be named, and is the program there?

use std::path::PathBuf;

use assay_lab::Description;
use clap::Args;
use serde::Serialize;

use crate::exit::{Exit, Failure};
use crate::output;

const EXAMPLES: &str = "\
Examples:
  assay proxies
  assay proxies --proxy-dir mine                 with descriptions of yours

A proxy that runs already needs no description: assay run demo --proxy HOST:PORT";

/// Version of the JSON document.
const SCHEMA: &str = "assay-proxies/1";

/// Flags of `assay proxies`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct ProxiesArgs {
    /// Look for descriptions in DIR too; they win over bundled ones of the same name
    #[arg(long, value_name = "DIR")]
    pub proxy_dir: Vec<PathBuf>,
    /// The list as one JSON document
    #[arg(long)]
    pub json: bool,
}

/// Lists proxies.
pub fn proxies(args: &ProxiesArgs) -> Result<Exit, Failure> {
    let _ = (args, SCHEMA);
    Ok(Exit::Fine)
}
