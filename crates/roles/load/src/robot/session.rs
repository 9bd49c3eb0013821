//! Sessions of robots. An idle robot requests nothing and has no connections; back, it is somebody else as far as its
//! [`super::memory`] goes.
//!
//! Busy and idle periods are places in the schedule: where load adapts, they go along with it. Robots with a rate get their
//! sessions with their launches: the stream knows them. Those without one are woken when their idle period is over. What waits for a connection when a busy period ends is not sent any more.

use super::worker::{RobotKey, RobotTimerEvent, Worker};

impl Worker {
    /// Enters the session that a launch belongs to.
    pub fn enter_session(&mut self, robot: RobotKey, session: u64) {
        let Some(memory) = &mut self.robots[robot].memory else { return };
        if memory.enter(session) {
            self.close_idle(robot);
        }
    }

    /// Session of the next request of a robot without a rate. None: the robot is idle, and is woken later.
    pub fn session_of_next(&mut self, robot: RobotKey, now_ns: u64) -> Option<u64> {
        let Some(memory) = &mut self.robots[robot].memory else { return Some(0) };
        let (universe, launches) = (&self.setup.universe, self.schedule.launches());
        let at_ns = launches.schedule_ns(now_ns);
        match memory.state_at(universe, at_ns) {
            None => Some(0),
            Some(state) if state.busy => {
                memory.count_launch(universe, at_ns);
                Some(state.session)
            }
            Some(state) => {
                let wake_ns = launches.recheck_ns(state.until_ns, now_ns);
                if wake_ns < u64::MAX {
                    self.network.schedule(wake_ns, RobotTimerEvent::BestEffort(robot));
                }
                None
            }
        }
    }

    /// Looks for robots that have gone idle.
    pub fn check_sessions(&mut self, now_ns: u64) {
        let universe = self.setup.universe.clone();
        let at_ns = self.schedule.launches().schedule_ns(now_ns);
        for robot in self.robots.keys() {
            let Some(memory) = &mut self.robots[robot].memory else { continue };
            if memory.state_at(&universe, at_ns).is_none_or(|state| state.busy) {
                continue;
            }
            memory.forget();
            while let Some(xact_key) = self.pop_waiting(robot) {
                self.cancel(xact_key, now_ns);
            }
            self.close_idle(robot);
            // One that was cancelled may have been all that a robot without a rate had to do.
            self.fill_best_effort(robot);
        }
    }

    fn close_idle(&mut self, robot: RobotKey) {
        while let Some(connection_key) = self.robots[robot].idle.first {
            self.close(connection_key);
        }
    }
}
