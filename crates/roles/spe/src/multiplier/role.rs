//! The Multiplier as a role process, controlled by standard input and reporting on standard output.

use std::time::Duration;

use crate::spec::MultiplierSpec;
use assay_measurement::doubt::Reason;
use assay_net::worker::{pin, raise_descriptor_limit};
use assay_protocol::message::{Command, Event};
use assay_protocol::stdio::{Commands, emit};
use tokio::runtime::{Builder, LocalOptions};
use tokio::time::{MissedTickBehavior, interval};

use super::{Multiplier, MultiplierError, MultiplierLimits};
use crate::peak_memory_bytes;

const REPORT_INTERVAL: Duration = Duration::from_secs(1);

/// Runs the Multiplier as the whole process: emits `Ready` when it listens, and its counters once a second; when it is stopped,
/// drains and emits `Done`; ends at once when its standard input does.
pub fn run(spec: MultiplierSpec) -> Result<(), MultiplierError> {
    raise_descriptor_limit();
    pin(&spec.cpus)?;
    let runtime = Builder::new_current_thread()
        .enable_all()
        .build_local(LocalOptions::default())
        .map_err(MultiplierError::Start)?;
    let result = runtime.block_on(serve_until_stopped(&spec));
    // A name lookup may still be running; it is not waited for.
    runtime.shutdown_background();
    result
}

async fn serve_until_stopped(spec: &MultiplierSpec) -> Result<(), MultiplierError> {
    let mut commands = Commands::from_stdin().map_err(MultiplierError::Start)?;
    let multiplier = Multiplier::bind(spec, MultiplierLimits::default())?;
    emit(&Event::Ready { listening: vec![multiplier.address()] })?;
    let mut tick = interval(REPORT_INTERVAL);
    tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let must_finish = {
        let serving = multiplier.serve();
        tokio::pin!(serving);
        loop {
            tokio::select! {
                () = &mut serving => {}
                _ = tick.tick() => {
                    report(multiplier.counters())?;
                    while let Some(fault) = multiplier.next_fault() {
                        emit_fault(&fault)?;
                    }
                }
                command = commands.next() => match command? {
                    Some(Command::Start { at_monotonic_ns, .. }) => multiplier.start(at_monotonic_ns),
                    Some(Command::Stop) => break true,
                    // Only for robots.
                    Some(Command::Load { .. } | Command::Clock { .. } | Command::Waits(_)) => {}
                    None => break false,
                },
            }
        }
    };
    if !must_finish {
        return multiplier.abandon();
    }
    match multiplier.finish().await {
        Ok((counters, faults)) => {
            faults.iter().try_for_each(|fault| emit_fault(fault))?;
            report(counters)?;
        }
        Err(error) => {
            // Also as an event: standard error may be on the same full disk.
            emit_fault(&error.to_string())?;
            return Err(error);
        }
    }
    Ok(emit(&Event::Done)?)
}

fn emit_fault(message: &str) -> Result<(), MultiplierError> {
    Ok(emit(&Event::Fault { reason: Reason::SamplesDropped, message: message.to_owned() })?)
}

fn report(mut counters: assay_protocol::evaluation::MultiplierCounters) -> Result<(), MultiplierError> {
    counters.peak_memory_bytes = peak_memory_bytes();
    Ok(emit(&Event::Multiplier(Box::new(counters)))?)
}
