//! Shell completions after `assay`: commands and flags from clap's own definition, and the names that are known only when
//! Tab is pressed (workloads, proxies and their settings, experiments, clusters, runs).
//!
//! *Does not:* write the scripts that shells load; those come from `clap_complete`, and call the program for each completion.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

use clap_complete::engine::{ArgValueCompleter, CompletionCandidate, PathCompleter, ValueCompleter};
use clap_complete::env::{Bash, CompleteEnv, EnvCompleter, Fish, Shells, Zsh};

use crate::bundled::{self, Bundled};
use crate::clusters::CLUSTERS;
use crate::experiments::EXPERIMENTS;
use crate::run_name::RUNS;

/// The variable of the environment in which a shell's script names its shell. Not `COMPLETE`, which other programs set too.
const VARIABLE: &str = "ASSAY_COMPLETE";

/// The shells for which there is a script.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Shell {
    /// GNU Bash, 4 or later
    Bash,
    /// Z shell
    Zsh,
    /// fish
    Fish,
}

/// End of the script for zsh. A file `_assay` in a directory of `fpath` becomes a function of that name when Tab is
/// pressed for the first time; it has to complete, too, and not only define the function.
const ZSH_FROM_FPATH: &str =
    r#"if [[ "${funcstack[1]}" == _assay ]]; then _clap_dynamic_completer_assay "$@"; fi"#;

/// The text that a shell loads.
pub fn script(shell: Shell) -> std::io::Result<String> {
    let writer: &dyn EnvCompleter = match shell {
        Shell::Bash => &Bash,
        Shell::Zsh => &Zsh,
        Shell::Fish => &Fish,
    };
    let mut script = Vec::new();
    writer.write_registration(VARIABLE, "assay", "assay", "assay", &mut script)?;
    let mut script = String::from_utf8_lossy(&script).trim_end().to_owned() + "\n";
    if shell == Shell::Zsh {
        script = script + ZSH_FROM_FPATH + "\n";
    }
    Ok(script)
}

/// Prints what completes the words after `--` if a shell's script has started the program; true if it has. `definition` is
/// clap's definition of the command line.
pub fn completed(typed: &[OsString], definition: fn() -> clap::Command) -> Result<bool, clap::Error> {
    let directory = std::env::current_dir().ok();
    CompleteEnv::with_factory(|| with_names(definition(), ""))
        .var(VARIABLE)
        .shells(Shells(&[&Bash, &Zsh, &Fish]))
        .try_complete(typed, directory.as_deref())
}

/// Kind of names that a value of the command line is chosen from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Names {
    /// A bundled workload, or a PGL file.
    Workloads,
    /// A bundled experiment, or a TOML file.
    Experiments,
    /// A bundled cluster, or a TOML file.
    Clusters,
    /// A target: the built-in proxy, a described one, or a description's file.
    Targets,
    /// A described proxy, or a description's file.
    Proxies,
    /// `NAME=VALUE` for one of a proxy's own settings.
    Settings,
    /// The directory of a run or of an experiment.
    Runs,
}

/// Kind of names for an argument of a command (`lab show`, without `assay`); none: they are not listed anywhere.
fn names(command: &str, argument: &str) -> Option<Names> {
    Some(match (command, argument) {
        ("run" | "robots" | "origins" | "check", "workload")
        | ("workloads show", "name")
        | ("init", "workload") => Names::Workloads,
        ("lab" | "lab show", "experiment") | ("experiments show", "name") => Names::Experiments,
        ("simulate" | "cluster", "cluster") => Names::Clusters,
        ("proxies show", "name") => Names::Proxies,
        (_, "proxy") => Names::Targets,
        (_, "settings") => Names::Settings,
        ("report", "run_dir") | ("open", "run") | ("compare" | "merge" | "runs remove", "runs") => {
            Names::Runs
        }
        _ => return None,
    })
}

