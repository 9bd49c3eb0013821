//! The `assay` command: parse → do → exit code.
//!
//! Everything that measures lives in the other crates; here are commands, flags, and the terminal.
//!
//! *Does not:* compute results, open sockets, or decide how well a number is known.

mod args;
mod bundled;
mod clusters;
mod commands;
mod exit;
mod experiments;
mod interrupt;
mod kind;
mod listeners;
mod live;
mod output;
mod overrides;
mod prepared;
mod run_name;
mod source;
mod target;
mod thresholds;
mod watching;

use args::Command;
use assay_lab::units;
use exit::Exit;

fn main() -> std::process::ExitCode {
    let typed = commands::replay::typed_as_run(std::env::args_os().collect());
    let cli = args::parse(&typed).unwrap_or_else(|error| error.exit());
    let result = match cli.command {
        Command::Run(args) => commands::run::run(&args),
        Command::Lab(args) => commands::lab::lab(&args),
        Command::Robots(args) => commands::by_hand::robots(&args),
        Command::Origins(args) => commands::by_hand::origins(&args),
        Command::Check(args) => commands::check::check(&args),
        Command::Report(args) => commands::report::report(&args),
        Command::Logs(args) => commands::logs::logs(&args),
        Command::Replay(args) => commands::replay::replay(&args),
        Command::Compare(args) => commands::compare::compare(&args),
        Command::Simulate(args) => commands::simulate::simulate(&args),
        Command::Spe(args) => commands::spe::spe(&args),
        Command::Cluster(args) => commands::cluster::cluster(&args),
        Command::Webstone(args) => commands::webstone::webstone(&args),
        Command::Policies(args) => commands::policies::policies(&args),
        Command::Switch(args) => commands::switch::switch(&args),
        Command::Proxies(args) => commands::proxies::proxies(&args),
        Command::Workloads(args) => commands::workloads::workloads(&args),
        Command::Experiments(args) => commands::experiments::experiments(&args),
        Command::Version => {
            output::stdout(concat!("assay ", env!("CARGO_PKG_VERSION"), "\n")).map(|()| Exit::Fine)
        }
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
