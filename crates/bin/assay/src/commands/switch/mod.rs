//! `assay switch`: a content-aware layer-7 switch in front of servers.

mod show;
mod watch;

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::anyhow;
use assay_net::worker::raise_descriptor_limit;
use assay_protocol::network::is_private;
use assay_switch::{Config, Switch, explain};
use clap::{Args, Subcommand};
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::time::{MissedTickBehavior, interval};

use crate::exit::{Exit, Failure};
use crate::interrupt::Interrupts;
use crate::output;
use show::Show;
use watch::WatchedFile;

const EXAMPLES: &str = "\
Examples:
  assay switch front.toml   run the switch that the file describes
  assay switch check front.toml
      what would it do? explain it, run nothing
  kill -HUP PID             take on the changed file, without losing a request

The file in short (the reference has all of it):
  listen = \"127.0.0.1:8080\"
  policy = \"cap\"
  [[server]]
  name = \"a\"
  address = \"127.0.0.1:9001\"
  [[class]]
  name = \"programs\"
  suffix = \".cgi\"";

/// Flags of `assay switch`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES, args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
pub struct SwitchArgs {
    /// The switch file
    #[arg(required = true)]
    pub file: Option<PathBuf>,
    /// Reload the file when it changes, not only on SIGHUP
    #[arg(long)]
    pub watch: bool,
    /// One JSON document a second, and one for whatever happens, on standard output
    #[arg(long)]
    pub json: bool,
    /// Say nothing each second
    #[arg(short, long)]
    pub quiet: bool,
    /// Required for servers with public addresses
    #[arg(long)]
    pub i_own_this_target: bool,
    /// Something other than running it
    #[command(subcommand)]
    pub other: Option<Other>,
}

/// What can be done besides running a switch.
#[derive(Debug, Subcommand)]
pub enum Other {
    /// Explain a switch file and look for mistakes, without running it
    Check {
        /// The switch file
        file: PathBuf,
    },
}

/// Runs a switch until it is told to stop, or explains its file.
pub fn switch(args: &SwitchArgs) -> Result<Exit, Failure> {
    if let Some(Other::Check { file }) = &args.other {
        output::stdout(&explain(&read(file)?))?;
        return Ok(Exit::Fine);
    }
    let Some(file) = &args.file else {
        return Err(Failure::usage(anyhow!("which switch file? `assay switch FILE`")));
    };
    let config = read_to_run(args, file)?;
    raise_descriptor_limit();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| Failure::failed(anyhow::Error::new(error).context("cannot start")))?;
    runtime.block_on(run(args, file, config))
}

/// The settings in a file; paths in it are beside it.
fn read(file: &Path) -> Result<Config, Failure> {
    let text = assay_base::files::text(file, assay_base::files::SETTINGS_MAX).map_err(|error| {
        Failure::usage(anyhow::Error::new(error).context(format!("cannot read {}", file.display())))
    })?;
    let mut config = assay_switch::read(&file.display().to_string(), &text)
        .map_err(|mistake| Failure::usage(anyhow!("{mistake}")))?;
    if let (Some(log), Some(folder)) = (&mut config.access_log, file.parent()) {
        log.file = folder.join(&log.file);
    }
    Ok(config)
}

/// The settings in a file, if all servers may be sent requests.
fn read_to_run(args: &SwitchArgs, file: &Path) -> Result<Config, Failure> {
    let config = read(file)?;
    let public = config.servers.iter().find(|server| !is_private(server.address.ip()));
    match public.filter(|_| !args.i_own_this_target) {
        None => Ok(config),
        Some(server) => {
            let failure = anyhow!(
                "{}: the server {} has the public address {}, and whoever reaches the switch would send requests to it",
                file.display(),
                server.name,
                server.address
            );
            Err(Failure::usage(failure).hint("if it is yours, say so with --i-own-this-target"))
        }
    }
}

async fn run(args: &SwitchArgs, file: &Path, config: Config) -> Result<Exit, Failure> {
    let failed = |error: std::io::Error| {
        Failure::failed(anyhow::Error::new(error).context("cannot take over signals"))
    };
    let mut interrupts = Interrupts::listen().map_err(failed)?;
    let mut reloads = signal(SignalKind::hangup()).map_err(failed)?;
    let mut watched = WatchedFile::new(file);
    let mut switch = Switch::start(config).map_err(Failure::usage)?;
    let mut show = Show::new(args.json, args.quiet);
    show.ready(&switch)?;
    let mut seconds = interval(Duration::from_secs(1));
    seconds.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut is_stopping = false;
    loop {
        tokio::select! {
            () = interrupts.next() => {
                if is_stopping {
                    switch.end();
                } else {
                    show.stopping()?;
                    switch.stop();
                }
                is_stopping = true;
            }
            () = requested(&mut reloads) => reload(args, &mut switch, file, &mut show)?,
            _ = seconds.tick() => {
                if switch.has_ended() {
                    break;
                }
                if args.watch && !is_stopping && watched.has_changed() {
                    reload(args, &mut switch, file, &mut show)?;
                }
                // One that has ended just now is found out in the next turn.
                if let Ok(now) = switch.snapshot() {
                    show.second(&now)?;
                }
            }
        }
        if is_stopping {
            // A second is long for whoever waits for the end.
            seconds.reset_after(Duration::from_millis(50));
        }
    }
    switch.wait().map_err(Failure::failed)?;
    Ok(Exit::Fine)
}

async fn requested(reloads: &mut Signal) {
    reloads.recv().await;
}

/// Takes on the file as it is now; one that is wrong is complained of, and all stays as it is.
fn reload(args: &SwitchArgs, switch: &mut Switch, file: &Path, show: &mut Show) -> Result<(), Failure> {
    let taken = read_to_run(args, file).and_then(|config| switch.reload(config).map_err(Failure::failed));
    match taken {
        Ok(()) => show.reloaded(switch),
        Err(failure) => {
            output::complain(&failure);
            show.kept(&format!("{:#}", failure.error))
        }
    }
}
