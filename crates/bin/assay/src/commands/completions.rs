//! `assay completions`: the script with which a shell completes what is typed after `assay`.

use anyhow::Context;
use clap::Args;

use crate::completion::{self, Shell};
use crate::exit::{Exit, Failure};
use crate::output;

const EXAMPLES: &str = "\
Examples:
  source <(assay completions bash)       in this shell; in ~/.bashrc: always
  source <(assay completions zsh)        in ~/.zshrc, after compinit
  assay completions fish | source        in ~/.config/fish/config.fish
  assay completions bash > /etc/bash_completion.d/assay
      for all users";

/// Flags of `assay completions`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct CompletionsArgs {
    /// The shell that loads the script
    pub shell: Shell,
}

pub fn completions(args: &CompletionsArgs) -> Result<Exit, Failure> {
    let script =
        completion::script(args.shell).context("cannot write the script").map_err(Failure::failed)?;
    output::stdout(&script)?;
    Ok(Exit::Fine)
}
