//! `assay agent`: lends this machine to coordinators.

use std::net::IpAddr;
use std::path::PathBuf;

use anyhow::{Context, anyhow};
use assay_lab::machines::agent::{self, AgentSettings};
use assay_lab::machines::fleet::name::Name;
use assay_protocol::network::Network;
use clap::Args;

use super::login_args::LoginArgs;
use crate::commands::coordinating::failure;
use crate::exit::{Exit, Failure};
use crate::interrupt::Interrupts;
use crate::{leftovers, output};

const EXAMPLES: &str = "\
Examples:
  assay agent --nats nats://10.0.0.1:4222 --nats-creds agent.creds \\
    --name load-1 --label load
  assay agent --nats nats://10.0.0.1:4222 --nats-creds agent.creds \\
    --name cache --label cache --may-load 10.0.0.0/24

It takes orders only from those whom the NATS account lets give them, runs roles of Assay and proxies whose descriptions ship with it \
or are in a --proxy-dir, and ends all of them when it loses its coordinator. Ctrl-C ends it.";

/// Flags of `assay agent`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct AgentArgs {
    /// The NATS server that agents and coordinators meet on, like nats://10.0.0.1:4222
    #[arg(long, value_name = "URL")]
    pub nats: String,
    /// Its name, which no other agent has [default: the host's name]
    #[arg(long, value_name = "NAME")]
    pub name: Option<Name>,
    /// What it can be selected by, besides its name; several are given one by one
    #[arg(long, value_name = "LABEL")]
    pub label: Vec<Name>,
    /// Where other machines reach this one [default: the address from which it reaches the NATS server]
    #[arg(long, value_name = "ADDR")]
    pub address: Option<IpAddr>,
    /// What its roles may load: an address or a network; several are given one by one [default: loopback, private networks, 169.254.0.0/16, fe80::/10 and 100.64.0.0/10]
    #[arg(long, value_name = "NETWORK")]
    pub may_load: Vec<Network>,
    /// --may-load may name public addresses: their owners have agreed
    #[arg(long)]
    pub may_load_public: bool,
    /// Look for proxy descriptions in DIR too; they win over bundled ones of the same name; may be given more than once
    #[arg(long, value_name = "DIR")]
    pub proxy_dir: Vec<PathBuf>,
    /// Drive proxies by descriptions that come with a run, too. A description holds commands: whoever may order runs on this server may
    /// then run any program here, as the user that the agent is
    #[arg(long)]
    pub accept_descriptions: bool,
    /// The directory that it writes in [default: one of its own among the temporary ones]
    #[arg(long, value_name = "DIR")]
    pub dir: Option<PathBuf>,
    /// Who it is at the server.
    #[command(flatten)]
    pub login: LoginArgs,
}

/// Runs an agent until it is interrupted.
pub fn agent(args: &AgentArgs) -> Result<Exit, Failure> {
    leftovers::clear();
    let may_load = may_load(args)?;
    if let Some(Err(error)) = assay_lab::described(&args.proxy_dir).into_iter().find(Result::is_err) {
        return Err(Failure::usage(error));
    }
    let temporary;
    let dir = match &args.dir {
        Some(dir) => std::path::absolute(dir).context("cannot find --dir").map_err(Failure::usage)?,
        None => {
            let made = assay_lab::cleanup::temporary_dir("agent");
            temporary = made.context("cannot make a directory for the agent").map_err(Failure::usage)?;
            temporary.path().to_owned()
        }
    };
    let settings = AgentSettings {
        login: args.login.login(&args.nats),
        name: args.name.clone().map_or_else(host_name, Ok)?,
        labels: args.label.clone(),
        address: args.address,
        may_load,
        proxy_dirs: args.proxy_dir.clone(),
        accepts_descriptions: args.accept_descriptions,
        dir,
        exe: std::env::current_exe().context("cannot find the program itself").map_err(Failure::failed)?,
        version: env!("CARGO_PKG_VERSION").to_owned(),
    };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.context("cannot start the agent").map_err(Failure::failed)?;
    runtime.block_on(async {
        let mut interrupts =
            Interrupts::listen().context("cannot watch for Ctrl-C").map_err(Failure::failed)?;
        let log = output::say;
        agent::run(settings, async { interrupts.next().await }, log).await.map_err(failure)
    })?;
    Ok(Exit::Fine)
}

fn may_load(args: &AgentArgs) -> Result<Vec<Network>, Failure> {
    if args.may_load.is_empty() {
        return Ok(Network::private());
    }
    match args.may_load.iter().find(|network| !network.is_private()) {
        Some(public) if !args.may_load_public => Err(Failure::usage(anyhow!(
            "--may-load {public} has public addresses; a workload is an attack on anyone who has not agreed to it"
        ))
        .hint("if their owners have agreed, say so with --may-load-public")),
        _ => Ok(args.may_load.clone()),
    }
}

fn host_name() -> Result<Name, Failure> {
    let name = assay_lab::machines::fleet::name::Name::nearest(&super::coordinating::host());
    name.ok_or_else(|| {
        Failure::usage(anyhow!("the host has no name that an agent can have; name it with --name"))
    })
}
