//! How a real proxy is driven: its configuration, its commands, its counters, what it is known to do.
//!
//! A description is a TOML file. Those of Varnish, nginx and Squid are compiled in; a user's own of the same name
//! wins over them.

use std::path::{Path, PathBuf};

use serde::Deserialize;

/// How a proxy is driven.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Description {
    /// What it is called on the command line.
    pub name: String,
    /// What people call it.
    pub title: String,
}

/// A description that cannot be used: which file, which line, which field, and what to do.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct DescriptionError {
    /// The whole message.
    pub message: String,
}

/// Every proxy that can be named: those compiled in and those found in `user_dirs`, which win.
pub fn described(user_dirs: &[PathBuf]) -> Vec<Result<Description, DescriptionError>> {
    let _ = user_dirs;
    Vec::new()
}

/// The description called `name`, or the one in the file `name` when it ends in `.toml`.
pub fn find(name: &str, user_dirs: &[PathBuf]) -> Result<Description, DescriptionError> {
    let _ = (Path::new(name), user_dirs);
    Err(DescriptionError { message: format!("no proxy is called {name}") })
}
