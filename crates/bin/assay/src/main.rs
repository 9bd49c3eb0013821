//! The `assay` command: parse → do → exit code.
//!
//! Everything that measures lives in the other crates; here are commands, flags, and the terminal.
//!
//! *Does not:* compute results, open sockets, or decide how well a number is known.

mod args;
mod bundled;
mod clusters;
mod commands;
mod completion;
mod exit;
mod experiments;
mod file_kind;
mod hint;
mod interrupt;
mod junit;
mod leftovers;
mod listeners;
mod live;
mod manual;
mod opened;
mod output;
mod overrides;
mod prepared;
mod requirement_listener;
mod run_name;
mod shown;
mod source;
mod target;
mod watching;

use args::{Cli, Command};
use assay_lab::units;
use clap::CommandFactory;
use exit::Exit;

fn main() -> std::process::ExitCode {
    let typed: Vec<_> = std::env::args_os().collect();
    if completion::completed(&typed, Cli::command).unwrap_or_else(|error| error.exit()) {
        return Exit::Fine.into();
    }
    let typed = commands::version::typed_as_flags(commands::replay::legacy_args(typed));
    let cli = match args::parse(&typed) {
        Ok(cli) => cli,
        Err(error) => return output::mistyped(&error),
    };
    let result = match cli.command {
        Command::Run(args) => commands::run::run(&args),
        Command::Lab(args) => commands::lab::lab(&args),
        Command::Robots(args) => commands::by_hand::robots(&args),
        Command::Origins(args) => commands::by_hand::origins(&args),
        Command::Merge(args) => commands::merge::merge(&args),
        Command::Check(args) => commands::check::check(&args),
        Command::Fmt(args) => commands::fmt::fmt(&args),
        Command::Lsp(args) => commands::lsp::lsp(&args),
        Command::Report(args) => commands::report::report(&args),
        Command::Logs(args) => commands::logs::logs(&args),
        Command::Size(args) => commands::size::size_caches(&args),
        Command::Replay(args) => commands::replay::replay(&args),
        Command::Compare(args) => commands::compare::compare(&args),
        Command::Conform(args) => commands::conform::conform(&args),
        Command::Simulate(args) => commands::simulate::simulate(&args),
        Command::Spe(args) => commands::spe::spe(&args),
        Command::Cluster(args) => commands::cluster::cluster(&args),
        Command::Webstone(args) => commands::webstone::webstone(&args),
        Command::Policies(args) => commands::policies::policies(&args),
        Command::Switch(args) => commands::switch::switch(&args),
        Command::Proxies(args) => commands::proxies::proxies(&args),
        Command::Workloads(args) => commands::workloads::workloads(&args),
        Command::Experiments(args) => commands::experiments::experiments(&args),
        Command::Init(args) => commands::init::init(&args),
        Command::Doctor(args) => commands::doctor::doctor(&args),
        Command::Open(args) => commands::open::open(&args),
        Command::Runs(args) => commands::runs::runs(&args),
        Command::Schema(args) => commands::schema::schema(&args),
        Command::Completions(args) => commands::completions::completions(&args),
        Command::Man(args) => commands::man::man(&args, Cli::command()),
        Command::Version(args) => commands::version::version(&args),
        Command::Agent(args) => commands::agent::agent(&args),
        Command::Fleet(args) => commands::fleet::fleet(&args),
        Command::Role(args) => commands::role::role(&args),
    };
    match result {
        Ok(exit) => exit.into(),
        Err(failure) => {
            output::complain(&failure);
            Exit::from(failure).into()
        }
    }
}
