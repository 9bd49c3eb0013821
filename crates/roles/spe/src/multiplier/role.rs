//! The Multiplier as a process of its own, told by standard input and reporting on standard output.

use std::time::Duration;

use crate::spec::MultiplierSpec;
use assay_measurement::doubt::Reason;
use assay_net::worker::{pin, raise_descriptor_limit};
use assay_protocol::message::{Command, Event};
use assay_protocol::stdio::{Commands, emit};
use tokio::runtime::{Builder, LocalOptions};
use tokio::time::{MissedTickBehavior, interval};

use super::{Limits, Multiplier, MultiplierError};
use crate::memory::peak_memory_bytes;

/// How often counters are reported.
const REPORT: Duration = Duration::from_secs(1);

/// Runs the Multiplier as the whole process: says `Ready` when it listens, reports its counters once a second, drains and
/// says `Done` when it is told to stop, and ends at once when its standard input does.
pub fn run(spec: MultiplierSpec) -> Result<(), MultiplierError> {
    raise_descriptor_limit();
    pin(&spec.cpus)?;
    let runtime = Builder::new_current_thread()
        .enable_all()
        .build_local(LocalOptions::default())
        .map_err(MultiplierError::Start)?;
    let result = runtime.block_on(obey(&spec));
    // A look-up of a name may still be running; it is not waited for.
    runtime.shutdown_background();
    result
}

async fn obey(spec: &MultiplierSpec) -> Result<(), MultiplierError> {
    let mut commands = Commands::from_stdin().map_err(MultiplierError::Start)?;
    let multiplier = Multiplier::bind(spec, Limits::default())?;
    emit(&Event::Ready { listening: vec![multiplier.address()] })?;
    let mut tick = interval(REPORT);
    tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let told = {
        let serving = multiplier.serve();
        tokio::pin!(serving);
        loop {
            tokio::select! {
                () = &mut serving => {}
                _ = tick.tick() => {
                    report(multiplier.counters())?;
                    while let Some(trouble) = multiplier.trouble() {
                        fault(&trouble)?;
                    }
                }
                command = commands.next() => match command? {
                    Some(Command::Start { at_monotonic_ns, .. }) => multiplier.start(at_monotonic_ns),
                    Some(Command::Stop) => break true,
                    // That is for robots.
                    Some(Command::Load { .. } | Command::Clock { .. } | Command::Waits(_)) => {}
                    None => break false,
                },
            }
        }
    };
    if !told {
        return multiplier.abandon();
    }
    match multiplier.finish().await {
        Ok((counters, troubles)) => {
            troubles.iter().try_for_each(|trouble| fault(trouble))?;
            report(counters)?;
        }
        Err(error) => {
            // Its own log may be on a disk without room, too.
            fault(&error.to_string())?;
            return Err(error);
        }
    }
    Ok(emit(&Event::Done)?)
}

fn fault(message: &str) -> Result<(), MultiplierError> {
    Ok(emit(&Event::Fault { reason: Reason::SamplesDropped, message: message.to_owned() })?)
}

fn report(mut counters: assay_protocol::evaluation::MultiplierCounters) -> Result<(), MultiplierError> {
    counters.peak_memory_bytes = peak_memory_bytes();
    Ok(emit(&Event::Multiplier(Box::new(counters)))?)
}
