//! End of an xact: completed, failed, or cancelled before it was sent; and what follows for its page and its robot.

use std::fmt::Display;

use assay_measurement::error_kind::ErrorKind;
use assay_workload::model::HttpVersion;

use super::recorder::{Received, XactEnd};
use super::response::FinishedResponse;
use super::setup::RobotSetup;
use super::worker::{RobotKey, Trigger, Worker};
use super::xact::{Xact, XactKey};
use crate::tally::ideal::ReceivedBody;
use crate::tally::{self, CompletedXact, OwnDelays};
use assay_net::rx_timestamps::min_unread_us;

impl Worker {
    /// Completes an xact that has its response, without error, and has released its connection.
    pub fn complete(&mut self, xact_key: XactKey, response: &FinishedResponse, trigger: &Trigger) {
        let Some(xact) = self.xacts.remove(xact_key) else { return };
        let FinishedResponse { status, verdict, kind, body_bytes, ended_ns: now_ns } = *response;
        let sent_ns = xact.sent_ns.unwrap_or(now_ns);
        self.recorder.levels.in_flight -= 1;
        self.recorder.low_response_time.record(now_ns.saturating_sub(sent_ns));
        // What is broken off later has been a success to every cache on the way.
        if xact.method.has_body() && status.is_some_and(|status| status < 400) {
            self.note_post(&xact, now_ns);
        }
        let (unread_us, shares_from) = (trigger.unread_us, self.setup.shares_from);
        self.recorder.ideal_events.extend(xact.ideal_ended(
            kind,
            shares_from,
            &self.control.clock,
            now_ns,
            unread_us,
        ));
        let outcome = verdict.outcome;
        self.recorder.sample(self.schedule.phase(), &xact, kind, outcome, body_bytes, now_ns);
        if let Some(features) = &xact.features {
            features.count(kind, &verdict, self.recorder.counts(xact.phase));
        }
        let end_ns = xact.received_ns(now_ns, unread_us);
        let own = OwnDelays {
            before_us: xact.own.before_us.saturating_sub(xact.begun_late_us()),
            last_us: unread_us - min_unread_us(unread_us),
            disturbance: self.control.backlog.disturbance(sent_ns, now_ns),
            ..xact.own
        };
        let basic = xact.basic && kind.is_object();
        self.recorder.ideal_events.extend(xact.ideal_settled(
            basic.then_some(ReceivedBody { phase: xact.phase, body_bytes, stored_us: verdict.stored_us }),
            &self.control.clock,
            now_ns,
        ));
        let caches = self.setup.caches;
        let exposure = self.setup.joins_waits.then(|| {
            let robot = &self.robots[xact.robot];
            let is_pipelined = self.setup.groups[usize::from(robot.group)].depth.is_some();
            xact.exposure(outcome, body_bytes, is_pipelined || robot.version == HttpVersion::Http2)
        });
        let recorder = self.recorder.phase(xact.phase);
        recorder.counts.unsure_outcomes += u64::from(basic && verdict.is_unsure);
        recorder.counts.unconfirmed_hits += u64::from(verdict.is_unconfirmed);
        recorder.counts.unattributed += u64::from(verdict.is_unattributed);
        if let Some(changed) = verdict.changed_fields {
            recorder.counts.compared_fields += 1;
            for field in changed.names() {
                *recorder.counts.changed_fields.entry(field.to_owned()).or_default() += 1;
            }
        }
        if basic && !caches {
            // A target that stores nothing: the ideal cache would say no to every one.
            recorder.counts.ideal_basic += 1;
            recorder.counts.ideal_basic_bytes += body_bytes;
        }
        recorder.completed(&CompletedXact {
            method: xact.method,
            request_type: xact.request_type,
            basic,
            status,
            outcome,
            body_bytes,
            at: xact.instants(end_ns),
            own,
            unread_us,
            exposure,
        });
        self.recorder.log(
            &xact,
            XactEnd {
                last_byte_ns: Some(end_ns),
                outcome,
                error: None,
                received: Received { status, body_bytes },
                fault_met: xact.met_fault(kind, outcome),
            },
        );
        self.count_ended(xact.phase);
        if let Some(robot) = self.leave_page(&xact, false) {
            self.release_launch(robot, xact.id.number, trigger);
        }
    }

