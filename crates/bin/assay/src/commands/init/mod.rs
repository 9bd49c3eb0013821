//! `assay init`: writes an experiment or a workload with comments, to begin with. On a terminal, it prompts for what the
//! flags leave open.

mod experiment;
mod prompt;
mod workload;

use std::io::{BufRead, IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, anyhow};
use clap::Args;

use self::prompt::prompt;
use crate::exit::{Exit, Failure};
use crate::{bundled, output, overrides, units};

const EXAMPLES: &str = "\
Examples:
  assay init                 prompts for four things
  assay init --yes           an experiment with the installed proxies
  assay init compare.toml --workload image --proxy varnish --proxy nginx
  assay init mine.pg --rate 500 --size 20KB --revisits 80%
      a workload";

/// Flags of `assay init`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct InitArgs {
    /// The file to write: an experiment NAME.toml or a workload NAME.pg [default: experiment.toml]
    pub file: Option<PathBuf>,
    /// What an experiment's proxies are compared on: a bundled workload, or a PGL file [default: site]
    #[arg(long, value_name = "WORKLOAD", help_heading = "Experiment")]
    pub workload: Option<String>,
    /// A proxy to compare; may be given more than once [default: those that are installed]
    #[arg(long, value_name = "NAME", help_heading = "Experiment")]
    pub proxy: Vec<String>,
    /// The length of each run [default: 60s]
    #[arg(long, value_name = "DUR", value_parser = units::duration)]
    pub length: Option<Duration>,
    /// Requests per second of a workload, at its peak [default: 200]
    #[arg(long, value_name = "N", value_parser = overrides::rate, help_heading = "Workload")]
    pub rate: Option<f64>,
    /// Mean size of a workload's objects [default: 13KB]
    #[arg(long, value_name = "SIZE", value_parser = units::size, help_heading = "Workload")]
    pub size: Option<u64>,
    /// Share of a workload's requests that are for an object that was requested before: the most that a cache can reach
    /// [default: 75%]
    #[arg(long, value_name = "SHARE", value_parser = share, help_heading = "Workload")]
    pub revisits: Option<f64>,
    /// No prompts: what no flag says has its default
    #[arg(long, short = 'y')]
    pub yes: bool,
}

