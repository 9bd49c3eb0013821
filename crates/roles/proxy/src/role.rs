//! The proxy as a role process, controlled by standard input and reporting on standard output.

use std::time::Duration;

use crate::spec::ProxySpec;
use assay_net::worker::{pin, raise_descriptor_limit};
use assay_protocol::message::{Command, Event};
use assay_protocol::stdio::{Commands, emit};
use tokio::runtime::{Builder, LocalOptions};
use tokio::time::{MissedTickBehavior, interval};

use crate::error::ProxyError;
use crate::server::Proxy;
use crate::shared::{Clock, ProxyLimits};

const REPORT_INTERVAL: Duration = Duration::from_secs(1);

/// Runs the proxy as the whole process: emits `Ready` when it listens, its counters once a second, and `Done` when it is stopped;
/// ends at once when its standard input does.
///
/// An interrupt from the terminal is left to the parent, which drains the run and then stops its roles.
pub fn run(spec: ProxySpec) -> Result<(), ProxyError> {
    raise_descriptor_limit();
    if let Some(&cpu) = spec.cpus.first() {
        pin(&[cpu])?;
    }
    let runtime = Builder::new_current_thread()
        .enable_all()
        .build_local(LocalOptions::default())
        .map_err(ProxyError::Runtime)?;
    let result = runtime.block_on(serve_until_stopped(&spec));
    // A name lookup may still be running; it is not waited for.
    runtime.shutdown_background();
    result
}

async fn serve_until_stopped(spec: &ProxySpec) -> Result<(), ProxyError> {
    let mut commands = Commands::from_stdin().map_err(ProxyError::Runtime)?;
    let proxy = Proxy::bind(spec, Clock::System, ProxyLimits::default())?;
    emit(&Event::Ready { listening: vec![proxy.address()] })?;
    let mut tick = interval(REPORT_INTERVAL);
    tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let serving = proxy.serve();
    tokio::pin!(serving);
    loop {
        tokio::select! {
            () = &mut serving => {}
            _ = tick.tick() => emit(&Event::Proxy(proxy.counters().into()))?,
            command = commands.next() => match command? {
                Some(Command::Stop) => {
                    proxy.flush();
                    emit(&Event::Proxy(proxy.counters().into()))?;
                    return Ok(emit(&Event::Done)?);
                }
                Some(_) => {}
                None => return Ok(()),
            },
        }
    }
}
