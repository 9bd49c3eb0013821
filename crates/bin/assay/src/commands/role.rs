//! `assay role`: one part of a run as a process of its own; started by `assay run` and no one else.

use std::path::{Path, PathBuf};

use anyhow::Context;
use clap::{Args, ValueEnum};
use serde::de::DeserializeOwned;

use crate::exit::{Exit, Failure};

/// Which part.
#[derive(Debug, Clone, Copy, ValueEnum)]
pub enum Role {
    /// All robots.
    Robots,
    /// All origins.
    Origins,
    /// The built-in proxy.
    Proxy,
    /// A real proxy, for an agent.
    Target,
    /// All links.
    Links,
    /// The Collector of simultaneous proxy evaluation.
    Collector,
    /// The Multiplier of simultaneous proxy evaluation.
    Multiplier,
}

/// Flags of `assay role`.
#[derive(Debug, Args)]
pub struct RoleArgs {
    /// Which part
    pub role: Role,
    /// What it is told, as JSON
    pub spec: PathBuf,
}

/// Plays a role until its parent is gone or has heard everything.
pub fn role(args: &RoleArgs) -> Result<Exit, Failure> {
    match args.role {
        Role::Robots => assay_load::robot::run(read(&args.spec)?).map_err(Failure::failed)?,
        Role::Origins => assay_load::origin::run(read(&args.spec)?).map_err(Failure::failed)?,
        Role::Target => assay_lab::target_role::run(&read(&args.spec)?).map_err(Failure::failed)?,
        Role::Links => assay_lab::network::role::run(read(&args.spec)?).map_err(Failure::failed)?,
        Role::Collector => assay_spe::collector::run(&read(&args.spec)?).map_err(Failure::failed)?,
        Role::Multiplier => assay_spe::multiplier::run(read(&args.spec)?).map_err(Failure::failed)?,
        Role::Proxy => assay_proxy::run(read(&args.spec)?).map_err(Failure::failed)?,
    }
    Ok(Exit::Fine)
}

/// Specification of the role.
fn read<T: DeserializeOwned>(path: &Path) -> Result<T, Failure> {
    let attempt = || format!("cannot read what the role is told in {}", path.display());
    let text = assay_base::files::bytes(path, assay_base::files::DOCUMENT_MAX)
        .with_context(attempt)
        .map_err(Failure::failed)?;
    serde_json::from_slice(&text).with_context(attempt).map_err(Failure::failed)
}
