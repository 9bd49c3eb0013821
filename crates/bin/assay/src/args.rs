//! The command line of `assay`. The top of the command line; each command's flags live with the command.

use std::error::Error as _;
use std::ffi::OsString;
use std::net::AddrParseError;
use std::num::{IntErrorKind, ParseIntError};

use assay_base::settings::suggest::nearest;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{CommandFactory, Parser, Subcommand, builder::styling};

use crate::commands::{
    agent::AgentArgs,
    by_hand::{OriginsArgs, RobotsArgs},
    check::CheckArgs,
    cluster::ClusterArgs,
    compare::CompareArgs,
    completions::CompletionsArgs,
    conform::ConformArgs,
    doctor::DoctorArgs,
    experiments::ExperimentsArgs,
    fleet::FleetArgs,
    fmt::FmtArgs,
    init::InitArgs,
    lab::LabArgs,
    logs::LogsArgs,
    lsp::LspArgs,
    man::ManArgs,
    merge::MergeArgs,
    open::OpenArgs,
    policies::PoliciesArgs,
    proxies::ProxiesArgs,
    replay::ReplayArgs,
    report::ReportArgs,
    role::RoleArgs,
    run::RunArgs,
    runs::RunsArgs,
    schema::SchemaArgs,
    simulate::SimulateArgs,
    size::SizeArgs,
    spe::SpeArgs,
    switch::SwitchArgs,
    version::VersionArgs,
    webstone::WebstoneArgs,
    workloads::WorkloadsArgs,
};

const STYLES: styling::Styles = styling::Styles::styled()
    .header(styling::AnsiColor::Green.on_default().bold())
    .usage(styling::AnsiColor::Green.on_default().bold())
    .literal(styling::AnsiColor::Cyan.on_default().bold())
    .placeholder(styling::AnsiColor::Cyan.on_default());

const EXAMPLES: &str = "\
Examples:
  assay run demo           the demo, through the built-in caching proxy
  assay run image.pg --proxy varnish
      a workload of yours through Varnish
  assay run image.pg --proxy nginx --rehearse 60s
      the same, its whole schedule squeezed into a minute
  assay lab compare.toml   many runs, in a fair order, and their comparison
  assay compare base/ head/ --tolerance 5%
      runs compared; exit code 99 when something got worse
  assay check image.pg     what would it do? explain it, run nothing
  assay logs /var/log/squid/access.log
      what do the logs of a proxy say?
  assay size access.log    how large must its cache be?
  assay proxies            which proxies can this machine test?
  assay init               an experiment or a workload of your own
  assay doctor             what can this machine measure, what is missing?

Exit codes:
  0 fine · 1 the run failed
  2 usage or workload error, or a plan this machine cannot carry
  96 undecided: Assay or the machine left a requirement or number unknown
  99 a requirement failed, responses were wrong or missing, or it got worse
  105 interrupted";