/// A command and all below it, with what completes their values. `path`: how it is called, without `assay`.
fn with_names(command: clap::Command, path: &str) -> clap::Command {
    let at = path.to_owned();
    let command = command.mut_args(|argument| match names(&at, argument.get_id().as_str()) {
        Some(named) => {
            argument.add(ArgValueCompleter::new(move |current: &OsStr| candidates(named, current)))
        }
        None => argument,
    });
    command.mut_subcommands(|inner| {
        let path = format!("{path} {}", inner.get_name());
        with_names(inner, path.trim_start())
    })
}

/// Completions of `current`: names first, then files.
fn candidates(names: Names, current: &OsStr) -> Vec<CompletionCandidate> {
    let mut found: Vec<CompletionCandidate> = match names {
        Names::Workloads => of(bundled::all()),
        Names::Experiments => of(EXPERIMENTS),
        Names::Clusters => of(CLUSTERS),
        Names::Targets => {
            let own = [("builtin", "the caching proxy that Assay brings"), ("direct", "no proxy")];
            own.into_iter().map(|(name, about)| candidate(name, about)).chain(proxies()).collect()
        }
        Names::Proxies => proxies().collect(),
        Names::Settings => return starting(settings(&named_proxy(std::env::args_os())), current),
        Names::Runs => runs(Path::new(RUNS)),
    };
    found = starting(found, current);
    let files = match names {
        Names::Runs => PathCompleter::dir().complete(current),
        Names::Workloads => ending(".pg").complete(current),
        _ => ending(".toml").complete(current),
    };
    found.extend(files);
    found
}

/// Files with this ending, and the directories in which they may be.
fn ending(ending: &'static str) -> PathCompleter {
    PathCompleter::any().filter(move |path: &Path| path.is_dir() || path.to_string_lossy().ends_with(ending))
}

fn starting(mut all: Vec<CompletionCandidate>, current: &OsStr) -> Vec<CompletionCandidate> {
    let begin = current.as_encoded_bytes();
    all.retain(|candidate| candidate.get_value().as_encoded_bytes().starts_with(begin));
    all
}

fn candidate(name: impl Into<OsString>, about: impl Into<clap::builder::StyledStr>) -> CompletionCandidate {
    CompletionCandidate::new(name).help(Some(about.into()))
}

fn of(bundled: impl IntoIterator<Item = &'static Bundled>) -> Vec<CompletionCandidate> {
    bundled.into_iter().map(|one| candidate(one.name, one.about)).collect()
}

/// Proxies with a description; those that are broken are left to the commands that read them.
fn proxies() -> impl Iterator<Item = CompletionCandidate> {
    let described = assay_lab::described(&[]).into_iter().flatten();
    described.map(|description| candidate(description.name, description.title))
}

/// The settings of a proxy as `NAME=`, or as `NAME=VALUE` where only certain words can be chosen.
fn settings(proxy: &str) -> Vec<CompletionCandidate> {
    if proxy == "builtin" {
        let of = |setting: assay_proxy::spec::Setting| {
            setting.words.iter().map(move |word| candidate(format!("{}={word}", setting.name), setting.about))
        };
        return assay_proxy::spec::Chosen::SETTINGS.into_iter().flat_map(of).collect();
    }
    let Ok(description) = assay_lab::find(proxy, &[]) else { return Vec::new() };
    let all = description.settings.into_iter();
    let written = all.flat_map(|(name, setting)| {
        let values = if setting.values.is_empty() { vec![String::new()] } else { setting.values };
        values.into_iter().map(move |value| candidate(format!("{name}={value}"), setting.about.clone()))
    });
    written.collect()
}

/// The proxy that a command line names with `--proxy`; otherwise the built-in one.
fn named_proxy(typed: impl Iterator<Item = OsString>) -> String {
    let words: Vec<String> = typed.map(|word| word.to_string_lossy().into_owned()).collect();
    let follows = words.windows(2).filter(|pair| pair[0] == "--proxy").map(|pair| pair[1].clone());
    let joined = words.iter().filter_map(|word| word.strip_prefix("--proxy=").map(str::to_owned));
    follows.chain(joined).next_back().unwrap_or_else(|| "builtin".into())
}

