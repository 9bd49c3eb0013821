//! Supervisor of an evaluation, from its start to its end, and the record of it.

use std::collections::BTreeMap;
use std::hash::{BuildHasher, RandomState};
use std::net::SocketAddr;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use crate::address::LoopbackNet;
use crate::description::SettingUnit;
use crate::harness::{ProxyChoice, TestedProxy};
use crate::instant::StartInstant;
use crate::real_proxy::RealProxy;
use crate::roles::{Role, RoleEvent, RoleKind};
use crate::{LabError, Mode, ProcessorWaits};
use assay_protocol::message::{Command, Event};
use assay_record::spe::{
    CollectorSettings, DIRECT, Ended, EvaluationTarget, How, ListenerWriter, SCHEMA, SpeDir, SpeInfo, Totals,
    Waits,
};
use assay_spe::spec::{Turns, When};
use tokio::sync::{mpsc, watch};
use tokio::time::Instant;

use crate::evaluation::plan::{SpeEvent, SpeOutcome, SpePlan, SpeProgress};
use crate::evaluation::start::{listeners, millis};

/// Time that a role may take to be ready.
const READY_TIMEOUT: Duration = Duration::from_secs(30);
/// Time that the Multiplier may take for its last responses, and the Collector for its last message.
const DRAIN_TIMEOUT: Duration = Duration::from_secs(30);

/// An evaluation that goes on.
pub(crate) struct Evaluation {
    pub(crate) plan: SpePlan,
    pub(crate) dir: SpeDir,
    pub(crate) info: SpeInfo,
    /// Addresses of our own; they are ours as long as this lives.
    pub(crate) net: LoopbackNet,
    /// Addresses at which the Collector's listeners are.
    pub(crate) listeners: Vec<SocketAddr>,
    /// Secret of the Collector and the Multiplier, which no proxy knows.
    pub(crate) lost_key: String,
    // In this order: the senders of requests end before their receivers.
    pub(crate) multiplier: Option<Role>,
    pub(crate) builtins: Vec<Role>,
    pub(crate) reals: Vec<(String, Box<RealProxy>)>,
    pub(crate) collector: Option<Role>,
    pub(crate) role_events: mpsc::UnboundedSender<(RoleKind, RoleEvent)>,
    inbox: mpsc::UnboundedReceiver<(RoleKind, RoleEvent)>,
    events: mpsc::UnboundedSender<SpeEvent>,
    listener_rows: Option<ListenerWriter>,
    listener_rows_failed: bool,
    progress: SpeProgress,
    start: Option<StartInstant>,
    /// None: it has not begun.
    waits: Option<ProcessorWatch>,
    /// The last thing that a role said went wrong.
    fault: Option<String>,
    done: Vec<RoleKind>,
}

/// Waits for processors, from the start on.
struct ProcessorWatch {
    began: Instant,
    own: ProcessorWaits,
    /// By the number of the target.
    targets: Vec<(usize, ProcessorWaits)>,
}

impl Evaluation {
    /// Makes the directory and claims addresses.
    pub(crate) fn begin(plan: SpePlan, events: mpsc::UnboundedSender<SpeEvent>) -> Result<Self, LabError> {
        let net = LoopbackNet::claim()?;
        let listeners = listeners(&plan, &net)?;
        let dir = SpeDir::create(&plan.directory).map_err(LabError::plan)?;
        let listener_rows = ListenerWriter::create(&dir.listeners_path()).map_err(LabError::plan)?;
        let info = info(&plan);
        let progress = SpeProgress {
            labels: info.targets.iter().map(|target| target.label.clone()).collect(),
            ..SpeProgress::default()
        };
        let (role_events, inbox) = mpsc::unbounded_channel();
        // Each hasher has keys of its own, which come from random numbers of the system.
        let lost_key = (0..2).map(|_| format!("{:016x}", RandomState::new().hash_one(0))).collect();
        let evaluation = Self {
            lost_key,
            plan,
            dir,
            info,
            net,
            listeners,
            multiplier: None,
            builtins: Vec::new(),
            reals: Vec::new(),
            collector: None,
            role_events,
            inbox,
            events,
            listener_rows: Some(listener_rows),
            listener_rows_failed: false,
            progress,
            start: None,
            waits: None,
            fault: None,
            done: Vec::new(),
        };
        evaluation.write_info()?;
        evaluation.notify(SpeEvent::Directory(evaluation.dir.path().to_owned()));
        Ok(evaluation)
    }

    pub(crate) fn notify(&self, event: SpeEvent) {
        // A receiver is not needed.
        let _ = self.events.send(event);
    }

