//! Router of the messages of agents: from the stream of the run to the role that they belong to.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::machines::fleet::message::{self, InOrder, Output, Report};
use crate::machines::fleet::name::Name;
use crate::machines::fleet::subject;
use crate::roles::{RoleEvent, RoleKind};
use assay_measurement::doubt::Reason;
use assay_measurement::measured::Measured;
use assay_protocol::message::{Event, PhaseEvent};
use async_nats::Client;
use async_nats::jetstream::consumer::push::OrderedConfig;
use async_nats::jetstream::context::GetStreamErrorKind;
use async_nats::jetstream::{self, stream};
use futures_util::StreamExt;
use tokio::sync::{mpsc, oneshot};

use super::merge::RoleMerger;
use crate::machines::error::FleetError;

/// Time for which the stream of a run is kept, should nobody remove it.
const KEPT: Duration = Duration::from_secs(24 * 3600);
/// The last instant of any run, in milliseconds since its start.
const MOST_MS: u64 = 1 << 48;
/// So much of what a role says in words is passed on.
const MOST_LETTERS: usize = 1000;
/// Pause before the stream is read again after it could not be.
const PAUSE: Duration = Duration::from_millis(200);

/// One role of the run, wherever its parts are.
#[derive(Debug)]
struct MergedRole {
    kind: RoleKind,
    gather: RoleMerger,
    said: mpsc::UnboundedSender<(RoleKind, RoleEvent)>,
    /// Messages on the ends of its parts, as their agents say.
    exit_summaries: Vec<String>,
}

/// Destination of the output of a role on a machine.
#[derive(Debug, Clone, Copy)]
struct Route {
    /// Number of the role in the run.
    role: usize,
    /// Number of the part of that role.
    part: usize,
}

/// Second reading of the messages that were stored before this coordinator began: all of it first, and then who has ended meanwhile.
#[derive(Debug)]
struct StreamReplay {
    /// The last message that was stored before.
    until: u64,
    held: Vec<(Route, String, Option<Name>)>,
    over: oneshot::Sender<()>,
}

#[derive(Debug, Default)]
struct RouterState {
    roles: Vec<MergedRole>,
    routes: BTreeMap<(Name, u32), Route>,
    orders: BTreeMap<Name, InOrder>,
    /// The machine whose processors, disks and network are the run's: that of the target.
    measured: Option<Name>,
    replay: Option<StreamReplay>,
    /// The end of the last interval that each machine has reported, in milliseconds since the start.
    reported_ms: BTreeMap<Name, u64>,
}

/// Sorts what agents say.
#[derive(Debug, Clone, Default)]
pub struct Router(Arc<Mutex<RouterState>>);

impl Router {
    fn locked(&self) -> MutexGuard<'_, RouterState> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The machine of which more is recorded than its roles.
    pub fn measure(&self, machine: Name) {
        self.locked().measured = Some(machine);
    }

    /// A role that begins: its parts are the roles of these numbers on these machines, with so many threads at most.
    pub fn add(
        &self,
        kind: RoleKind,
        parts: &[(Name, u32, u32)],
        said: mpsc::UnboundedSender<(RoleKind, RoleEvent)>,
    ) -> usize {
        let mut state = self.locked();
        let place = state.roles.len();
        let threads: Vec<u32> = parts.iter().map(|(.., threads)| *threads).collect();
        state.roles.push(MergedRole {
            kind,
            gather: RoleMerger::new(&threads),
            said,
            exit_summaries: Vec::new(),
        });
        for (part, (machine, number, _)) in parts.iter().enumerate() {
            state.routes.insert((machine.clone(), *number), Route { role: place, part });
        }
        place
    }

    /// The stream has messages up to this one already: nobody's end is told before all of them were read. Tells when they were.
    pub fn replay(&self, until: u64) -> oneshot::Receiver<()> {
        let (over, replayed) = oneshot::channel();
        self.locked().replay = Some(StreamReplay { until, held: Vec::new(), over });
        self.read_up_to(0);
        replayed
    }