/// Measure how fast, effective and correct a caching proxy is: put it under a known stream of requests, and check every byte
/// of every response body.
#[derive(Debug, Parser)]
#[command(
    name = "assay",
    version,
    styles = STYLES,
    max_term_width = 100,
    arg_required_else_help = true,
    after_help = EXAMPLES
)]
pub struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// The commands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Run a workload against a proxy and report the results
    Run(Box<RunArgs>),
    /// Run an experiment: workloads x proxies x conditions, repeated, in random order, and compared
    Lab(Box<LabArgs>),
    /// Run some of a workload's robots, for a run on several machines
    Robots(Box<RobotsArgs>),
    /// Run some of a workload's origins, for a run on several machines
    Origins(Box<OriginsArgs>),
    /// Join the parts of a run on several machines into one run directory
    Merge(MergeArgs),
    /// Lend this machine to runs on several machines: take orders over NATS
    Agent(Box<AgentArgs>),
    /// List the agents of a NATS server, or start a server and agents on this machine
    Fleet(Box<FleetArgs>),
    /// Explain a workload and look for mistakes, without running it
    Check(CheckArgs),
    /// Lay out the source text of workloads
    Fmt(FmtArgs),
    /// Serve an editor: mistakes, hover, completion of workloads, over the Language Server Protocol
    Lsp(LspArgs),
    /// Make summary and HTML report again from a run directory, or compare the runs of an experiment
    Report(ReportArgs),
    /// Analyse the access logs of a proxy: hits, misses, peers, times, URLs
    Logs(Box<LogsArgs>),
    /// Simulate caches on a log or a trace: hit ratio by size and policy, and the size that is enough
    Size(Box<SizeArgs>),
    /// Send the requests of access logs, or of a list of URLs, to any address or through a proxy under test
    Replay(Box<ReplayArgs>),
    /// Compare runs, and say whether something got worse by more than is allowed
    Compare(Box<CompareArgs>),
    /// Try what a proxy or cache does against what HTTP requires of it, case by case
    Conform(Box<ConformArgs>),
    /// Simulate clusters behind a switch: policies, loads and nodes against each other
    Simulate(SimulateArgs),
    /// Evaluate several proxies at once on the requests of real clients, unnoticed by them and by origins
    Spe(Box<SpeArgs>),
    /// Start a cluster's nodes, with a switch in front; measure its policies, or what a node needs
    Cluster(Box<ClusterArgs>),
    /// WebStone: a growing number of clients that send requests from a file list without a pause
    Webstone(Box<WebstoneArgs>),
    /// Show the results of simulated and measured clusters again, and one against another
    Policies(PoliciesArgs),
    /// Run a content-aware layer-7 switch in front of servers, with any of the policies
    Switch(SwitchArgs),
    /// List the proxies that can be tested on this machine
    Proxies(ProxiesArgs),
    /// List the workloads that come with Assay, or print one
    Workloads(WorkloadsArgs),
    /// List the experiments that come with Assay, or print one
    Experiments(ExperimentsArgs),
    /// Write an experiment or a workload with comments, to begin with
    Init(InitArgs),
    /// Say what this machine can carry and measure, what it lacks, and what would fix that
    Doctor(DoctorArgs),
    /// Open the report of a run in the browser
    Open(OpenArgs),
    /// List the runs that are kept, or remove some
    Runs(RunsArgs),
    /// Print a JSON Schema of settings files, for editors, or of documents that commands write
    Schema(SchemaArgs),
    /// Print the script with which a shell completes commands, flags and names
    Completions(CompletionsArgs),
    /// Print a manual page, or write all of them
    Man(ManArgs),
    /// Print the version
    Version(VersionArgs),
    /// One part of a run as a process of its own; started by `assay run`
    #[command(hide = true)]
    Role(RoleArgs),
}

/// The command line as it was typed, or an error in words that suit a person who made a mistake in it.
pub fn parse(typed: &[OsString]) -> Result<Cli, clap::Error> {
    Cli::try_parse_from(typed).map_err(|error| {
        on_one_machine(error, typed)
            .or_else(|error| of_another_tool(error, typed))
            .unwrap_or_else(|error| in_plain_words(suggesting(error, typed)))
    })
}

/// An error about a name that is unknown, with the suggestion that all of Assay's messages would make.
fn suggesting(mut error: clap::Error, typed: &[OsString]) -> clap::Error {
    let (wrong, suggested) = match error.kind() {
        ErrorKind::InvalidSubcommand => (ContextKind::InvalidSubcommand, ContextKind::SuggestedSubcommand),
        ErrorKind::UnknownArgument => (ContextKind::InvalidArg, ContextKind::SuggestedArg),
        _ => return error,
    };
    // clap also proposes `-- --flag`, and a usage line with the nearest flag: neither is what was meant.
    let _ = (error.remove(ContextKind::Suggested), error.remove(ContextKind::Usage));
    let Some(ContextValue::String(word)) = error.get(wrong).cloned() else { return error };
    let mut top = Cli::command();
    top.build();
    let command = innermost(&top, typed);
    let near = match word.strip_prefix("--") {
        None if wrong == ContextKind::InvalidArg => return error,
        None => {
            let visible = command.get_subcommands().filter(|inner| !inner.is_hide_set());
            nearest(&word, visible.map(clap::Command::get_name)).map(str::to_owned)
        }
        Some(flag) => {
            let known = command.get_arguments().filter(|known| !known.is_hide_set());
            nearest(flag, known.filter_map(clap::Arg::get_long)).map(|near| format!("--{near}"))
        }
    };
    match near {
        Some(near) => error.insert(suggested, ContextValue::String(near)),
        None => error.remove(suggested),
    };
    error
}

