//! End of an xact: completed, failed, or cancelled before it was sent; and what follows for its page and its robot.

use std::fmt::Display;

use assay_measurement::error_kind::{ErrorExample, ErrorKind};
use assay_measurement::outcome::Outcome;
use assay_measurement::planned_fault::PlannedFault;
use assay_measurement::xact::XactRow;
use assay_workload::Fault;
use assay_workload::model::HttpVersion;

use super::response::ResponseStart;
use super::setup::RobotSetup;
use super::worker::{EXAMPLES, RobotReport, Worker};
use super::xact::{NONE, Xact};
use crate::tally::{self, CompletedXact, OwnDelays};
use assay_net::rx_timestamps::min_unread_us;

/// Columns of the log that the xact itself does not hold.
#[derive(Debug, Clone, Copy, Default)]
struct XactEnd {
    last_byte_ns: u64,
    outcome: Option<Outcome>,
    error: Option<ErrorKind>,
    status: Option<u16>,
    body_bytes: u64,
    fault_met: bool,
}

impl Worker {
    /// Completes an xact that has its response, without error, and has released its connection.
    pub fn complete(&mut self, place: u32, start: &ResponseStart, body_bytes: u64, now_ns: u64) {
        let Some(xact) = self.xacts.try_remove(place as usize) else { return };
        self.levels.in_flight -= 1;
        self.quick.record(now_ns.saturating_sub(xact.sent_ns));
        if xact.method.has_body() {
            self.note_post(&xact, now_ns);
        }
        let (unread_us, shares_from) = (self.unread_us, self.setup.shares_from);
        self.ideal_events.extend(xact.ideal_ended(
            start.kind,
            shares_from,
            &self.control.clock,
            now_ns,
            unread_us,
        ));
        let outcome = start.verdict.outcome;
        self.sample(&xact, start.kind, outcome, body_bytes, now_ns);
        if let Some(features) = &xact.features {
            features.count(start.kind, &mut self.recorder(xact.phase).counts);
        }
        let end_ns = xact.received_ns(now_ns, unread_us);
        let own = OwnDelays {
            before_us: xact.own.before_us.saturating_sub(xact.begun_late_us()),
            last_us: unread_us - min_unread_us(unread_us),
            disturbance: self.control.backlog.disturbance(xact.sent_ns, now_ns),
            ..xact.own
        };
        let basic = xact.basic && start.kind.is_object();
        self.ideal_events.extend(xact.ideal_settled(
            basic.then_some(body_bytes),
            &self.control.clock,
            now_ns,
        ));
        let caches = self.setup.caches;
        let exposure = self.setup.joins_waits.then(|| {
            let robot = &self.robots[xact.robot as usize];
            let is_pipelined = self.setup.groups[usize::from(robot.group)].depth.is_some();
            xact.exposure(outcome, body_bytes, is_pipelined || robot.version == HttpVersion::Http2)
        });
        let recorder = self.recorder(xact.phase);
        recorder.counts.unsure_outcomes += u64::from(basic && start.verdict.is_unsure);
        if basic && !caches {
            // A target that stores nothing: the ideal cache would say no to every one.
            recorder.counts.ideal_basic += 1;
            recorder.counts.ideal_basic_bytes += body_bytes;
        }
        recorder.completed(&CompletedXact {
            method: xact.method,
            request_type: xact.request_type,
            basic,
            status: start.status,
            outcome,
            body_bytes,
            at: xact.instants(end_ns),
            own,
            unread_us,
            exposure,
        });
        let status = Some(start.status);
        let fault_met = xact.met_fault(start.kind, outcome);
        self.log(
            &xact,
            XactEnd { last_byte_ns: end_ns, outcome, error: None, status, body_bytes, fault_met },
        );
        self.count_ended(xact.phase);
        if let Some(robot) = self.leave_page(&xact, false) {
            self.release_launch(robot, xact.id.number);
        }
    }

    /// Fails an xact, whose connection, if it had one, is closed.
    pub fn fail(
        &mut self,
        place: u32,
        kind: ErrorKind,
        detail: &dyn Display,
        received: (u64, Option<u16>),
        now_ns: u64,
    ) {
        let Some(xact) = self.xacts.try_remove(place as usize) else { return };
        if xact.sent_ns != 0 {
            self.levels.in_flight -= 1;
        }
        let delayed_us = self.delayed_so_far_us(&xact);
        let recorder = self.recorder(xact.phase);
        recorder.error(kind);
        if kind == ErrorKind::TimedOut {
            recorder.gave_up(&xact.instants(now_ns), delayed_us);
        }
        self.keep_example(kind, xact.phase, detail, now_ns, |setup| name(setup, &xact));
        self.ideal_events.extend(xact.ideal_failed(&self.control.clock, now_ns));
        self.ideal_events.extend(xact.ideal_settled(None, &self.control.clock, now_ns));
        let (body_bytes, status) = received;
        self.log(&xact, XactEnd { error: Some(kind), body_bytes, status, ..XactEnd::default() });
        self.count_ended(xact.phase);
        if xact.is_page() {
            self.give_up_children(xact.page);
        }
        if let Some(robot) = self.leave_page(&xact, true) {
            self.release_launch_after_error(robot, kind);
        }
    }

    /// Assay's delay of an xact that ends without a response. One that was never sent waits behind others of its robot.
    fn delayed_so_far_us(&self, xact: &Xact) -> u64 {
        let delayed_behind_us =
            if xact.sent_ns == 0 { self.robots[xact.robot as usize].delayed_behind_us } else { 0 };
        u64::from(xact.own.until(0)) + u64::from(delayed_behind_us)
    }