    /// Fails an xact, whose connection, if it had one, is closed.
    pub fn fail(
        &mut self,
        xact_key: XactKey,
        kind: ErrorKind,
        detail: &dyn Display,
        received: Received,
        now_ns: u64,
        trigger: &Trigger,
    ) {
        let Some(xact) = self.xacts.remove(xact_key) else { return };
        if xact.sent_ns.is_some() {
            self.recorder.levels.in_flight -= 1;
        }
        let delayed_us = self.delayed_so_far_us(&xact);
        let recorder = self.recorder.phase(xact.phase);
        recorder.error(kind);
        if kind == ErrorKind::TimedOut {
            recorder.gave_up(&xact.instants(now_ns), xact.sent_ns.is_some(), delayed_us);
        }
        self.recorder.keep_example(kind, xact.phase, detail, now_ns, |setup| name(setup, &xact));
        self.recorder.ideal_events.extend(xact.ideal_failed(&self.control.clock, now_ns));
        self.recorder.ideal_events.extend(xact.ideal_settled(None, &self.control.clock, now_ns));
        self.recorder.log(&xact, XactEnd { error: Some(kind), received, ..XactEnd::default() });
        self.count_ended(xact.phase);
        if let Some(page) = xact.own_page() {
            self.give_up_children(page);
        }
        if let Some(robot) = self.leave_page(&xact, true) {
            self.release_launch_after_error(robot, kind, trigger);
        }
    }

    /// Assay's delay of an xact that ends without a response. One that was never sent waits behind others of its robot.
    fn delayed_so_far_us(&self, xact: &Xact) -> u64 {
        let delayed_behind_us =
            if xact.sent_ns.is_none() { self.robots[xact.robot].delayed_behind_us } else { 0 };
        u64::from(xact.own.until(0)) + u64::from(delayed_behind_us)
    }

    /// Cancels an xact that has not been sent when its phase is over.
    pub fn cancel(&mut self, xact_key: XactKey, phase_end_ns: u64) {
        let Some(xact) = self.xacts.remove(xact_key) else { return };
        let delayed_us = self.delayed_so_far_us(&xact);
        self.recorder.phase(xact.phase).unsent(tally::micros(xact.due_ns, phase_end_ns), delayed_us);
        self.recorder.log(&xact, XactEnd::default());
        if let Some(page) = xact.own_page() {
            self.give_up_children(page);
        }
        // The next phase, if there is one, launches those that have nothing to do.
        if let Some(robot) = self.leave_page(&xact, true)
            && let Some(best_effort) = &mut self.robots[robot].best_effort
        {
            best_effort.busy -= 1;
        }
    }

    /// Cancels everything of a phase that has not been sent.
    pub fn cancel_phase(&mut self, phase: u16, end_ns: u64) {
        for page in self.xacts.pages_of(phase) {
            self.give_up_children(page);
        }
        for robot in self.robots.keys() {
            while let Some(xact_key) = self.pop_waiting(robot) {
                self.cancel(xact_key, end_ns);
            }
        }
    }

    /// Takes an xact out of its page; returns the robot once nothing of the launch is under way any more.
    fn leave_page(&mut self, xact: &Xact, incomplete: bool) -> Option<RobotKey> {
        let Some(key) = xact.page else { return Some(xact.robot) };
        let page = self.xacts.leave_page(key, incomplete)?;
        if !page.incomplete {
            self.recorder.counts(page.phase).pages += 1;
            if page.phase == self.phase() {
                self.recorder.sample_page(page.due_ns);
            }
        }
        Some(page.robot)
    }

    /// Counts bytes on a connection without an outstanding request.
    pub fn count_unrequested(&mut self, bytes: usize, robot: RobotKey, now_ns: u64) {
        let (phase, index) = (self.phase(), self.robots[robot].index);
        self.recorder.phase(phase).error(ErrorKind::ExtraBytes);
        let detail = format_args!("{bytes} bytes on an idle connection");
        self.recorder.keep_example(ErrorKind::ExtraBytes, phase, &detail, now_ns, |_| {
            (format!("{index}.-.-"), "none".to_owned())
        });
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
