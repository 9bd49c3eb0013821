//! Launches: requests of the stream, of best-effort robots, and of pages that come due.
//!
//! # Phases
//!
//! An xact belongs to the phase in which it was due. When a phase ends, its requests that have not been sent are cancelled: a due request that
//! was waiting is *unsent*, an embedded object whose link was not yet seen is *not reached*. A launch that Assay itself processes after the end
//! of its phase is still sent within 100 ms of that end; after that it is also counted as *unsent late*, which is Assay's fault and not the
//! target's. Requests in progress may finish and count for their own phase. Embedded objects are due when the bytes that hold their link have
//! arrived; link *i* of *n* (from 0) ends at byte `size × (i+1) / (n+1)` of the page.

use assay_measurement::error_kind::ErrorKind;
use assay_workload::digest::launch_digest;
use assay_workload::{Child, Launch, Object, Offered};

use super::special;
use super::worker::{Robot, RobotKey, RobotTimerEvent, Trigger, Worker};
use super::xact::{PageKey, PageLoad, Xact, XactKey};
use crate::tally::{RobotRecorder, is_basic};
use assay_base::clock::monotonic_ns;
use assay_workload::XactId;

/// Pause of a best-effort robot after a request that did not get through: a target that refuses connections is not to
/// be hammered.
const PAUSE_NS: u64 = 100_000_000;

/// Longest time for writing a request that counts as the robot's. The next link of the page is due no later than that;
/// what exceeds it is lateness.
const WRITE_NS: u64 = 50_000;

/// Longest time after the end of their phase within which late launches are still sent. That late, they cannot move a
/// phase's figures; later ones would bring the load of a phase into the next.
const GRACE_NS: u64 = 100_000_000;

/// Due time of the next link of a page, when the request for one due at `due_ns` was written by `now_ns`.
fn next_due_ns(due_ns: u64, now_ns: u64) -> u64 {
    now_ns.clamp(due_ns, due_ns + WRITE_NS)
}

impl Worker {
    /// Launches a request of the stream, or of a best-effort robot, that has come due.
    pub fn launch(&mut self, launch: &Launch, due_ns: u64, trigger: &Trigger) {
        let setup = self.setup.clone();
        let universe = &setup.universe;
        let object = universe.object(launch.object);
        let robot = self.robots.key_of(launch.robot);
        self.enter_session(robot, launch.session);
        let best_effort = self.robots[robot].best_effort.is_some();
        let grows = self.working_set_grows(launch, robot);
        let page = self.open_page(launch, robot, due_ns, best_effort, grows);
        let id = XactId { robot: launch.robot, number: launch.number, place: 0 };
        let xact_key = self.insert(Xact {
            method: launch.method,
            request_type: launch.request_type,
            revisit: launch.revisit,
            post_body: launch.post_body.filter(|_| launch.method.has_body()),
            page,
            ..Xact::new(id, robot, launch.phase, object, due_ns)
        });
        // A worker that is late finds launches of a phase that is over by now: that is no fault of the target.
        let end_ns = self.control.end_ns(launch.phase);
        if !best_effort && is_too_late(monotonic_ns(), end_ns) {
            self.recorder.counts(launch.phase).unsent_late += 1;
            self.cancel(xact_key, end_ns);
        } else {
            self.submit(xact_key, trigger);
        }
        // It is on its way; what can wait until then has waited.
        self.count_launch(launch, &object, robot, best_effort, grows);
    }

    /// True if an object that this launch is the first to request becomes part of the working set.
    fn working_set_grows(&self, launch: &Launch, robot: RobotKey) -> bool {
        match &self.robots[robot].best_effort {
            Some(best_effort) => best_effort.stream.grows(),
            None => self.schedule.launches().working_set_grows_at(launch.due),
        }
    }

    /// Counts a launch as due.
    fn count_launch(
        &mut self,
        launch: &Launch,
        object: &Object,
        robot: RobotKey,
        best_effort: bool,
        grows: bool,
    ) {
        let group = self.robots[robot].group;
        // Nothing keeps one that cannot be special from what it offers.
        let offered = if self.setup.is_special(group, object) {
            self.setup.universe.offered(launch, object)
        } else {
            launch.offered(object)
        };
        let digest = launch_digest(launch, &self.setup.universe);
        let sent_bytes = self.setup.sent_bytes(group, object);
        let recorder = self.recorder.phase(launch.phase);
        count_due(recorder, &offered, grows, sent_bytes);
        recorder.counts.due_digest = recorder.counts.due_digest.wrapping_add(digest);
        if best_effort && offered.fill() {
            self.count_fill(launch.phase, object.size_bytes);
        }
    }

