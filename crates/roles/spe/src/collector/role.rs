//! The Collector as a role process, controlled by standard input and reporting on standard output.

use std::rc::Rc;
use std::time::Duration;

use crate::spec::CollectorSpec;
use assay_base::clock::monotonic_ns;
use assay_measurement::declared::since;
use assay_measurement::doubt::Reason;
use assay_net::worker::{pin, raise_descriptor_limit};
use assay_protocol::clock::RunClock;
use assay_protocol::evaluation::{CollectorCounters, CollectorInterval, ListenerRow};
use assay_protocol::message::{Command, Event};
use assay_protocol::stdio::{Commands, emit};
use tokio::runtime::{Builder, LocalOptions};
use tokio::time::{MissedTickBehavior, interval};

use crate::collector::error::CollectorError;
use crate::collector::server::Collector;
use crate::peak_memory_bytes;

const REPORT_INTERVAL: Duration = Duration::from_secs(1);

/// Runs the Collector as the whole process: emits `Ready` when all listeners are open (in the order of the settings), reports
/// once a second, emits `Done` when it is stopped, and ends at once when its standard input does.
pub fn run(spec: &CollectorSpec) -> Result<(), CollectorError> {
    raise_descriptor_limit();
    pin(&spec.cpus)?;
    let runtime = Builder::new_current_thread()
        .enable_all()
        .build_local(LocalOptions::default())
        .map_err(CollectorError::Runtime)?;
    let result = runtime.block_on(serve_until_stopped(spec));
    // A name lookup may still be running; it is not waited for.
    runtime.shutdown_background();
    result
}

async fn serve_until_stopped(spec: &CollectorSpec) -> Result<(), CollectorError> {
    let mut commands = Commands::from_stdin().map_err(CollectorError::Runtime)?;
    let collector = Rc::new(Collector::bind(spec)?);
    emit(&Event::Ready { listening: collector.addresses().to_vec() })?;
    let mut reporter = Reporter::new(spec.listeners.len());
    let mut tick = interval(REPORT_INTERVAL);
    tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let serving = Rc::clone(&collector).serve();
    tokio::pin!(serving);
    loop {
        tokio::select! {
            ended = &mut serving => return ended,
            _ = tick.tick() => {
                emit(&reporter.report(&collector))?;
                while let Some(fault) = collector.next_fault() {
                    emit_fault(fault)?;
                }
            }
            command = commands.next() => match command? {
                Some(Command::Stop) => {
                    emit(&reporter.report(&collector))?;
                    match collector.finish_log() {
                        Ok(faults) => faults.into_iter().try_for_each(emit_fault)?,
                        Err(error) => {
                            // Also as an event: standard error may be on the same full disk.
                            emit_fault(error.to_string())?;
                            return Err(error);
                        }
                    }
                    return Ok(emit(&Event::Done)?);
                }
                Some(Command::Start { at_monotonic_ns: start_ns, at_unix_s: start_unix_s }) => {
                    reporter.clock = RunClock { start_ns, start_unix_s };
                    collector.starts(reporter.clock);
                }
                // Only for robots.
                Some(Command::Load { .. } | Command::Clock { .. } | Command::Waits(_)) => {}
                None => return Ok(()),
            },
        }
    }
}

fn emit_fault(message: String) -> Result<(), CollectorError> {
    Ok(emit(&Event::Fault { reason: Reason::SamplesDropped, message })?)
}

/// Counters of the previous report.
struct Reporter {
    clock: RunClock,
    last: Vec<ListenerRow>,
}

impl Reporter {
    fn new(listeners: usize) -> Self {
        Self { clock: RunClock::provisional(), last: vec![ListenerRow::default(); listeners] }
    }

    /// Reports the changes since the previous report.
    fn report(&mut self, collector: &Collector) -> Event {
        let at_us = self.clock.since_start_us(monotonic_ns());
        let listeners = collector.take_listeners();
        let at_s = u32::try_from(at_us / 1_000_000).unwrap_or(u32::MAX);
        let rows = (0..).zip(listeners.iter().zip(&self.last)).map(|(listener, (now, before))| ListenerRow {
            at_s,
            listener,
            late_max_us: now.late_max_us,
            ..since(now, before)
        });
        let is_idle = |row: &ListenerRow| {
            row.requests + row.bytes_out + row.bytes_in + row.replays + row.joined + row.late_max_us == 0
        };
        let rows = rows.filter(|row| !is_idle(row)).collect();
        self.last = listeners;
        let counters = CollectorCounters { peak_memory_bytes: peak_memory_bytes(), ..collector.counters() };
        Event::Collector(Box::new(CollectorInterval { at_ms: at_us / 1_000, counters, listeners: rows }))
    }
}
