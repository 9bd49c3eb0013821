//! `assay proxies`: which proxies can be named, and is the program there?

use std::path::PathBuf;

use anyhow::Context;
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

/// The list as JSON.
#[derive(Debug, Serialize)]
struct Document {
    schema: &'static str,
    proxies: Vec<Entry>,
}

/// One proxy that can be named.
#[derive(Debug, Serialize)]
struct Entry {
    name: String,
    title: String,
    modes: Vec<&'static str>,
    /// None: it is not there.
    version: Option<String>,
    /// What stands in the way of using it.
    missing: Option<String>,
}

/// Lists proxies.
pub fn proxies(args: &ProxiesArgs) -> Result<Exit, Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .context("cannot ask proxies for their versions")
        .map_err(Failure::failed)?;
    let mut proxies = vec![
        own("builtin", "the caching proxy that Assay brings", "reverse, forward"),
        own("direct", "no proxy: robots speak to the origins", "direct"),
    ];
    let mut wrong = Vec::new();
    for description in assay_lab::described(&args.proxy_dir) {
        match description {
            Ok(description) => proxies.push(runtime.block_on(entry(&description))),
            Err(error) => wrong.push(error),
        }
    }
    let text = if args.json {
        output::json(&Document { schema: SCHEMA, proxies })?
    } else {
        proxies.iter().map(words).collect()
    };
    output::stdout(&text)?;
    match wrong.into_iter().next() {
        Some(error) => Err(Failure::usage(error)),
        None => Ok(Exit::Fine),
    }
}

/// A target that is always there.
fn own(name: &str, title: &str, mode: &'static str) -> Entry {
    let version = Some(env!("CARGO_PKG_VERSION").to_owned());
    Entry { name: name.into(), title: title.into(), modes: vec![mode], version, missing: None }
}

/// A described proxy, and whether its program is there.
async fn entry(description: &Description) -> Entry {
    let install = description.package.as_ref().map_or(String::new(), |name| format!(" (apt install {name})"));
    let (version, missing) = match assay_lab::real::version(description).await {
        Ok(version) => (Some(version), None),
        Err(why) => (None, Some(format!("{why}{install}"))),
    };
    Entry {
        name: description.name.clone(),
        title: description.title.clone(),
        modes: description.modes.iter().map(|mode| mode.name()).collect(),
        version,
        missing,
    }
}

/// A line: name, version, modes, and what it is or what stands in the way.
fn words(entry: &Entry) -> String {
    let version = entry.version.as_deref().unwrap_or("–");
    let about = entry.missing.as_ref().unwrap_or(&entry.title);
    format!("{:<12}{version:<12}{:<18}{about}\n", entry.name, entry.modes.join(", "))
}
