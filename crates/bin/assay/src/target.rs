//! The target: from `--proxy` and its companions to what the lab understands.

use std::collections::BTreeMap;
use std::net::{SocketAddr, TcpStream, ToSocketAddrs};
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::anyhow;
use assay_lab::experiment::cells;
use assay_lab::topology::{self, CacheDefaults, Topology, TopologyChoice};
use assay_lab::{LabError, Mode, TargetChoice};

use crate::commands::run_args::RunArgs;
use crate::exit::Failure;

/// Connect timeout of a server that should run already.
const KNOCK: Duration = Duration::from_secs(5);

/// Reads `--proxy`, `--direct`, `--forward` and `--reverse`.
pub fn choose(args: &RunArgs) -> Result<TargetChoice, Failure> {
    let mode = match (args.forward, args.reverse) {
        (true, _) => Some(Mode::Forward),
        (_, true) => Some(Mode::Reverse),
        _ => None,
    };
    if let Some(file) = &args.topology {
        return topology_of(file, mode, args);
    }
    let name = if args.direct { "direct" } else { args.proxy.as_str() };
    match name {
        "direct" if mode == Some(Mode::Forward) => {
            Err(Failure::usage(anyhow!("--forward does not go with direct"))
                .hint("leave it out, or name a proxy: --proxy builtin --forward"))
        }
        "direct" => Ok(TargetChoice::Direct),
        "builtin" => Ok(TargetChoice::Builtin(mode.unwrap_or_default())),
        name if is_address(name) => {
            Ok(TargetChoice::Running { address: resolve(name)?, mode: mode.unwrap_or_default() })
        }
        name => described(name, mode, args),
    }
}

/// A proxy that the lab starts.
fn described(name: &str, mode: Option<Mode>, args: &RunArgs) -> Result<TargetChoice, Failure> {
    let description = assay_lab::find(name, &args.proxy_dir).map_err(Failure::usage)?;
    let first = description.modes.first().copied().unwrap_or_default();
    let mode = mode.unwrap_or(first);
    if !description.modes.contains(&mode) {
        return Err(Failure::usage(anyhow!("{name} is not known to work as a {} proxy", mode.name()))
            .hint(format!("leave out --{}", mode.name())));
    }
    Ok(TargetChoice::Described(Box::new(description), mode))
}

/// Caches that work together, as a file names them; what it leaves open is as on the command line.
fn topology_of(file: &Path, mode: Option<Mode>, args: &RunArgs) -> Result<TargetChoice, Failure> {
    let usual = CacheDefaults {
        proxy: args.proxy.clone(),
        memory_bytes: args.memory,
        disk_bytes: args.disk,
        set: args.settings.iter().cloned().collect(),
    };
    Ok(TargetChoice::Topology(Box::new(topology_as(file, mode, usual, &args.proxy_dir)?)))
}

/// Caches that work together, as a file names them, spoken to in a mode (none: as the file says).
pub fn topology_as(
    file: &Path,
    mode: Option<Mode>,
    usual: CacheDefaults,
    proxy_dirs: &[PathBuf],
) -> Result<Topology, Failure> {
    let mut choice = choice_in(file, usual)?;
    choice.mode = mode.or(choice.mode);
    resolved(&choice, file, proxy_dirs)
}

/// Caches that work together, as a file names them; where it does not say, they are built-in ones with so many bytes of memory and disk.
pub fn topology_in(file: &Path, usual_bytes: u64, proxy_dirs: &[PathBuf]) -> Result<Topology, Failure> {
    let usual = CacheDefaults {
        proxy: "builtin".into(),
        memory_bytes: usual_bytes,
        disk_bytes: usual_bytes,
        set: BTreeMap::new(),
    };
    topology_as(file, None, usual, proxy_dirs)
}

/// Topology in a file.
fn choice_in(file: &Path, usual: CacheDefaults) -> Result<TopologyChoice, Failure> {
    let shown = file.display().to_string();
    let text = assay_base::files::text(file, assay_base::files::SETTINGS_MAX)
        .map_err(|error| Failure::usage(anyhow!("cannot read the topology {shown}: {error}")))?;
    let name = file.file_stem().map_or_else(|| shown.clone(), |stem| stem.to_string_lossy().into_owned());
    topology::read(&shown, &name, &text, usual).map_err(Failure::usage)
}

/// Finds what the caches of a topology are; files of descriptions are beside `file`.
pub fn resolve_topology(
    choice: &TopologyChoice,
    file: &Path,
    proxy_dirs: &[PathBuf],
) -> Result<TargetChoice, Failure> {
    Ok(TargetChoice::Topology(Box::new(resolved(choice, file, proxy_dirs)?)))
}