    /// Everything up to a message was read.
    fn read_up_to(&self, sequence: u64) {
        let mut state = self.locked();
        let Some(StreamReplay { held, over, .. }) = state.replay.take_if(|replay| replay.until <= sequence)
        else {
            return;
        };
        for (route, words, machine) in held {
            state.put(route, Output::Ended(words), machine.as_ref());
        }
        // Whoever waits may have been dropped.
        let _ = over.send(());
    }

    /// The end of the last interval that a machine has reported, in milliseconds since the start; none: it has reported none.
    pub fn reported_ms(&self, machine: &Name) -> Option<u64> {
        self.locked().reported_ms.get(machine).copied()
    }

    /// The number of a role of this kind on a machine.
    pub fn number(&self, machine: &Name, kind: RoleKind) -> Option<u32> {
        let state = self.locked();
        let mut routes = state.routes.iter();
        let is_it = |place: &usize| state.roles.get(*place).is_some_and(|role| role.kind == kind);
        routes
            .find(|((owner, _), route)| owner == machine && is_it(&route.role))
            .map(|((_, number), _)| *number)
    }

    /// Messages on the ends of a role's parts, as far as that was said.
    pub fn exit_summary(&self, place: usize) -> String {
        self.locked().roles.get(place).map(|role| role.exit_summaries.join("\n")).unwrap_or_default()
    }

    /// A machine is lost: all its roles have ended.
    pub fn lose(&self, machine: &Name, words: &str) {
        self.locked().lose(machine, words);
    }

    /// Takes a message of a machine.
    fn take(&self, machine: &Name, report: Report) {
        let mut state = self.locked();
        let order = state.orders.entry(machine.clone()).or_default();
        let (was_missing, turn, missing) = (order.missing(), order.take(report), order.missing());
        if let Some(number) = missing.filter(|_| was_missing.is_none()) {
            let words = format!(
                "message {number} of the agent {machine} is missing, and what came after it is of no use"
            );
            state.lose(machine, &words);
        }
        for Report { role, output, .. } in turn {
            let output = believed(output);
            if let Some(end_ms) = end_ms(&output) {
                let last_ms = state.reported_ms.entry(machine.clone()).or_default();
                *last_ms = end_ms.max(*last_ms);
            }
            match role {
                Some(number) => {
                    if let Some(route) = state.routes.get(&(machine.clone(), number)).copied() {
                        state.put(route, output, Some(machine));
                    }
                }
                None => state.put_of_machine(machine, output),
            }
        }
    }
}

/// Output as it was sent, or a fault if it cannot be so: with instants that no run has, nothing could be computed.
fn believed(output: Output) -> Output {
    let told_ms = match &output {
        Output::Event(event) => match **event {
            Event::Phase(PhaseEvent::Began { at_ms, .. } | PhaseEvent::Ended { at_ms, .. }) => Some(at_ms),
            _ => end_ms(&output),
        },
        _ => None,
    };
    match told_ms.filter(|told_ms| *told_ms > MOST_MS) {
        Some(told_ms) => {
            let message = format!("its agent tells of {told_ms} ms since the start, which is not recorded");
            Output::Event(Box::new(Event::Fault { reason: Reason::RoleFailed, message }))
        }
        None => output,
    }
}

/// The end of the interval that was measured.
fn end_ms(output: &Output) -> Option<u64> {
    let Output::Event(event) = output else { return None };
    let Event::Measured(measured) = &**event else { return None };
    match measured {
        Measured::Robots(interval) => Some(interval.start_ms.saturating_add(interval.length_ms)),
        Measured::Origins(interval) => Some(interval.start_ms.saturating_add(interval.length_ms)),
        Measured::Host(interval) => Some(interval.start_ms.saturating_add(interval.length_ms)),
        _ => None,
    }
}

/// Adds the name of the machine to a fault.
fn located(mut event: Box<Event>, machine: Option<&Name>) -> Box<Event> {
    if let (Event::Fault { message, .. }, Some(machine)) = (&mut *event, machine) {
        let said: String = message.chars().take(MOST_LETTERS).collect();
        *message = format!("on the machine {machine}: {said}");
    }
    event
}