    pub(crate) fn write_info(&self) -> Result<(), LabError> {
        self.dir.write_info(&self.info).map_err(LabError::run)
    }

    /// Starts everybody and goes on until it is over.
    pub(crate) async fn drive(&mut self, stop: watch::Receiver<bool>) -> Result<How, LabError> {
        let mut requested = stop;
        let started = tokio::select! {
            started = self.start() => started,
            () = stopped(&mut requested) => return Err(LabError::Interrupted),
        };
        let address = started?;
        self.notify(SpeEvent::Listening(address));
        let how = self.run_until_stopped(&mut requested).await?;
        self.notify(SpeEvent::Draining);
        self.drain().await?;
        Ok(how)
    }

    async fn start(&mut self) -> Result<SocketAddr, LabError> {
        self.start_collector().await?;
        let proxies = self.start_proxies().await?;
        let address = self.start_multiplier(proxies).await?;
        let start = StartInstant::soon();
        for role in self.multiplier.iter_mut().chain(&mut self.collector) {
            role.send(start.command()).await?;
        }
        self.start = Some(start);
        self.waits = Some(self.watch_processors());
        Ok(address)
    }

    fn watch_processors(&self) -> ProcessorWatch {
        let own = self.multiplier.iter().chain(&self.collector).filter_map(Role::pid).collect();
        let builtins = self.builtins.iter().filter_map(|role| match role.kind {
            // Behind `direct`, targets are in the order of the proxies.
            RoleKind::Proxy(place) => Some((usize::from(place) + 1, vec![role.pid()?])),
            _ => None,
        });
        let reals = self.reals.iter().filter_map(|(label, proxy)| {
            Some((self.progress.labels.iter().position(|known| known == label)?, proxy.pids()))
        });
        let targets = builtins.chain(reals).map(|(target, pids)| (target, ProcessorWaits::new(pids)));
        ProcessorWatch { began: Instant::now(), own: ProcessorWaits::new(own), targets: targets.collect() }
    }

    fn count_waits(&mut self) {
        let Some(waits) = &mut self.waits else { return };
        let mut targets_us = vec![0; self.progress.labels.len()];
        for (target, waits) in &mut waits.targets {
            if let Some(waited_us) = targets_us.get_mut(*target) {
                *waited_us = waits.until_now_us();
            }
        }
        self.progress.waits = Waits {
            passed_us: u64::try_from(waits.began.elapsed().as_micros()).unwrap_or(u64::MAX),
            own_us: waits.own.until_now_us(),
            targets_us,
        };
    }

    /// Waits until a role is ready: where it listens.
    pub(crate) async fn ready(&mut self, kind: RoleKind) -> Result<Vec<SocketAddr>, LabError> {
        let deadline = Instant::now() + READY_TIMEOUT;
        loop {
            let Ok(next) = tokio::time::timeout_at(deadline, self.inbox.recv()).await else {
                let name = kind.name();
                return Err(LabError::run(format!("the {name} was not ready within {READY_TIMEOUT:?}")));
            };
            match next {
                Some((from, RoleEvent::Event(event))) => match *event {
                    Event::Ready { listening } if from == kind => return Ok(listening),
                    other => self.handle_event(other),
                },
                Some((from, RoleEvent::Ended)) => {
                    let words = self.exit_summary(from).await;
                    return Err(LabError::run(format!("the {} did not start: {words}", from.name())));
                }
                Some(_) | None => {}
            }
        }
    }

    /// The evaluation itself, until its time is over or somebody ends it.
    async fn run_until_stopped(&mut self, stop: &mut watch::Receiver<bool>) -> Result<How, LabError> {
        let end = self.plan.duration.map(|duration| Instant::now() + duration);
        let over = async {
            match end {
                Some(end) => tokio::time::sleep_until(end).await,
                None => std::future::pending().await,
            }
        };
        tokio::pin!(over);
        let mut second = tokio::time::interval(Duration::from_secs(1));
        loop {
            tokio::select! {
                // Where nobody said how long, this is how it ends.
                () = stopped(stop) => {
                    return Ok(if end.is_some() { How::Interrupted } else { How::Finished });
                }
                () = &mut over => return Ok(How::Finished),
                Some((kind, message)) = self.inbox.recv() => self.handle(kind, message).await?,
                _ = second.tick() => {
                    self.report_exits();
                    self.count_waits();
                    self.notify(SpeEvent::Second(Box::new(self.progress.clone())));
                }
            }
        }
    }

