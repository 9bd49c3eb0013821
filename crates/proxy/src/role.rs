//! How does the proxy run as a process of its own, told by standard input and reporting on standard output?

use std::io::{self, BufRead, Write};
use std::time::Duration;

use assay_record::role::{Command, Event};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use rustix::thread::{CpuSet, sched_setaffinity};
use tokio::runtime::{Builder, LocalOptions};
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};
use tokio::time::{MissedTickBehavior, interval};

use crate::error::ProxyError;
use crate::server::Proxy;
use crate::shared::{Clock, Limits};
use crate::spec::ProxySpec;

/// How often counters are reported.
const REPORT: Duration = Duration::from_secs(1);

/// Runs the proxy as the whole process: says `Ready` when it listens, reports its counters once a second,
/// says `Done` when it is told to stop, and ends at once when its standard input does.
///
/// An interrupt from the terminal is left to the parent, which drains the run and then stops its roles.
pub fn run(spec: ProxySpec) -> Result<(), ProxyError> {
    leave_interrupts_to_the_parent();
    raise_descriptor_limit();
    if let Some(&cpu) = spec.cpus.first() {
        pin(cpu)?;
    }
    let runtime = Builder::new_current_thread()
        .enable_all()
        .build_local(LocalOptions::default())
        .map_err(ProxyError::Runtime)?;
    let commands = read_commands();
    let result = runtime.block_on(obey(&spec, commands));
    // A look-up of a name may still be running; nobody waits for it.
    runtime.shutdown_background();
    result
}

async fn obey(spec: &ProxySpec, mut commands: UnboundedReceiver<Command>) -> Result<(), ProxyError> {
    let proxy = Proxy::bind(spec, Clock::System, Limits::default())?;
    report(&Event::Ready { listening: vec![proxy.address()] })?;
    let mut tick = interval(REPORT);
    tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let serving = proxy.serve();
    tokio::pin!(serving);
    loop {
        tokio::select! {
            () = &mut serving => {}
            _ = tick.tick() => report(&Event::Proxy(proxy.counters()))?,
            command = commands.recv() => match command {
                Some(Command::Start { .. }) => {}
                Some(Command::Stop) => {
                    report(&Event::Proxy(proxy.counters()))?;
                    return report(&Event::Done);
                }
                None => return Ok(()),
            },
        }
    }
}

/// Reads commands on a thread of its own: standard input cannot be polled in every case.
fn read_commands() -> UnboundedReceiver<Command> {
    let (sender, receiver) = unbounded_channel();
    std::thread::spawn(move || {
        for line in io::stdin().lock().lines() {
            let Ok(line) = line else { return };
            match serde_json::from_str(&line) {
                Ok(command) => {
                    if sender.send(command).is_err() {
                        return;
                    }
                }
                Err(error) => eprintln!("assay proxy: not a command: {line:?}: {error}"),
            }
        }
    });
    receiver
}

fn report(event: &Event) -> Result<(), ProxyError> {
    let mut line = serde_json::to_vec(event).map_err(|error| ProxyError::Report(error.into()))?;
    line.push(b'\n');
    let mut out = io::stdout().lock();
    out.write_all(&line).and_then(|()| out.flush()).map_err(ProxyError::Report)
}

fn leave_interrupts_to_the_parent() {
    // SAFETY: SIG_IGN runs no code of ours, and no other thread exists yet.
    unsafe { libc::signal(libc::SIGINT, libc::SIG_IGN) };
}

/// As many descriptors as the system allows; fewer is no reason not to start.
fn raise_descriptor_limit() {
    let limit = getrlimit(Resource::Nofile);
    let _ = setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, maximum: limit.maximum });
}

fn pin(cpu: u32) -> Result<(), ProxyError> {
    let refused = |source| ProxyError::Pin { cpu, source };
    let index = usize::try_from(cpu).unwrap_or(usize::MAX);
    if index >= CpuSet::MAX_CPU {
        return Err(refused(io::ErrorKind::InvalidInput.into()));
    }
    let mut set = CpuSet::new();
    set.set(index);
    sched_setaffinity(None, &set).map_err(|error| refused(error.into()))
}