/// Directories of runs and experiments in `parent`, the latest first.
fn runs(parent: &Path) -> Vec<CompletionCandidate> {
    let entries = std::fs::read_dir(parent).into_iter().flatten().flatten();
    let mut found: Vec<(std::time::SystemTime, PathBuf)> = entries
        .filter_map(|entry| {
            let metadata = entry.metadata().ok().filter(std::fs::Metadata::is_dir)?;
            Some((metadata.modified().ok()?, entry.path()))
        })
        .collect();
    found.sort_by(|one, other| other.cmp(one));
    let in_order = found.into_iter().enumerate();
    in_order.map(|(order, (_, path))| CompletionCandidate::new(path).display_order(Some(order))).collect()
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;
    use crate::args::Cli;

    fn values(names: Names, current: &str) -> Vec<String> {
        let found = candidates(names, OsStr::new(current));
        found.iter().map(|candidate| candidate.get_value().to_string_lossy().into_owned()).collect()
    }

    #[test]
    fn names_that_begin_as_typed_are_completed() {
        assert_eq!(values(Names::Workloads, "dem"), ["demo"]);
        assert_eq!(values(Names::Experiments, "six"), ["six-proxies"]);
        assert_eq!(values(Names::Targets, "bu"), ["builtin"]);
        assert_eq!(values(Names::Proxies, "varn"), ["varnish"]);
        assert!(values(Names::Clusters, "figure-").contains(&"figure-10".to_owned()));
        assert!(values(Names::Workloads, "no-such").is_empty());
    }

    #[test]
    fn settings_are_those_of_the_proxy_that_is_named() {
        let named = |line: &str| named_proxy(line.split(' ').map(OsString::from));
        assert_eq!(named("assay run demo --proxy squid --set"), "squid");
        assert_eq!(named("assay run demo --proxy=nginx --set"), "nginx");
        assert_eq!(named("assay run demo --set"), "builtin");
        let squid = settings("squid");
        assert!(squid.iter().any(|one| one.get_value() == "replacement=heap-lfuda"), "{squid:?}");
        for word in ["prefetch=none", "policy=s3-fifo", "admission=tinylfu"] {
            assert!(settings("builtin").iter().any(|one| one.get_value() == word), "{word}");
        }
        assert!(settings("no-such-proxy").is_empty());
    }

    #[test]
    fn every_argument_with_names_exists() {
        let top = Cli::command();
        for (path, argument) in [
            ("run", "workload"),
            ("run", "proxy"),
            ("run", "settings"),
            ("robots", "workload"),
            ("origins", "workload"),
            ("check", "workload"),
            ("workloads show", "name"),
            ("lab", "experiment"),
            ("lab show", "experiment"),
            ("experiments show", "name"),
            ("simulate", "cluster"),
            ("cluster", "cluster"),
            ("proxies show", "name"),
            ("report", "run_dir"),
            ("compare", "runs"),
            ("merge", "runs"),
            ("open", "run"),
            ("runs remove", "runs"),
            ("init", "workload"),
            ("init", "proxy"),
        ] {
            let words = path.split(' ');
            let command = words.fold(&top, |command, word| command.find_subcommand(word).expect("a command"));
            assert!(command.get_arguments().any(|one| one.get_id() == argument), "{path} {argument}");
            assert!(names(path, argument).is_some(), "{path} {argument}");
        }
    }

    #[test]
    fn the_latest_run_is_first() {
        let tmp = tempfile::tempdir().unwrap();
        for (name, age_s) in [("old", 2000), ("new", 10), ("middle", 1000)] {
            let path = tmp.path().join(name);
            std::fs::create_dir(&path).unwrap();
            let then = std::time::SystemTime::now() - std::time::Duration::from_secs(age_s);
            std::fs::File::open(&path).unwrap().set_modified(then).unwrap();
        }
        std::fs::write(tmp.path().join("file"), "").unwrap();
        let found = runs(tmp.path());
        let names: Vec<_> = found.iter().map(|one| Path::new(one.get_value()).file_name().unwrap()).collect();
        assert_eq!(names, ["new", "middle", "old"]);
        assert!(runs(&tmp.path().join("none")).is_empty());
    }
}
