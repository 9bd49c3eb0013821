//! What can be typed after `assay`? The top of the command line; each command's flags live with the command.

use clap::{Parser, Subcommand, builder::styling};

use crate::commands::{
    by_hand::{OriginsArgs, RobotsArgs},
    check::CheckArgs,
    cluster::ClusterArgs,
    compare::CompareArgs,
    lab::LabArgs,
    logs::LogsArgs,
    policies::PoliciesArgs,
    proxies::ProxiesArgs,
    replay::ReplayArgs,
    report::ReportArgs,
    role::RoleArgs,
    run::RunArgs,
    simulate::SimulateArgs,
    spe::SpeArgs,
    switch::SwitchArgs,
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
  assay run demo                                 the demo, through the built-in caching proxy
  assay run image.pg --proxy varnish             a workload of yours through Varnish
  assay run image.pg --proxy nginx --rehearse 60s
                                                 the same, its whole schedule squeezed into a minute
  assay lab compare.toml                         many runs, in a fair order, and their comparison
  assay compare base/ head/ --tolerance 5%       runs compared; exit code 99 when something got worse
  assay check image.pg                           what would it do? explain it, run nothing
  assay logs /var/log/squid/access.log           what do the logs of a proxy say?
  assay proxies                                  which proxies can this machine test?

Exit codes:
  0 fine · 1 the run failed · 2 usage or workload error, or a plan this machine cannot carry
  96 invalid run: Assay or the lab was the limit, not the proxy
  99 a requirement failed, or something got worse than it may · 105 interrupted";

/// Find out what a caching proxy is worth: put it under a known stream of requests, check every byte that
/// comes back, and see how fast, how effective and how correct it is.
#[derive(Debug, Parser)]
#[command(
    name = "assay",
    version,
    styles = STYLES,
    max_term_width = 100,
    arg_required_else_help = true,
    after_help = EXAMPLES,
    disable_help_subcommand = true
)]
pub struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// The commands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Put a proxy under a workload and report
    Run(Box<RunArgs>),
    /// Run an experiment: workloads x proxies x conditions, repeated, in random order, and compared
    Lab(Box<LabArgs>),
    /// Run some of a workload's robots, for a run on several machines
    Robots(Box<RobotsArgs>),
    /// Run some of a workload's origins, for a run on several machines
    Origins(Box<OriginsArgs>),
    /// Explain a workload and look for mistakes, without running it
    Check(CheckArgs),
    /// Make summary and HTML report again from a run directory, or compare the runs of an experiment
    Report(ReportArgs),
    /// Analyse the access logs of a proxy: hits, misses, peers, times, URLs
    Logs(Box<LogsArgs>),
    /// Send the requests of access logs, or of a list of URLs, to any address
    Replay(Box<ReplayArgs>),
    /// Compare runs, and say whether something got worse by more than is allowed
    Compare(Box<CompareArgs>),
    /// Simulate clusters behind a switch: policies, loads and nodes against each other
    Simulate(SimulateArgs),
    /// Evaluate several proxies at once on the requests of real clients, unnoticed by them and by origins
    Spe(Box<SpeArgs>),
    /// Start a cluster's nodes, with a switch in front; measure its policies, or what a node needs
    Cluster(Box<ClusterArgs>),
    /// WebStone: clients that ask without a pause, by a file list, more and more of them
    Webstone(Box<WebstoneArgs>),
    /// Show the results of simulated and measured clusters again, and one against another
    Policies(PoliciesArgs),
    /// Run a content-aware layer-7 switch in front of servers, with any of the policies
    Switch(SwitchArgs),
    /// List the proxies that can be tested on this machine
    Proxies(ProxiesArgs),
    /// List the workloads that come with Assay, or print one
    Workloads(WorkloadsArgs),
    /// One part of a run as a process of its own; started by `assay run`
    #[command(hide = true)]
    Role(RoleArgs),
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
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