/// Commands that work on one machine, and what can be done instead with several.
const ON_ONE_MACHINE: &[(&str, &str)] = &[
    (
        "spe",
        "the proxies under test, the Multiplier and the Collector run on this machine. Proxies on other machines are compared under \
         one workload by `assay lab --fleet URL`",
    ),
    (
        "cluster",
        "its nodes are processes of this machine. A proxy on another machine is measured by `assay run --fleet URL`; a switch and its \
         servers on several machines are started there by hand (`assay switch`), and loaded by `assay replay --to HOST:PORT`",
    ),
    (
        "size",
        "it simulates caches and sends nothing. Copy the log here, or run `assay size` where the log is (`ssh HOST assay size LOG`)",
    ),
    (
        "replay",
        "its clients run on this machine, and may send to any address (`--to HOST:PORT`). For clients on several machines, describe \
         the load as a workload, and use `assay run --fleet URL`",
    ),
    (
        "conform",
        "its origin and its client run on this machine. A proxy elsewhere is tried where it is installed: `ssh HOST assay conform \
         PROXY`",
    ),
    (
        "robots",
        "it is one part of a run whose parts are started by hand. `assay run --fleet URL` starts all of them on the agents of a fleet",
    ),
    (
        "origins",
        "it is one part of a run whose parts are started by hand. `assay run --fleet URL` starts all of them on the agents of a fleet",
    ),
    (
        "webstone",
        "its clients run on this machine; several machines are started by hand, and their parts joined with `assay merge`. A proxy on \
         other machines is measured by `assay run --fleet URL`",
    ),
];

/// `--fleet` of a command that works on one machine: why, and what can be done instead.
fn on_one_machine(error: clap::Error, typed: &[OsString]) -> Result<clap::Error, clap::Error> {
    let is_fleet = error.kind() == ErrorKind::UnknownArgument
        && matches!(error.get(ContextKind::InvalidArg), Some(ContextValue::String(flag)) if flag == "--fleet");
    let command = typed.get(1).and_then(|word| word.to_str());
    let known = ON_ONE_MACHINE.iter().find(|(name, _)| is_fleet && Some(*name) == command);
    let Some((name, instead)) = known else { return Err(error) };
    let message = format!("`assay {name}` cannot take the machines of a fleet (--fleet): {instead}.\n");
    Ok(clap::Error::raw(error.kind(), message))
}

/// Flags that other tools have and Assay lacks: the command they were given to, and what to use instead.
const OF_OTHER_TOOLS: &[(&str, &[&str], &str)] = &[
    ("run", &["--cert", "--robot-cert", "--client-cert"], "client certificates are not supported"),
    ("run", &["--proxy-protocol", "--haproxy-protocol"], "the PROXY protocol is not supported"),
    (
        "run",
        &["-c", "--vus", "--users", "--clients", "--connections"],
        "`--robots N` sets the number of robots",
    ),
    (
        "run",
        &["-z", "-d", "--time"],
        "`--duration DUR` sets the length of the run, `--rehearse DUR` scales all its phases",
    ),
    ("run", &["-R", "-q", "--qps", "--rps"], "`--rate N` sets the rate, in requests per second"),
    ("run", &["-targets", "--targets"], "`assay replay --urls FILE` requests a list of URLs"),
    ("run", &["-t"], "`--threads N` sets the number of threads"),
    (
        "run",
        &["--http2", "--h2", "--http1", "--h1", "--http1.1"],
        "`--robot-http 2` and `--robot-http 1.1` set the version",
    ),
    ("run", &["--http3", "--h3", "--quic"], "HTTP/3 is not supported"),
    ("run", &["-k"], "`--insecure` accepts any certificate"),
    ("run", &["--no-tui", "--quiet"], "`--no-live` turns the live view off"),
    ("run", &["-m"], "`--streams K` limits concurrent requests on an HTTP/2 connection"),
    ("run", &["-x"], "`--proxy HOST:PORT --forward` goes through a forward proxy"),
    (
        "run",
        &["--out", "--summary-export"],
        "`--xact-log` records every request, `--json -o FILE` writes the summary",
    ),
    (
        "run",
        &["-H", "--header", "--headers"],
        "the workload sets request fields, with `http_headers` of a Robot",
    ),
    ("run", &["-s", "--script", "--config"], "the workload is the argument: `assay run FILE.pg`"),
    ("run", &["--latency"], "the report always has response times"),
    ("run", &["--log-format"], "`assay logs -f FORMAT FILE` reads access logs"),
    ("replay", &["--http", "--http2", "--h2", "--http3"], "replays use HTTP/1.1"),
    ("replay", &["-targets", "--targets"], "`--urls` reads a list of URLs"),
    ("logs", &["--log-format"], "`-f FORMAT` names the format"),
];

