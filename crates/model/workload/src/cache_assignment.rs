//! Which robot speaks to which cache, where there are several.
//!
//! A pure function of the robot and of the settings. Weights are kept as closely as whole robots allow, within
//! every group of robots and however many of its first ones are taken: the next robot goes where most is missing.

use std::net::SocketAddr;

use crate::model::Workload;
use serde::{Deserialize, Serialize};
use thiserror::Error;

/// One of the caches that robots speak to.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Listener {
    pub proxy: SocketAddr,
    pub robots: Share,
}

/// Robots of a cache.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Share {
    /// As many as its weight says, of every group that no other cache names; 0: none.
    Weight(f64),
    /// Robots of these groups (the `kind` of their PGL object). Several caches that name a group have equal parts of it.
    Groups(Vec<String>),
}

/// Assignment that is impossible.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum AssignmentError {
    /// No group is called so.
    #[error("no robots of the workload are called `{name}`; it has: {known}")]
    Unknown { name: String, known: String },
    /// A group that no cache gets.
    #[error("the robots called `{0}` have no cache: name them for one, or give one a weight above 0")]
    NoCacheForGroup(String),
}

/// The place of each robot's cache in the list, in the order of robots.
pub fn assign_caches(shares: &[&Share], workload: &Workload) -> Result<Vec<u16>, AssignmentError> {
    let kinds: Vec<&str> = workload.robots.iter().map(|group| group.kind.as_str()).collect();
    for share in shares {
        let Share::Groups(names) = share else { continue };
        if let Some(name) = names.iter().find(|name| !kinds.contains(&name.as_str())) {
            return Err(AssignmentError::Unknown { name: name.clone(), known: kinds.join(", ") });
        }
    }
    let mut all = Vec::new();
    for group in &workload.robots {
        let count: u32 = group.addresses.iter().map(|run| run.count).sum();
        let weights = weights(shares, &group.kind);
        if count > 0 && weights.iter().sum::<f64>() <= 0.0 {
            return Err(AssignmentError::NoCacheForGroup(group.kind.clone()));
        }
        deal(&weights, count, &mut all);
    }
    Ok(all)
}

/// Weight of each cache for a group.
fn weights(shares: &[&Share], kind: &str) -> Vec<f64> {
    let names =
        |share: &&Share| matches!(share, Share::Groups(names) if names.iter().any(|name| name == kind));
    let is_named = shares.iter().any(names);
    let weight = |share: &&Share| match share {
        Share::Weight(weight) if !is_named => weight.max(0.0),
        _ => f64::from(u8::from(names(share))),
    };
    shares.iter().map(weight).collect()
}

/// Deals robots one by one, each to whom most is missing; the first of equals.
fn deal(weights: &[f64], count: u32, out: &mut Vec<u16>) {
    let total: f64 = weights.iter().sum();
    let mut missing = vec![0.0; weights.len()];
    for _ in 0..count {
        let mut next = 0;
        for (place, weight) in weights.iter().enumerate() {
            missing[place] += weight / total;
            // A little more than nothing: sums of thirds are not quite ones.
            if missing[place] > missing[next] + 1e-9 {
                next = place;
            }
        }
        missing[next] -= 1.0;
        out.push(next as u16);
    }
}

#[cfg(test)]
mod tests {
    use crate::model::{RobotAddress, RobotGroup};
    use proptest::prelude::*;

    use super::*;

    fn workload(groups: &[(&str, u32)]) -> Workload {
        let group = |&(kind, count): &(&str, u32)| RobotGroup {
            kind: kind.into(),
            addresses: vec![RobotAddress { host: "10.0.0.1".into(), count }],
            ..RobotGroup::default()
        };
        Workload { robots: groups.iter().map(group).collect(), ..Workload::default() }
    }

    fn named(names: &[&str]) -> Share {
        Share::Groups(names.iter().map(|name| (*name).to_owned()).collect())
    }

    #[test]
    fn equal_weights_take_turns_within_each_group() {
        let share = Share::Weight(1.0);
        let dealt = assign_caches(&[&share, &share, &share], &workload(&[("a", 4), ("b", 3)])).unwrap();
        assert_eq!(dealt, [0, 1, 2, 0, 0, 1, 2]);
        let dealt =
            assign_caches(&[&Share::Weight(0.0), &Share::Weight(2.0)], &workload(&[("a", 2)])).unwrap();
        assert_eq!(dealt, [1, 1]);
    }

    #[test]
    fn named_groups_go_to_who_named_them_and_all_others_by_weight() {
        let (left, right, rest) = (named(&["l"]), named(&["r", "l"]), Share::Weight(1.0));
        let workload = workload(&[("l", 2), ("r", 2), ("x", 2)]);
        assert_eq!(assign_caches(&[&left, &right, &rest], &workload).unwrap(), [0, 1, 1, 1, 2, 2]);
        assert_eq!(
            assign_caches(&[&left, &right], &workload),
            Err(AssignmentError::NoCacheForGroup("x".into()))
        );
        let error = assign_caches(&[&named(&["z"]), &rest], &workload).unwrap_err().to_string();
        assert!(error.contains("`z`; it has: l, r, x"), "{error}");
    }

    proptest! {
        #[test]
        fn weights_are_kept_to_within_a_robot_from_the_first_on(
            weights in proptest::collection::vec(0.0f64..5.0, 1..6),
            count in 0u32..200,
        ) {
            let total: f64 = weights.iter().sum();
            prop_assume!(total > 0.1);
            let shares: Vec<Share> = weights.iter().map(|weight| Share::Weight(*weight)).collect();
            let shares: Vec<&Share> = shares.iter().collect();
            let dealt = assign_caches(&shares, &workload(&[("a", count)])).unwrap();
            prop_assert_eq!(dealt.len(), count as usize);
            for first in 0..=dealt.len() {
                for (place, weight) in weights.iter().enumerate() {
                    let has = dealt[..first].iter().filter(|at| usize::from(**at) == place).count() as f64;
                    let due = first as f64 * weight / total;
                    prop_assert!((has - due).abs() < weights.len() as f64, "{has} of {due}");
                }
            }
        }
    }
}