impl RouterState {
    /// All roles of a machine have ended.
    fn lose(&mut self, machine: &Name, words: &str) {
        let routes = self.routes.iter().filter(|((owner, _), _)| owner == machine);
        let routes: Vec<Route> = routes.map(|(_, route)| *route).collect();
        for route in routes {
            self.put(route, Output::Ended(words.to_owned()), None);
        }
    }

    fn put(&mut self, route: Route, output: Output, machine: Option<&Name>) {
        let output = match (output, &mut self.replay) {
            (Output::Ended(words), Some(replay)) => {
                replay.held.push((route, words, machine.cloned()));
                return;
            }
            (output, _) => output,
        };
        let Some(role) = self.roles.get_mut(route.role) else { return };
        let said = match output {
            Output::Event(event) => RoleEvent::Event(located(event, machine)),
            Output::Nonsense(line) => RoleEvent::Malformed(line.chars().take(MOST_LETTERS).collect()),
            Output::Ended(words) => {
                if !words.is_empty() {
                    let on = machine.map(|machine| format!("on {machine}: ")).unwrap_or_default();
                    role.exit_summaries.push(format!("{on}{words}"));
                }
                RoleEvent::Ended
            }
        };
        for said in role.gather.take(route.part, said) {
            // The receiver is gone when the run is over.
            let _ = role.said.send((role.kind, said));
        }
    }

    /// Passes on the measurements of a machine: of roles always, of the machine only where it is the target's. Those of several would be
    /// taken for one.
    fn put_of_machine(&mut self, machine: &Name, output: Output) {
        let Output::Event(event) = output else { return };
        let is_of_role = matches!(&*event, Event::Measured(Measured::Host(host)) if host.role != "host");
        if !is_of_role && self.measured.as_ref() != Some(machine) {
            return;
        }
        if let Some(role) = self.roles.first() {
            let _ = role.said.send((role.kind, RoleEvent::Event(event)));
        }
    }
}

/// Makes the stream and the object store of a run.
pub async fn make(client: &Client, run: &Name) -> Result<(), FleetError> {
    let context = jetstream::new(client.clone());
    let cannot = |what: &str, e: &dyn std::fmt::Display| {
        FleetError::plan(format!(
            "cannot make the {what} of the run on the NATS server: {e}; it needs JetStream (`nats-server -js`), and an account that \
             may use it"
        ))
    };
    let config = stream::Config {
        name: subject::stream(run),
        subjects: vec![subject::all_reports(run)],
        storage: stream::StorageType::File,
        max_age: KEPT,
        ..stream::Config::default()
    };
    context.create_stream(config).await.map_err(|e| cannot("stream", &e))?;
    let config = jetstream::object_store::Config {
        bucket: subject::bucket(run),
        max_age: KEPT,
        storage: stream::StorageType::File,
        ..jetstream::object_store::Config::default()
    };
    context.create_object_store(config).await.map_err(|e| cannot("object store", &e))?;
    Ok(())
}

pub async fn remove(client: &Client, run: &Name) {
    let context = jetstream::new(client.clone());
    // What stays is removed by its age.
    let _ = context.delete_stream(subject::stream(run)).await;
    let _ = context.delete_object_store(subject::bucket(run)).await;
}

/// Reads the stream from its beginning until the task is dropped.
pub async fn read(client: Client, run: Name, router: Router) {
    loop {
        // What was read before is read again, and counts once.
        let _ = read_once(&client, &run, &router).await;
        tokio::time::sleep(PAUSE).await;
    }
}

async fn read_once(client: &Client, run: &Name, router: &Router) -> Result<(), async_nats::Error> {
    let stream = jetstream::new(client.clone()).get_stream(subject::stream(run)).await?;
    let config = OrderedConfig { deliver_subject: client.new_inbox(), ..OrderedConfig::default() };
    let mut messages = stream.create_consumer(config).await?.messages().await?;
    while let Some(message) = messages.next().await {
        let message = message?;
        let sequence = message.info().map_or(0, |info| info.stream_sequence);
        let machine = message.subject.rsplit('.').next().and_then(|name| name.parse::<Name>().ok());
        // What is no message of ours was put there by somebody else.
        if let (Some(machine), Ok(report)) = (machine, message::read_plain(&message.payload)) {
            router.take(&machine, report);
        }
        router.read_up_to(sequence);
    }
    Ok(())
}

