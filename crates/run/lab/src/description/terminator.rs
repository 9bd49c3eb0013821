//! A program that speaks TLS to robots for a proxy that cannot: hitch in front of Varnish.

use serde::Deserialize;

use super::{Program, Version};
use crate::process::find_program;

/// A TLS terminator: it listens where robots connect, and passes what it decrypts on to the proxy. It runs only where robots speak TLS
/// to the proxy, from before that is ready to the end, and counts as part of it.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct TlsTerminator {
    /// What people call it.
    pub title: String,
    /// Debian package that brings it, named when it is missing.
    #[serde(default)]
    pub package: Option<String>,
    /// How its version is found.
    pub version: Version,
    /// A file or a socket of the proxy, below the work directory, that must be there before it is started.
    #[serde(default)]
    pub after: Option<String>,
    /// Program and arguments. *Templates;* an argument that comes out empty is left out.
    pub command: Vec<String>,
}

impl TlsTerminator {
    /// Its program, where that is not installed on this machine.
    pub fn missing(&self) -> Option<&str> {
        self.command.first().map(String::as_str).filter(|program| find_program(program).is_none())
    }

    pub fn program(&self) -> Program {
        Program { command: self.command.clone(), environment: Default::default() }
    }
}