    async fn handle(&mut self, kind: RoleKind, message: RoleEvent) -> Result<(), LabError> {
        match message {
            RoleEvent::Event(event) if matches!(*event, Event::Done) => self.done.push(kind),
            RoleEvent::Event(event) => self.handle_event(*event),
            RoleEvent::Ended if self.done.contains(&kind) => {}
            RoleEvent::Ended if matches!(kind, RoleKind::Proxy(_)) => {
                // Its responses are missing from now on; nothing else is.
                let words = self.exit_summary(kind).await;
                self.notify(SpeEvent::Died(words));
            }
            RoleEvent::Ended => {
                let words = self.exit_summary(kind).await;
                // Its own log may be where there is no room for it.
                return Err(match self.fault.take() {
                    Some(fault) => LabError::run(format!("the {} gave up: {fault}", kind.name())),
                    None => LabError::assay(words),
                });
            }
            RoleEvent::Malformed(words) => {
                return Err(LabError::assay(format!("{} said what is no event: {words}", kind.name())));
            }
        }
        Ok(())
    }

    /// Proxies that ended by themselves are told of, once.
    fn report_exits(&mut self) {
        let mut died = Vec::new();
        self.reals.retain_mut(|(label, proxy)| match proxy.exit_message() {
            Some(words) => {
                died.push(format!("{label}: {words}"));
                false
            }
            None => true,
        });
        died.into_iter().for_each(|words| self.notify(SpeEvent::Died(words)));
    }

    fn handle_event(&mut self, event: Event) {
        match event {
            Event::Multiplier(counters) => self.progress.multiplier = *counters,
            Event::Collector(interval) => {
                self.progress.collector = interval.counters;
                let rows = interval.listeners.iter();
                let failed = self.listener_rows.as_mut().and_then(|writer| {
                    let failed = rows.map(|row| writer.push(row)).find_map(Result::err);
                    failed.or(writer.keep().err())
                });
                // Clients are served all the same. What goes wrong once does so every second.
                if let Some(error) = failed.filter(|_| !self.listener_rows_failed) {
                    self.listener_rows_failed = true;
                    self.notify(SpeEvent::Fault(error.to_string()));
                }
            }
            Event::Fault { message, .. } => {
                self.notify(SpeEvent::Fault(message.clone()));
                self.fault = Some(message);
            }
            _ => {}
        }
    }

    /// Lets clients and proxies finish, then hears the last of both roles.
    async fn drain(&mut self) -> Result<(), LabError> {
        for kind in [RoleKind::Multiplier, RoleKind::Collector] {
            if let Some(role) = self.role(kind) {
                role.send(Command::Stop).await?;
            }
            let deadline = Instant::now() + DRAIN_TIMEOUT;
            while !self.done.contains(&kind) {
                match tokio::time::timeout_at(deadline, self.inbox.recv()).await {
                    Ok(Some((from, message))) => self.handle(from, message).await?,
                    Ok(None) | Err(_) => {
                        let name = kind.name();
                        return Err(LabError::assay(format!(
                            "the last report of the {name} did not come within {DRAIN_TIMEOUT:?}"
                        )));
                    }
                }
            }
        }
        Ok(())
    }

    fn role(&mut self, kind: RoleKind) -> Option<&mut Role> {
        match kind {
            RoleKind::Multiplier => self.multiplier.as_mut(),
            RoleKind::Collector => self.collector.as_mut(),
            _ => self.builtins.iter_mut().find(|role| role.kind == kind),
        }
    }

    async fn exit_summary(&mut self, kind: RoleKind) -> String {
        match self.role(kind) {
            Some(role) => role.exit_summary().await,
            None => format!("the {} ended", kind.name()),
        }
    }

    /// Stops everybody and writes down how it ended.
    pub(crate) async fn finish(mut self, ended: Result<How, LabError>) -> Result<SpeOutcome, LabError> {
        self.count_waits();
        let how = match &ended {
            Ok(how) => how.clone(),
            Err(LabError::Interrupted) => How::Interrupted,
            Err(error) => How::Failed(error.to_string()),
        };
        if let Some(mut multiplier) = self.multiplier.take() {
            multiplier.end().await;
        }
        for mut builtin in std::mem::take(&mut self.builtins) {
            builtin.end().await;
        }
        for (_, proxy) in std::mem::take(&mut self.reals) {
            proxy.settle().await;
            if let Some(words) = proxy.crashes() {
                self.notify(SpeEvent::Died(words));
            }
            proxy.stop(None).await;
        }
        if let Some(mut collector) = self.collector.take() {
            collector.end().await;
        }
        let written = match self.listener_rows.take().map_or(Ok(()), ListenerWriter::finish) {
            // It can be read as it is.
            Err(error) if error.is_kept() => {
                self.notify(SpeEvent::Fault(error.to_string()));
                Ok(())
            }
            written => written,
        };
        let at_ms = self.start.map_or(0, StartInstant::elapsed_ms);
        self.info.ended = Some(Ended { at_ms, how: how.clone() });
        self.info.totals = totals(&self.progress);
        let noted = self.write_info();
        ended?;
        written.map_err(LabError::run)?;
        noted?;
        Ok(SpeOutcome { directory: self.dir.path().to_owned(), how, progress: self.progress })
    }
}