fn resolved(choice: &TopologyChoice, file: &Path, proxy_dirs: &[PathBuf]) -> Result<Topology, Failure> {
    let find = |name: &str| match name {
        "builtin" => Ok(None),
        "direct" => Err(LabError::plan("a cache of a topology cannot be `direct`: it would be none")),
        name if is_address(name) => {
            Err(LabError::plan(format!("{name} runs already, and a topology starts its caches itself")))
        }
        name if name.ends_with(".toml") => {
            let path = cells::beside(file, name);
            Ok(Some(assay_lab::find(&path.display().to_string(), proxy_dirs)?))
        }
        name => Ok(Some(assay_lab::find(name, proxy_dirs)?)),
    };
    topology::resolve(choice, find).map_err(Failure::usage)
}

/// True for `HOST:PORT`; no description is called like that.
pub fn is_address(name: &str) -> bool {
    let has_port = name.rsplit_once(':').is_some_and(|(host, port)| !host.is_empty() && !port.contains('/'));
    // A URL was meant as an address, and is refused as one.
    has_port || name.contains("://")
}

/// Refuses a URL where an address is wanted.
pub fn no_url(name: &str) -> Result<(), Failure> {
    let Some((_, rest)) = name.split_once("://") else { return Ok(()) };
    let address = rest.split('/').next().unwrap_or_default();
    Err(Failure::usage(anyhow!("{name} is a URL, where an address is wanted"))
        .hint(format!("write it like {}", if address.contains(':') { address } else { "127.0.0.1:8080" })))
}

/// The address of `HOST:PORT`.
pub fn resolve(name: &str) -> Result<SocketAddr, Failure> {
    no_url(name)?;
    let cannot = |error: std::io::Error| {
        Failure::usage(anyhow::Error::new(error).context(format!("cannot make an address of {name}")))
            .hint("write it like 127.0.0.1:8080 or proxy.example:80")
    };
    let mut addresses = name.to_socket_addrs().map_err(cannot)?;
    addresses.next().ok_or_else(|| Failure::usage(anyhow!("{name} has no address")))
}

/// Refuses a server that is not there before anything is sent to it.
pub fn reachable(address: SocketAddr) -> Result<(), Failure> {
    let refused = |error| Failure::usage(anyhow!("nothing responds at {address}: {error}"));
    TcpStream::connect_timeout(&address, KNOCK)
        .map(drop)
        .map_err(|error| refused(error).hint("start the server first, or say where it is"))
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;
    use crate::args::{Cli, Command};

    fn chosen(arguments: &[&str]) -> Result<TargetChoice, String> {
        let all = ["assay", "run", "demo"].iter().chain(arguments);
        let Command::Run(args) = Cli::parse_from(all).command else { panic!("not a run") };
        choose(&args).map_err(|failure| format!("{:#}", failure.error))
    }

    #[test]
    fn the_builtin_proxy_is_the_default() {
        assert_eq!(chosen(&[]), Ok(TargetChoice::Builtin(Mode::Reverse)));
        assert_eq!(chosen(&["--forward"]), Ok(TargetChoice::Builtin(Mode::Forward)));
    }

    #[test]
    fn direct_has_two_spellings() {
        assert_eq!(chosen(&["--direct"]), Ok(TargetChoice::Direct));
        assert_eq!(chosen(&["--proxy", "direct"]), Ok(TargetChoice::Direct));
    }

    #[test]
    fn host_and_port_are_a_proxy_that_runs_already() {
        let running = |mode| TargetChoice::Running { address: "127.0.0.1:3128".parse().unwrap(), mode };
        assert_eq!(chosen(&["--proxy", "127.0.0.1:3128"]), Ok(running(Mode::Reverse)));
        assert_eq!(chosen(&["--proxy", "127.0.0.1:3128", "--forward"]), Ok(running(Mode::Forward)));
        assert!(chosen(&["--proxy", "127.0.0.1:99999"]).is_err());
    }

    #[test]
    fn a_url_is_not_taken_for_a_name_or_an_address() {
        for url in ["http://127.0.0.1:8080", "http://127.0.0.1:8080/"] {
            assert!(chosen(&["--proxy", url]).unwrap_err().contains("is a URL"), "{url}");
        }
    }

    #[test]
    fn forward_does_not_go_with_direct() {
        assert!(chosen(&["--direct", "--forward"]).unwrap_err().contains("--forward"));
    }
}
