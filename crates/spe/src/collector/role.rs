//! How does the Collector run as a process of its own, told by standard input and reporting on standard output?

use std::rc::Rc;

use assay_plane::stdio::{Commands, emit};
use assay_plane::worker::{pin, raise_descriptor_limit};
use assay_record::role::{Command, Event};
use tokio::runtime::{Builder, LocalOptions};

use crate::collector::error::CollectorError;
use crate::collector::server::Collector;
use crate::spec::CollectorSpec;

/// Runs the Collector as the whole process: says `Ready` when all doors are open (in the order in which they were
/// given), `Done` when it is told to stop, and ends at once when its standard input does.
pub fn run(spec: &CollectorSpec) -> Result<(), CollectorError> {
    raise_descriptor_limit();
    pin(&spec.cpus)?;
    let runtime = Builder::new_current_thread()
        .enable_all()
        .build_local(LocalOptions::default())
        .map_err(CollectorError::Runtime)?;
    let result = runtime.block_on(obey(spec));
    // A look-up of a name may still be running; nobody waits for it.
    runtime.shutdown_background();
    result
}

async fn obey(spec: &CollectorSpec) -> Result<(), CollectorError> {
    let mut commands = Commands::from_stdin().map_err(CollectorError::Runtime)?;
    let collector = Rc::new(Collector::bind(spec)?);
    emit(&Event::Ready { listening: collector.addresses().to_vec() })?;
    let serving = Rc::clone(&collector).serve();
    tokio::pin!(serving);
    loop {
        tokio::select! {
            ended = &mut serving => return ended,
            command = commands.next() => match command? {
                Some(Command::Stop) => return Ok(emit(&Event::Done)?),
                Some(_) => {}
                None => return Ok(()),
            },
        }
    }
}