/// Reads `75%` or `0.75`.
fn share(text: &str) -> Result<f64, String> {
    let number = match text.strip_suffix('%') {
        Some(percent) => percent.trim().parse::<f64>().map(|percent| percent / 100.0),
        None => text.parse::<f64>(),
    };
    let share = number.ok().filter(|share| (0.0..=0.99).contains(share));
    share.ok_or_else(|| format!("`{text}` is not a share from 0% to 99%"))
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum InitKind {
    Experiment,
    Workload,
}

impl InitKind {
    /// As the name of a file says it.
    fn of(file: &Path) -> Result<Self, Failure> {
        match file.extension().and_then(|ending| ending.to_str()) {
            Some("toml") => Ok(InitKind::Experiment),
            Some("pg") => Ok(InitKind::Workload),
            _ => Err(Failure::usage(anyhow!("cannot tell what {} is to be", file.display()))
                .hint("name an experiment NAME.toml, or a workload NAME.pg")),
        }
    }
}

/// Writes the file, and says what to do with it.
pub fn init(args: &InitArgs) -> Result<Exit, Failure> {
    let prompts = !args.yes && std::io::stdin().is_terminal() && output::is_watched();
    let mut person: Option<Prompter> = prompts.then(Prompter::at_the_terminal);
    let (file, text) = made(args, person.as_mut())?;
    if file.exists() {
        return Err(Failure::usage(anyhow!("{} exists already", file.display()))
            .hint("name another file, or remove this one"));
    }
    output::check_result(Some(&file))?;
    output::result(&text, Some(&file))?;
    let shown = file.display();
    let next = match InitKind::of(&file)? {
        InitKind::Experiment => format!(
            "assay lab show {shown}   what it would do\nassay lab {shown}        run it, then compare\n"
        ),
        InitKind::Workload => {
            format!("assay check {shown}      what it would do\nassay run {shown}        run it\n")
        }
    };
    output::stdout(&format!("wrote {shown}; change it as you like, then:\n{next}"))?;
    Ok(Exit::Fine)
}

/// The person at the prompts.
struct Prompter {
    input: Box<dyn BufRead>,
    output: Box<dyn Write>,
}

impl Prompter {
    fn at_the_terminal() -> Self {
        Self { input: Box::new(std::io::stdin().lock()), output: Box::new(std::io::stderr()) }
    }
}

/// The file and its text: from flags, from prompts where there is a person, else from defaults.
fn made(args: &InitArgs, mut person: Option<&mut Prompter>) -> Result<(PathBuf, String), Failure> {
    let file = match &args.file {
        Some(file) => file.clone(),
        None => choose(
            "Which file? (NAME.toml: an experiment, NAME.pg: a workload)",
            "experiment.toml",
            person.as_deref_mut(),
            |text| {
                let path = PathBuf::from(text);
                InitKind::of(&path).map(|_| path).map_err(|failure| format!("{:#}", failure.error))
            },
        )?,
    };
    let length = |person: Option<&mut Prompter>| match args.length {
        Some(length) => Ok(length),
        None => choose("How long is each run?", "60s", person, |text| {
            units::duration(text).map_err(|error| error.to_string())
        }),
    };
    let text = match InitKind::of(&file)? {
        InitKind::Experiment => {
            let workload = match &args.workload {
                Some(workload) => workload.clone(),
                None => choose(
                    "Which workload? (`assay workloads` lists them)",
                    "site",
                    person.as_deref_mut(),
                    known_workload,
                )?,
            };
            let proxies = match args.proxy.as_slice() {
                [] => {
                    let installed = experiment::installed()?.join(" ");
                    choose("Which proxies?", &installed, person.as_deref_mut(), |text| {
                        experiment::choose(
                            &text.split([' ', ',']).filter(|name| !name.is_empty()).collect::<Vec<_>>(),
                        )
                    })?
                }
                named => experiment::choose(&named.iter().map(String::as_str).collect::<Vec<_>>())
                    .map_err(|why| Failure::usage(anyhow!(why)))?,
            };
            experiment::text(&file.display().to_string(), &workload, &proxies, length(person)?)
        }
        InitKind::Workload => {
            let rate = match args.rate {
                Some(rate) => rate,
                None => {
                    choose("How many requests per second?", "200", person.as_deref_mut(), overrides::rate)?
                }
            };
            let size = match args.size {
                Some(size) => size,
                None => {
                    choose("How large is an object, on average?", "13KB", person.as_deref_mut(), |text| {
                        units::size(text).map_err(|error| error.to_string())
                    })?
                }
            };
            let revisits = match args.revisits {
                Some(share) => share,
                None => choose(
                    "Which share of requests is for an object that was requested before?",
                    "75%",
                    person,
                    share,
                )?,
            };
            let length = args.length.unwrap_or(workload::LENGTH);
            workload::text(
                &file.display().to_string(),
                workload::TrafficShape { rate, size, revisits, length },
            )
        }
    };
    Ok((file, text))
}

/// A bundled workload, or a file that is there.
fn known_workload(text: &str) -> Result<String, String> {
    if bundled::find(text).is_some() || Path::new(text).is_file() {
        return Ok(text.to_owned());
    }
    Err(format!("no bundled workload and no file is called {text}"))
}

/// Value typed at a prompt, or the default where nobody is there.
fn choose<T>(
    words: &str,
    default: &str,
    person: Option<&mut Prompter>,
    read: impl Fn(&str) -> Result<T, String>,
) -> Result<T, Failure> {
    match person {
        None => read(default).map_err(|why| Failure::usage(anyhow!(why))),
        Some(person) => prompt(words, default, &mut person.input, &mut person.output, read)
            .context("cannot read from the terminal")
            .map_err(Failure::failed),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_share_is_a_percentage_or_a_number() {
        assert_eq!((share("75%"), share("0.5")), (Ok(0.75), Ok(0.5)));
        assert!(share("100%").is_err() && share("x").is_err() && share("-1").is_err());
    }

    #[test]
    fn the_name_of_a_file_says_what_it_is() {
        assert_eq!(InitKind::of(Path::new("a.toml")).ok(), Some(InitKind::Experiment));
        assert_eq!(InitKind::of(Path::new("a.pg")).ok(), Some(InitKind::Workload));
        assert!(InitKind::of(Path::new("a")).is_err());
    }
}