    /// Makes a page of a launch that brings embedded objects, and counts those as due.
    fn open_page(
        &mut self,
        launch: &Launch,
        robot: RobotKey,
        due_ns: u64,
        best_effort: bool,
        grows: bool,
    ) -> Option<PageKey> {
        let setup = self.setup.clone();
        let universe = &setup.universe;
        let content = &universe.workload().contents[usize::from(launch.object.content)];
        if content.embedded.is_none() || !launch.carries_body() {
            return None;
        }
        let group = self.robots[robot].group;
        let mut children = self.xacts.take_children();
        for child in universe.children(launch) {
            let object = universe.object(child.object);
            let memory = &mut self.robots[robot].memory;
            if memory.as_mut().is_some_and(|memory| memory.holds(object.key, object.cachable)) {
                self.recorder.counts(launch.phase).held += 1;
                continue;
            }
            children.push(child);
            let offered = if setup.is_special(group, &object) {
                universe.offered_child(launch, &child, &object)
            } else {
                child.offered(&object)
            };
            let sent_bytes = setup.sent_bytes(group, &object);
            count_due(self.recorder.phase(launch.phase), &offered, grows, sent_bytes);
            if best_effort && offered.fill() {
                self.count_fill(launch.phase, object.size_bytes);
            }
        }
        let page = PageLoad {
            robot,
            phase: launch.phase,
            due_ns,
            children,
            launched: 0,
            open: 1,
            incomplete: false,
        };
        Some(self.xacts.open_page(page))
    }

    /// Launches the embedded objects whose links lie in the first `body_bytes` of a page. A robot requests them one
    /// after another, so each is due when the one before it has been written.
    pub fn launch_embedded(
        &mut self,
        page: PageKey,
        number: u64,
        body_bytes: u64,
        now_ns: u64,
        trigger: &Trigger,
    ) {
        let mut due_ns = now_ns;
        loop {
            // Looked up anew each time: a request that fails at once can end the page.
            let Some(state) = self.xacts.page_mut(page) else { return };
            let Some(&child) =
                state.children.get(state.launched).filter(|child| child.link_end <= body_bytes)
            else {
                return;
            };
            state.launched += 1;
            state.open += 1;
            let (robot, phase) = (state.robot, state.phase);
            let xact_key = self.launch_child(&child, robot, phase, page, number, due_ns);
            self.submit(xact_key, trigger);
            due_ns = next_due_ns(due_ns, monotonic_ns());
        }
    }

    fn launch_child(
        &mut self,
        child: &Child,
        robot: RobotKey,
        phase: u16,
        page: PageKey,
        number: u64,
        due_ns: u64,
    ) -> XactKey {
        let id = XactId { robot: self.robots[robot].index, number, place: child.place };
        let object = self.setup.universe.object(child.object);
        self.insert(Xact {
            request_type: child.request_type,
            revisit: child.revisit,
            page: Some(page),
            ..Xact::new(id, robot, phase, object, due_ns)
        })
    }

    /// Takes in an xact that has come due, with what is special about it.
    fn insert(&mut self, mut xact: Xact) -> XactKey {
        xact.basic = is_basic(xact.method, xact.request_type);
        let group = self.robots[xact.robot].group;
        // Plain xacts, nearly all, allocate nothing.
        if self.setup.is_special(group, &xact.object) {
            let universe = &self.setup.universe;
            let memory = &self.robots[xact.robot].memory;
            let session = memory.as_ref().map_or(0, |memory| memory.session());
            xact.basic = xact.basic && universe.is_plain(xact.id, xact.phase, session, &xact.object);
            xact.features = Some(special::request_features(universe, &xact, usize::from(group)));
            let xact_key = self.xacts.insert(xact);
            self.set_expiry(xact_key);
            return xact_key;
        }
        self.xacts.insert(xact)
    }

    /// Gives up the embedded objects of a page that have not been launched.
    pub fn give_up_children(&mut self, page: PageKey) {
        let Some(state) = self.xacts.page_mut(page) else { return };
        let left = (state.children.len() - state.launched) as u64;
        state.launched = state.children.len();
        state.incomplete |= left > 0;
        let phase = state.phase;
        if left > 0 {
            self.recorder.counts(phase).not_reached += left;
        }
    }

    /// Begins best-effort robots with a launch window somewhere within it.
    pub fn launch_in_windows(&mut self) {
        for key in self.robots.keys() {
            let robot = &mut self.robots[key];
            let begin_ns = self.setup.begin_ns(robot.index, robot.group);
            if let (Some(best_effort), 1..) = (&mut robot.best_effort, begin_ns) {
                best_effort.busy = best_effort.most;
                let at_ns = self.control.clock.start_ns.saturating_add(begin_ns);
                for _ in 0..best_effort.most {
                    self.network.schedule(at_ns, RobotTimerEvent::BestEffort(key));
                }
            }
        }
    }

    /// Launches requests of all best-effort robots that have fewer under way than they may.
    pub fn launch_all_best_effort(&mut self) {
        self.robots.keys().for_each(|robot| self.fill_best_effort(robot));
    }

    /// Launches as many requests of a best-effort robot as it may have under way, if it is alive.
    pub fn fill_best_effort(&mut self, robot: RobotKey) {
        let free = |robot: &Robot| {
            robot.best_effort.as_ref().map_or(0, |best_effort| best_effort.most - best_effort.busy)
        };
        for _ in 0..free(&self.robots[robot]) {
            if let Some(best_effort) = &mut self.robots[robot].best_effort {
                best_effort.busy += 1;
            }
            self.launch_best_effort(robot, &Trigger::UNDELAYED);
        }
    }

