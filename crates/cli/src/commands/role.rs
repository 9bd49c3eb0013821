//! `assay role`: one part of a run as a process of its own; started by `assay run` and no one else.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

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
}

/// Flags of `assay role`.
#[derive(Debug, Args)]
pub struct RoleArgs {
    /// Which part
    pub role: Role,
    /// What it is told, as JSON
    pub spec: PathBuf,
}

/// Does it.
pub fn role(_args: &RoleArgs) -> Result<Exit, Failure> {
    Ok(Exit::Fine)
}