async fn stopped(stop: &mut watch::Receiver<bool>) {
    if stop.wait_for(|stop| *stop).await.is_err() {
        // Whoever could have stopped it is gone.
        std::future::pending().await
    }
}

fn info(plan: &SpePlan) -> SpeInfo {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let target = |label: &str, address: Option<SocketAddr>| EvaluationTarget {
        label: label.to_owned(),
        address: address.map(|address| address.to_string()),
        tls: plan.over_tls.contains_key(label),
        ..EvaluationTarget::default()
    };
    let proxies = plan.proxies.iter().map(|proxy| match proxy.choice {
        ProxyChoice::Running(address) => target(&proxy.label, Some(address)),
        _ => EvaluationTarget { settings: settings(proxy), ..target(&proxy.label, None) },
    });
    SpeInfo {
        schema: SCHEMA,
        version: plan.assay_version.clone(),
        started_unix_ms: i64::try_from(now.as_millis()).unwrap_or(i64::MAX),
        seed: plan.seed,
        forward: plan.mode == Mode::Forward,
        intercept: plan.intercept.is_some(),
        when: match plan.when {
            When::After => "after".into(),
            When::AtOnce => "at_once".into(),
        },
        turns: match plan.turns {
            Turns::Permuted => "permuted".into(),
            Turns::Fixed => "fixed".into(),
        },
        targets: std::iter::once(target(DIRECT, None)).chain(proxies).collect(),
        collector: CollectorSettings {
            minimum_freshness_ms: millis(plan.minimum_freshness),
            maximum_age_ms: millis(plan.maximum_age),
            replay: plan.replay,
            memory_bytes: plan.collector_memory_bytes,
            disk_bytes: plan.collector_disk_bytes,
        },
        ..SpeInfo::default()
    }
}

/// Settings of a proxy that is started, as it can be typed.
fn settings(proxy: &TestedProxy) -> BTreeMap<String, String> {
    let mut all = match &proxy.choice {
        ProxyChoice::Running(_) => return BTreeMap::new(),
        ProxyChoice::Builtin(chosen) => chosen.as_typed(),
        ProxyChoice::Described(description) => description.settings_as_typed(),
    };
    all.insert("memory".to_owned(), SettingUnit::Bytes.typed(proxy.memory_bytes));
    if matches!(proxy.choice, ProxyChoice::Described(_)) {
        all.insert("disk".to_owned(), SettingUnit::Bytes.typed(proxy.disk_bytes));
    }
    all
}

fn totals(progress: &SpeProgress) -> Totals {
    let (multiplier, collector) = (&progress.multiplier, &progress.collector);
    Totals {
        clients: multiplier.clients,
        requests: multiplier.requests,
        connects: multiplier.connects,
        tunnels_opened: multiplier.opened.opened,
        tunnels_certificate_refused: multiplier.opened.certificate_refused,
        tunnels_name_refused: multiplier.opened.name_refused,
        tunnels_not_tls: multiplier.opened.not_tls,
        tunnels_no_common_parameters: multiplier.opened.no_common_parameters,
        tunnels_failed: multiplier.opened.failed,
        refused: multiplier.refused,
        no_room: multiplier.no_room,
        slow_clients: multiplier.slow_clients,
        dismissed_clients: multiplier.dismissed_clients,
        dismissed_connections: collector.dismissed_connections,
        client_gone: multiplier.client_gone,
        dropped: multiplier.targets.iter().map(|target| target.dropped).collect(),
        waiting: multiplier.targets.iter().map(|target| target.waiting).collect(),
        responses_lost: multiplier.responses_lost,
        origin_requests: collector.origin_requests,
        origin_errors: collector.origin_errors,
        not_allowed: collector.not_allowed,
        given_up: collector.given_up,
        not_kept: collector.not_kept,
        repeated: collector.repeated,
        evictions: collector.evictions,
        recordings: collector.recordings,
        stored_bytes: collector.memory_bytes + collector.disk_bytes,
        peak_memory_bytes: multiplier.peak_memory_bytes + collector.peak_memory_bytes,
        waits: progress.waits.clone(),
    }
}