/// The last message that the stream of a run has; none: the server has no such stream.
pub async fn last_stored(client: &Client, run: &Name) -> Result<Option<u64>, FleetError> {
    let stream = jetstream::new(client.clone()).get_stream(subject::stream(run)).await;
    match stream {
        Ok(stream) => Ok(Some(stream.cached_info().state.last_sequence)),
        Err(e) if matches!(e.kind(), GetStreamErrorKind::JetStream(ref e) if e.code() == 404) => Ok(None),
        Err(e) => Err(FleetError::plan(format!("cannot look for the stream of the run {run}: {e}"))),
    }
}

#[cfg(test)]
mod tests {
    use assay_measurement::interval::RobotInterval;

    use super::*;

    #[test]
    fn nobody_has_ended_before_everything_that_was_stored_is_read() {
        let router = Router::default();
        let (said, mut heard) = mpsc::unbounded_channel();
        let name: Name = "m1".parse().unwrap();
        router.add(RoleKind::Robots, &[(name.clone(), 7, 1)], said);
        let mut replayed = router.replay(2);
        router.lose(&name, "it is gone");
        router.read_up_to(1);
        assert!(heard.try_recv().is_err() && replayed.try_recv().is_err());
        let done = Report { number: 0, role: Some(7), output: Output::Nonsense("x".into()) };
        router.take(&name, done);
        router.read_up_to(2);
        assert!(matches!(heard.try_recv(), Ok((_, RoleEvent::Malformed(_)))));
        assert!(matches!(heard.try_recv(), Ok((_, RoleEvent::Ended))));
        assert!(replayed.try_recv().is_ok());
        // A stream with nothing in it has been read.
        assert!(router.replay(0).try_recv().is_ok());
    }

    #[test]
    fn a_machine_is_named_that_tells_of_instants_of_no_run_or_lacks_a_message() {
        let router = Router::default();
        let (said, mut heard) = mpsc::unbounded_channel();
        let name: Name = "m1".parse().unwrap();
        let place = router.add(RoleKind::Robots, &[(name.clone(), 7, 1)], said);
        let interval = RobotInterval { start_ms: u64::MAX, length_ms: u64::MAX, ..RobotInterval::default() };
        let interval = Output::Event(Box::new(Event::Measured(Measured::Robots(Box::new(interval)))));
        router.take(&name, Report { number: 0, role: Some(7), output: interval });
        assert_eq!(router.reported_ms(&name), None);
        let (_, said) = heard.try_recv().unwrap();
        let RoleEvent::Event(event) = said else { panic!("it is an event") };
        let Event::Fault { message, .. } = *event else { panic!("{event:?}") };
        assert!(
            message.starts_with("on the machine m1: its agent tells of 18446744073709551615 ms"),
            "{message}"
        );
        for number in 2..5000 {
            router.take(&name, Report { number, role: Some(7), output: Output::Nonsense("x".into()) });
        }
        let ends =
            std::iter::from_fn(|| heard.try_recv().ok()).filter(|(_, said)| matches!(said, RoleEvent::Ended));
        assert_eq!(ends.count(), 1);
        assert!(router.exit_summary(place).starts_with("message 1 of the agent m1 is missing"));
    }

    #[test]
    fn what_went_wrong_on_a_machine_is_said_with_its_name() {
        let router = Router::default();
        let (said, mut heard) = mpsc::unbounded_channel();
        let name: Name = "m1".parse().unwrap();
        router.add(RoleKind::Robots, &[(name.clone(), 7, 1)], said);
        let fault = Event::Fault { reason: Reason::RoleFailed, message: "the disk is full".into() };
        router.take(&name, Report { number: 0, role: Some(7), output: Output::Event(Box::new(fault)) });
        let (_, said) = heard.try_recv().unwrap();
        let RoleEvent::Event(event) = said else { panic!("it is an event") };
        assert!(
            matches!(*event, Event::Fault { message, .. } if message == "on the machine m1: the disk is full")
        );
    }
}