    /// Cancels an xact that has not been sent when its phase is over.
    pub fn cancel(&mut self, place: u32, phase_end_ns: u64) {
        let Some(xact) = self.xacts.try_remove(place as usize) else { return };
        let delayed_us = self.delayed_so_far_us(&xact);
        self.recorder(xact.phase).unsent(tally::micros(xact.due_ns, phase_end_ns), delayed_us);
        self.log(&xact, XactEnd::default());
        if xact.is_page() {
            self.give_up_children(xact.page);
        }
        // The next phase, if there is one, launches those that have nothing to do.
        if let Some(robot) = self.leave_page(&xact, true)
            && let Some(best_effort) = &mut self.robots[robot as usize].best_effort
        {
            best_effort.busy -= 1;
        }
    }

    /// Cancels everything of a phase that has not been sent.
    pub fn cancel_phase(&mut self, phase: u16, end_ns: u64) {
        let over: Vec<u32> = self
            .pages
            .iter()
            .filter(|(_, page)| page.phase == phase)
            .map(|(place, _)| place as u32)
            .collect();
        for page in over {
            self.give_up_children(page);
        }
        for robot in 0..self.robots.len() as u32 {
            while let Some(place) = self.pop_waiting(robot) {
                self.cancel(place, end_ns);
            }
        }
    }

    /// Takes an xact out of its page; returns the robot once nothing of the launch is under way any more.
    fn leave_page(&mut self, xact: &Xact, incomplete: bool) -> Option<u32> {
        if xact.page == NONE {
            return Some(xact.robot);
        }
        let page = self.pages.get_mut(xact.page as usize)?;
        page.open -= 1;
        page.incomplete |= incomplete;
        if page.open > 0 {
            return None;
        }
        let mut page = self.pages.remove(xact.page as usize);
        page.children.clear();
        self.spare_children.push(page.children);
        if !page.incomplete {
            self.recorder(page.phase).counts.pages += 1;
            self.sample_page(page.phase, page.due_ns);
        }
        Some(page.robot)
    }

    /// Counts bytes on a connection without an outstanding request.
    pub fn count_unrequested(&mut self, bytes: usize, robot: u32, now_ns: u64) {
        let (phase, index) = (self.phase(), self.robots[robot as usize].index);
        self.recorder(phase).error(ErrorKind::ExtraBytes);
        let detail = format_args!("{bytes} bytes on an idle connection");
        self.keep_example(ErrorKind::ExtraBytes, phase, &detail, now_ns, |_| {
            (format!("{index}.-.-"), "none".to_owned())
        });
    }

    /// Keeps the first errors of each kind; `name` gives the texts of the xact and its request.
    fn keep_example(
        &mut self,
        kind: ErrorKind,
        phase: u16,
        detail: &dyn Display,
        now_ns: u64,
        name: impl FnOnce(&RobotSetup) -> (String, String),
    ) {
        if self.examples[kind as usize] >= EXAMPLES {
            return;
        }
        self.examples[kind as usize] += 1;
        let (xact, request) = name(&self.setup);
        let example = ErrorExample {
            kind,
            at_ms: self.control.clock.since_start_us(now_ns) / 1_000,
            phase: self.setup.timeline.phases()[usize::from(phase)].name.clone(),
            xact,
            request,
            detail: detail.to_string(),
        };
        self.report(RobotReport::Example(example));
    }

    fn log(&mut self, xact: &Xact, end: XactEnd) {
        let Some(log) = &mut self.log else { return };
        let clock = self.control.clock;
        let instant = |ns: u64| (ns != 0).then(|| clock.offset_us(ns));
        let dropped = log.push(XactRow {
            robot: xact.id.robot,
            number: xact.id.number,
            place: xact.id.place,
            phase: xact.phase,
            method: tally::method_name(xact.method),
            request_type: tally::type_name(xact.request_type),
            object: xact.object.key,
            content: xact.object.id.content,
            cachable: xact.object.cachable,
            revisit: xact.revisit,
            due_us: clock.offset_us(xact.due_ns),
            ready_us: instant(if xact.sent_ns != 0 { xact.ready_ns } else { 0 }),
            sent_us: instant(xact.sent_ns),
            connected_us: instant(xact.connected_ns),
            secured_us: instant(xact.secured_ns),
            first_byte_us: instant(xact.first_byte_ns),
            last_byte_us: instant(end.last_byte_ns),
            outcome: end.outcome,
            error: end.error,
            status: end.status,
            body_bytes: end.body_bytes,
            connection: xact.connection,
            fault: xact.fault().map(kind_of),
            fault_met: end.fault_met,
        });
        if dropped > 0 {
            self.recorder(xact.phase).counts.dropped_samples += dropped;
        }
    }
}

/// Class under which records name an injected fault.
fn kind_of(fault: Fault) -> PlannedFault {
    match fault {
        Fault::Status(_) => PlannedFault::Status,
        Fault::Reset => PlannedFault::Reset,
        Fault::Expired(_) => PlannedFault::Expired,
        Fault::SlowStart(_) => PlannedFault::SlowStart,
        Fault::SlowBody { .. } => PlannedFault::SlowBody,
    }
}

/// Names an xact and its request in text.
fn name(setup: &RobotSetup, xact: &Xact) -> (String, String) {
    let route = setup.route(xact.id.robot, xact.object.id.origin);
    let request = format!(
        "{} http://{}{} ({})",
        tally::method_name(xact.method),
        String::from_utf8_lossy(&route.authority),
        setup.universe.path(&xact.object),
        tally::type_name(xact.request_type),
    );
    (format!("{}.{}.{}", xact.id.robot, xact.id.number, xact.id.place), request)
}
