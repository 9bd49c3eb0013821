//! `assay proxies`: the proxies that can be named, whether the program is there, and what can be chosen about them.

use std::path::PathBuf;

use anyhow::Context;
use assay_lab::Description;
use assay_proxy::spec::{Chosen, Setting};
use clap::{Args, Subcommand};
use serde::Serialize;

use crate::exit::{Exit, Failure};
use crate::output;

const EXAMPLES: &str = "\
Examples:
  assay proxies
  assay proxies --proxy-dir mine
      with descriptions of yours
  assay proxies show nginx   what can be chosen about it, and how it is driven
  assay proxies show nginx >mine.toml
      the beginning of a description of your own

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
    /// What to do instead
    #[command(subcommand)]
    pub what: Option<ProxiesCommand>,
}

/// What else can be done.
#[derive(Debug, Subcommand)]
pub enum ProxiesCommand {
    /// Print a description: to see what can be chosen, or to start one of your own from
    Show {
        /// Its name, or the path of a description FILE.toml
        name: String,
        /// Look for descriptions in DIR too
        #[arg(long, value_name = "DIR")]
        proxy_dir: Vec<PathBuf>,
    },
}

/// The list as JSON.
#[derive(Debug, Serialize)]
struct ProxiesDocument {
    schema: &'static str,
    proxies: Vec<ProxyEntry>,
}

/// One proxy that can be named.
#[derive(Debug, Serialize)]
struct ProxyEntry {
    name: String,
    title: String,
    modes: Vec<&'static str>,
    /// Media that it keeps objects on.
    stores: Vec<&'static str>,
    /// The legs on which it can speak TLS.
    tls: Vec<&'static str>,
    /// Settings beside memory, disk and processors.
    settings: Vec<SettingChoice>,
    /// None: it is not there.
    version: Option<String>,
    /// Obstacle to using it.
    missing: Option<String>,
    /// The program that it lacks to speak TLS to robots.
    #[serde(skip_serializing_if = "Option::is_none")]
    missing_for_tls: Option<String>,
}

/// One of a proxy's own settings.
#[derive(Debug, Serialize)]
struct SettingChoice {
    name: String,
    about: String,
    allowed: String,
    default: String,
}

/// Lists proxies, or prints the description of one.
pub fn proxies(args: &ProxiesArgs) -> Result<Exit, Failure> {
    match &args.what {
        Some(ProxiesCommand::Show { name, proxy_dir }) => {
            let dirs: Vec<PathBuf> = args.proxy_dir.iter().chain(proxy_dir).cloned().collect();
            let description = assay_lab::find(name, &dirs).map_err(Failure::usage)?;
            output::stdout(&description.source)?;
            Ok(Exit::Fine)
        }
        None => list(args),
    }
}

fn list(args: &ProxiesArgs) -> Result<Exit, Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .context("cannot query the versions of proxies")
        .map_err(Failure::failed)?;
    let builtin = own("builtin", "the caching proxy that Assay brings", &["reverse", "forward"], &["memory"]);
    let direct = own("direct", "no proxy: robots speak to the origins", &["direct"], &[]);
    let mut proxies = vec![
        ProxyEntry {
            settings: Chosen::SETTINGS.map(choosable_of_builtin).into(),
            tls: vec!["robots", "origins"],
            ..builtin
        },
        ProxyEntry { tls: vec!["origins"], ..direct },
    ];
    let mut wrong = Vec::new();
    for description in assay_lab::described(&args.proxy_dir) {
        match description {
            Ok(description) => proxies.push(runtime.block_on(entry(&description))),
            Err(error) => wrong.push(error),
        }
    }
    let text = if args.json {
        output::json(&ProxiesDocument { schema: SCHEMA, proxies })?
    } else {
        proxies.iter().map(text).collect()
    };
    output::stdout(&text)?;
    match wrong.into_iter().next() {
        Some(error) => Err(Failure::usage(error)),
        None => Ok(Exit::Fine),
    }
}

/// A target that is always there.
fn own(name: &str, title: &str, modes: &[&'static str], stores: &[&'static str]) -> ProxyEntry {
    ProxyEntry {
        name: name.into(),
        title: title.into(),
        modes: modes.to_vec(),
        stores: stores.to_vec(),
        tls: Vec::new(),
        settings: Vec::new(),
        version: Some(env!("CARGO_PKG_VERSION").to_owned()),
        missing: None,
        missing_for_tls: None,
    }
}

/// Settings of the built-in proxy.
fn choosable_of_builtin(setting: Setting) -> SettingChoice {
    SettingChoice {
        name: setting.name.into(),
        about: setting.about.into(),
        allowed: setting.allowed(),
        default: setting.words[0].into(),
    }
}

/// A described proxy, and whether its program is there.
async fn entry(description: &Description) -> ProxyEntry {
    let install = install(description.package.as_deref());
    let (version, missing) = match assay_lab::real_proxy::version(description).await {
        Ok(version) => (Some(version), None),
        Err(why) => (None, Some(format!("{why}{install}"))),
    };
    ProxyEntry {
        name: description.name.clone(),
        title: description.title.clone(),
        modes: description.modes.iter().map(|mode| mode.name()).collect(),
        stores: description.capacity.stores.iter().map(|store| store.name()).collect(),
        tls: description.tls.iter().map(|leg| leg.name()).collect(),
        settings: choosable(description),
        version,
        missing,
        missing_for_tls: missing_for_tls(description),
    }
}

/// Command that installs a package, in brackets.
fn install(package: Option<&str>) -> String {
    package.map_or(String::new(), |name| format!(" (apt install {name})"))
}

/// The program that speaks TLS to robots for a proxy, and how to get it, where it is not installed.
fn missing_for_tls(description: &Description) -> Option<String> {
    let terminator = description.tls_terminator.as_ref()?;
    Some(format!("{}{}", terminator.missing()?, install(terminator.package.as_deref())))
}

fn choosable(description: &Description) -> Vec<SettingChoice> {
    let settings = description.settings.iter();
    let choosable = settings.map(|(name, setting)| SettingChoice {
        name: name.clone(),
        about: setting.about.clone(),
        allowed: setting.allowed(),
        default: setting.default.clone(),
    });
    choosable.collect()
}

/// A line: name, version, modes, stores, legs with TLS, and what it is or what stands in the way.
fn text(entry: &ProxyEntry) -> String {
    // Debian's revision says nothing about behaviour, and is long.
    let version = entry.version.as_deref().unwrap_or("–").split(['-', '+']).next().unwrap_or("–");
    let about = entry.missing.as_ref().unwrap_or(&entry.title);
    let (modes, stores) = (entry.modes.join(", "), entry.stores.join(", "));
    let tls =
        if entry.tls.is_empty() { "no TLS".to_owned() } else { format!("TLS: {}", entry.tls.join(", ")) };
    let lacks = entry.missing_for_tls.as_ref().filter(|_| entry.missing.is_none());
    let lacks = lacks.map_or(String::new(), |lacks| format!("; over TLS, it needs {lacks}"));
    format!("{:<15}{version:<9}{modes:<18}{stores:<14}{tls:<22}{about}{lacks}\n", entry.name)
}
