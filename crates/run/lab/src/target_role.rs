//! A real proxy as a role process: started from its description, reported once a second, stopped at the end of its input.
//!
//! On its own machine the lab drives real proxies itself. On another machine everything is a role, and this is the one that
//! stands for a real proxy: an agent starts it as it starts robots.

use std::io;
use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;

use crate::target_spec::{TargetSpec, TargetTls};
use assay_net::tls::authority::Identity;
use assay_net::tls::settings::ServerTls;
use assay_protocol::message::{Command, Event};
use assay_protocol::stdio::{Commands, StdioError, emit};

use crate::capacity;
use crate::counter_reader::CounterReader;
use crate::description::{self, TemplateOrigin};
use crate::error::{FileError, LabError};
use crate::mode::Mode;
use crate::placement;
use crate::prepare;
use crate::real_proxy::{RealProxy, RealProxyPlan};
use crate::tls::ProxyTls;

/// Reason why a real proxy could not be run as a role.
#[derive(Debug, thiserror::Error)]
pub enum TargetRoleError {
    /// Talking to the parent failed.
    #[error(transparent)]
    Stdio(#[from] StdioError),
    #[error(transparent)]
    Proxy(#[from] LabError),
    /// The process could not be set up.
    #[error("the proxy cannot be run: {0}")]
    Setup(#[from] io::Error),
}

/// Starts the proxy and serves its parent until that has heard everything or is gone.
pub fn run(spec: &TargetSpec) -> Result<(), TargetRoleError> {
    let choice = choice(spec)?;
    std::fs::create_dir_all(&spec.keep)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(serve(choice))
}

/// Plan of the proxy on this machine.
fn choice(spec: &TargetSpec) -> Result<RealProxyPlan, LabError> {
    let mut description = description::find(&spec.description, &[])?;
    description.set(&spec.settings)?;
    let mode = if spec.forward { Mode::Forward } else { Mode::Reverse };
    prepare::check_described(&description, mode)?;
    let origins = spec.origins.iter().enumerate();
    let origins = origins.map(|(index, route)| TemplateOrigin::new(index, &route.authority, route.address));
    Ok(RealProxyPlan {
        mode,
        http2: spec.http2,
        origin_http2: spec.origin_http2,
        listen: spec.listen,
        origins: origins.collect(),
        memory_bytes: spec.memory_bytes,
        disk_bytes: spec.disk_bytes,
        cpus: Vec::new(),
        cpu_count: placement::threads(0, &[], &placement::available()),
        procs_files: Vec::new(),
        helper_cpus: Vec::new(),
        descriptors: capacity::raise_descriptor_limit(),
        connections: spec.connections,
        peering: None,
        tls: spec.tls.as_ref().map(tls).transpose()?,
        keep: spec.keep.clone(),
        namespace: None,
        requested_from: None,
        temp: None,
        description,
    })
}

/// The certificates that the spec names.
fn tls(spec: &TargetTls) -> Result<ProxyTls, LabError> {
    let read = |path: &Path| {
        let text = assay_base::files::text(path, assay_base::files::SETTINGS_MAX);
        text.map_err(|e| LabError::plan(FileError::read(path, e)))
    };
    let identity = |listen: &ServerTls| {
        Ok::<_, LabError>(Identity { certificate: read(&listen.certificate)?, key: read(&listen.key)? })
    };
    Ok(ProxyTls {
        identity: spec.listen.as_ref().map(identity).transpose()?,
        to_origins: spec.to_origins,
        ca: read(&spec.ca)?,
    })
}

async fn serve(choice: RealProxyPlan) -> Result<(), TargetRoleError> {
    let listen = choice.listen;
    let mut commands = Commands::from_stdin()?;
    let mut proxy = RealProxy::start(choice).await?;
    tokio::select! {
        ready = proxy.wait_ready() => ready?,
        // Nobody commands anything before the proxy is ready, but for the end.
        _ = commands.next() => {
            proxy.stop(None).await;
            return Ok(());
        }
    }
    emit(&Event::Ready { listening: vec![listen] })?;
    let mut reader = proxy.counter_reader();
    let result = attend(&mut proxy, &mut reader, &mut commands, listen).await;
    // Its parent has everything by then; a store of many files may take long to remove.
    let said = if result.is_ok() { emit(&Event::Done) } else { Ok(()) };
    proxy.stop(Some(&mut reader)).await;
    result?;
    Ok(said?)
}

/// Reports until it is told to stop, the parent is gone, or the proxy ends by itself.
async fn attend(
    proxy: &mut RealProxy,
    reader: &mut CounterReader,
    commands: &mut Commands,
    listen: SocketAddr,
) -> Result<(), TargetRoleError> {
    let mut is_started = false;
    let mut ticker = tokio::time::interval(Duration::from_secs(1));
    ticker.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            command = commands.next() => match command? {
                Some(Command::Start { .. }) => is_started = true,
                Some(Command::Stop) | None => break,
                Some(_) => {}
            },
            _ = ticker.tick() => {
                if let Some(words) = proxy.exit_message() {
                    return Err(LabError::target(format!("the proxy at {listen}: {words}")).into());
                }
                if is_started {
                    report(reader).await?;
                }
            }
        }
    }
    if is_started {
        proxy.settle().await;
        report(reader).await?;
    }
    Ok(())
}

/// Reports the proxy's counters, if it has any.
async fn report(reader: &mut CounterReader) -> Result<(), TargetRoleError> {
    if reader.has_sources()
        && let Ok(counters) = reader.read().await
    {
        emit(&Event::Proxy(Box::new(counters)))?;
    }
    Ok(())
}