/// A flag that another tool has: what to use instead.
fn of_another_tool(error: clap::Error, typed: &[OsString]) -> Result<clap::Error, clap::Error> {
    let Some(ContextValue::String(unknown)) = error.get(ContextKind::InvalidArg) else { return Err(error) };
    if error.kind() != ErrorKind::UnknownArgument {
        return Err(error);
    }
    // Of `-targets` clap names the first letter alone.
    let words =
        typed.iter().filter_map(|word| word.to_str()).map(|word| word.split('=').next().unwrap_or(word));
    let written = words.clone().find(|word| word.starts_with(unknown.as_str())).unwrap_or(unknown);
    let command = words.clone().nth(1).unwrap_or_default();
    let of = |flag: &str| {
        let mut all = OF_OTHER_TOOLS.iter();
        all.find(|(name, flags, _)| *name == command && flags.contains(&flag))
            .map(|known| (flag.to_owned(), known.2))
    };
    let Some((flag, instead)) = of(written).or_else(|| of(unknown)) else { return Err(error) };
    let message = format!("`assay {command}` has no {flag}: {instead}.\n");
    Ok(clap::Error::raw(error.kind(), message))
}

/// The command whose names a mistake is about: the last one that was typed.
fn innermost<'a>(top: &'a clap::Command, typed: &[OsString]) -> &'a clap::Command {
    let words = typed.iter().skip(1);
    words.fold(top, |command, word| command.find_subcommand(word).unwrap_or(command))
}