    /// Launches the next request of a best-effort robot, one of whose requests is over, if it is alive. Which robots
    /// are alive is decided for a whole phase, by the mean of its population, as the stream does.
    pub fn launch_best_effort(&mut self, robot: RobotKey, trigger: &Trigger) {
        let universe = self.setup.universe.clone();
        let population = universe.workload().schedule.phases[usize::from(self.phase())].population;
        let alive = self.schedule.alive().unwrap_or((population.begin + population.end) / 2.0);
        // An interval that ends a little late launches them in the phase that follows.
        let now_ns = monotonic_ns();
        let is_on = !self.schedule.is_draining() && now_ns < self.control.end_ns(self.phase());
        let is_alive = is_on && universe.is_alive(self.robots[robot].index, alive);
        // An idle one is woken again, and counts as busy with that.
        let session = if is_alive { self.session_of_next(robot, now_ns) } else { None };
        let Some(best_effort) = &mut self.robots[robot].best_effort else { return };
        if !is_alive {
            best_effort.busy -= 1;
        }
        if let Some(session) = session {
            best_effort.launched += 1;
            let launch = Launch { session, ..best_effort.stream.next(&universe) };
            self.launch(&launch, now_ns, trigger);
        }
    }

    /// Releases the launch of this number, of which nothing is under way any more: the robot launches the next, at once
    /// or after a pause.
    pub fn release_launch(&mut self, robot: RobotKey, number: u64, trigger: &Trigger) {
        let Robot { index, best_effort, .. } = &self.robots[robot];
        if best_effort.is_none() {
            return;
        }
        let pause = self.setup.universe.pause(*index, number);
        if pause.is_zero() {
            return self.launch_best_effort(robot, trigger);
        }
        let at_ns = monotonic_ns().saturating_add(u64::try_from(pause.as_nanos()).unwrap_or(u64::MAX));
        self.network.schedule(at_ns, RobotTimerEvent::BestEffort(robot));
    }

    /// Releases a launch that ended in an error: the robot goes on at once, or after a pause where the target refuses.
    pub fn release_launch_after_error(&mut self, robot: RobotKey, kind: ErrorKind, trigger: &Trigger) {
        if self.robots[robot].best_effort.is_none() {
            return;
        }
        match kind {
            ErrorKind::ConnectFailed
            | ErrorKind::TlsCertificateExpired
            | ErrorKind::TlsCertificateName
            | ErrorKind::TlsCertificateUntrusted
            | ErrorKind::TlsNoCommonParameters
            | ErrorKind::TlsNotSpoken
            | ErrorKind::TlsFailed
            | ErrorKind::StreamReset
            | ErrorKind::ConnectionLost
            | ErrorKind::QueueOverflow
            | ErrorKind::PortsExhausted
            | ErrorKind::DescriptorsExhausted => {
                self.network.schedule(monotonic_ns() + PAUSE_NS, RobotTimerEvent::BestEffort(robot));
            }
            _ => self.launch_best_effort(robot, trigger),
        }
    }
}

/// True for a scheduled launch that is not sent any more, as its phase ended at `end_ns`.
fn is_too_late(now_ns: u64, end_ns: u64) -> bool {
    now_ns > end_ns.saturating_add(GRACE_NS)
}

/// Counts a request as due whose response has `sent_bytes` of body as the origin sends it, and as an object of the
/// working set if it is the first for it while that grows.
fn count_due(recorder: &mut RobotRecorder, offered: &Offered, grows: bool, sent_bytes: u64) {
    let counts = &mut recorder.counts;
    counts.due += 1;
    if grows && !offered.revisit {
        counts.working_set += 1;
        counts.working_set_bytes += sent_bytes;
    }
    if offered.basic {
        counts.due_basic += 1;
        counts.due_basic_bytes += sent_bytes;
    }
    if offered.hit() {
        counts.offered_hits += 1;
        counts.offered_hit_bytes += sent_bytes;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_link_is_due_when_the_one_before_it_has_been_written_and_a_stall_in_between_makes_it_late() {
        assert_eq!(next_due_ns(1_000, 21_000), 21_000);
        assert_eq!(next_due_ns(1_000, 5_000_000), 1_000 + WRITE_NS, "the rest of the stall is lateness");
        assert_eq!(next_due_ns(1_000, 900), 1_000, "times never go back");
    }

    #[test]
    fn a_launch_that_assay_is_a_little_late_with_is_still_sent() {
        let end_ns = 5 * GRACE_NS;
        for (now_ns, too_late) in [(0, false), (end_ns + GRACE_NS, false), (end_ns + GRACE_NS + 1, true)] {
            assert_eq!(is_too_late(now_ns, end_ns), too_late, "{now_ns}");
        }
        assert!(!is_too_late(u64::MAX, u64::MAX), "a phase whose end is not known is not over");
    }
}
