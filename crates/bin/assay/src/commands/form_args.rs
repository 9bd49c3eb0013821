//! The forms of a result that is one document: text, JSON, a page.

use std::path::PathBuf;

use clap::Args;

/// Flags of commands that analyse something and have one result.
#[derive(Debug, Args)]
pub struct FormArgs {
    /// The result as one JSON document
    #[arg(long)]
    pub json: bool,
    /// Write the result as one HTML page that needs no network
    #[arg(long, value_name = "FILE")]
    pub html: Option<PathBuf>,
    /// Write the result to FILE; `-` is standard output
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
}