/// An error of the command line, where the words of the standard library would be all that it says of a number or an
/// address.
fn in_plain_words(error: clap::Error) -> clap::Error {
    let source = error.source();
    let number = source.and_then(|why| why.downcast_ref::<ParseIntError>()).map(ParseIntError::kind);
    let is_address = source.is_some_and(|why| why.is::<AddrParseError>());
    let why = match number {
        Some(IntErrorKind::PosOverflow) => "it is too large",
        Some(IntErrorKind::NegOverflow) => "it is too small",
        Some(_) => "it is not an integer",
        None if is_address => "write an address with its port, like 127.0.0.1:9001",
        None => return error,
    };
    let (argument, value) = (error.get(ContextKind::InvalidArg), error.get(ContextKind::InvalidValue));
    let Some((argument, value)) = argument.zip(value) else { return error };
    let message =
        format!("invalid value '{value}' for '{argument}': {why}\n\nFor more information, try '--help'.\n");
    clap::Error::raw(error.kind(), message)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }

    /// The command and all below it.
    fn with_inner(command: &clap::Command) -> Vec<&clap::Command> {
        std::iter::once(command).chain(command.get_subcommands().flat_map(with_inner)).collect()
    }

    #[test]
    fn examples_fit_on_a_terminal_of_80_columns() {
        let top = Cli::command();
        for command in with_inner(&top) {
            let text = command.get_after_help().map(ToString::to_string).unwrap_or_default();
            // Prose is wrapped to the terminal; what is set in columns would be torn apart.
            for line in text.lines().filter(|line| line.starts_with("  ")) {
                assert!(line.chars().count() <= 80, "{}: {line}", command.get_name());
            }
        }
    }

    #[test]
    fn numbers_and_addresses_that_are_none_are_told_in_plain_words() {
        let said = |more: &[&str]| {
            let typed = ["assay", "run", "demo"].iter().chain(more);
            parse(&typed.map(OsString::from).collect::<Vec<_>>()).unwrap_err().to_string()
        };
        let seed = said(&["--seed", "abc"]);
        assert!(
            seed.starts_with("error: invalid value 'abc' for '--seed <N>': it is not an integer\n"),
            "{seed}"
        );
        assert!(said(&["--seed", "99999999999999999999"]).contains("it is too large"));
        assert!(said(&["--threads", "x"]).contains("'--threads <N>': it is not an integer"));
        assert!(said(&["--threads", "0"]).contains("1..=1024"));
        assert!(said(&["--origin-listen", "9001"]).contains("like 127.0.0.1:9001"));
    }

    #[test]
    fn commands_of_one_machine_say_what_can_be_done_with_several() {
        let said = |line: &str| {
            let typed: Vec<OsString> = line.split(' ').map(OsString::from).collect();
            parse(&typed).unwrap_err()
        };
        for (name, instead) in ON_ONE_MACHINE {
            let error = said(&format!("assay {name} --fleet nats://10.0.0.1"));
            assert_eq!(error.exit_code(), 2, "{name}");
            let error = error.to_string();
            assert!(
                error.contains(&format!("`assay {name}` cannot take the machines of a fleet")),
                "{error}"
            );
            assert!(error.contains(instead) && instead.contains("assay"), "{error}");
        }
        // Elsewhere the flag is as unknown as any other.
        assert!(said("assay doctor --fleet x").to_string().contains("unexpected argument"));
        let top = Cli::command();
        for (name, _) in ON_ONE_MACHINE {
            let command = top.find_subcommand(name).unwrap_or_else(|| panic!("there is no {name}"));
            assert!(command.get_arguments().all(|known| known.get_long() != Some("fleet")), "{name}");
        }
    }

    #[test]
    fn flags_of_other_tools_are_answered_with_what_there_is_instead() {
        let said = |line: &str| {
            let typed: Vec<OsString> = line.split(' ').map(OsString::from).collect();
            parse(&typed).unwrap_err()
        };
        let mut top = Cli::command();
        top.build();
        for (name, flags, instead) in OF_OTHER_TOOLS {
            let command = top.find_subcommand(name).unwrap_or_else(|| panic!("there is no {name}"));
            for flag in *flags {
                let error = said(&format!("assay {name} demo {flag} 5"));
                assert_eq!(error.exit_code(), 2, "{name} {flag}");
                assert!(error.to_string().contains(instead) && error.to_string().contains(flag), "{error}");
            }
            // What is named instead is there.
            for word in instead.split(['`', ' ']).filter(|word| word.starts_with("--")) {
                let other = if instead.contains("assay replay") { "replay" } else { name };
                let command =
                    if other == *name { command } else { top.find_subcommand(other).expect("is there") };
                assert!(
                    command.get_arguments().any(|known| known.get_long() == word.get(2..)),
                    "{name}: {word}"
                );
            }
        }
        assert!(said("assay run demo --vus=5").to_string().contains("`--robots N`"));
    }

    #[test]
    fn misspelt_commands_and_flags_are_suggested_as_everywhere_else() {
        let said = |line: &str| {
            let typed: Vec<OsString> = line.split(' ').map(OsString::from).collect();
            parse(&typed).unwrap_err().to_string()
        };
        for (line, meant) in [
            ("assay rnu demo", "'run'"),
            ("assay rpeort x", "'report'"),
            ("assay workloads shwo demo", "'show'"),
            ("assay run demo --rehaerse 5s", "'--rehearse'"),
            ("assay logs x --jsno", "'--json'"),
        ] {
            assert!(said(line).contains(meant), "{line}: {}", said(line));
        }
        for line in ["assay xyzzy", "assay run demo --xyzzy"] {
            assert!(
                !said(line).contains("similar") && !said(line).contains("tip:"),
                "{line}: {}",
                said(line)
            );
        }
    }

    #[test]
    fn every_visible_flag_of_every_command_has_help_and_a_lower_case_hyphenated_name() {
        for command in Cli::command().get_subcommands().filter(|c| !c.is_hide_set()) {
            assert!(command.get_about().is_some(), "{} has no help", command.get_name());
            for argument in command.get_arguments() {
                let name = argument.get_id().as_str();
                assert!(argument.get_help().is_some(), "{} {name} has no help", command.get_name());
                if let Some(long) = argument.get_long() {
                    let spelt =
                        long.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-');
                    assert!(spelt, "--{long} is not lower case with hyphens");
                }
            }
        }
    }
}
