//! Who a robot says it is, and whether that is the right password.

use crate::Purpose;
use crate::model::{RobotIndex, UserRun};
use crate::universe::Universe;
pub use crate::users::made_user;
use assay_base::random::{hash, unit_of};

/// Credentials that a robot sends in response to a challenge.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Login {
    pub user: String,
    /// The password it shows.
    pub password: String,
    /// Wrong password, on purpose.
    pub wrong: bool,
}

impl Universe {
    /// Login of a robot in one of its sessions (robots without sessions are always in session 0); none if it is anonymous. Users are
    /// assigned in turn: robot i of a group of n is user (i + n × session), modulo the length of the group's list.
    pub fn login(&self, robot: RobotIndex, session: u64) -> Option<Login> {
        let group = self.group_of(robot)?;
        let (table, credentials) = (&self.groups()[group], &self.workload().robots[group].credentials);
        let total: u64 = credentials.users.iter().map(UserRun::size).sum();
        if total == 0 {
            return None;
        }
        let turn = session.wrapping_mul(u64::from(table.count)).wrapping_add(u64::from(robot - table.first));
        let mut left = turn % total;
        let run = credentials.users.iter().find(|run| {
            let here = left < run.size();
            if !here {
                left -= run.size();
            }
            here
        })?;
        let (user, password) = match run {
            UserRun::One { user, password } => (user.clone(), password.clone()),
            UserRun::Made { realm, .. } => made_user(self.seed(), realm, left as u32),
        };
        let wrong = self.has_wrong_password(robot, session, credentials.wrong_share);
        let password = if wrong { format!("{password}-wrong") } else { password };
        Some(Login { user, password, wrong })
    }

    /// True if a robot has no users: it is anonymous.
    pub fn is_anonymous(&self, robot: RobotIndex) -> bool {
        let Some(group) = self.group_of(robot) else { return true };
        self.workload().robots[group].credentials.users.iter().all(|run| run.size() == 0)
    }

    /// True if a robot has a user and sends the right password in this session.
    pub fn has_valid_login(&self, robot: RobotIndex, session: u64) -> bool {
        let Some(group) = self.group_of(robot) else { return false };
        let wrong_share = self.workload().robots[group].credentials.wrong_share;
        !self.is_anonymous(robot) && !self.has_wrong_password(robot, session, wrong_share)
    }

    fn has_wrong_password(&self, robot: RobotIndex, session: u64, wrong_share: f64) -> bool {
        let words = [self.seed(), u64::from(robot), session];
        wrong_share > 0.0 && unit_of(hash(Purpose::WrongPassword, &words)) < wrong_share
    }

    /// The password of a user; none: there is no such user. For origins and proxies that check.
    pub fn password_of(&self, user: &str) -> Option<String> {
        self.users().password_of(self.seed(), user)
    }
}
