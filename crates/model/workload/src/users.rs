//! The users of a workload and their passwords. Made ones follow from their number, and are never listed.

use std::collections::HashMap;

use crate::Purpose;
use crate::model::{UserRun, Workload};
use assay_base::random::hash;

/// All users of a workload: those written out by name, and runs of made ones by realm.
#[derive(Debug, Default)]
pub(crate) struct Users {
    named: HashMap<String, String>,
    /// Realms with their numbers of users.
    made: HashMap<String, u32>,
}

impl Users {
    pub(crate) fn new(workload: &Workload) -> Self {
        let mut this = Self::default();
        for run in workload.robots.iter().flat_map(|group| &group.credentials.users) {
            match run {
                UserRun::One { user, password } => {
                    this.named.insert(user.clone(), password.clone());
                }
                UserRun::Made { count, realm } => {
                    let known = this.made.entry(realm.clone()).or_default();
                    *known = (*known).max(*count);
                }
            }
        }
        this
    }

    /// The password of a user; none: there is no such user.
    pub(crate) fn password_of(&self, seed: u64, user: &str) -> Option<String> {
        if let Some(password) = self.named.get(user) {
            return Some(password.clone());
        }
        let (name, realm) = user.split_once('@')?;
        let n: u32 = name.strip_prefix("user")?.split_once('_')?.0.parse().ok()?;
        let (made, password) = made_user(seed, realm, n);
        (n < *self.made.get(realm)? && made == user).then_some(password)
    }
}

/// Name and password of the n-th made user (from 0) of a realm: `user<n>_<8 hex>@<realm>` and `pw<8 hex>x`.
pub fn made_user(seed: u64, realm: &str, n: u32) -> (String, String) {
    let of_realm = realm.bytes().fold(seed, |h, byte| hash(Purpose::User, &[h, u64::from(byte)]));
    let code = hash(Purpose::User, &[of_realm, u64::from(n)]);
    let (name, password) = ((code >> 32) as u32, code as u32);
    (format!("user{n}_{name:08x}@{realm}"), format!("pw{password:08x}x"))
}

impl UserRun {
    /// Number of users in it.
    pub(crate) fn size(&self) -> u64 {
        match self {
            Self::One { .. } => 1,
            Self::Made { count, .. } => u64::from(*count),
        }
    }
}
