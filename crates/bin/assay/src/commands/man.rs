//! `assay man`: manual pages, for `man` to show or to be installed.

use std::path::{Path, PathBuf};

use anyhow::{Context, anyhow};
use assay_base::settings::suggest::or_did_you_mean;
use clap::Args;

use crate::exit::{Exit, Failure};
use crate::manual::{self, ManualPage};
use crate::output;

const EXAMPLES: &str = "\
Examples:
  assay man run | man -l -          the page of `assay run`
  assay man --dir ~/.local/share/man/man1
      all pages, where `man assay-run` finds them";

/// Flags of `assay man`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct ManArgs {
    /// The command whose page is printed, like `run` or `lab show` [default: the page of `assay`]
    #[arg(conflicts_with = "dir")]
    pub command: Vec<String>,
    /// Write all pages into DIR
    #[arg(long, value_name = "DIR")]
    pub dir: Option<PathBuf>,
}

/// Prints a page, or writes all of them. `definition` is clap's definition of the command line.
pub fn man(args: &ManArgs, definition: clap::Command) -> Result<Exit, Failure> {
    let pages =
        manual::pages(definition).context("cannot write the manual pages").map_err(Failure::failed)?;
    match &args.dir {
        Some(dir) => write(&pages, dir)?,
        None => output::stdout(&find_page(&pages, &args.command)?.text)?,
    }
    Ok(Exit::Fine)
}

fn write(pages: &[ManualPage], dir: &Path) -> Result<(), Failure> {
    let attempt = || format!("cannot write manual pages into {}", dir.display());
    output::check_directory(Some(dir))?;
    std::fs::create_dir_all(dir).with_context(attempt).map_err(Failure::failed)?;
    for page in pages {
        std::fs::write(dir.join(&page.file), &page.text).with_context(attempt).map_err(Failure::failed)?;
    }
    output::stdout(&format!("{} manual pages in {}\n", pages.len(), dir.display()))
}

/// The page of a command.
fn find_page<'a>(pages: &'a [ManualPage], command: &[String]) -> Result<&'a ManualPage, Failure> {
    // `assay man assay-run` and `assay man assay run` mean the same as `assay man run`.
    let words = command.join("-");
    let wanted = words.strip_prefix("assay-").unwrap_or(&words);
    let short = |page: &'a ManualPage| {
        let name = page.file.trim_end_matches(".1");
        name.strip_prefix("assay-").unwrap_or("")
    };
    let wanted = if wanted == "assay" { "" } else { wanted };
    pages.iter().find(|page| short(page) == wanted).ok_or_else(|| {
        let near = or_did_you_mean(wanted, pages.iter().map(short));
        let command = command.join(" ");
        Failure::usage(anyhow!("there is no manual page of `assay {command}`{near}"))
            .hint("`assay --help` lists the commands")
    })
}
