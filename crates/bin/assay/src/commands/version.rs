//! `assay version`: what this program is, for people and for scripts.

use std::ffi::OsString;

use clap::Args;
use serde::Serialize;

use crate::exit::{Exit, Failure};
use crate::output;

/// Version of the JSON document.
const SCHEMA: &str = "assay-version/1";

/// Flags of `assay version`.
#[derive(Debug, Args)]
pub struct VersionArgs {
    /// The version and how the program was built, as one JSON document
    #[arg(long)]
    pub json: bool,
}

/// Version and build of the program.
#[derive(Debug, Serialize)]
struct VersionDocument {
    schema: &'static str,
    version: &'static str,
    /// `linux`.
    os: &'static str,
    /// `x86_64`.
    arch: &'static str,
    /// The C library: `gnu` or `musl`.
    libc: &'static str,
    /// True if it needs no libraries of the system.
    r#static: bool,
    /// False: a build for development, whose figures say little.
    optimised: bool,
}

pub fn version(args: &VersionArgs) -> Result<Exit, Failure> {
    let version = env!("CARGO_PKG_VERSION");
    if !args.json {
        output::stdout(&format!("assay {version}\n"))?;
        return Ok(Exit::Fine);
    }
    let document = VersionDocument {
        schema: SCHEMA,
        version,
        os: std::env::consts::OS,
        arch: std::env::consts::ARCH,
        libc: if cfg!(target_env = "musl") { "musl" } else { "gnu" },
        r#static: cfg!(target_feature = "crt-static"),
        optimised: !cfg!(debug_assertions),
    };
    output::stdout(&output::json(&document)?)?;
    Ok(Exit::Fine)
}

/// `assay --version --json` is `assay version --json`: clap would print the version at the first of the two flags.
pub fn typed_as_flags(typed: Vec<OsString>) -> Vec<OsString> {
    let [program, one, other] = typed.as_slice() else { return typed };
    let is_version = |word: &OsString| word == "--version" || word == "-V";
    let is_json = |word: &OsString| word == "--json";
    if (is_version(one) && is_json(other)) || (is_json(one) && is_version(other)) {
        return vec![program.clone(), "version".into(), "--json".into()];
    }
    typed
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_flags_for_the_version_as_json_are_the_command_for_it() {
        let rewritten = |line: &str| {
            let words = typed_as_flags(line.split(' ').map(OsString::from).collect());
            words.join(std::ffi::OsStr::new(" ")).into_string().unwrap()
        };
        assert_eq!(rewritten("assay --version --json"), "assay version --json");
        assert_eq!(rewritten("assay --json -V"), "assay version --json");
        for line in ["assay --version", "assay run --json", "assay run demo --json"] {
            assert_eq!(rewritten(line), line);
        }
    }
}
